"""Question → candidate plans of a weak model: by rule, by the nearest example, by the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pearl.documents.digest import digest
from pearl.documents.document import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.nodes import (
    Argument,
    ListLiteral,
    Plan,
    Reference,
    Step,
    String,
    print_action,
    print_plan,
)
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.errors import ModelError, PearlError, PlanError, UsageError
from pearl.llm import Message, Model, PlanTask, Usage
from pearl.llm.messages import against_null, log_likelihoods
from pearl.llm.middleware.wrappers import Sampling
from pearl.planner.examples import Example, select
from pearl.trace import PlanCandidate, PlanChosen, PlanWriter

MAX_PLANS = 20

DRAWN_AT = 0.7
"""Temperature of plans after the first, where the settings have none.

Source:
    Wang et al., Self-Consistency Improves Chain of Thought Reasoning (2023), section 3.1.
"""


@dataclass(frozen=True, slots=True)
class Draws:
    """How the plans of a question are drawn."""

    n: int = 1
    seed: int | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MAX_PLANS:
            raise UsageError(
                f"{self.n} plans for a question", help=f"give a number from 1 to {MAX_PLANS}"
            )

    def model(self, model: Model, number: int) -> Model:
        """The model as it writes plan `number`, from 1."""
        if number == 1:
            return model
        seed = int.from_bytes(digest([str(self.seed or 0), str(number)])[:4]) >> 1
        temperature = DRAWN_AT if self.temperature is None else self.temperature
        return Sampling(model, seed, temperature)


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a question."""

    n_wanted: int
    different: tuple[CheckedPlan, ...]
    written: tuple[tuple[int, ...], ...]
    errors: tuple[PearlError, ...] = ()


def different_plans(found: Sequence[CheckedPlan | PearlError]) -> Plans:
    """Group equal plans: those with the same calls, whatever their names, order and explanations."""
    first: dict[bytes, CheckedPlan] = {}
    written: dict[bytes, list[int]] = {}
    for number, plan in enumerate(found, start=1):
        if isinstance(plan, CheckedPlan):
            calls = _calls(plan)
            first.setdefault(calls, plan)
            written.setdefault(calls, []).append(number)
    errors = tuple(each for each in found if isinstance(each, PearlError))
    return Plans(len(found), tuple(first.values()), tuple(map(tuple, written.values())), errors)


def _calls(checked: CheckedPlan) -> bytes:
    """A digest of the calls whose results form the answer, and of the calls that these need."""
    known: dict[str, bytes] = {}
    for step in checked.plan.steps:
        action = checked.action(step)
        arguments = (_argument(argument, known) for argument in step.arguments)
        known[step.output] = digest([action.name, action.definition, *arguments])
    return digest(known[output] for output in checked.outputs)


def _argument(argument: Argument, known: dict[str, bytes]) -> bytes:
    match argument:
        case Reference(name):
            return known.get(name, name.encode())
        case ListLiteral(items):
            return digest(["list", *(_argument(item, known) for item in items)])
        case String(value):
            return digest(["text", " ".join(value.split()).casefold()])
        case _:
            return digest(["number", repr(argument.value)])


NULL_QUESTIONS = ("What is it?", "What does the document say?", "N/A")
"""Questions that name nothing, so that a likelihood under them is a habit of the model."""

N_RATINGS = 1 + len(NULL_QUESTIONS)
"""Maximum calls that rate candidates."""

MARGIN = 2.0
"""Nats by which an action has to be ahead of that of the first candidate.

Over 27 questions of the shipped banks, each planned without its own example, SmolLM2-135M at a margin
of 0 chose a better action four times and a worse one six times, at 2 neither.
"""

N_SHOWN = 6
"""Examples in the prompt that rates actions."""

_UNRATED = frozenset({"bad_request", "malformed", "unconstrained"})
"""Kinds of errors of a server that does not compute likelihoods after all."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan, and who wrote it."""

    by: PlanWriter
    plan: CheckedPlan


def by_rule(
    question: str,
    library: ActionLibrary,
    kind: DocumentKind,
    max_steps: int,
    *,
    is_other: bool = False,
) -> CheckedPlan:
    """The plan of the rules (`pearl.embedded.planner`)."""
    from pearl.embedded import planner  # late: `pearl execute` writes no plan

    text = (
        planner.write_other_plan(question, library)
        if is_other
        else planner.write_plan(question, library, kind)
    )
    return compile_plan(text, library, max_steps=max_steps, question=question)


def by_example(
    question: str, examples: Sequence[Example], library: ActionLibrary, max_steps: int
) -> CheckedPlan | None:
    """The plan of the example nearest to a question, with its strings replaced."""
    from pearl.embedded.questions import parts

    nearest = select(examples, question, 1, 0)
    if not nearest or nearest[0].plan.new_actions:
        return None
    example = nearest[0]
    strings = _strings(example.plan)
    asked = parts(question)
    if [part.form for part in asked] != [part.form for part in parts(example.question)]:
        return None
    topics = [part.topic for part in asked]
    said = set(terms(example.question))
    if strings is None or not strings or any(not set(terms(each)) <= said for each in strings):
        return None
    if len(strings) != len(topics):
        if len(strings) > 1:
            return None
        topics = [question]
    if len(set(topics)) < len(topics):  # some steps would be the same call
        return None
    wanted = dict(zip(strings, topics, strict=True))
    outputs = {step.output: f"v{i}" for i, step in enumerate(example.plan.steps, start=1)}

    def replaced(argument: Argument) -> Argument:
        match argument:
            case String(value):
                return String(wanted[value])
            case Reference(name):
                return Reference(outputs.get(name, name))
            case _:
                return argument

    steps = tuple(
        Step(
            outputs[step.output],
            step.action,
            tuple(map(replaced, step.arguments)),
            library[step.action].definition or "As in a similar question",
        )
        for step in example.plan.steps
    )
    try:
        plan = print_plan(Plan(steps, question=question))
        return compile_plan(plan, library, max_steps=max_steps)
    except PlanError:
        return None


def _strings(plan: Plan) -> list[str] | None:
    """The different strings of a plan, in order; None if it has arguments of another kind."""
    found: dict[str, None] = {}
    for step in plan.steps:
        for argument in step.arguments:
            match argument:
                case String(value):
                    found[value] = None
                case Reference():
                    pass
                case _:
                    return None
    return list(found)


def are_agreed(candidates: Sequence[Candidate]) -> bool:
    """Whether there are two or more, and all make the same calls."""
    plans = different_plans([each.plan for each in candidates])
    return len(candidates) > 1 == len(plans.different)


async def choose(
    question: str,
    candidates: Sequence[Candidate],
    examples: Sequence[Example],
    model: Model,
    *,
    note: str = "",
) -> tuple[CheckedPlan, PlanChosen]:
    """Choose one of several plans; also returns the trace event of the choice."""
    plans = different_plans([each.plan for each in candidates])
    groups = [tuple(candidates[i - 1].by for i in numbers) for numbers in plans.written]
    rates: tuple[float, ...] | None = None
    usage, n_calls, n_cached = Usage(), 0, 0
    best = 0
    why: Literal["only", "agreement", "likelihood", "order"] = "only"
    sizes = [len(group) for group in groups]
    if len(groups) > 1:
        best = max(range(len(groups)), key=lambda i: sizes[i])
        why = "agreement"
        if sizes.count(sizes[best]) > 1:
            best, why = 0, "order"
            try:
                found = await _rated(question, plans.different, examples, model)
            except ModelError as error:
                if error.kind not in _UNRATED:
                    raise
                note = "; ".join(filter(None, (note, error.message)))
            else:
                if found is not None:
                    rates, usage, n_calls, n_cached = found
                    best, why = _ahead(rates), "likelihood"
    elif len(candidates) > 1:
        why = "agreement"
    told = tuple(
        PlanCandidate(by=group, plan=str(plan), pmi=None if rates is None else round(rates[i], 4))
        for i, (group, plan) in enumerate(zip(groups, plans.different, strict=True))
    )
    event = PlanChosen(
        by=groups[best][0], why=why, candidates=told, note=note,
        usage=usage, n_calls=n_calls, n_cached=n_cached,
    )  # fmt: skip
    return plans.different[best], event


def _ahead(rates: Sequence[float]) -> int:
    """The best rate, if it is ahead of the first by the margin; else the first."""
    best = max(range(len(rates)), key=lambda i: rates[i])
    return best if rates[best] - rates[0] > MARGIN else 0


async def _rated(
    question: str, plans: Sequence[CheckedPlan], examples: Sequence[Example], model: Model
) -> tuple[tuple[float, ...], Usage, int, int] | None:
    """Rate the action that each plan begins with."""
    actions = [_first(plan) for plan in plans]
    different = {action.name: action for action in actions}
    if len(different) < 2 or not model.constrains.likelihoods:
        return None
    library = plans[0].actions
    shown = [
        f"Question: {example.question}\nAction: {name}"
        for example in select(examples, question, N_SHOWN, 0)
        if (name := _first_name(example.plan, library))
    ]
    head = "\n\n".join(
        [
            "\n".join(f"- {print_action(action)}" for action in different.values()),
            "Reply with the action that answers the question.",
            *shown,
        ]
    )
    numbers: list[tuple[float, ...]] = []
    usage, n_cached = Usage(), 0
    for asked in (question, *NULL_QUESTIONS):  # one after the other, for the cache of the prompt
        prompt = Message("user", f"{head}\n\nQuestion: {asked}\nAction:")
        found, completion = await log_likelihoods(
            model, [prompt], tuple(different), PlanTask(question, library)
        )
        numbers.append(found)
        usage += completion.usage
        n_cached += completion.is_remembered
    of_action = dict(zip(different, against_null(numbers[0], numbers[1:]), strict=True))
    return tuple(of_action[action.name] for action in actions), usage, len(numbers), n_cached


def _first(plan: CheckedPlan) -> Action:
    """The first action that a model carries out, or the first one."""
    steps = [plan.action(step) for step in plan.plan.steps]
    return next((action for action in steps if not action.is_native), steps[0])


def _first_name(plan: Plan, library: ActionLibrary) -> str:
    """The first model action of an example; "" if it has none of the library."""
    known = [library[step.action] for step in plan.steps if step.action in library]
    return next((action.name for action in known if not action.is_native), "")
