"""Vectors of an index: one for each passage, made once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.errors import ModelError
from pearl.llm.embedders import EmbedderSettings, create_embedder
from pearl.retrieval import SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from pearl.retrieval.search import STEP, Searcher, SearchResult, embed_index
from tests.server import Server

TEXTS = ["the lamp failed at dawn", "iron and salt", "the ship turned back"]


def index_of(*texts: str) -> Index:
    return Index.build(CorpusDocument(f"d{n}", text) for n, text in enumerate(texts))


class Counting:
    """Gives vectors of so many dimensions, one after the other."""

    name = "counting"

    def __init__(self, *dimensions: int) -> None:
        self.dimensions = [*dimensions]
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        self.asked.append(list(texts))
        await asyncio.sleep(0)
        n = self.dimensions.pop(0) if len(self.dimensions) > 1 else self.dimensions[0]
        return np.full((len(texts), n), n**-0.5, dtype=np.float32)

    async def aclose(self) -> None:
        pass


def test_every_passage_has_its_vector_and_is_embedded_once() -> None:
    index, embedder = index_of(*TEXTS), Counting(4)
    told: list[tuple[int, int]] = []

    async def run() -> list[Index]:
        return await asyncio.gather(
            *(embed_index(index, embedder, lambda n, of: told.append((n, of))) for _ in range(3))
        )

    one, two, three = asyncio.run(run())
    assert one is two is three
    assert one.vectors is not None
    assert one.vectors.shape == (3, 4)
    assert embedder.asked == [TEXTS]
    assert told == [(3, 3)]
    assert asyncio.run(embed_index(index, embedder)) is one


def test_vectors_of_different_dimensions_are_not_joined() -> None:
    index = index_of(*(f"passage {n}" for n in range(STEP + 5)))
    with pytest.raises(ModelError, match="different dimensions"):
        asyncio.run(embed_index(index, Counting(2, 3)))


def search(index: Index, server: Server, method: str, query: str) -> SearchResult:
    settings = EmbedderSettings(server.url, attempts=1, is_cached=False)

    async def run() -> SearchResult:
        embedder = create_embedder("openai:m", settings)
        try:
            return await Searcher(SearchSettings(method), embedder).search(index, query, 2)
        finally:
            await embedder.aclose()

    return asyncio.run(run())


def test_a_search_by_a_server(openai_server: Server) -> None:
    found = search(index_of(*TEXTS), openai_server, "dense", "salt iron and")
    assert found.hits[0].passage.text == TEXTS[1]
    assert found.hits[0].score == pytest.approx(1)


def test_a_server_that_is_down_leaves_the_lexical_leg(openai_server: Server) -> None:
    openai_server.answer = None
    index = index_of(*TEXTS)
    openai_server.next("503")
    found = search(index, openai_server, "hybrid", "salt")
    assert [hit.passage.text for hit in found.hits] == [TEXTS[1]]
    (note,) = found.notes
    assert "503" in note
    openai_server.next("503")
    with pytest.raises(ModelError, match="503"):
        search(index, openai_server, "dense", "salt")
