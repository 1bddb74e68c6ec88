"""The material of a planning prompt: actions and examples, whole or nearest to the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path

from pearl.actions.operators import for_planners, with_operators, without_search
from pearl.documents.document import DocumentKind
from pearl.dsl.nodes import Step
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.planner.examples import (
    Example,
    by_words,
    callable_with,
    load_examples,
    read_bank,
    renamed,
    select,
)


def free_output(name: str, steps: Iterable[Step]) -> str:
    """A name for an output, numbered if one of the steps already has it."""
    taken = {step.output for step in steps}
    names = (name if n == 1 else f"{name}_{n}" for n in count(1))
    return next(each for each in names if each not in taken)


N_EXAMPLES = 11  # Examples in a whole prompt, as in the paper

_SHORTER = (7, 5, 3, 2, 1, 0)
"""Numbers of examples to try where the whole prompt does not fit the window."""

_PER_EXAMPLE = 5
"""Nearest actions that a shortened prompt explains for each of its nearest examples."""

_MAX_NAMED = 5  # Missing actions that a notice names


@dataclass(frozen=True, slots=True)
class Shown:
    """What a planning prompt shows of the actions that plans may call."""

    library: ActionLibrary
    examples: tuple[Example, ...] = ()
    explained: frozenset[str] | None = None
    """The actions with a definition, None for all; others are named, and those on rows left out."""
    n_nearest: int | None = None
    """Examples that were chosen for the question; None for the whole prompt."""
    notes: tuple[str, ...] = ()  # What was left out, for people


def is_on_rows(action: Action) -> bool:
    """Whether the action belongs to those on rows, passages and tables, a part of its own of the prompt."""
    return any(each.reads in ("rows", "passages", "table") for each in action.parameters)


class PlannerMaterial:
    """The actions and examples in the planner's prompt."""

    def __init__(
        self,
        library: ActionLibrary,
        bank: str | Path,
        nearest: int | None = None,
        home: Callable[[], ActionLibrary] | None = None,
    ) -> None:
        """`home` returns the library that the bank was written for."""
        self.library = library
        self.actions = with_operators(library)
        self.bank = bank
        self.nearest = nearest
        self._home = home
        self._whole: dict[tuple[DocumentKind, bool], Shown] = {}

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The examples whose actions the library has; read when they are first needed."""
        return callable_with(self._bank, self.actions)

    @cached_property
    def _bank(self) -> tuple[Example, ...]:
        """All examples; what stands for a missing action is in its place."""
        usable, bank = load_examples(self.bank, self.actions), read_bank(self.bank)
        if len(usable) == len(bank):
            return bank
        from pearl.actions.likeness import meaning  # most libraries have every action

        home, own = self._home() if self._home else {}, self.library
        meant = {meaning(action): action.name for action in own.values()}
        names = {name: meant[key] for name, each in home.items() if (key := meaning(each)) in meant}
        return tuple(renamed(each, {**names, **own.stands_for}, self.actions) for each in bank)

    @cached_property
    def lacks(self) -> str:
        """What the library lacks for examples of the bank; "" if nothing."""
        usable = callable_with(self._bank, self.actions)
        plans = [each.plan for each in self._bank if each not in usable]
        missing = Counter(
            name
            for plan in plans
            for name in {step.action for step in plan.steps} - {a.name for a in plan.new_actions}
            if name not in self.actions
        )
        names = [name for name, _ in missing.most_common(_MAX_NAMED)]
        names += ["..."] if len(missing) > _MAX_NAMED else []
        said = f"{len(plans)} of {len(self._bank)} examples call actions that this library lacks"
        return f"{said}: {', '.join(names)}" if plans else ""

    @cached_property
    def _of_one(self) -> ActionLibrary:
        return without_search(self.actions, self.library)

    @cached_property
    def _examples_of_one(self) -> tuple[Example, ...]:
        return callable_with(self.examples, self._of_one)

    def actions_for(
        self, kind: DocumentKind = "document", *, has_sources: bool = False
    ) -> ActionLibrary:
        """The actions in the prompt; actions that search are for a corpus only."""
        actions = self.actions if kind == "corpus" else self._of_one
        return for_planners(actions, has_sources=has_sources)

    def shown(
        self,
        question: str,
        kind: DocumentKind = "document",
        fits: Callable[[Shown], bool] = lambda shown: True,
        *,
        has_sources: bool = False,
    ) -> Shown:
        """What the prompt of a question about a kind of document (with sources) shows: all that fits, or what is near to it."""
        bank = self.examples if kind == "corpus" else self._examples_of_one
        shown = self._whole.get((kind, has_sources)) or Shown(
            self.actions_for(kind, has_sources=has_sources), _varied(bank, N_EXAMPLES),
            notes=(self.lacks,) if self.lacks else (),
        )  # fmt: skip
        self._whole[kind, has_sources] = shown
        if self.nearest is None and fits(shown):
            return shown
        least = N_EXAMPLES if self.nearest is None else self.nearest
        for n in (*([self.nearest] if self.nearest else []), *(n for n in _SHORTER if n < least)):
            shown = self._shortened(shown, bank, question, n, kind)
            if fits(shown):
                break
        if shown.n_nearest == self.nearest:  # by choice
            return shown
        told = (
            "the planning prompt was shortened to fit the window of the model: it shows "
            f"{len(shown.examples)} of {len(bank)} examples and explains {len(shown.explained or ())} of "
            f"{len(shown.library)} actions"
        )
        return replace(shown, notes=(*shown.notes, told))

    def _shortened(
        self, whole: Shown, bank: Sequence[Example], question: str, n: int, kind: DocumentKind
    ) -> Shown:
        """The `n` nearest examples with two others, what they call, and the nearest actions."""
        library = whole.library
        on_rows = {action.name for action in library.values() if is_on_rows(action)}

        def called(examples: Iterable[Example]) -> set[str]:
            return set[str]().union(*map(_called, examples))

        near = select(bank, question, n, 0)
        if kind == "document" and on_rows.isdisjoint(called(near) | self.library.keys()):
            bank = [each for each in bank if on_rows.isdisjoint(called([each]))]
            on_rows = set()
        examples = select(bank, question, n, 2 if n else 0)
        others = [action for action in library.values() if not is_on_rows(action)]
        likely = by_words(question, list(map(text_of, others)))
        ranked = sorted(range(len(others)), key=lambda i: (-likely[i], i))[: _PER_EXAMPLE * n]
        names = self._plain | called(examples) | {others[i].name for i in ranked}
        explained = on_rows | {action.name for action in others if action.name in names}
        return replace(whole, examples=examples, explained=frozenset(explained), n_nearest=n)

    @cached_property
    def _plain(self) -> frozenset[str]:
        """Actions in every prompt: those that many others refine by name, as `FIND_REASON`, that two examples call, or that compose."""
        heads = {
            name for name in self.library if any(n.startswith(f"{name}_") for n in self.library)
        }
        called = Counter(name for each in self.examples for name in _called(each))
        composing = {
            action.name for action in self.actions.values()
            if action.composes or "declines" in action.traits
        }  # fmt: skip
        return frozenset(heads | composing | {name for name, n in called.items() if n > 1})


def _varied(bank: Sequence[Example], n: int) -> tuple[Example, ...]:
    """Examples that show the most actions in the fewest steps, the shortest last: models follow the last ones most."""
    left, chosen, seen = list(bank), list[Example](), set[str]()
    while left and len(chosen) < n:
        best = max(left, key=lambda each: len(_called(each) - seen) / len(each.plan.steps))
        chosen.append(best)
        left.remove(best)
        seen |= _called(best)
    return tuple(sorted(chosen, key=lambda each: -len(each.plan.steps)))


def _called(example: Example) -> set[str]:
    return {step.action for step in example.plan.steps}


def text_of(action: Action) -> str:
    """The words of an action."""
    return f"{action.name.replace('_', ' ')} {action.definition}"
