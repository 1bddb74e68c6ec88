"""Pages of financial reports, with conversations about their figures, as in ConvFinQA.

Reads its cleaned form: `doc` with `pre_text`, `post_text`, `table` (column → row → cell), and `dialogue` with
`conv_questions`, `conv_answers`, `turn_program`, `executed_answers`; each turn is a sample.

The reference of a sample is the result of its program, as executed by the authors; the annotators' answer is
kept as `said`, the program as `program`, the conversation as `dialogue`. A question is kept unchanged, even
if it refers to earlier ones; the first questions of conversations are the subset `first`. Other rows are read as in `generic`.

Source:
    Chen et al., ConvFinQA (EMNLP 2022).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pearl.data.domains import Domain, Source
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:  # the modules that read data are imported when data is read
    from pearl.data.rows import Names, Row
    from pearl.data.samples import Sample
    from pearl.documents.document import Document

DOMAIN = Domain(
    "Financial reports, as in ConvFinQA",
    library="finance",
    examples="finance",
    formats=(frozenset({"doc", "dialogue"}),),
    is_dated=True,
)

_OPERAND = lazy_pattern(r"(?<![#_\w.])-?\d*\.?\d+%?")
"""A number of a program, other than `#0` and `const_100`."""

_NUMBER = lazy_pattern(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?|(?<![\w.,])\.\d+")
_SENTENCE = lazy_pattern(r".+?(?:\s\.(?=\s|$)|[.;](?=\s+[A-Z(]|$)|$)", re.DOTALL)
_SPLITS = ("train", "dev", "test")
_KINDS = ("Single", "Double")  # Single_JKHY/2009/page_28.pdf-3
_FEATURES = {
    "has_duplicate_columns": "duplicate columns",
    "has_non_numeric_values": "non-numeric values",
}
"""Fields of `features` in the cleaned data, as subsets."""


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file or a dataset."""
    from pearl.data.domains.generic import FIELDS
    from pearl.data.rows import Names, from_rows, rename

    names = Names()
    own = frozenset[str]().union(*DOMAIN.formats)
    rows = rename(source.rows(), source.columns, [*FIELDS, *sorted(own), "table"])
    return from_rows(rows, lambda row: _of_splits(row, names))


def page_text(before: str, rows: Sequence[Sequence[str]], after: str) -> str:
    """A page: the text before the table, the table in Markdown, and the text after it."""
    from pearl.documents.table import markdown

    width = max(map(len, rows), default=0)
    filled = [[*row, *[""] * (width - len(row))] for row in rows]
    table = ""
    if filled:
        first, *others = filled[0]
        table = markdown([first if first.strip() else "item", *others], filled[1:])
    return "\n\n".join(part for part in (before.strip(), table, after.strip()) if part)


def operands(program: str) -> frozenset[Decimal]:
    """The numbers of a program without signs and constants; a percentage also as a fraction."""
    found: set[Decimal] = set()
    for number in _OPERAND.findall(program):
        value = abs(Decimal(number.rstrip("%")))
        found |= {value, value.scaleb(-2)} if number.endswith("%") else {value}
    return frozenset(found)


def gold_passages(page: str, program: str) -> tuple[str, ...]:
    """The table rows, else the sentences, that contain a number of the program, with any sign; a few may be wrong."""
    passages = []
    for text, is_row in _passages(page):
        # In a row, those of all cells except the first, which is its name
        stated = " ".join(re.split(r"(?<!\\)\|", text)[2:]) if is_row else text
        numbers = {Decimal(each.replace(",", "")) for each in _NUMBER.findall(stated)}
        passages.append((text, is_row, numbers))
    found: set[int] = set()
    for number in operands(program):
        holding = [i for i, (_, _, numbers) in enumerate(passages) if number in numbers]
        rows = [i for i in holding if passages[i][1]]
        found.update(rows or holding)
    return tuple(passages[i][0] for i in sorted(found))


def _passages(page: str) -> Iterator[tuple[str, bool]]:
    """The rows below the table's head, and the sentences, each with whether it is a row."""
    lines = page.split("\n")
    head = next((i for i, line in enumerate(lines) if line.startswith("| ---")), 0)
    for i, line in enumerate(lines):
        if line.startswith("| "):
            if i > head:
                yield line, True
            continue
        for sentence in _SENTENCE.findall(line):
            if sentence.strip():
                yield sentence.strip(), False


def _of_splits(row: Row, names: Names) -> Iterator[Sample | DataError]:
    """The samples of a row; an object with all splits gives the samples of each, with the split as a subset."""
    splits = {name: row.fields[name] for name in _SPLITS if isinstance(row.fields.get(name), list)}
    if not splits or "question" in row.fields:
        yield from _samples(row, names)
        return
    for split, rows in splits.items():
        for number, fields in enumerate(rows, start=1):
            try:
                if not isinstance(fields, dict):
                    raise row.error("not an object")
                for sample in _samples(replace(row, fields=fields), names):
                    yield dataclasses.replace(sample, subsets=sample.subsets | {split})
            except DataError as error:
                yield row.within(f"{split}, number {number}", error)


def _samples(row: Row, names: Names) -> Iterator[Sample]:
    fields = row.fields
    is_own = not {"document", "document_path"} & fields.keys()
    if is_own and isinstance(fields.get("doc"), dict) and "dialogue" in fields:
        yield from _conversation(row, names, _page(row, fields["doc"], names))
    else:
        from pearl.data.domains.generic import make_sample

        yield make_sample(row, names)


def _column(row: Row, values: Any, n: int) -> list[Any]:
    if values is None:
        return [None] * n
    if not isinstance(values, list) or len(values) != n:
        raise row.error(f"there are not as many programs or answers as questions, {n}")
    return values


def _executed(value: Any) -> str | None:
    """The result of a program in digits, if known."""
    if isinstance(value, bool | None):
        return None
    if isinstance(value, int | float):
        digits = format(Decimal(repr(value)), "f")
        return digits.removesuffix(".0") if digits != "-0.0" else "0"
    return str(value).strip() or None


def _conversation(row: Row, names: Names, page: Document) -> Iterator[Sample]:
    """One sample per turn; private test sets have neither programs nor answers."""
    from pearl.data.samples import Sample

    said = row.fields["dialogue"]
    if not isinstance(said, dict):
        raise row.error("'dialogue' is not an object")
    texts = said.get("conv_questions")
    if not isinstance(texts, list) or not texts:
        raise row.error("'conv_questions' is not an array of questions")
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise row.error("'conv_questions': a question is blank or not text")
    programs, executed, answers = (
        _column(row, said.get(name), len(texts))
        for name in ("turn_program", "executed_answers", "conv_answers")
    )
    dialogue = row.name("id") or str(row.line)
    kind = dialogue.partition("_")[0]
    features = row.fields.get("features")
    features = features if isinstance(features, dict) else {}
    subsets = {name for field, name in _FEATURES.items() if features.get(field) is True}
    subsets |= {kind.lower()} if kind in _KINDS else set()
    for i, text in enumerate(texts):
        program = programs[i].strip() if isinstance(programs[i], str) else ""
        kept = {"dialogue": dialogue, "program": program}
        kept |= {} if answers[i] is None else {"said": str(answers[i])}
        yield Sample(
            names.claim_id(f"{dialogue}/{i + 1}", row),
            " ".join(text.split()),
            page,
            reference=_executed(executed[i]),
            subsets=frozenset(subsets if i else {*subsets, "first"}),
            gold_passages=gold_passages(page.text, program),
            extra={name: value for name, value in kept.items() if value},
        )


def _page(row: Row, doc: Mapping[str, Any], names: Names) -> Document:
    """The page; questions about one page share it."""
    from pearl.data.domains.generic import inline

    before, after = (doc.get(name) or "" for name in ("pre_text", "post_text"))
    if not isinstance(before, str) or not isinstance(after, str):
        raise row.error("'pre_text' or 'post_text' is not text")
    before, after = (text if text.strip() != "." else "" for text in (before, after))
    text = page_text(before, _rows(row, doc.get("table") or {}), after)
    id = row.name("id") or str(row.line)
    kind, _, name = id.partition("_")
    name = name if kind in _KINDS and name else id
    page, dash, number = name.rpartition("-")  # page_28.pdf-3
    name = page if dash and number.isdecimal() else name
    return inline(replace(row, fields={"page": text}), "page", name, names)


def _rows(row: Row, table: Any) -> list[list[str]]:
    """The rows of a table, which is an object of columns."""
    if not isinstance(table, dict) or not all(isinstance(cells, dict) for cells in table.values()):
        raise row.error("'table' is not an object of columns")
    labels = dict.fromkeys(label for cells in table.values() for label in cells)
    rows = [["item", *table]] if table else []
    for label in labels:
        cells = (column.get(label) for column in table.values())
        shown = (f"{cell:,.10g}" if isinstance(cell, float) else cell for cell in cells)
        rows.append([label, *("" if cell is None else str(cell) for cell in shown)])
    return rows
