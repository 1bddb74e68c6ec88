"""Index + embedder → an index with a vector for each passage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pearl.errors import ModelError
from pearl.retrieval import Embedder
from pearl.retrieval.index import Index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEP = 1_024
"""Passages between two reports of progress."""

EmbeddingProgress = Callable[[int, int], None]
"""Is told how many of the passages without vectors have one now, and how many they were."""


@dataclass(slots=True)
class _State:
    """What is known of an index."""

    embedded: dict[str, Index] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    loop: asyncio.AbstractEventLoop | None = None


_states: WeakKeyDictionary[Index, _State] = WeakKeyDictionary()


async def embed_index(
    index: Index, embedder: Embedder, progress: EmbeddingProgress | None = None
) -> Index:
    """The index with the vectors of an embedder, made and stored where they are missing.

    Each time the same one for the same index. A blank passage has the vector 0, which no method
    finds.
    """
    state = _states.setdefault(index, _State())
    loop = asyncio.get_running_loop()
    if state.loop is not loop:  # a lock belongs to one event loop
        state.loop, state.turn = loop, asyncio.Lock()
    async with state.turn:
        if embedder.name not in state.embedded and len(index.passages):
            state.embedded[embedder.name] = await _embedded(index, embedder, progress)
        return state.embedded.get(embedder.name, index)


async def _embedded(index: Index, embedder: Embedder, progress: EmbeddingProgress | None) -> Index:
    name = embedder.name
    missing: Sequence[int] = index.without_vectors(name)
    if not missing and index.vectors_for(name) is None:
        missing = range(len(index.contents.segments))  # those that are there do not fit together
    n_all = sum(index.contents.segments[segment].n_passages for segment in missing)
    n_done = 0
    for segment in missing:
        texts = list(index.segment_texts(segment))
        parts: list[NDArray[np.float32]] = []
        for start in range(0, len(texts), STEP):
            parts.append(await _vectors(texts[start : start + STEP], embedder))
            n_done += len(parts[-1])
            if progress:
                progress(n_done, n_all)
        index.store_vectors(name, segment, _joined(parts, embedder))
    vectors = index.vectors_for(name)
    if vectors is None:
        raise _of_different_dimensions(embedder)
    return replace(index, vectors=vectors)


async def _vectors(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors of passages, shape (len(texts), dimension); 0 for those that are blank."""
    import numpy as np

    numbers = [number for number, text in enumerate(texts) if text.strip()]
    # Something has to be embedded, if only to know the dimension.
    made = await embedder.embed([texts[number] for number in numbers] or ["."], "passage")
    vectors = np.zeros((len(texts), made.shape[1]), dtype=np.float32)
    vectors[numbers] = made[: len(numbers)]
    return vectors


def _joined(parts: Sequence[NDArray[np.float32]], embedder: Embedder) -> NDArray[np.float32]:
    import numpy as np

    if len({part.shape[1] for part in parts}) > 1:
        raise _of_different_dimensions(embedder)
    return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)


def _of_different_dimensions(embedder: Embedder) -> ModelError:
    return ModelError(
        f"the vectors of {embedder.name} have different dimensions",
        kind="malformed",
        help="check that one model stands behind that name",
    )
