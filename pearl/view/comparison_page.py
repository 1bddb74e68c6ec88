"""Two sources of results → one HTML file with what changed from the first to the second, row by row."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from pearl.llm.prices import Prices, read_prices
from pearl.view.listing import COLUMNS, MAX_ITEMS, Totals, cells_of, number_of, text_of
from pearl.view.page import render_page
from pearl.view.sources import ResultSource, id_of

MAX_PAIRS = 500
"""Rows that changed, and are shown with what changed in them."""
MAX_TEXT = 10_000
"""Characters of a text that are compared."""
MAX_PIECES = 1_500
"""Words, or else lines, on each side that are aligned; of longer texts both are shown whole."""
KINDS = ("status", "answer", "plan", "steps", "evidence", "question", "only in one")
"""What can change in a row."""


@dataclass(frozen=True, slots=True)
class Change:
    """A piece of two texts: `same`, `gone` from the first, or `new` in the second."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Rows that belong together; None where only the other source has one."""

    first: Mapping[str, Any] | None
    second: Mapping[str, Any] | None


def differences(first: str, second: str, *, by_line: bool = False) -> list[Change]:
    """What changed from one text to another, by words or by lines.

    Texts are cut after `MAX_TEXT` characters. Those of more than `MAX_PIECES` words are compared by
    lines, and of more lines than that by no piece: one is gone, the other new.
    """
    first, second = text_of(first, MAX_TEXT), text_of(second, MAX_TEXT)
    pattern = r"[^\n]*\n|[^\n]+" if by_line else r"\s+|\w+|[^\w\s]"
    a, b = re.findall(pattern, first), re.findall(pattern, second)
    if max(len(a), len(b)) > MAX_PIECES:
        if not by_line:
            return differences(first, second, by_line=True)
        return [Change(k, t) for k, t in (("gone", first), ("new", second)) if t]
    found: list[Change] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            found.append(Change("same", "".join(a[i:j])))
            continue
        if j > i:
            found.append(Change("gone", "".join(a[i:j])))
        if m > k:
            found.append(Change("new", "".join(b[k:m])))
    return found


def aligned(
    first: Iterable[Mapping[str, Any]], second: Iterable[Mapping[str, Any]]
) -> Iterator[Pair]:
    """Rows that belong together: of the same id, else of the same question and document.

    Rows of the same id are taken in their order. Those of the first come in their order, then those
    that only the second has.
    """
    before, after = list(first), list(second)
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for key in (_id, _task):
        free: dict[Any, deque[int]] = defaultdict(deque)
        for j, row in enumerate(after):
            if j not in taken and key(row) is not None:
                free[key(row)].append(j)
        for i, row in enumerate(before):
            if i not in partner and key(row) is not None and free.get(key(row)):
                partner[i] = free[key(row)].popleft()
                taken.add(partner[i])
    for i, row in enumerate(before):
        yield Pair(row, after[partner[i]] if i in partner else None)
    yield from (Pair(None, row) for j, row in enumerate(after) if j not in taken)


def comparison_page(first: ResultSource, second: ResultSource, prices: Prices | None = None) -> str:
    """What changed between two sources of results.

    Both are read whole. The counts are of all rows; of those that changed the first `MAX_PAIRS` are shown.
    """
    prices = prices or read_prices()
    totals = Totals(), Totals()
    by_kind: Counter[str] = Counter()
    n_same = n_changed = 0
    shown: list[dict[str, Any]] = []
    for pair in aligned((row for _, row in first.rows()), (row for _, row in second.rows())):
        sides = [
            None if row is None else cells_of(row, prices) for row in (pair.first, pair.second)
        ]
        for total, cells in zip(totals, sides, strict=True):
            if cells is not None:
                total.add(cells)
        kinds = _kinds(pair)
        by_kind.update(kinds)
        if not kinds:
            n_same += 1
            continue
        n_changed += 1
        if len(shown) < MAX_PAIRS:
            lines = [None if c is None else dict(zip(COLUMNS, c, strict=True)) for c in sides]
            shown.append(_shown(pair, kinds, lines))
    return render_page(
        "comparison",
        f"{first.title} and {second.title}",
        titles=(first.title, second.title),
        totals=totals,
        facts=_facts(*totals),
        kinds=[(kind, by_kind[kind]) for kind in KINDS if by_kind[kind]],
        n_same=n_same,
        n_changed=n_changed,
        pairs=shown,
        problems=[*first.problems[:20], *second.problems[:20]],
    )


def _id(row: Mapping[str, Any]) -> Any:
    return text_of(id_of(row), MAX_TEXT) or None


def _task(row: Mapping[str, Any]) -> Any:
    question = text_of(row.get("question"), MAX_TEXT)
    return (question, text_of(row.get("document"), MAX_TEXT)) if question else None


def _kinds(pair: Pair) -> list[str]:
    """What differs, of `KINDS`."""
    a, b = pair.first, pair.second
    if a is None or b is None:
        return ["only in one"]
    sides = {
        "status": _status,
        "answer": _said,
        "plan": lambda row: text_of(row.get("plan"), MAX_TEXT),
        "steps": _steps,
        "evidence": lambda row: sorted(_evidence(row)),
        "question": _task,
    }
    return [kind for kind in KINDS if kind in sides and sides[kind](a) != sides[kind](b)]


def _shown(pair: Pair, kinds: list[str], lines: list[dict[str, Any] | None]) -> dict[str, Any]:
    a, b = pair.first or {}, pair.second or {}
    gone, new = Counter(_evidence(a)), Counter(_evidence(b))
    return {
        "id": _id(a) or _id(b) or "(no id)",
        "question": differences(_question(a), _question(b))
        if a and b
        else [Change("same", _question(a or b))],
        "documents": [text_of(row.get("document"), 200) for row in (a, b)],
        "kinds": kinds,
        "sides": lines,
        "answer": differences(_said(a), _said(b)) if a and b else [Change("same", _said(a or b))],
        "plan": differences(
            text_of(a.get("plan"), MAX_TEXT), text_of(b.get("plan"), MAX_TEXT), by_line=True
        )
        if "plan" in kinds
        else [],
        "steps": list(_step_changes(_steps(a), _steps(b))) if "steps" in kinds else [],
        "gone": list((gone - new).elements())[:MAX_ITEMS],
        "new": list((new - gone).elements())[:MAX_ITEMS],
    }


def _step_changes(
    a: list[tuple[str, str, str]], b: list[tuple[str, str, str]]
) -> Iterator[tuple[str, str, list[Change]]]:
    """Steps that changed: those of one output belong together, else those of one action."""
    left = list(b)
    for output, action, value in a:
        at = next((k for k, step in enumerate(left) if step[0] == output), None)
        if at is None:
            at = next(
                (
                    k
                    for k, step in enumerate(left)
                    if step[1] == action and all(step[0] != s[0] for s in a)
                ),
                None,
            )
        if at is None:
            yield f"{output} = {action}", "gone", [Change("gone", value)]
            continue
        other = left.pop(at)
        if (output, action, value) != other:
            is_named = (output, action) == other[:2]
            name = f"{output} = {action}"
            yield (
                name if is_named else f"{name}, now {other[0]} = {other[1]}",
                "changed",
                differences(value, other[2]),
            )
    for output, action, value in left:
        yield f"{output} = {action}", "new", [Change("new", value)]


def _question(row: Mapping[str, Any]) -> str:
    return text_of(row.get("question"), MAX_TEXT)


def _status(row: Mapping[str, Any]) -> str:
    return text_of(row.get("status"), 40)


def _said(row: Mapping[str, Any]) -> str:
    """The answer, or why there is none."""
    error = row.get("error")
    told = error.get("message") if isinstance(error, dict) else None
    return text_of(row.get("answer"), MAX_TEXT) or text_of(told, MAX_TEXT)


def _steps(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    steps = row.get("steps")
    return [
        (
            text_of(s.get("output"), 200),
            text_of(s.get("action"), 200),
            text_of(s.get("value"), MAX_TEXT),
        )
        for s in (steps if isinstance(steps, list) else [])[:1_000]
        if isinstance(s, dict)
    ]


def _evidence(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Text and place of each passage, by which it is the same one."""
    found = row.get("evidence")
    return [
        (
            text_of(each.get("text"), 2_000),
            f"{text_of(each.get('source'), 200)}, {number_of(each.get('start')) or 0:,}-{number_of(each.get('end')) or 0:,}",
        )
        for each in (found if isinstance(found, list) else [])[:10_000]
        if isinstance(each, dict)
    ]


def _facts(a: Totals, b: Totals) -> list[tuple[str, str, str]]:
    """Totals of both, in words."""
    facts = [("rows", f"{a.n:,}", f"{b.n:,}")]
    facts += [
        (status.replace("_", " "), f"{a.by_status[status]:,}", f"{b.by_status[status]:,}")
        for status in sorted(a.by_status | b.by_status)
    ]
    return [
        *facts,
        ("tokens in", f"{a.tokens_in:,.0f}", f"{b.tokens_in:,.0f}"),
        ("tokens out", f"{a.tokens_out:,.0f}", f"{b.tokens_out:,.0f}"),
        ("cost", a.cost, b.cost),
        ("quotes not borne out", f"{a.unverified:,.0f}", f"{b.unverified:,.0f}"),
        ("seconds of all rows", f"{a.seconds:,.1f}", f"{b.seconds:,.1f}"),
    ]
