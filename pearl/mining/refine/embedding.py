"""Embedder → what measures the likeness of actions by its vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pearl.actions.likeness import Embedder as Embed
from pearl.actions.likeness import Matrix
from pearl.retrieval import Embedder


@contextmanager
def embedding(embedder: Embedder) -> Iterator[Embed]:
    """A function from texts to vectors, which waits for them; the embedder is closed afterwards.

    It is called amid the work of an event loop, so that the embedder has another in a thread.
    """
    runner = asyncio.Runner()
    with ThreadPoolExecutor(1, thread_name_prefix="embedding") as thread:

        def embed(texts: Sequence[str]) -> Matrix:
            made = thread.submit(lambda: runner.run(embedder.embed(texts, "passage")))
            return made.result().astype("float64")

        try:
            yield embed
        finally:
            thread.submit(lambda: runner.run(embedder.aclose())).result()
            thread.submit(runner.close).result()
