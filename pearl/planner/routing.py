"""A question → its parts and its difficulty → a plan by rule, where that is enough.

Figures are looked up and computed with by rule (levels 1 to 4); the planner writes any other plan, told
the parts (level 5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pearl.actions.calculators import calculator_of, load_calculator
from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan
from pearl.dsl.nodes import Argument, ListLiteral, Number, Plan, Reference, Step, String
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import CTX, ActionLibrary
from pearl.errors import PlanError
from pearl.llm import Model
from pearl.llm.fallback import ConstraintFallback
from pearl.planner.decomposition import decompose
from pearl.planner.parts import Calculation, Decomposition, Figure, Part, label, level_of, shown
from pearl.trace import QuestionRouted, Trace

N_PASSAGES = 10
"""Passages of a corpus in which a figure is looked up."""

_ADVICE = "The question seems to consist of these parts; their ids are no names of outputs:"
_MAX_NAME_WORDS = 4


@dataclass(frozen=True, slots=True)
class Route:
    """How a question is to be planned."""

    plan: CheckedPlan | None = None
    advice: str = ""


async def route(
    question: str,
    library: ActionLibrary,
    model: Model,
    *,
    max_steps: int = MAX_STEPS,
    max_output_tokens: int | None = None,
    fallback: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> Route:
    """Find out how a question is to be planned."""
    if not is_routable(library):
        return Route()
    told = await decompose(
        question, library, model,
        max_output_tokens=max_output_tokens, fallback=fallback, trace=trace,
    )  # fmt: skip
    found = told.decomposition
    if found is None:
        note = f"its parts are not known: {told.flaw}"
        _tell(
            trace,
            QuestionRouted(
                level=5,
                parts=(),
                by="planner",
                notes=(note,),
                usage=told.usage,
                n_calls=told.n_calls,
                n_cached=told.n_cached,
            ),
        )
        return Route()
    level = level_of(found.parts)
    plan = compose(question, found, library, max_steps=max_steps) if level < 5 else None
    differs = f"level {found.level} as the model sees it; its parts are of level {level}"
    lines = shown(found.parts)
    _tell(
        trace,
        QuestionRouted(
            level=level,
            parts=lines,
            by="planner" if plan is None else "rule",
            usage=told.usage,
            n_calls=told.n_calls,
            n_cached=told.n_cached,
            notes=() if level == found.level else (differs,),
        ),
    )
    if plan is not None:
        return Route(plan)
    is_whole = len(lines) == 1  # the planner has the question itself
    return Route(None, "" if is_whole else "\n".join([_ADVICE, *(f"- {line}" for line in lines)]))


def _tell(trace: Trace | None, event: QuestionRouted) -> None:
    if trace is not None:
        trace.append(event)


def is_routable(library: ActionLibrary) -> bool:
    """Whether plans by rule can look up figures with a library."""
    find = library.get("FIND_FIGURE")
    return find is not None and find.reads_context and find.accepts(3)


def compose(
    question: str,
    decomposition: Decomposition,
    library: ActionLibrary,
    *,
    max_steps: int = MAX_STEPS,
) -> CheckedPlan | None:
    """The plan that looks up the figures and computes with them.

    The metrics that a calculator computes are taken apart into its operands. With a library that
    searches, a figure is looked up in the passages that match it.
    """
    draft = _Draft(library, question)
    parts = decomposition.parts
    try:
        for part in parts:
            draft.add(part, parts)
    except _NotPlannedError:
        return None
    used = {o for part in parts if isinstance(part, Calculation) for o in part.operands}
    asked = [part for part in parts if part.id not in used]
    if len(asked) > 1:
        told: list[Argument] = []
        for part in asked:
            said = label(part, parts)
            told += [String(f"{said[0].upper()}{said[1:]}:"), draft.outputs[part.id]]
        draft.step("ans", "CONCAT", "Give each answer with what it is, in their order", *told)
    plan = Plan(tuple(draft.steps), question=question)
    try:
        return compile_plan(print_plan(plan), library, max_steps=max_steps)
    except PlanError:
        return None


_LESS = re.compile(r"lower|lowest|less|least|smaller|smallest|fewer|fewest", re.I)
_WHICH = re.compile(
    rf"\b(?:which|who|whose|or)\b(?![^?]{{0,300}}\bthan\b)[^?]{{0,300}}?\b({_LESS.pattern}|greater|greatest|higher|highest|larger|largest"
    r"|bigger|biggest|more|most)\b",
    re.I,
)
"""A question whose answer is the name of what is greater, or of what is less."""


class _NotPlannedError(Exception):
    """The parts make no plan by rule."""


@dataclass(slots=True)
class _Draft:
    """An unfinished plan."""

    library: ActionLibrary
    question: str = ""
    steps: list[Step] = field(default_factory=list)
    outputs: dict[str, Reference] = field(default_factory=dict)
    figures: dict[tuple[str, str], Reference] = field(default_factory=dict)

    def add(self, part: Part, parts: Sequence[Part]) -> None:
        """Add the steps of a part."""
        if isinstance(part, Calculation):
            operands: list[Argument] = [
                self.outputs[operand] if operand in self.outputs else _number(operand)
                for operand in part.operands
            ]
            if part.calculator == "greater" and (which := _WHICH.search(self.question)):
                known = {each.id: label(each, parts) for each in parts}
                names = [String(known.get(operand, operand)) for operand in part.operands]
                operands += names[::-1] if _LESS.fullmatch(which[1]) else names
            found = self.calculate(part.calculator, label(part, parts), part.calculator, operands)
        elif isinstance(part, Figure):
            found = self.metric(part, label(part, parts))
        else:
            raise _NotPlannedError
        self.outputs[part.id] = found

    def metric(self, part: Figure, said: str) -> Reference:
        """A figure, computed if it is the result of a calculator."""
        name = calculator_of(part.metric)
        if name is None:
            return self.figure(part.metric, "", part)
        operands = [
            self.figure(each.name, each.also, part) for each in load_calculator(name).OPERANDS
        ]
        return self.calculate(name, said, f"{name} {part.period}", operands)

    def figure(self, metric: str, also: str, part: Figure) -> Reference:
        """A figure that is looked up, once for all that need it."""
        if not part.period:
            raise _NotPlannedError
        of = f" of {part.entity}" if part.entity else ""
        what = f"{metric}{f' (or {also})' if also else ''}{of}"
        if (what, part.period) in self.figures:
            return self.figures[what, part.period]
        name = f"{metric} {part.period}"
        where: Argument = Reference(CTX)
        if "RETRIEVE" in self.library and self.library["RETRIEVE"].searches:
            queries = tuple(
                String(f"{part.entity} {each} {part.period}".strip())
                for each in (metric, also)
                if each
            )
            about = f"Find passages about {metric}{of} in {part.period}"
            where = self.step(
                f"passages {name}", "RETRIEVE", about,
                Reference(CTX), ListLiteral(queries), Number(N_PASSAGES),
            )  # fmt: skip
        found = self.step(
            name, "FIND_FIGURE", f"Look up {metric}{of} for {part.period}",
            where, String(what), String(part.period),
        )  # fmt: skip
        self.figures[what, part.period] = found
        return found

    def calculate(
        self, calculator: str, said: str, name: str, operands: Sequence[Argument]
    ) -> Reference:
        """A step that computes."""
        return self.step(name, "CALCULATE", f"Compute the {said}", String(calculator), *operands)

    def step(self, name: str, action: str, explanation: str, *arguments: Argument) -> Reference:
        """Add a step under a free name."""
        if action not in self.library:
            raise _NotPlannedError
        taken = {step.output for step in self.steps}
        output = base = _output(name)
        n = 2
        while output in taken:
            output, n = f"{base}_{n}", n + 1
        self.steps.append(Step(output, action, tuple(arguments), explanation))
        return Reference(output)


def _number(text: str) -> Number:
    return Number(float(text) if "." in text else int(text))


def _output(text: str) -> str:
    """A name of an output, from the words of what it is."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    kept = words if len(words) <= _MAX_NAME_WORDS + 1 else [*words[:_MAX_NAME_WORDS], words[-1]]
    name = "_".join(word[:20] for word in kept)
    return name if name[:1].isalpha() else f"figure_{name}".rstrip("_")
