"""What a planner is shown: the actions that a plan may call, and the examples."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pearl.actions.operators import with_operators, without_search
from pearl.documents.kinds import DocumentKind
from pearl.dsl.signatures import ActionLibrary
from pearl.planner.examples import Example, callable_with, load_examples, select

__all__ = ["PlannerMaterial"]


class PlannerMaterial:
    """The actions and examples in the planner's prompt.

    Args:
        library: The action library, as it is written.
        bank: Name or folder of a bank of examples.
        nearest: Show so many examples, those most like the question, and two unlike ones; None for
            the whole bank.

    Attributes:
        actions: What a plan can call: the library, and the operators on rows.
    """

    def __init__(
        self, library: ActionLibrary, bank: str | Path, nearest: int | None = None
    ) -> None:
        self.library = library
        self.actions = with_operators(library)
        self.bank = bank
        self.nearest = nearest

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The whole bank; read when it is first needed.

        Raises:
            DataError: It cannot be read.
        """
        return load_examples(self.bank, self.actions)

    @cached_property
    def _of_one(self) -> ActionLibrary:
        return without_search(self.actions, self.library)

    @cached_property
    def _examples_of_one(self) -> tuple[Example, ...]:
        return callable_with(self.examples, self._of_one)

    def actions_for(self, kind: DocumentKind = "document") -> ActionLibrary:
        """The actions that are shown: those that search for a corpus only."""
        return self.actions if kind == "corpus" else self._of_one

    def examples_for(self, question: str, kind: DocumentKind = "document") -> tuple[Example, ...]:
        """The examples that are shown with a question."""
        shown = self.examples if kind == "corpus" else self._examples_of_one
        if self.nearest is None or self.nearest >= len(shown):
            return shown
        return select(shown, question, self.nearest)
