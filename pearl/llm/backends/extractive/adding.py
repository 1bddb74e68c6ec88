"""How rules add steps to the plan that they write."""

from __future__ import annotations

from typing import Protocol

from pearl.dsl.nodes import Argument, Reference
from pearl.dsl.signatures import Action


class AddStep(Protocol):
    """Adds a step to a plan and gives its output."""

    def __call__(
        self, output: str, action: Action, explanation: str, /, *arguments: Argument
    ) -> Reference:
        """Add one step."""
        ...
