"""What a planner is shown: the actions that a plan may call, and the examples."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from pearl.actions.operators import with_operators, without_search
from pearl.documents.document import DocumentKind
from pearl.dsl.signatures import ActionLibrary
from pearl.planner.examples import Example, callable_with, load_examples, select
from pearl.planner.nearest import nearest_actions, short_form
from pearl.planner.profile import FULL, PlannerProfile

SHORT_BANK = "short"
"""Examples of few steps, whose strings are words of their questions."""


class PlannerMaterial:
    """The actions and examples in the planner's prompt."""

    def __init__(
        self,
        library: ActionLibrary,
        bank: str | Path,
        nearest: int | None = None,
        profile: PlannerProfile = FULL,
    ) -> None:
        self.library = library
        self.actions = with_operators(library)
        self.bank = bank
        self.nearest = nearest
        self.profile = profile

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The whole bank; read when it is first needed."""
        return load_examples(self.bank, self.actions)

    @cached_property
    def _of_one(self) -> ActionLibrary:
        return without_search(self.actions, self.library)

    @cached_property
    def _examples_of_one(self) -> tuple[Example, ...]:
        return callable_with(self.examples, self._of_one)

    @cached_property
    def _short_examples(self) -> tuple[Example, ...]:
        """Those of the bank and of the bank of short ones, in their short form."""
        assert self.profile.max_steps is not None
        bank = [*self.examples, *load_examples(SHORT_BANK, self.actions)]
        short = (short_form(each, self.actions, self.profile.max_steps) for each in bank)
        return tuple(each for each in short if each is not None)

    def actions_for(self, kind: DocumentKind = "document", question: str = "") -> ActionLibrary:
        """The actions that are shown: those that search for a corpus only."""
        shown = self.actions if kind == "corpus" else self._of_one
        if self.profile.n_actions is None or not question:
            return shown
        examples = self.examples_for(question, kind)
        return nearest_actions(question, shown, examples, self.profile.n_actions, kind)

    def examples_for(self, question: str, kind: DocumentKind = "document") -> tuple[Example, ...]:
        """The examples that are shown with a question."""
        if self.profile.n_examples is not None:
            if kind == "table":
                return ()
            n = self.profile.n_examples if self.nearest is None else self.nearest
            return select(self._short_examples, question, n, n_unlike=0)
        shown = self.examples if kind == "corpus" else self._examples_of_one
        if self.nearest is None or self.nearest >= len(shown):
            return shown
        return select(shown, question, self.nearest)
