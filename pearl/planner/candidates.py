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
    print_plan,
)
from pearl.dsl.signatures import ActionLibrary
from pearl.embedded.planner import write_other_plan as write_another_by_rule
from pearl.embedded.planner import write_plan as write_by_rule
from pearl.embedded.questions import parts
from pearl.errors import PearlError, PlanError
from pearl.llm import Model
from pearl.llm.middleware.wrappers import Sampling
from pearl.planner.examples import Example, select
from pearl.trace import PlanCandidate, PlanChosen, PlanWriter

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
    """A digest of the calls that form the answer, and of the calls whose results these use."""
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
    text = (
        write_another_by_rule(question, library)
        if is_other
        else write_by_rule(question, library, kind)
    )
    return compile_plan(text, library, max_steps=max_steps, question=question)


def by_example(
    question: str, examples: Sequence[Example], library: ActionLibrary, max_steps: int
) -> CheckedPlan | None:
    """The plan of the example nearest to a question, with its strings replaced."""
    nearest = select(examples, question, 1, 0)
    if not nearest or nearest[0].plan.new_actions:
        return None
    example = nearest[0]
    wanted_parts = parts(question)
    if [part.form for part in wanted_parts] != [part.form for part in parts(example.question)]:
        return None
    arguments = [each for step in example.plan.steps for each in step.arguments]
    if any(not isinstance(each, String | Reference) for each in arguments):
        return None
    strings = list(dict.fromkeys(each.value for each in arguments if isinstance(each, String)))
    known = set(terms(example.question))
    if not strings or any(not set(terms(each)) <= known for each in strings):
        return None
    topics = [part.topic for part in wanted_parts]
    if len(strings) != len(topics):
        if len(strings) > 1:
            return None
        topics = [question]
    if len(set(topics)) < len(topics):  # some steps would be the same call
        return None
    wanted = dict(zip(strings, topics, strict=True))
    outputs = {step.output: f"v{i}" for i, step in enumerate(example.plan.steps, start=1)}

    def replaced(argument: Argument) -> Argument:
        if isinstance(argument, String):
            return String(wanted[argument.value])
        assert isinstance(argument, Reference)
        return Reference(outputs.get(argument.name, argument.name))

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


def are_agreed(candidates: Sequence[Candidate]) -> bool:
    """Whether two or more candidates all make the same calls."""
    plans = different_plans([each.plan for each in candidates])
    return len(candidates) > 1 == len(plans.different)


def choose(candidates: Sequence[Candidate], note: str = "") -> tuple[CheckedPlan, PlanChosen]:
    """The plan that most candidates agree on, else the first; also returns the event of the choice.

    Likelihoods decide nothing: over the shipped banks the ratings of a small model chose a worse action
    more often than a better one.
    """
    plans = different_plans([each.plan for each in candidates])
    sizes = [len(numbers) for numbers in plans.written]
    best = sizes.index(max(sizes))
    why: Literal["only", "agreement", "order"] = "only"
    if len(candidates) > 1:
        why = "agreement"
        if sizes.count(sizes[best]) > 1:
            best, why = 0, "order"
    groups = [tuple(candidates[i - 1].by for i in numbers) for numbers in plans.written]
    listed = tuple(
        PlanCandidate(by=group, plan=str(plan))
        for group, plan in zip(groups, plans.different, strict=True)
    )
    event = PlanChosen(by=groups[best][0], why=why, candidates=listed, note=note)
    return plans.different[best], event
