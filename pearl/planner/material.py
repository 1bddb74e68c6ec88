"""The material of a planning prompt: actions and examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path

from pearl.actions.operators import with_operators, without_extraction, without_search
from pearl.documents.document import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.planner.examples import Example, callable_with, load_examples, select
from pearl.retrieval.weighting import TermRanker


def free_output(name: str, steps: Iterable[Step]) -> str:
    """A name for an output, numbered if one of the steps already has it."""
    taken = {step.output for step in steps}
    names = (name if n == 1 else f"{name}_{n}" for n in count(1))
    return next(each for each in names if each not in taken)


def nearest_first(question: str, actions: Sequence[Action], first: Iterable[str]) -> list[Action]:
    """Actions in the order of some names, then by the words that they share with a question."""
    texts = [f"{action.name.replace('_', ' ')} {action.definition}" for action in actions]
    scores = TermRanker(list(map(terms, texts))).scores(terms(question))
    ranked = sorted(range(len(actions)), key=lambda i: (-scores[i], i))
    by_name = {action.name: action for action in actions}
    order = dict.fromkeys([*first, *(actions[i].name for i in ranked)])
    return [by_name[name] for name in order if name in by_name]


N_EXAMPLES = 3
"""Examples nearest to the question in a prompt, unless the settings say otherwise."""


class PlannerMaterial:
    """The actions and examples in the planner's prompt."""

    def __init__(
        self,
        library: ActionLibrary,
        bank: str | Path,
        nearest: int | None = None,
    ) -> None:
        self.library = library
        self.actions = with_operators(library)
        self.bank = bank
        self.nearest = nearest

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

    def actions_for(self, kind: DocumentKind = "document") -> ActionLibrary:
        """The actions in the prompt; actions that search are for a corpus only."""
        return without_extraction(self.actions if kind == "corpus" else self._of_one)

    def examples_for(self, question: str, kind: DocumentKind = "document") -> tuple[Example, ...]:
        """The examples in the prompt of a question."""
        n = N_EXAMPLES if self.nearest is None else self.nearest
        bank = self.examples if kind == "corpus" else self._examples_of_one
        return bank if n >= len(bank) else select(bank, question, n)
