"""How many words beside the numbers of a reply show that a row has the value of another one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from aggregation.bars import N_PER_CALL, Bar
from aggregation.windows import draw_window

from pearl.documents.tokens import Counter
from pearl.replies.items import MAX_WORDS, echoes, end_words

Texts = tuple[str, ...]


def _least(texts: Texts, is_enough: Callable[[Sequence[str]], bool]) -> list[str]:
    """The first words, of all texts as many as it takes."""
    tries = ([end_words(text, n) for text in texts] for n in range(1, MAX_WORDS + 1))
    return next(words for words in tries if is_enough(words))


WAYS: dict[str, Callable[[Texts], Sequence[str]]] = {
    "none": lambda texts: [""] * len(texts),
    "2 of every eighth": lambda texts: [end_words(text, 2) for text in texts],
    "the first": lambda texts: [end_words(text, 1) for text in texts],
    "as many as tell neighbours apart": lambda texts: _least(
        texts, lambda words: all(a != b for a, b in pairwise(words))
    ),
    "as many as tell all apart": lambda texts: _least(
        texts, lambda words: all(_n_fitting(one, texts) == 1 for one in words)
    ),
    "as it takes for each": lambda texts: echoes(texts).words,
}  # fmt: skip
"""The words of each item."""


def _n_fitting(words: str, texts: Texts) -> int:
    return sum(text.startswith(words) for text in texts)


def _moves(n: int, draw: random.Random) -> Iterator[list[int]]:
    """The items that the rows are about, of replies that leave out, repeat or exchange some."""
    for k in range(n):
        yield [*range(k), *range(k + 1, n), n - 1]
        yield [*range(k + 1), *range(k, n - 1)]
        yield [*range(k), *range(k + 2, n), n - 1, n - 1][:n]
        exchanged = list(range(n))
        i, j = draw.sample(exchanged, 2)
        exchanged[i], exchanged[j] = j, i
        yield exchanged


async def echoing(seed: int, n: int = 320) -> Bar:
    """Tokens of a row, and the share of moved replies of which a row shows words that are not its item's."""
    texts = list(draw_window(n, seed).labels_of)
    batches = [tuple(texts[i : i + N_PER_CALL]) for i in range(0, len(texts), N_PER_CALL)]
    counter = Counter.for_model("openai:gpt-4o")
    bar = Bar(f"words beside numbers, {counter.method}", {})
    for name, way in WAYS.items():
        n_tokens, seen = 0, list[bool]()
        for batch in batches:
            words = way(batch)
            is_shown = [
                bool(one) and ("eighth" not in name or i % 8 == 0) for i, one in enumerate(words)
            ]
            rows = enumerate(zip(words, is_shown, strict=True), start=1)
            said = {f"{i} {one * has}".strip(): "yes" for i, (one, has) in rows}
            n_tokens += counter.count(json.dumps(said, separators=(",", ":")))
            for moved in _moves(len(batch), random.Random(seed)):
                shown = [(i, j) for i, j in enumerate(moved) if is_shown[i]]
                if moved != list(range(len(batch))):
                    seen.append(any(not batch[i].startswith(words[j]) for i, j in shown))
        share = sum(seen) / len(seen)
        bar.figures[name] = f"{n_tokens / len(texts):.1f}, {share:.1%} of {len(seen):,}"
        bar.require(share == 1 or name != "as it takes for each", "a moved row is not seen")
    return bar
