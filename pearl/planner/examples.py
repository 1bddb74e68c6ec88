"""Examples for the planner: plan files with their questions, checked against the library in use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from pearl.documents.document import read_bytes
from pearl.documents.passages import terms
from pearl.dsl.checker import check
from pearl.dsl.nodes import Plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import EACH, ActionLibrary, Compared
from pearl.errors import DataError, PlanCheckError, PlanSyntaxError
from pearl.plugins.files import find_data
from pearl.retrieval.methods.bm25 import TermRanker

_parse = lru_cache(maxsize=256)(parse)
"""Cached: every `Pearl` reads its example bank, and plans seldom change."""


class Example(Compared, frozen=True, eq=False):
    """A question with a correct plan."""

    N_COMPARED = 2

    question: str
    plan: Plan
    path: Path | None = None


def load_examples(bank: str | Path, library: ActionLibrary) -> tuple[Example, ...]:
    """The examples in a folder that are valid under a library, sorted by file name."""
    read = read_bank(bank)
    if not read:
        raise DataError(
            f"the bank '{bank}' contains no plan", help="pass a folder with .plan files"
        )
    return callable_with(read, library)


def callable_with(examples: Iterable[Example], library: ActionLibrary) -> tuple[Example, ...]:
    """The examples that are valid under a library."""
    valid: list[Example] = []
    for example in examples:
        try:
            check(example.plan, library)
        except PlanCheckError:
            continue
        valid.append(example)
    return tuple(valid)


def read_bank(bank: str | Path) -> tuple[Example, ...]:
    """All examples in a folder, sorted by file name, whatever actions they call."""
    folder = find_data("fewshot", str(bank)) or Path(bank)
    if not folder.is_dir():
        raise DataError(
            f"cannot find a folder of examples '{bank}'", help="pass a folder with .plan files"
        )
    examples: list[Example] = []
    for path in sorted(folder.glob("*.plan")):
        if not path.is_file():  # Reading a pipe may block, and a device may be endless
            raise DataError(
                "is not a regular file", path=path, help="remove it from the folder of examples"
            )
        try:
            plan = _parse(read_bytes(str(path), str(path)).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise DataError(f"cannot be read as a plan: {error}", path=path) from error
        except PlanSyntaxError as error:
            first = next(d for d in error.diagnostics if d.severity == "error")
            line, _ = first.span.position(error.text)
            raise DataError(
                f"not a plan: {first.message}",
                path=path,
                line=line,
                help="run `pearl check FILE` for all errors; fix or remove the file",
            ) from error
        if not plan.question:
            raise DataError("an example must begin with 'Question: ...'", path=path, line=1)
        examples.append(Example(plan.question, plan, path))
    return tuple(examples)


def renamed(example: Example, names: Mapping[str, str], library: ActionLibrary) -> Example:
    """Replace actions that a library lacks in an example by others."""
    own = {action.name for action in example.plan.new_actions}

    def name_of(name: str) -> str:
        each = EACH if name.startswith(EACH) else ""
        bare = name.removeprefix(each)
        known = name in library or bare in library or bare in own
        return name if known else each + names.get(bare, bare)

    steps = tuple(replace(step, action=name_of(step.action)) for step in example.plan.steps)
    return replace(example, plan=replace(example.plan, steps=steps))


def select(
    examples: Sequence[Example], question: str, n_nearest: int, n_unlike: int = 2
) -> tuple[Example, ...]:
    """Select the examples most similar to a question, and a few deliberately dissimilar ones.

    Example:
        >>> from pearl.dsl.parser import parse
        >>> plan = parse('1. ans = FIND(CTX, "x") : Find it')
        >>> bank = [Example(q, plan) for q in ("Why did Ada leave?", "How many dogs?", "Why stay?")]
        >>> [example.question for example in select(bank, "Why did Tom leave?", 1, 1)]
        ['How many dogs?', 'Why did Ada leave?']

    Source:
        Adaptive prompting: relevant examples beside random, unrelated ones.
    """
    scores = by_words(question, [example.question for example in examples])
    order = sorted(range(len(examples)), key=lambda i: (-scores[i], i))
    nearest, rest = order[:n_nearest], order[n_nearest:]
    seen = [question, *(examples[i].question for i in nearest)]
    unlike = _least_like(seen, [examples[i] for i in rest], n_unlike)
    return (*unlike, *(examples[i] for i in reversed(nearest)))


def spread(examples: Sequence[Example], n: int) -> list[Example]:
    """The `n` examples that differ most from one another, in their original order."""
    if len(examples) <= n:
        return list(examples)
    first, *rest = examples
    chosen = [first, *_least_like([first.question], rest, n - 1)]
    return sorted(chosen, key=examples.index)


def _least_like(seen: Sequence[str], examples: Sequence[Example], n: int) -> list[Example]:
    """Choose greedily the examples that are least similar to those chosen so far."""
    like = [0.0] * len(examples)
    chosen: dict[int, None] = {}
    texts = [example.question for example in examples]
    latest = list(seen)
    while len(chosen) < min(n, len(examples)):
        for text in latest:
            like = [max(pair) for pair in zip(like, by_words(text, texts), strict=True)]
        best = min((k for k in range(len(texts)) if k not in chosen), key=lambda k: (like[k], k))
        chosen[best] = None
        latest = [texts[best]]
    return [examples[k] for k in chosen]


def by_words(question: str, others: Sequence[str]) -> list[float]:
    """BM25 scores that do not leave out stop words such as `how many`, because they indicate the kind of plan."""
    return TermRanker([terms(other) for other in others]).scores(terms(question))


def asked_again(bank: Iterable[Example], questions: Iterable[str]) -> list[Example]:
    """Examples whose question is among the given ones, ignoring case, blanks and punctuation."""
    known = {wording(question) for question in questions}
    return [example for example in bank if wording(example.question) in known]


def wording(question: str) -> tuple[str, ...]:
    """The comparison key of a question: its words, ignoring case, blanks and punctuation."""
    return tuple(re.findall(r"\w+", unicodedata.normalize("NFKC", question).casefold()))
