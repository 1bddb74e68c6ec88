"""Two sources of results → one HTML file with the changes in each row."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

from msgspec import Struct

from pearl.errors.escaping import counted
from pearl.interpreter.row import id_of, read_row
from pearl.llm.prices import read_prices
from pearl.view.listing import COLUMNS, MAX_ITEMS, MAX_TEXT, Totals, cells_of, details_of, text_of
from pearl.view.page import render_page
from pearl.view.sources import ResultSource

MAX_PAIRS = 500  # Maximum changed rows on the page
MAX_COMPARED = 1_000  # Maximum steps and passages of a row that are compared
MAX_PIECES = 1_500
"""Maximum words, or else lines, that are aligned; longer texts are shown whole, one after the other."""
KINDS = ("status", "answer", "plan", "steps", "evidence", "question", "only in one")
"""Kinds of changes in a row."""


class Change(Struct, frozen=True):
    """A piece of text that both texts have (`same`), or only the first (`gone`) or the second (`new`)."""

    kind: str
    text: str


class Pair(Struct, frozen=True):
    """Corresponding rows; None if only the other source has one."""

    first: Mapping[str, Any] | None
    second: Mapping[str, Any] | None


def differences(first: str, second: str, *, by_line: bool = False) -> list[Change]:
    """The differences between two texts by words, or by lines if a text is long; of very long texts, one is `gone` and the other `new`."""
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
    """Pair rows with the same id, else with the same question and document; rows that only the second source has come last."""

    def by_id(row: Mapping[str, Any]) -> Any:
        return text_of(id_of(row), MAX_TEXT) or None

    def by_question(row: Mapping[str, Any]) -> Any:
        question = text_of(row.get("question"), MAX_TEXT)
        return (question, text_of(row.get("document"), MAX_TEXT)) if question else None

    before, after = list(first), list(second)
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for key in (by_id, by_question):
        free: dict[Any, deque[int]] = defaultdict(deque)
        for j, row in enumerate(after):
            if j not in taken and key(row) is not None:
                free[key(row)].append(j)
        for i, row in enumerate(before):
            if i not in partner and free.get(key(row)):
                partner[i] = free[key(row)].popleft()
                taken.add(partner[i])
    for i, row in enumerate(before):
        yield Pair(row, after[partner[i]] if i in partner else None)
    yield from (Pair(None, row) for j, row in enumerate(after) if j not in taken)


class _Side(Struct, frozen=True):
    """A row of one source: its short line, and its full texts."""

    line: dict[str, Any]
    texts: dict[str, Any]

    @property
    def answer(self) -> str:
        """The answer, or the error of a failed row."""
        return self.texts["answer"] or self.texts["error"] or ""

    def parts(self) -> dict[str, Any]:
        """The parts to compare, by kind."""
        return {
            "status": self.line["status"],
            "answer": self.answer,
            "plan": self.texts["plan"],
            "steps": [each[:2] for each in self.texts["steps"]],  # without their states
            "evidence": sorted(self.texts["evidence"]),
            "question": (self.texts["question"], self.line["document"]),
        }


def comparison_page(first: ResultSource, second: ResultSource) -> str:
    """The page of changes between two sources: all changes are counted, the first `MAX_PAIRS` changed rows are shown."""
    prices, totals = read_prices(), (Totals(), Totals())
    by_kind: Counter[str] = Counter()
    n_same = n_changed = 0
    pairs: list[dict[str, Any]] = []
    for pair in aligned((row for _, row in first.rows()), (row for _, row in second.rows())):
        sides: list[_Side | None] = []
        for total, row in zip(totals, (pair.first, pair.second), strict=True):
            if row is None:
                sides.append(None)
                continue
            read = read_row(row)
            cells = cells_of(read, prices)
            total.add(cells)
            line = dict(zip(COLUMNS, cells, strict=True))
            sides.append(_Side(line, details_of(read, MAX_COMPARED)))
        before, after = sides
        kinds = ["only in one"]
        if before and after:
            old, new = before.parts(), after.parts()
            kinds = [kind for kind in KINDS if kind in old and old[kind] != new[kind]]
        by_kind.update(kinds)
        n_same += not kinds
        n_changed += bool(kinds)
        if kinds and len(pairs) < MAX_PAIRS:
            pairs.append(_format_row(kinds, *sides))
    statuses = sorted(totals[0].by_status | totals[1].by_status)
    facts = zip(*(each.facts(statuses) for each in totals), strict=True)
    return render_page(
        "comparison",
        f"{first.title} and {second.title}",
        titles=(first.title, second.title),
        totals=totals,
        facts=[(name, before, after) for (name, before), (_, after) in facts],
        kinds=[(kind, by_kind[kind]) for kind in KINDS if by_kind[kind]],
        same=counted(n_same, "row"),
        changed=counted(n_changed, "row"),
        n_changed=n_changed,
        pairs=pairs,
        problems=[*first.problems[:20], *second.problems[:20]],
    )


def _format_row(kinds: list[str], a: _Side | None, b: _Side | None) -> dict[str, Any]:
    """The template data for two rows, one of which may be missing."""
    some = a or b
    assert some is not None, "a pair has a row"
    lines = [side and side.line for side in (a, b)]
    question = some.texts["question"]
    shown: dict[str, Any] = {
        "id": some.line["id"] or "(no id)", "kinds": kinds, "sides": lines,
        "documents": [line["document"] if line else "" for line in lines],
        "question": [Change("same", question)], "answer": [Change("same", some.answer)],
        "plan": [], "steps": [],
    }  # fmt: skip
    texts = [side.texts if side else {"evidence": []} for side in (a, b)]
    gone, new = (Counter(map(tuple, each["evidence"])) for each in texts)
    shown["gone"] = list((gone - new).elements())[:MAX_ITEMS]
    shown["new"] = list((new - gone).elements())[:MAX_ITEMS]
    if a and b:
        shown["question"] = differences(question, b.texts["question"])
        shown["answer"] = differences(a.answer, b.answer)
        if "plan" in kinds:
            shown["plan"] = differences(a.texts["plan"], b.texts["plan"], by_line=True)
        # Changed, missing and new steps, paired by name
        left = {name: value for name, value, _ in b.texts["steps"]}
        for name, value, _ in a.texts["steps"]:
            if name not in left:
                shown["steps"].append((name, "gone", [Change("gone", value)]))
            elif (other := left.pop(name)) != value:
                shown["steps"].append((name, "changed", differences(value, other)))
        shown["steps"] += [(name, "new", [Change("new", value)]) for name, value in left.items()]
    return shown
