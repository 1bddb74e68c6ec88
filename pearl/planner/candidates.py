"""Question → candidate plans for a weak model: by rule, by the nearest example, by the model itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, NamedTuple

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
from pearl.errors import ModelError, PearlError, PlanError
from pearl.llm import Message, Model, PlanTask, Usage
from pearl.llm.messages import against_null, log_likelihoods
from pearl.llm.middleware.wrappers import Sampling
from pearl.planner.examples import Example, select
from pearl.trace import PlanCandidate, PlanChosen, PlanWriter

DRAWN_AT = 0.7
"""Temperature of plans after the first, unless the settings have one.

Source:
    Wang et al., Self-Consistency Improves Chain of Thought Reasoning (2023), section 3.1.
"""


@dataclass(frozen=True, slots=True)
class Draws:
    """The sampling of several plans for a question."""

    n: int = 1
    seed: int | None = None
    temperature: float | None = None

    def model(self, model: Model, number: int) -> Model:
        """The model with the sampling settings of plan `number`, from 1."""
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


NULL_QUESTIONS = ("What is it?", "What does the document say?", "N/A")
"""Questions without content, which show the model's prior likelihood of an action."""

N_RATINGS = 1 + len(NULL_QUESTIONS)
"""Maximum calls that rate candidates."""

MARGIN = 2.0
"""Minimum lead in nats of an action over that of the first candidate.

On 27 questions of the shipped banks, each planned without its own example, SmolLM2-135M chose a better
action four times and a worse one six times at a margin of 0, and neither at a margin of 2.
"""

N_SHOWN = 6
"""Examples in the prompt that rates actions."""

UNRATED = frozenset({"bad_request", "malformed", "unconstrained"})
"""Kinds of errors by which a server shows that it cannot compute likelihoods."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan and its origin."""

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
    from pearl.embedded import planner  # imported on use: `pearl execute` writes no plan

    if is_other:
        text = planner.write_other_plan(question, library)
    else:
        text = planner.write_plan(question, library, kind)
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
    if len(set(topics)) < len(topics):  # some steps would make the same call
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


async def choose(
    question: str,
    candidates: Sequence[Candidate],
    examples: Sequence[Example],
    model: Model,
    note: str = "",
) -> tuple[CheckedPlan, PlanChosen]:
    """The plan that most candidates agree on, else the one rated highest by likelihood, else the first.

    Also returns the event of the choice.
    """
    plans = different_plans([each.plan for each in candidates])
    sizes = [len(numbers) for numbers in plans.written]
    best, ratings = sizes.index(max(sizes)), _Ratings()
    why: Literal["only", "agreement", "likelihood", "order"] = "only"
    if len(candidates) > 1:
        why = "agreement"
        if sizes.count(sizes[best]) > 1:
            best, why = 0, "order"
            try:
                ratings = await _rated(question, plans.different, examples, model)
            except ModelError as error:
                if error.kind not in UNRATED:
                    raise
                note = "; ".join(filter(None, (note, error.message)))
            if rates := ratings.of_plans:
                ahead = max(range(len(rates)), key=lambda i: rates[i])
                best, why = (ahead if rates[ahead] - rates[0] > MARGIN else 0), "likelihood"
    groups = [tuple(candidates[i - 1].by for i in numbers) for numbers in plans.written]
    listed = tuple(
        PlanCandidate(by=group, plan=str(plan), pmi=None if rate is None else round(rate, 4))
        for group, plan, rate in zip_longest(groups, plans.different, ratings.of_plans)
    )
    event = PlanChosen(
        by=groups[best][0], why=why, candidates=listed, note=note,
        usage=ratings.usage, n_calls=ratings.n_calls, n_cached=ratings.n_cached,
    )  # fmt: skip
    return plans.different[best], event


class _Ratings(NamedTuple):
    """The ratings of plans in nats, with their usage; empty if no plan is rated."""

    of_plans: tuple[float, ...] = ()
    usage: Usage = Usage()
    n_calls: int = 0
    n_cached: int = 0


async def _rated(
    question: str, plans: Sequence[CheckedPlan], examples: Sequence[Example], model: Model
) -> _Ratings:
    """Rate the first action of each plan by its mutual information with the question."""
    actions = [_first(plan.plan, plan.actions) for plan in plans]
    names = tuple(dict.fromkeys(action.name for action in actions if action))
    if len(names) < 2 or not model.constrains.likelihoods:
        return _Ratings()
    library = plans[0].actions
    listed = {action.name: f"- {print_action(action)}" for action in actions if action}
    lines = ["\n".join(listed.values()), "Reply with the action that answers the question."]
    lines.extend(
        f"Question: {example.question}\nAction: {action.name}"
        for example in select(examples, question, N_SHOWN, 0)
        if (action := _first(example.plan, library)) and not action.is_native
    )
    head = "\n\n".join(lines)
    numbers: list[tuple[float, ...]] = []
    usage, n_cached = Usage(), 0
    for asked in (question, *NULL_QUESTIONS):  # sequentially, to use the prompt cache
        prompt = Message("user", f"{head}\n\nQuestion: {asked}\nAction:")
        likelihoods, completion = await log_likelihoods(
            model, [prompt], names, PlanTask(question, library)
        )
        numbers.append(likelihoods)
        usage += completion.usage
        n_cached += completion.is_remembered
    rates = dict(zip(names, against_null(numbers[0], numbers[1:]), strict=True))
    of_plans = tuple(rates[action.name] for action in actions if action)
    return _Ratings(of_plans, usage, len(numbers), n_cached)


def _first(plan: Plan, library: ActionLibrary) -> Action | None:
    """The first action of a plan that a model carries out, else its first action; None if no action is known."""
    known = [library[step.action] for step in plan.steps if step.action in library]
    return next((action for action in known if not action.is_native), known[0] if known else None)
