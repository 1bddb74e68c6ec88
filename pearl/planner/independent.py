"""Plans of one question that are written without one another, so that their answers can confirm each other.

The first is the one that is written where only one is wanted: by rule, where the question is routed, or
by the model as it is set. The others are always written by the model, drawn with a seed of their own. They
are shown no parts of the question, which all of them would have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pearl.documents.digest import digest
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.nodes import Argument, ListLiteral, Reference, String
from pearl.errors import PearlError, UsageError
from pearl.llm import Model
from pearl.llm.middleware.wrappers import Sampling

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
    """What was written, with equal plans together.

    Plans are equal where they make the same calls, whatever their outputs are called, in which order
    independent steps stand and how the steps are explained.
    """
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
