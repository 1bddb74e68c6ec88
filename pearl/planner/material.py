"""The material of a planning prompt: actions and examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Literal

from pearl.actions.operators import with_operators, without_extraction, without_search
from pearl.documents.document import DocumentKind
from pearl.documents.passages import terms
from pearl.dsl.decoding.weak import MAX_SPAN_WORDS, Word, n_texts
from pearl.dsl.literals import UNTYPED
from pearl.dsl.nodes import Argument, Plan, Reference, Step, String
from pearl.dsl.signatures import Action, ActionLibrary
from pearl.llm import Model, PlanTask
from pearl.llm.reply_limits import reply_limit
from pearl.llm.size import is_small
from pearl.planner.examples import Example, callable_with, load_examples, select
from pearl.retrieval.weighting import TermRanker

_OPENING = frozenset({
    "a", "an", "the", "his", "her", "its", "their", "my", "our", "your", "this", "that", "these",
    "those", "no", "not", "never",
})  # fmt: skip
_EDGES = "()[]{}<>\"'“”„‘’«».,;:?!¿¡…-–—*_"
_QUOTES = frozenset("\"'“”„‘’«»*_")


def question_words(question: str) -> tuple[Word, ...]:
    """The words of a question, without the punctuation around them."""
    words: list[Word] = []
    for text in UNTYPED.sub(" ", question).split():
        word = text.strip(_EDGES)
        begins = text[: len(text) - len(text.lstrip(_EDGES))]
        ends = text[len(text.rstrip(_EDGES)) :]
        if words and set(begins) - _QUOTES:  # also at a dash between blanks
            words[-1] = words[-1]._replace(is_last=True)
        if word:
            is_content = bool(terms(word, drop_stop_words=True))
            is_opening = word.lower() in _OPENING
            words.append(Word(word, is_content, is_opening, bool(set(ends) - _QUOTES)))
    return tuple(words)


def nearest_span(text: str, question: str) -> str:
    """A text unchanged if all its terms are in the question, else its `covering_span`."""
    wanted = set(terms(text, drop_stop_words=True))
    is_borne_out = bool(wanted) and wanted <= set(terms(question, drop_stop_words=True))
    return text if is_borne_out else covering_span(text, question)


def covering_span(text: str, question: str) -> str:
    """The shortest consecutive words of a question that have the most terms of a text.

    Example:
        >>> question = "Who set up the seed bank in the valley, and why?"
        >>> covering_span("the setting up of the seed bank", question), covering_span("a dog", "Who?")
        ('set up the seed bank', 'Who?')
    """
    wanted = set(terms(text, drop_stop_words=True))
    words = question_words(question)
    terms_of = [set(terms(word.text, drop_stop_words=True)) for word in words]
    best, best_rank = question, (0, 0)
    for start, first in enumerate(terms_of):
        if not first & wanted:
            continue
        matched: set[str] = set()
        for end in range(start, min(start + MAX_SPAN_WORDS, len(words))):
            matched |= terms_of[end] & wanted
            rank = (len(matched), start - end)
            if rank > best_rank:
                best, best_rank = _joined(words, start, end), rank
            if words[end].is_last:
                break
    return best


def _joined(words: Sequence[Word], start: int, end: int) -> str:
    """Consecutive words, with an article or a possessive before them."""
    before = words[start - 1] if start else None
    is_led = before is not None and before.is_opening and not before.is_last
    return " ".join(word.text for word in words[start - is_led : end + 1])


def free_output(name: str, steps: Iterable[Step]) -> str:
    """A name for an output, numbered if one of the steps already has it."""
    taken = {step.output for step in steps}
    names = (name if n == 1 else f"{name}_{n}" for n in count(1))
    return next(each for each in names if each not in taken)


def nearest_actions(
    question: str,
    library: ActionLibrary,
    examples: Iterable[Example],
    n: int,
    kind: DocumentKind = "document",
) -> ActionLibrary:
    """The `n` reading actions nearest to a question, and the actions that combine their results."""
    from pearl.embedded.planner import build_plan  # imported on use: for small models only

    reading = [action for action in library.values() if n_texts(action) is not None]
    of_table = [action for action in reading if action.asks_table]
    if kind == "table" and of_table:
        return ActionLibrary(library.name, of_table)
    by_rule = {step.action for step in build_plan(question, library, kind).steps}
    # An action without text arguments fits every question, so only the rules may choose it.
    reading = [a for a in reading if not a.asks_table and (n_texts(a) or a.name in by_rule)]
    in_examples = [step.action for each in examples for step in each.plan.steps]
    chosen = {
        a.name for a in nearest_first(question, reading, [*sorted(by_rule), *in_examples])[:n]
    }
    kept = [a for a in library.values() if a.name in chosen or a.name in _COMBINING]
    return ActionLibrary(library.name, kept)


def nearest_first(question: str, actions: Sequence[Action], first: Iterable[str]) -> list[Action]:
    """Actions in the order of some names, then by the words that they share with a question."""
    texts = [f"{action.name.replace('_', ' ')} {action.definition}" for action in actions]
    scores = TermRanker(list(map(terms, texts))).scores(terms(question))
    ranked = sorted(range(len(actions)), key=lambda i: (-scores[i], i))
    by_name = {action.name: action for action in actions}
    order = dict.fromkeys([*first, *(actions[i].name for i in ranked)])
    return [by_name[name] for name in order if name in by_name]


_COMBINING = frozenset({"CONCAT", "COUNT"})
"""Actions of steps that small models leave to rules."""


def short_form(example: Example, library: ActionLibrary, max_steps: int) -> Example | None:
    """An example in the form for small models: reading steps with spans of the question."""
    steps: list[Step] = []
    for step in example.plan.steps:
        action = library.get(step.action)
        if action is None:
            return None
        if action.composes or action.name in _COMBINING:
            continue
        if n_texts(action) is None:
            return None
        spans: list[Argument] = []
        for argument in step.arguments[1:]:
            if not isinstance(argument, String):
                return None
            spans.append(String(covering_span(argument.value, example.question)))
        output = f"v{len(steps) + 1}"
        steps.append(Step(output, step.action, (Reference("CTX"), *spans), ""))
    calls = {(step.action, step.arguments) for step in steps}
    if not steps or len(steps) > max_steps or len(calls) < len(steps):
        return None
    return Example(example.question, Plan(tuple(steps)), example.path)


ProfileName = Literal["auto", "full", "small"]
"""`auto` decides by the size and the window of the model."""

PROFILES: tuple[ProfileName, ...] = ("auto", "full", "small")

MIN_WINDOW = 8_192
"""Tokens that the full prompt needs: 2,400 to 3,300, plus the reply, and the same again for a repair."""


@dataclass(frozen=True, slots=True)
class PlannerProfile:
    """The size of a planning prompt and of its plans."""

    name: Literal["full", "small"]
    n_examples: int
    n_actions: int | None = None
    max_steps: int | None = None
    is_explained: bool = True
    max_output_tokens: int | None = None
    reading_tokens: int | None = None

    @property
    def notice(self) -> str:
        """One line that tells users about the small profile; "" for the full one."""
        if self.n_actions is None:
            return ""
        return (
            f"  planned as for a small model: {self.n_actions} actions and {self.n_examples} examples near "
            f"the question, {self.max_steps} steps at most (--profile full shows all)"
        )

    def reply_tokens(
        self, task: PlanTask, window: int | None, max_output_tokens: int | None, max_steps: int
    ) -> int:
        """Maximum tokens of a reply; arguments as of `reply_limit`."""
        most = reply_limit(task, window, max_output_tokens, max_steps=max_steps)
        if max_output_tokens is not None or self.max_output_tokens is None:
            return most
        return min(most, self.max_output_tokens)


FULL = PlannerProfile("full", n_examples=3)
SMALL = PlannerProfile(
    "small", n_actions=15, n_examples=6, max_steps=3, is_explained=False, max_output_tokens=1_024,
    reading_tokens=512,
)  # fmt: skip


def profile_for(
    model: Model, name: ProfileName = "auto", window: int | None = None
) -> PlannerProfile:
    """The profile of a model."""
    if name != "auto":
        return FULL if name == "full" else SMALL
    is_short = window is not None and window < MIN_WINDOW
    return SMALL if model.reads_prompts and (is_short or is_small(model.name)) else FULL


SHORT_BANK = "short"
"""The bank of short examples, whose strings are words from their questions."""


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
        """The examples of both banks in short form."""
        assert self.profile.max_steps is not None
        bank = [*self.examples, *load_examples(SHORT_BANK, self.actions)]
        short = (short_form(each, self.actions, self.profile.max_steps) for each in bank)
        return tuple(each for each in short if each is not None)

    def actions_for(self, kind: DocumentKind = "document", question: str = "") -> ActionLibrary:
        """The actions in the prompt; actions that search are for a corpus only."""
        actions = without_extraction(self.actions if kind == "corpus" else self._of_one)
        if self.profile.n_actions is None or not question:
            return actions
        examples = self.examples_for(question, kind)
        return nearest_actions(question, actions, examples, self.profile.n_actions, kind)

    def examples_for(self, question: str, kind: DocumentKind = "document") -> tuple[Example, ...]:
        """The examples in the prompt of a question."""
        n = self.profile.n_examples if self.nearest is None else self.nearest
        if not self.profile.is_explained:
            return () if kind == "table" else select(self._short_examples, question, n, n_unlike=0)
        bank = self.examples if kind == "corpus" else self._examples_of_one
        return bank if n >= len(bank) else select(bank, question, n)
