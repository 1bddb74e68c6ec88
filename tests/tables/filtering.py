"""What a query has to give, written down a second time: for tests and nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from pearl.tables.specification import AllOf, AnyOf, Condition, Not, Where

Record = Mapping[str, str]


def plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(kept.casefold().split())


def meets(record: Record, where: Where | None, numeric: Sequence[str] = ()) -> bool | None:
    """Whether a record meets a condition; None if that is undecided."""
    match where:
        case None:
            return True
        case AllOf():
            said = [meets(record, one, numeric) for one in where.all]
            return False if False in said else None if None in said else True
        case AnyOf():
            said = [meets(record, one, numeric) for one in where.any]
            return True if True in said else None if None in said else False
        case Not():
            inner = meets(record, where.no, numeric)
            return None if inner is None else not inner
        case Condition():
            return _meets(record[where.column], where, where.column in numeric)


def _meets(cell: str, one: Condition, is_numeric: bool) -> bool | None:
    match one.op:
        case "is empty":
            return plain(cell) == ""
        case "is not empty":
            return plain(cell) != ""
        case "contains":
            return _contains(cell, one.value[0])
        case "does not contain":
            return not _contains(cell, one.value[0])
        case "is" | "in" | "is not" | "not in":
            same = _same(cell, one.value, is_numeric)
            return same if one.op in ("is", "in") or same is None else not same
    if not cell.strip():
        return False
    number = _number(cell)
    if number is None:
        return None
    wanted = float(one.value[0])
    return {
        "before": number < wanted,
        "after": number > wanted,
        "at least": number >= wanted,
        "at most": number <= wanted,
    }[one.op]


def _same(cell: str, values: Sequence[str], is_numeric: bool) -> bool | None:
    if not is_numeric:
        return plain(cell) in map(plain, values)
    if not cell.strip():
        return False
    number = _number(cell)
    return None if number is None else number in map(float, values)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _contains(cell: str, value: str) -> bool:
    """Whether the words stand in the cell one after another, the last one at least in part."""
    text, wanted = plain(cell), plain(value)
    words = re.findall(r"[a-z0-9]+", wanted.replace("'", ""))
    if not wanted.isascii() or not words:
        return wanted in text
    if set(wanted) & set("%()+") and wanted not in text:
        return False
    pattern = r"(?<![^\W_])" + r"[\W_]+".join(words)
    return re.search(pattern, re.sub(r"(?<=\w)'(?=\w)", "", text)) is not None
