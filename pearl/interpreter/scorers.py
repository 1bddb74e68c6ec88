"""Texts + what a strong model replied about some of them → a cheap score of each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pearl.dsl.nodes import Step
from pearl.interpreter.asking import Asker
from pearl.interpreter.cascade import Replies, Score
from pearl.interpreter.row_steps import RowReader, RowRequests, RowStep
from pearl.llm import Usage
from pearl.llm.concurrency import gather
from pearl.llm.middleware.caching import ItemCache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

N_FOLDS = 5
"""A labelled text is scored by a classifier that was trained without its fifth of the labelled texts."""


class Scorer:
    """Scores the rows of a step: by the model for rows if there is one, else by a classifier."""

    def __init__(self, step: Step, row_step: RowStep, asker: Asker | None, strong: Asker) -> None:
        self._step, self._row_step = step, row_step
        self._texts, self._asker = row_step.texts(row_step.rows), asker
        self._embedder = strong.calls.searcher.embedder
        vectors = "words" if self._embedder is None else self._embedder.name
        self.name = f"a classifier of {vectors}" if asker is None else asker.name
        self.n_calls = 0
        self.usage = Usage()
        self.quotes: dict[str, str] = {}

    async def score(self, labelled: Replies) -> Mapping[str, Score]:
        """The score of each text."""
        if self._asker is None:
            vectors = None
            if self._embedder is not None:
                vectors = await self._embedder.embed(self._texts, "passage")
            return await asyncio.to_thread(by_vectors, self._texts, labelled, vectors)
        return await self._by_agreement(self._asker)

    async def _by_agreement(self, asker: Asker) -> dict[str, Score]:
        """Replies that were asked for twice, in other batches: their score is 1 if they are equal, else 0."""
        requests = RowRequests(asker.calls)

        async def read(texts: Sequence[str], cache: ItemCache | None) -> dict[str, str | None]:
            reader = RowReader(self._step, self._row_step, requests, asker, cache)
            replies = await reader.read(texts)
            n_calls, usage = reader.spent
            self.n_calls += n_calls
            self.usage += usage
            self.quotes |= reader.quotes
            return replies

        # Cached replies would agree with themselves.
        first, second = await gather(
            [read(self._texts, asker.items), read(self._texts[::-1], None)]
        )
        return {text: Score(reply, float(reply == second[text])) for text, reply in first.items()}


def most_likely(labels: Sequence[str], likelihoods: Sequence[float]) -> Score:
    """The most likely label, and its share of the probability of all labels.

    Example:
        >>> most_likely(["yes", "no"], [math.log(0.3), math.log(0.1)])
        Score(reply='yes', confidence=0.75)
    """
    best = max(range(len(labels)), key=likelihoods.__getitem__)
    total = sum(math.exp(value - likelihoods[best]) for value in likelihoods)
    return Score(labels[best], round(1 / total, 6))


def by_vectors(texts: Sequence[str], labelled: Replies, vectors: Any) -> dict[str, Score]:
    """Scores by logistic regression over vectors; over TF-IDF of words if there are none."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    if vectors is None:  # at least one text has a word
        words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        vectors = words.fit_transform([*texts, "x"])[: len(texts)]
    places = {text: i for i, text in enumerate(texts)}
    known = [(places[text], reply) for text, reply in labelled.items() if reply is not None]
    at = np.array([i for i, _ in known], dtype=int)
    replies = np.array([reply for _, reply in known], dtype=object)
    scores = dict(zip(texts, _classified(vectors[at], replies, vectors), strict=True))
    for fold in range(min(N_FOLDS, len(at))):
        is_out = np.arange(len(at)) % N_FOLDS == fold
        out = at[is_out]
        new = _classified(vectors[at[~is_out]], replies[~is_out], vectors[out])
        scores.update(zip((texts[i] for i in out), new, strict=True))
    return scores


def _classified(vectors: Any, replies: NDArray[np.object_], asked: Any) -> list[Score]:
    """Scores of vectors by others with replies."""
    from sklearn.linear_model import LogisticRegression

    if len(set(replies)) < 2:
        return [Score(replies[0], 1.0) if len(replies) else Score(None, 0.0)] * asked.shape[0]
    model = LogisticRegression(C=10.0, max_iter=1_000).fit(vectors, replies)
    labels = [str(label) for label in model.classes_]
    return [most_likely(labels, row) for row in model.predict_log_proba(asked).tolist()]
