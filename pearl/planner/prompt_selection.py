"""The contents of a planning prompt: actions and examples, all of them or those most similar to the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.operators import EXTRACT, for_planners, with_operators, without_search
from pearl.documents.document import DocumentKind
from pearl.dsl.checker import CheckedPlan, check
from pearl.dsl.fields import Field, print_fields
from pearl.dsl.nodes import Plan, Reference, Step, String
from pearl.dsl.signatures import CTX, Action, ActionLibrary
from pearl.planner.examples import (
    Example,
    by_words,
    callable_with,
    load_examples,
    read_bank,
    renamed,
    select,
)

QUESTION = "Which values does the document state for"
"""The beginning of the question of a plan made from a schema only; it adds nothing to the fields."""
_LEAF_TOKENS = 60  # Tokens of a value with its quote in a reply; covers names of `_NAME` characters
_VALUE_TOKENS = 15  # Tokens of a value in a list entry, whose values share a quote
_NAME = 40  # Characters of a field name that these tokens allow for
_N_ENTRIES, _N_INNER = 8, 2  # Expected number of entries of a list, and of a list within an entry
_N_NAMED = 6  # Maximum fields that the explanation of a step names


def extraction_plan(fields: Sequence[Field], *, reply_tokens: int) -> CheckedPlan:
    """The plan of an extraction: one step, or several whose replies fit `reply_tokens` each."""
    groups = _groups(fields, reply_tokens)
    steps = [
        Step(
            "record" if len(groups) == 1 else f"record_{i}",
            EXTRACT.name,
            (Reference(CTX), String(print_fields(group))),
            f"Extract {_listed(group)}",
        )
        for i, group in enumerate(groups, start=1)
    ]
    question = f"{QUESTION} {_listed(fields)}?"
    library = ActionLibrary("extraction", [EXTRACT])
    return check(Plan(tuple(steps), (), question), library, max_steps=len(steps))


def _groups(fields: Sequence[Field], reply_tokens: int) -> list[list[Field]]:
    """Group fields in order so that each group's reply fits; objects stay whole if they fit; every group has at least one field."""
    groups: list[list[Field]] = []
    room = 0

    def pack(fields: Sequence[Field], depth: int) -> None:
        nonlocal room
        for _, same in groupby(fields, key=lambda field: field.name.split(".")[: depth + 1]):
            whole = list(same)
            need = sum(map(_tokens, whole))
            # Split an object if it is too long, or if much room would be left
            if len(whole) > 1 and need > (room if room > reply_tokens // 4 else reply_tokens):
                pack(whole, depth + 1)
                continue
            if not groups or need > room:
                groups.append([])
                room = reply_tokens
            groups[-1] += whole
            room -= need

    pack(fields, 0)
    return groups


def _tokens(field: Field, in_entry: bool = False) -> int:
    """Expected tokens of a field in a reply."""
    each = _VALUE_TOKENS if in_entry else _LEAF_TOKENS
    if field.fields:
        each = _LEAF_TOKENS - _VALUE_TOKENS + sum(_tokens(inner, True) for inner in field.fields)
    n = 1 if not field.is_list else _N_INNER if in_entry else _N_ENTRIES
    return each * n + max(0, len(field.name) - _NAME) // 3


def _listed(fields: Sequence[Field]) -> str:
    """The names of fields; of many, only the first ones."""
    names = [" ".join(field.name.split()) for field in fields]
    if len(names) > _N_NAMED:
        names[_N_NAMED - 1 :] = [f"{len(names) - _N_NAMED + 1} other fields"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


N_EXAMPLES = 11  # Examples in a full prompt, as in the paper

_SHORTER = (7, 5, 3, 2, 1, 0)
"""Numbers of examples to try, in order, if the full prompt does not fit the window."""

_PER_EXAMPLE = 5
"""Similar actions that a shortened prompt defines for each of its similar examples."""

_MAX_NAMED = 5  # Maximum missing actions that a notice names


class Shown(Struct, frozen=True):
    """The actions and examples that a planning prompt shows."""

    library: ActionLibrary
    examples: tuple[Example, ...] = ()
    explained: frozenset[str] | None = None
    """The actions that are shown with a definition, None for all; others are only named, and actions on rows are omitted."""
    n_nearest: int | None = None
    """Number of examples chosen for the question; None for the full prompt."""
    notes: tuple[str, ...] = ()  # Notes for people on what was omitted


def is_on_rows(action: Action) -> bool:
    """Whether an action is on rows, passages or tables; these have their own section of the prompt."""
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

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """The examples whose actions the library has; read when they are first needed."""
        return callable_with(self._bank, self.actions)

    @cached_property
    def _bank(self) -> tuple[Example, ...]:
        """All examples; actions that the library lacks are replaced by actions with the same meaning."""
        usable, bank = load_examples(self.bank, self.actions), read_bank(self.bank)
        if len(usable) == len(bank):
            return bank
        from pearl.actions.library import meaning  # Most libraries have every action

        home, own = self._home() if self._home else {}, self.library
        meant = {meaning(action): action.name for action in own.values()}
        names = {name: meant[key] for name, each in home.items() if (key := meaning(each)) in meant}
        return tuple(renamed(each, {**names, **own.stands_for}, self.actions) for each in bank)

    @cached_property
    def lacks(self) -> str:
        """A notice of actions that the examples need and the library lacks; "" for none."""
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
        """The actions in the prompt; actions that search are only shown for a corpus."""
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
        """What the prompt shows for a question about a kind of document (with sources): all actions and examples if they fit, else similar ones."""
        bank = self.examples if kind == "corpus" else self._examples_of_one
        shown = whole = Shown(
            self.actions_for(kind, has_sources=has_sources), _varied(bank, N_EXAMPLES),
            notes=(self.lacks,) if self.lacks else (),
        )  # fmt: skip
        if self.nearest is None and fits(shown):
            return shown
        least = N_EXAMPLES if self.nearest is None else self.nearest
        for n in (*([self.nearest] if self.nearest else []), *(n for n in _SHORTER if n < least)):
            shown = self._shortened(whole, bank, question, n, kind)
            if fits(shown):
                break
        if shown.n_nearest == self.nearest:  # Chosen by the setting, so not worth a note
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
        """The `n` most similar examples and two others, the actions they call, and the most similar actions."""
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
        """Actions in every prompt: for composing and declining, called by two examples, or general (`FIND` of `FIND_REASON`)."""
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
    """Examples with the most actions in the fewest steps, the shortest last, because models follow the last ones most."""
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
    """The words by which an action is searched."""
    return f"{action.name.replace('_', ' ')} {action.definition}"
