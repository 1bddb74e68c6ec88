"""A question → its parts and its difficulty → a plan by rule, where that is enough."""

from __future__ import annotations

from dataclasses import dataclass

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.signatures import ActionLibrary
from pearl.llm import Model
from pearl.trace import Trace

__all__ = ["Route", "route"]


@dataclass(frozen=True, slots=True)
class Route:
    """How a question is to be planned.

    Attributes:
        plan: A plan that its parts make; None where a planner has to write it.
        advice: What the planner is told of its parts; "" for nothing.
    """

    plan: CheckedPlan | None = None
    advice: str = ""


async def route(
    question: str, library: ActionLibrary, model: Model, *, trace: Trace | None = None
) -> Route:
    """Find out how a question is to be planned.

    Raises:
        ModelError: The model gave no usable reply.
    """
    return Route()
