"""Searches: what is searched for, left out, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pearl.errors import ModelError, UsageError
from pearl.retrieval import SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher, SearchResult

METALS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("iron", "Iron is mined in the north.", {"year": "2005"}),
    ("salt", "Salt is mined in the south. Salt is cheap.", {"year": "2009"}),
    ("lead", "Lead is mined in the north, as iron is.", {"year": "2009"}),
    ("gold", "Gold is traded. In 2005 it was dear.", {}),
)


@pytest.fixture(scope="module")
def index() -> Index:
    documents = [CorpusDocument(name, text, fields) for name, text, fields in METALS]
    return Index.build(documents, Cutting("document"))


def found(index: Index, query: str | Sequence[str], k: int = 10, **options: Any) -> SearchResult:
    named = {name: options.pop(name) for name in ("filters", "history") if name in options}
    return asyncio.run(Searcher(**options).search(index, query, k, **named))


def ids(found: SearchResult) -> list[str]:
    return [hit.passage.document for hit in found.hits]


class Down:
    """An embedder whose server is down."""

    name = "down"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> np.ndarray[Any, Any]:
        raise ModelError("no server at http://localhost:1", kind="transport")

    async def aclose(self) -> None:
        pass


# --- queries ----------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", " \n", "zebra", "?!", [], [""]])
def test_queries_without_a_match_have_no_hits(index: Index, query: str | list[str]) -> None:
    assert found(index, query) == SearchResult(())


def test_an_empty_corpus_has_no_hits() -> None:
    assert found(Index.build([]), "iron", filters=()).hits == ()


def test_sub_queries_are_merged_by_rank(index: Index) -> None:
    both = found(index, ["cheap salt", "traded gold", "cheap salt"], 2)
    assert ids(both) == ["salt", "gold"]
    assert both.hits[0].score == pytest.approx(1 / 61)


def test_a_passage_that_is_deep_in_both_rankings_is_found() -> None:
    """119 passages are before it in each ranking: those at ranks from 31 count less than it does in both."""
    texts = [f"{word} {'filler ' * n}" for word in ("oar", "lamp") for n in range(1, 120)]
    documents = [CorpusDocument(str(n), text) for n, text in enumerate(texts)]
    both = CorpusDocument("both", f"oar lamp {'filler ' * 400}")
    index = Index.build([*documents, both], Cutting("document"))
    assert "both" in ids(found(index, ["oar", "lamp"], 70))


def test_earlier_questions_add_their_words(index: Index) -> None:
    assert ids(found(index, "and is it dear?")) == ["gold"]
    asked = found(index, "and is it dear?", 2, history=["Where is lead mined?"])
    assert ids(asked) == ["lead", "gold"]
    assert found(index, "what is it?", history=["lead"]).hits[0].passage.document == "lead"


# --- filters ----------------------------------------------------------------------------------
# --- filters and years


def test_filters_leave_out_before_ranking(index: Index) -> None:
    assert ids(found(index, "mined", 1, filters=["year=2009"])) == ["salt"]
    assert ids(found(index, "mined", filters=["year>=2005", "document!=salt"])) == ["iron", "lead"]


# --- vectors ----------------------------------------------------------------------------------


def test_hybrid_ranks_by_words_if_the_embedder_fails(index: Index) -> None:
    asked = found(index, "iron mined", settings=SearchSettings("hybrid"), embedder=Down())
    plain = found(index, "iron mined")
    assert asked.hits == plain.hits
    assert asked.notes == (
        "ranked by words alone (bm25), without vectors: no server at http://localhost:1",
    )


class Other(Down):
    """An embedder behind whose name another model stands for queries than stood for passages."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> np.ndarray[Any, Any]:
        return np.eye(len(texts), 3 if kind == "query" else 4, dtype=np.float32)


def test_vectors_of_another_model_than_the_index_are_not_used(index: Index) -> None:
    asked = found(index, "iron mined", settings=SearchSettings("hybrid"), embedder=Other())
    assert asked.hits == found(index, "iron mined").hits
    assert asked.notes == (
        "ranked by words alone (bm25), without vectors: down now returns vectors of another dimension: "
        "before 4, now 3",
    )
    with pytest.raises(ModelError, match="before 4, now 3"):
        found(index, "iron mined", settings=SearchSettings("dense"), embedder=Other())


def test_hybrid_without_an_embedder_is_refused() -> None:
    with pytest.raises(UsageError, match="'hybrid' needs embeddings"):
        Searcher(SearchSettings("hybrid"))
