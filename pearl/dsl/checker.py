"""`Plan` + library → `CheckedPlan`: semantic checks. Reports every problem at once.

A checked plan raises no name or arity error when it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pearl.dsl.arguments import argument_problems, fitting_names
from pearl.dsl.completeness import counts_of_best, unread_outputs
from pearl.dsl.confusables import skeleton, unlike
from pearl.dsl.nodes import Plan, Reference, Step
from pearl.dsl.parser import Reading, parse, read
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import (
    CTX,
    EACH,
    ROWS,
    Action,
    ActionLibrary,
    Parameter,
    ValueType,
)
from pearl.dsl.string_references import string_references
from pearl.errors import (
    Diagnostic,
    Fix,
    PlanCheckError,
    PlanSyntaxError,
    Span,
    apply_fixes,
    did_you_mean,
)
from pearl.errors.diagnostics import MAX_SUGGESTED_LENGTH
from pearl.notebooks import ShownInNotebooks

MAX_STEPS = 40
"""Plans longer than this are refused; the longest published one has 15 steps."""

_MAX_MEND_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class CheckedPlan(ShownInNotebooks):
    """A plan that passed every check. Created by `check` and `compile_plan` only.

    Attributes:
        plan: The plan.
        actions: Every action it can call: the library's and the new ones that the plan declares.
        outputs: The outputs that form the answer: those that no step consumes, in step order.
        notes: Diagnostics that are not errors.
    """

    plan: Plan
    actions: ActionLibrary
    outputs: tuple[str, ...]
    notes: tuple[Diagnostic, ...] = ()

    def action(self, step: Step) -> Action:
        """The action that a step calls."""
        return self.actions[step.action]

    @property
    def n_model_steps(self) -> int:
        """Steps that a model carries out."""
        return sum(not self.action(step).is_native for step in self.plan.steps)

    def asking(self, question: str) -> CheckedPlan:
        """The same plan, as that of another question."""
        return replace(self, plan=replace(self.plan, question=question))

    def __str__(self) -> str:
        return print_plan(self.plan)


def check(plan: Plan, library: ActionLibrary, *, max_steps: int = MAX_STEPS) -> CheckedPlan:
    """Check a plan against a library.

    Example:
        >>> from pearl.dsl.parser import parse
        >>> library = ActionLibrary("mine", [Action("FIND", (Parameter("CTX"), Parameter("X")))])
        >>> check(parse('1. key = FIND(CTX, "the key") : Find it'), library).outputs
        ('key',)
    """
    if any(found.severity == "error" for found in _diagnose(plan, library, max_steps)):
        text = print_plan(plan)
        return _checked(parse(text), text, library, max_steps)  # for positions to point at
    return _checked(plan, "", library, max_steps)


def _checked(plan: Plan, text: str, library: ActionLibrary, max_steps: int) -> CheckedPlan:
    found = sorted(_diagnose(plan, library, max_steps), key=lambda d: d.span)
    if any(diagnostic.severity == "error" for diagnostic in found):
        raise PlanCheckError(text, found)
    consumed = {reference.name for step in plan.steps for reference in step.references()}
    outputs = tuple(step.output for step in plan.steps if step.output not in consumed)
    return CheckedPlan(plan, callable_actions(plan, library), outputs, tuple(found))


def callable_actions(plan: Plan, library: ActionLibrary) -> ActionLibrary:
    """What a plan can call: the library, its own new actions, and those for each row.

    Example:
        >>> from pearl.dsl.parser import parse
        >>> plan = parse('1. all = EACH_FIND(rows, "the key") : Find it in each')
        >>> find = Action("FIND", (Parameter.named("CTX"), Parameter("X")), "Find X")
        >>> callable_actions(plan, ActionLibrary("mine", [find]))["EACH_FIND"].signature
        'EACH_FIND(ROWS, X)'
    """
    known = library.extended(plan.new_actions)
    each = []
    for name in {step.action for step in plan.steps} - set(known):
        base = known.get(name.removeprefix(EACH)) if name.startswith(EACH) else None
        if base is not None and base.parameters and base.parameters[0].type is ValueType.CONTEXT:
            parameters = (Parameter.named(ROWS), *base.parameters[1:])
            each.append(replace(base, name=name, parameters=parameters, returns=ValueType.LIST))
    return known.extended(each) if each else known


def compile_plan(
    text: str,
    library: ActionLibrary,
    *,
    tolerant: bool = False,
    max_steps: int = MAX_STEPS,
    question: str | None = None,
) -> CheckedPlan:
    """Parse and check a plan."""
    reading = read(text, tolerant=tolerant)
    if question and reading.plan is not None and not reading.plan.question:
        reading = replace(reading, plan=replace(reading.plan, question=question))
    if reading.errors or reading.plan is None:
        raise PlanSyntaxError(reading.text, diagnose(reading, library, max_steps=max_steps))
    return _checked(reading.plan, reading.text, library, max_steps)


def diagnose(
    reading: Reading, library: ActionLibrary, *, max_steps: int = MAX_STEPS
) -> list[Diagnostic]:
    """All syntax and semantic diagnostics of a text, sorted by position."""
    found = list(reading.errors)
    if reading.plan is not None:
        found += _diagnose(reading.plan, library, max_steps, reading.lost)
        if not any(diagnostic.severity == "error" for diagnostic in found):
            found += unread_outputs(reading.plan)
    return sorted(found, key=lambda diagnostic: (diagnostic.span, diagnostic.code))


def mend_plan(
    text: str,
    library: ActionLibrary,
    *,
    tolerant: bool = False,
    max_steps: int = MAX_STEPS,
) -> tuple[str, list[Diagnostic]]:
    """Apply every machine-applicable fix repeatedly, until none is left."""
    applied: list[Diagnostic] = []
    for _ in range(_MAX_MEND_ROUNDS):
        reading = read(text, tolerant=tolerant)
        text = reading.text
        applied += reading.notes
        fixable = [d for d in diagnose(reading, library, max_steps=max_steps) if d.fix]
        if not fixable:
            break
        applied += fixable
        text = apply_fixes(text, [d.fix for d in fixable if d.fix])
    return text, applied


def _diagnose(
    plan: Plan, library: ActionLibrary, max_steps: int, lost: frozenset[str] = frozenset()
) -> Iterator[Diagnostic]:
    yield from _declarations(plan, library, lost)
    yield from _confusables(plan, library, max_steps)
    actions = callable_actions(plan, library)
    yield from counts_of_best(plan, actions)
    for step in plan.steps[max_steps : max_steps + 1]:
        message = f"the plan has {len(plan.steps)} steps, {max_steps} are allowed"
        yield Diagnostic("too-many-steps", message, step.output_span)
    assigned: dict[str, ValueType] = {}
    later = {step.output for step in plan.steps}
    for step in plan.steps[:max_steps]:  # bounded: each name is compared with all others
        known = actions.get(step.action)
        if known is None and step.action not in lost:
            yield _unknown_action(step, actions)
        taken = {reference.name for reference in step.references()}
        for reference in step.references():
            if not (reference.is_context or reference.name in assigned or reference.name in lost):
                yield _undefined(reference, step, assigned, later, taken)
        if known is not None:
            yield from argument_problems(step, known, assigned)
        fitting = fitting_names(step, known, assigned)
        yield from string_references(step, known, fitting, list(assigned), plan.question or "")
        if step.output == CTX:
            message = "CTX is the document and cannot be assigned"
            yield Diagnostic("duplicate-name", message, step.output_span)
        elif step.output in assigned:
            message = f"'{step.output}' is assigned twice"
            advice = "give each step an output name of its own"
            yield Diagnostic("duplicate-name", message, step.output_span, help=advice)
        assigned.setdefault(step.output, known.returns if known else ValueType.TEXT)


def _declarations(plan: Plan, library: ActionLibrary, lost: frozenset[str]) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    used = {step.action for step in plan.steps}
    for action in plan.new_actions:
        name = action.name
        if name in seen:
            yield Diagnostic("duplicate-name", f"action '{name}' is declared twice", action.span)
        elif name in library:
            instead = library[name].signature
            advice = "the plan's own declaration is used"
            yield Diagnostic(
                "shadowed-action",
                f"action '{name}' is in the library already",
                action.span,
                "note",
                help=advice if instead == action.signature else f"{advice}, not {instead}",
            )
        if twice := action.repeated_parameter:
            message = f"action '{name}' has two parameters '{twice}'"
            yield Diagnostic("duplicate-name", message, action.span)
        if name not in used and name not in seen and not lost:
            yield Diagnostic(
                "unused-action", f"action '{name}' is never called", action.span, "note"
            )
        seen.add(name)


def _confusables(plan: Plan, library: ActionLibrary, max_steps: int) -> Iterator[Diagnostic]:
    """Names that look like another name of the plan, of the library or CTX, each reported once."""
    known = {skeleton(name): name for name in (*library, CTX)}
    told: set[str] = set()
    for name, span in _names(plan, max_steps):
        first = known.setdefault(skeleton(name), name)
        if name not in (first, CTX) and name not in library and name not in told:
            told.add(name)
            yield Diagnostic(
                "confusable-name",
                f"'{name}' looks like '{first}' and is another name",
                span,
                "note",
                help=f"it has {unlike(name, first)}",
            )


def _names(plan: Plan, max_steps: int) -> Iterator[tuple[str, Span]]:
    """The actions, outputs and references of a plan, in order."""
    yield from ((action.name, action.span) for action in plan.new_actions)
    for step in plan.steps[:max_steps]:
        yield step.output, step.output_span
        yield step.action, step.action_span
        yield from ((reference.name, reference.span) for reference in step.references())


def _unknown_action(step: Step, actions: ActionLibrary) -> Diagnostic:
    close = did_you_mean(step.action, actions)
    advice = "use an action of the library, or declare it under 'New actions:'"
    meant = _obvious(step.action, actions)
    fits = meant is not None and actions[meant].accepts(len(step.arguments))
    return Diagnostic(
        "unknown-action",
        f"action '{step.action}' is not in library '{actions.name}'",
        step.action_span,
        help=f"did you mean '{close}'?" if close else advice,
        fix=Fix(step.action_span, meant) if meant and fits else None,
    )


def _obvious(name: str, known: Iterable[str]) -> str | None:
    """The only known name that differs in case, underscores or one letter too many or too few.

    Anything less similar would be a guess: `key1` is not `key2`, FIND_REGION is not FIND_REASON.

    Example:
        >>> _obvious("find_evnt", ["FIND_EVENT", "FIND"])
        'FIND_EVENT'
        >>> _obvious("key1", ["key", "key2"])
    """
    if len(name) > MAX_SUGGESTED_LENGTH:
        return None
    bare = _bare(name)
    close = [k for k in known if _bare(k) == bare] or [
        k
        for k in known
        if len(k) > 3 and (_is_one_more(_bare(k), bare) or _is_one_more(bare, _bare(k)))
    ]
    return close[0] if len(close) == 1 else None


def _bare(name: str) -> str:
    return name.casefold().replace("_", "")


def _is_one_more(longer: str, shorter: str) -> bool:
    """Whether one letter, not a digit, taken out of `longer` gives `shorter`."""
    return len(longer) == len(shorter) + 1 and any(
        longer[:i] + longer[i + 1 :] == shorter and not longer[i].isdigit()
        for i in range(len(longer))
    )


def _undefined(
    reference: Reference,
    step: Step,
    assigned: Mapping[str, ValueType],
    later: Collection[str],
    taken: Collection[str],
) -> Diagnostic:
    if reference.name == step.output:
        return Diagnostic(
            "self-reference", f"step '{step.output}' takes its own output", reference.span
        )
    close = did_you_mean(reference.name, [*assigned, CTX])
    meant = _obvious(reference.name, [*assigned, CTX])
    if reference.name in later:
        advice = "a later step assigns it: move that step up"
    elif close:
        advice = f"did you mean '{close}'?"
    else:
        advice = f'assign it in an earlier step, or quote it: "{reference.name}"'
    is_clear = reference.name not in later and meant not in taken
    return Diagnostic(
        "undefined-name",
        f"'{reference.name}' is not an output of an earlier step",
        reference.span,
        help=advice,
        fix=Fix(reference.span, meant) if meant and is_clear else None,
    )
