"""Plans in the language of August 2026 → the same plans in today's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from pearl.dsl.nodes import (
    ListLiteral,
    Number,
    Plan,
    Reference,
    Step,
    String,
    print_argument,
    print_plan,
)
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary

CALLS: Mapping[tuple[str, int], str] = {
    ("COUNT_BY", 2): "GROUP({0}, {1})",
    ("HAVING", 3): 'WHERE({0}, "count", {1}, {2})',
    ("COUNT_OF", 2): 'WHERE({rows}, {field}, "is", {1}); COUNT({it})',
    ("SHARE_OF", 3): "WHERE({0}, {1}, {op}, {2}); SHARE({it}, {0})",
    ("MOST", 1): "NTH({ranked}, {by}, 1)",
    ("LEAST", 1): "NTH({ranked}, {by}, -1)",
    ("NTH", 2): "NTH({ranked}, {by}, {1})",
    ("RANKED", 1): 'SORT({ranked}, {by}, "descending")',
    ("MEAN_BY", 3): 'AGGREGATE({0}, {1}, "mean", {2})',
    ("SUM_BY", 3): 'AGGREGATE({0}, {1}, "sum", {2})',
    ("MIN_BY", 3): 'AGGREGATE({0}, {1}, "min", {2})',
    ("MAX_BY", 3): 'AGGREGATE({0}, {1}, "max", {2})',
    ("MOST_BY", 2): 'AGGREGATE({0}, {1}, "mode", {field})',
    ("RATE", 4): "CLASSIFY({0}, {labels}, {1})",
    ("RERANK", 3): "TOP({0}, {1}, {2})",
}
"""The name and the number of arguments of an old call → the calls that say the same; `{it}` is the one before.

Names in braces stand for what the earlier steps of a plan tell: a call is left as it is where they do not."""

_SELECTING = ("WHERE", "SORT", "LIMIT", "FILTER", "UNIQUE", "INTERSECT", "DIFFERENCE")
MAX_RATINGS = 20  # maximum labels that stand for a range of ratings


class _UnknownError(KeyError):
    """The earlier steps do not tell what a call reads."""


def renewed(text: str, library: ActionLibrary) -> tuple[str, int]:
    """A plan with its old calls rewritten, and their number."""
    plan = read(text).plan
    if plan is None:
        return text, 0
    own = {action.name for action in plan.new_actions}
    made = _Steps(plan)
    for step in plan.steps:
        known = library.get(step.action)
        is_known = step.action in own or (known and known.accepts(len(step.arguments)))
        made.add(step, "" if is_known else CALLS.get((step.action, len(step.arguments)), ""))
    steps = tuple(made.by_output.values())
    return (print_plan(replace(plan, steps=steps)), made.n) if made.n else (text, 0)


class _Steps:
    """The steps of the new plan."""

    def __init__(self, plan: Plan) -> None:
        self.by_output: dict[str, Step] = {}
        self.n = 0
        self._taken = {step.output for step in plan.steps}
        self._modes: dict[str, str] = {}  # rows with a mode → the field that it had before

    def add(self, step: Step, calls: str) -> None:
        """Add a step as it is, or the calls in its place."""
        try:
            added = [*self._renewed(step, calls)] if calls else []
        except (_UnknownError, IndexError):
            added = []
        self.n += bool(added)
        for each in added or [step]:
            first, *others = [*each.arguments, None]
            mode = self._modes.get(first.name, "") if isinstance(first, Reference) else ""
            if mode and others[0] == String(mode):
                arguments = (each.arguments[0], String("mode"), *each.arguments[2:])
                each = replace(each, arguments=arguments)
            if each.action in _SELECTING and mode:
                self._modes[each.output] = mode
            self.by_output[each.output] = each

    def _renewed(self, step: Step, calls: str) -> Iterator[Step]:
        shown = list(map(print_argument, step.arguments))
        told: Mapping[str, Callable[[], str]] = {
            "rows": lambda: self._counted(step)[0],
            "field": lambda: self._counted(step)[1],
            "ranked": lambda: self._ranked(step)[0],
            "by": lambda: self._ranked(step)[1],
            "op": lambda: '"in"' if isinstance(step.arguments[2], ListLiteral) else '"is"',
            "labels": lambda: _labels(*step.arguments[2:]),
        }
        if "{ranked}" in calls and self._ranked(step)[0] != shown[0]:
            calls = f"GROUP({{0}}, {{field}}); {calls}"
        *before, last = calls.split("; ")
        names = [self._free(f"{step.output}_rows") for _ in before]
        values = {name: tell() for name, tell in told.items() if f"{{{name}}}" in calls}
        values |= {"it": names[-1], "ranked": names[-1]} if names else {}
        written = (call.format(*shown, **values) for call in (*before, last))
        lines = zip((*names, step.output), written, strict=True)
        found = read(
            "\n".join(f"{i}. {name} = {call} : Old" for i, (name, call) in enumerate(lines, 1))
        ).plan
        assert found is not None
        if step.action == "MOST_BY":
            self._modes[step.output] = values["field"].strip('"')
        yield from (replace(each, explanation=step.explanation) for each in found.steps)

    def _free(self, name: str) -> str:
        names = (name if i == 1 else f"{name}{i}" for i in count(1))
        free = next(each for each in names if each not in self._taken)
        self._taken.add(free)
        return free

    def _source(self, step: Step) -> Step:
        """The step that made the rows of another one, whichever selected some of them."""
        rows = step.arguments[0]
        made = self.by_output.get(rows.name) if isinstance(rows, Reference) else None
        if made is None:
            raise _UnknownError
        return self._source(made) if made.action in _SELECTING else made

    def _counted(self, step: Step) -> tuple[str, str]:
        """The rows of a step, or those of its groups, and the field with their values."""
        source, rows = self._source(step), step.arguments[0]
        match source.action, source.arguments:
            case "GROUP", (of, field) if rows == Reference(source.output):
                return print_argument(of), print_argument(field)
            case "AGGREGATE", (_, _, String("mode"), _):
                return print_argument(rows), '"mode"'
            case "FIELD", (_, field):
                return print_argument(rows), print_argument(field)
            case (("CLASSIFY" | "MAP"), _):
                return print_argument(rows), f'"{source.output}"'
            case "SPLIT", _:
                return print_argument(rows), '"text"'
        raise _UnknownError

    def _ranked(self, step: Step) -> tuple[str, str]:
        """The rows of a step and the field that ranks them; a name of no rows for the groups of their values."""
        source, rows = self._source(step), print_argument(step.arguments[0])
        match source.action, source.arguments:
            case "GROUP", _:
                return rows, '"count"'
            case "AGGREGATE", (_, _, String(figure), _) if figure != "mode":
                return rows, f'"{figure}"'
            case "CLASSIFY", (_, ListLiteral(items), *_):
                labels = [str(item.value) for item in items if not isinstance(item, Reference)]
                n_numbers = sum(any(map(str.isdigit, label)) for label in labels)
                if len(labels) == len(items) and n_numbers in (0, len(items)):
                    return (rows, f'"{source.output}"') if n_numbers else ("", '"count"')
            case (("FIELD" | "SPLIT"), _):
                return "", '"count"'
        raise _UnknownError


def _labels(low: object, high: object) -> str:
    """The ratings between two numbers as a list of labels."""
    match low, high:
        case Number(int(first)), Number(int(last)) if 0 < last - first < MAX_RATINGS:
            return str([*map(str, range(first, last + 1))]).replace("'", '"')
    raise _UnknownError
