"""A query → a plan; a window and an oracle → a session that answers queries by plans."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aggregation.oracle import Oracle
from aggregation.queries import MONTHS, Condition, Query, UserPredicate, answers_in
from aggregation.windows import Window

from pearl import Answer, Document, Pearl
from pearl.actions.values import Scalar, as_text
from pearl.errors import ModelError
from pearl.llm import Constrains, Request
from pearl.llm.backends.scripted import Scripted


class _Steps:
    """Numbered steps; `add` gives the name of the new one's output."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[str, str] = {}

    def add(self, output: str, call: str, goal: str) -> str:
        """One step, or the earlier one that does the same."""
        if call not in self._known:
            taken = sum(name.rstrip("0123456789") == output for name in self._known.values())
            self._known[call] = f"{output}{taken + 1}" if taken else output
            self.lines.append(f"{len(self.lines) + 1}. {self._known[call]} = {call} : {goal}")
        return self._known[call]

    def text(self) -> str:
        """The plan; the last step gives the answer."""
        steps = "\n".join(self.lines)
        return f"New actions:\n- None\n\n{steps}\n"


def plan_of(
    query: Query, labels: Sequence[str], *, about: str = "the kind of thing asked for"
) -> str:
    """The plan that answers a query over a window."""
    steps = _Steps()
    rows = steps.add("entries", 'SPLIT(CTX, "entry")', "One row for each entry")
    if query.reads_labels:
        texts = steps.add("texts", f'FIELD({rows}, "Instance")', "The text alone")
        rows = steps.add(
            "label", f"CLASSIFY({texts}, {_quoted(labels)}, {_quoted(about)})", "Label each"
        )
    if query.ask == "pairs":
        _pairs(query, rows, steps)
    else:
        _answer(query, _scoped(query, rows, steps), steps)
    return steps.text()


def _quoted(value: str | Sequence[str]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _where(
    rows: str, name: str, operator: str, value: str | Sequence[str], output: str, steps: _Steps
) -> str:
    call = f"WHERE({rows}, {_quoted(name)}, {_quoted(operator)}, {_quoted(value)})"
    return steps.add(output, call, "The entries asked about")


def _scoped(query: Query, rows: str, steps: _Steps) -> str:
    """Only the entries that the query is about."""
    if query.users:
        rows = _where(rows, "User", "in", query.users, "theirs", steps)
    if query.month:
        rows = _where(rows, "Date", "contains", MONTHS[query.month - 1], "within", steps)
    if query.between:
        start, end = query.between
        rows = _where(rows, "Date", "at least", start.isoformat(), "since", steps)
        rows = _where(rows, "Date", "at most", end.isoformat(), "within", steps)
    if query.of != "label" and query.label:
        rows = _where(rows, "label", "is", query.label, "wanted", steps)
    return rows


def _answer(query: Query, rows: str, steps: _Steps) -> None:
    field = {"label": "label", "user": "User", "date": "Date"}[query.of]
    match query.ask:
        case "most" | "least" | "second":
            counts = steps.add("counts", f"GROUP({rows}, {_quoted(field)})", "Count each")
            rank = {"most": 1, "least": -1, "second": 2}[query.ask]
            steps.add("ans", f'NTH({counts}, "count", {rank})', "The one asked for")
        case "count" | "compare":
            one = _count_of(
                rows, field, query.label, "ans" if query.ask == "count" else "one", steps
            )
            if query.ask == "compare":
                other = _count_of(rows, field, query.other, "other", steps)
                steps.add("ans", f"RELATION({one}, {other})", "More, less or the same")
        case "dates_seen":
            days = steps.add("days", f"GROUP({rows}, {_quoted(field)})", "The entries of each date")
            exact = steps.add(
                "exact", f'WHERE({days}, "count", "is", {query.n})', "Those seen so often"
            )
            steps.add("ans", f"COUNT({exact})", "How many")
        case "shares":
            day = query.day.isoformat()
            parts = [
                steps.add(
                    output,
                    f"SHARE({_where(side, 'label', 'is', query.label, 'part', steps)}, {side})",
                    "Its share",
                )
                for output, side in (
                    ("one", _where(rows, "Date", "before", day, "early", steps)),
                    ("other", _where(rows, "Date", "after", day, "late", steps)),
                )
            ]
            steps.add("ans", f"RELATION({parts[0]}, {parts[1]})", "More, less or the same")
        case _:
            _months(query, rows, steps)


def _count_of(rows: str, field: str, value: str, output: str, steps: _Steps) -> str:
    those = _where(rows, field, "is", value, "those", steps)
    return steps.add(output, f"COUNT({those})", f"How many are {value}")


def _months(query: Query, rows: str, steps: _Steps) -> None:
    if query.ask != "months_top":
        rows = _where(rows, "label", "in", (query.label, query.other), "both", steps)
    tops = steps.add(
        "tops",
        f'AGGREGATE({rows}, "Date by month", "mode", "label")',
        "The most frequent label of each month",
    )
    months = _where(tops, "mode", "is", query.label, "months", steps)
    if query.ask == "first_month":
        names = steps.add("names", f'FIELD({months}, "Date by month")', "Their months")
        order = steps.add("order", f'SORT({names}, "text", "ascending")', "Earliest first")
        steps.add("ans", f"FIRST({order})", "The first of them")
    else:
        steps.add("ans", f"COUNT({months})", "How many months")


def _pairs(query: Query, rows: str, steps: _Steps) -> None:
    one, other = (
        _fulfilling(predicate, rows, steps) for predicate in (query.pair[0], query.pair[-1])
    )
    steps.add("ans", f"PAIRS({one}, {other})", "Every pair once")


def _fulfilling(predicate: UserPredicate, rows: str, steps: _Steps) -> str:
    users = ""
    for condition in predicate.conditions:
        having = _having(condition, rows, steps)
        users = (
            steps.add("both", f"INTERSECT({users}, {having})", "Those of both") if users else having
        )
    if predicate.all_of:
        theirs = _where(rows, "label", "is", predicate.all_of, "wanted", steps)
        side = "at most" if predicate.is_after else "at least"
        wrong = _where(theirs, "Date", side, predicate.day.isoformat(), "wrong", steps)
        barred = steps.add("barred", f'GROUP({wrong}, "User")', "Users left out")
        users = steps.add("left", f"DIFFERENCE({users}, {barred})", "Users that qualify")
    return users


def _having(condition: Condition, rows: str, steps: _Steps) -> str:
    wanted = _where(rows, "label", "in", condition.labels, "wanted", steps)
    users = steps.add("users", f'GROUP({wanted}, "User")', "The entries of each user")
    if condition.n == 1 and not condition.is_exact:
        return users
    operator = "is" if condition.is_exact else "at least"
    return steps.add(
        "enough", f'WHERE({users}, "count", "{operator}", {condition.n})', "Those with so many"
    )


class OracleModel(Scripted):
    """The oracle as a model of this process, treated as one behind a server is."""

    reads_prompts = True

    def __init__(self, oracle: Oracle, *, is_held: bool = False) -> None:
        self.constrains = Constrains(frozenset({"json"}) if is_held else frozenset())

        def reply(request: Request) -> str:
            call = oracle.call(request.prompt)
            if call.is_truncated:
                raise ModelError("cut off", kind="truncated", reply=call.reply)
            return call.reply

        super().__init__(reply, name="oracle", source=f"{id(oracle)}", is_recording=False)


@dataclass(frozen=True)
class Asked:
    """What came of one question."""

    answer: Answer
    text: str
    named: frozenset[str]
    n_calls: int

    @property
    def labels(self) -> dict[str, str | None]:
        """The label that each different text got; None where it is undecided."""
        step = next(step for step in self.answer.steps if step.action == "CLASSIFY")
        return {str(row.fields["Instance"]): row.value for row in step.rows or ()}


class Session:
    """One window, one oracle, one client: what is labelled for a question is labelled for the next."""

    def __init__(self, window: Window, oracle: Oracle, *, model: str = "", **settings: Any) -> None:
        self.window = window
        self.oracle = oracle
        self.document = document_of(window)
        self._pearl = Pearl(model or OracleModel(oracle), **settings)

    async def ask(self, query: Query, document: Document | None = None) -> Asked:
        """Run the plan of a query over the window, or over another document."""
        document = document or self.document
        n_before = len(self.oracle.calls)
        answer = await self._pearl.execute(plan_of(query, self.window.labels), document)
        text = value_of(answer)
        named = answers_in(query.kind, text)
        return Asked(answer, text, named, len(self.oracle.calls) - n_before)

    async def aclose(self) -> None:
        """Let go of the client."""
        await self._pearl.aclose()


def value_of(answer: Answer) -> str:
    """An answer without what is said of the rows behind it, in brackets."""
    values = {step.output: step.value for step in answer.steps}
    found = [values[output] for output in answer.outputs]
    if len(found) == 1 and isinstance(found[0], Scalar):
        return as_text(found[0].value)
    return answer.text


def document_of(window: Window) -> Document:
    """A window as pearl reads it."""
    return Document(window.text, "window.txt")


def labelled(window: Window, labels: Mapping[str, str]) -> Window:
    """The window with other labels for its texts: what a reference sees that trusts the oracle."""
    entries = tuple(replace(entry, label=labels[entry.text]) for entry in window.entries)
    return Window(entries, window.labels)
