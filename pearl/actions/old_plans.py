"""Plans in the older language → the same plans in today's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from pearl.dsl import nodes
from pearl.dsl.older import CALLS_OF_OLDER
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import Fix, Span, apply_fixes

CALLS = {**CALLS_OF_OLDER, ("NTH", 2): "NTH({ranked}, {by}, {1})"}  # the last has a name of today
_SELECTING = ("WHERE", "SORT", "LIMIT", "FILTER", "UNIQUE", "INTERSECT", "DIFFERENCE")
MAX_RATINGS = 20  # maximum labels that stand for a range of ratings


def renewed(text: str, library: ActionLibrary) -> tuple[str, int]:
    """A plan with its old calls rewritten, and their number."""
    reading = read(text)
    plan, old = reading.plan, reading.text
    if plan is None:
        return text, 0
    own = {action.name for action in plan.new_actions}
    names = {step.output for step in plan.steps}
    made: dict[str, nodes.Step] = {}
    modes: dict[str, nodes.Argument] = {}  # rows with a mode → the field that it had before
    fixes: list[Fix] = []  # by line, so that comments and broken lines stay
    n = n_steps = 0
    for step in plan.steps:
        known = library.get(step.action)
        is_known = step.action in own or (known and known.accepts(len(step.arguments)))
        calls = "" if is_known else CALLS.get((step.action, len(step.arguments)), "")
        try:
            added = [*_renewed(step, calls, made, names)] if calls else [step]
            n += bool(calls)
        except KeyError:  # the earlier steps do not tell what it reads
            added = [step]
        shown: list[str] = []
        for each in added:
            rows = each.arguments[0] if each.arguments else None
            mode = modes.get(rows.name) if isinstance(rows, nodes.Reference) else None
            if mode is not None and each.arguments[1:2] == (mode,):
                own_mode = (each.arguments[0], nodes.String("mode"), *each.arguments[2:])
                each = replace(each, arguments=own_mode)
            if mode is not None and each.action in _SELECTING:
                modes[each.output] = mode
            made[each.output] = each
            n_steps += 1
            shown.append(nodes.print_step(each, n_steps))
        start = old.rfind("\n", 0, step.output_span.start) + 1
        end = len(old[start:].partition("\n")[0]) + start
        fixes.append(Fix(Span(start, end), "\n".join(shown)))
        if calls and step.action == "MOST_BY" and added != [step]:
            modes[step.output] = added[0].arguments[3]
    return (apply_fixes(old, fixes), n) if n else (text, 0)


def _renewed(
    step: nodes.Step, calls: str, made: Mapping[str, nodes.Step], names: set[str]
) -> Iterator[nodes.Step]:
    """The steps in place of an old one."""
    shown = list(map(nodes.print_argument, step.arguments))
    values = _told(step, made)
    if "{ranked}" in calls and "ranked" not in values:
        calls = f"GROUP({{0}}, {{field}}); {calls}"
    *before, last = calls.split("; ")
    outputs = [step.output]
    if before:
        free = (f"{step.output}_rows{i or ''}" for i in count())
        outputs.insert(0, next(each for each in free if each not in names))
        names.add(outputs[0])
        values = {"ranked": outputs[0], **values, "it": outputs[0]}
    lines = zip(outputs, [call.format(*shown, **values) for call in (*before, last)], strict=True)
    found = read(
        "\n".join(f"{i}. {name} = {call} : Old" for i, (name, call) in enumerate(lines, 1))
    )
    assert found.plan is not None
    yield from (replace(each, explanation=step.explanation) for each in found.plan.steps)


def _told(step: nodes.Step, made: Mapping[str, nodes.Step]) -> dict[str, str]:
    """What the earlier steps tell of the rows of a step: the field with their values, and the one that ranks them."""
    first, *others = step.arguments
    told = {"op": '"in"' if isinstance(step.arguments[-1], nodes.ListLiteral) else '"is"'}
    match others[1:]:
        case [nodes.Number(int(low)), nodes.Number(int(high))] if 0 < high - low < MAX_RATINGS:
            told["labels"] = str([*map(str, range(low, high + 1))]).replace("'", '"')
    rows, at = nodes.print_argument(first), first
    while (
        isinstance(at, nodes.Reference) and at.name in made and made[at.name].action in _SELECTING
    ):
        at = made[at.name].arguments[0]
    source = made.get(at.name) if isinstance(at, nodes.Reference) else None
    if source is None:
        return told
    output = f'"{source.output}"'
    match source.action, source.arguments:
        case "GROUP", (of, field):
            told |= {"field": nodes.print_argument(field), "ranked": rows, "by": '"count"'}
            told |= {"rows": nodes.print_argument(of)} if at is first else {}
        case "AGGREGATE", (_, _, nodes.String("mode"), _):
            told |= {"rows": rows, "field": '"mode"'}
        case "AGGREGATE", (_, _, nodes.String(figure), _):
            told |= {"ranked": rows, "by": f'"{figure}"'}
        case "FIELD", (_, field):
            told |= {"rows": rows, "field": nodes.print_argument(field), "by": '"count"'}
        case "SPLIT", _:
            told |= {"rows": rows, "field": '"text"', "by": '"count"'}
        case (("MAP" | "CLASSIFY"), (_, labels, *_)):
            told |= {"rows": rows, "field": output}
            items = labels.items if isinstance(labels, nodes.ListLiteral) else ()
            texts = [str(item.value) for item in items if not isinstance(item, nodes.Reference)]
            n_numbers = sum(any(map(str.isdigit, text)) for text in texts)
            if texts and len(texts) == len(items) and n_numbers == len(texts):
                told |= {"ranked": rows, "by": output}
            elif texts and len(texts) == len(items) and not n_numbers:
                told["by"] = '"count"'
    return told
