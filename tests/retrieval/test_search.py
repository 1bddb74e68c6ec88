"""Searches: conditions on fields, sub-queries, vectors, and what is said of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.errors import ModelError, UsageError
from pearl.retrieval import SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import STEP, Searcher, SearchResult, embed_index, parse_filter, select

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
    named = {name: options.pop(name) for name in ("filters",) if name in options}
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


@pytest.mark.parametrize("query", ["", " \n", "zebra", "?!", [], [""]])
def test_queries_without_a_match_have_no_hits(index: Index, query: str | list[str]) -> None:
    assert found(index, query) == SearchResult(()) == found(Index.build([]), "iron")


def test_a_passage_that_is_deep_in_both_rankings_is_found() -> None:
    """119 passages are before it in each ranking: those at ranks from 31 count less than it does in both."""
    texts = [f"{word} {'filler ' * n}" for word in ("oar", "lamp") for n in range(1, 120)]
    documents = [CorpusDocument(str(n), text) for n, text in enumerate(texts)]
    both = CorpusDocument("both", f"oar lamp {'filler ' * 400}")
    index = Index.build([*documents, both], Cutting("document"))
    assert "both" in ids(found(index, ["oar", "lamp"], 70))


def test_filters_leave_out_before_ranking(index: Index) -> None:
    assert ids(found(index, "mined", 1, filters=["year=2009"])) == ["salt"]
    assert ids(found(index, "mined", filters=["year>=2005", "document!=salt"])) == ["iron", "lead"]


class Other(Down):
    """An embedder behind whose name another model stands for queries than stood for passages."""

    async def embed(self, texts: Sequence[str], kind: TextKind) -> np.ndarray[Any, Any]:
        return np.eye(len(texts), 3 if kind == "query" else 4, dtype=np.float32)


@pytest.mark.parametrize(
    ("embedder", "why"),
    [
        (Down(), "no server at http://localhost:1"),
        (Other(), "down now returns vectors of another dimension: before 4, now 3"),
    ],
)
def test_hybrid_ranks_by_words_if_the_embedder_fails(index: Index, embedder: Any, why: str) -> None:
    asked = found(index, "iron mined", settings=SearchSettings("hybrid"), embedder=embedder)
    assert asked.hits == found(index, "iron mined").hits
    assert asked.notes == (f"ranked by words alone (bm25), without vectors: {why}",)
    with pytest.raises(ModelError, match=why):
        found(index, "iron mined", settings=SearchSettings("dense"), embedder=embedder)


def test_hybrid_without_an_embedder_is_refused() -> None:
    with pytest.raises(UsageError, match="'hybrid' needs embeddings"):
        Searcher(SearchSettings("hybrid"))


def fields_of(*rows: dict[str, str]) -> Index:
    """An index of one passage for each row of fields."""
    return Index.build(CorpusDocument(f"d{i}", "text", row) for i, row in enumerate(rows))


REPORTS = fields_of(
    {"ticker": "ADI", "year": "2004", "filed": "2004-12-01", "title": "Annual report"},
    {"ticker": "UNP", "year": "2005", "filed": "2005-06-30", "title": "Half-year report"},
    {"ticker": "adi", "year": "2009", "filed": "2009-12-01"},
    {"ticker": "ETR", "year": "soon", "filed": "soon"},
)


def left(*conditions: str, index: Index = REPORTS) -> list[int]:
    mask, _ = select(index, map(parse_filter, conditions))
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), [0, 1, 2, 3]),
        (("ticker=ADI",), [0, 2]),
        (("ticker = Adi",), [0, 2]),
        (("Ticker!=ADI",), [1, 3]),
        (("ticker=ADI", "ticker=UNP"), [0, 1, 2]),
        (("ticker=ADI", "year=2009"), [2]),
        (("ticker!=ADI", "ticker!=UNP"), [3]),
        (("year=2005",), [1]),
        (("year=2005.0",), [1]),
        (("year>=2005",), [1, 2]),
        (("year>2005",), [2]),
        (("year<2005",), [0]),
        (("year<=2005",), [0, 1]),
        (("year=2004..2005",), [0, 1]),
        (("year=..2004",), [0]),
        (("year=2005..",), [1, 2]),
        (("year=2004", "year=2006..2010"), [0, 2]),
        (("year=2004..2009", "year!=2005"), [0, 2]),
        (("year!=2004..2005",), [0, 1, 2, 3]),  # no range
        (("filed=2005",), [1]),
        (("filed>=June 2005",), [1, 2]),
        (("filed=2004-12-01..2005-12-31",), [0, 1]),
        (("filed<1 Dec 2004",), []),
        (("title~report",), [0, 1]),
        (("title=",), [2, 3]),
        (("title!=",), [0, 1]),
        (("document=d2",), [2]),
    ],
)
def test_conditions(conditions: tuple[str, ...], expected: list[int]) -> None:
    assert left(*conditions) == expected


def test_numbers_are_compared_as_numbers_and_a_value_with_dots_may_be_a_text() -> None:
    prices = fields_of({"price": "9"}, {"price": "10"}, {"price": "1,000"})
    assert left("price>9", index=prices) == [1, 2]
    assert left("price=10..999.5", index=prices) == [1]
    assert left("price=..", index=prices) == []
    assert left("path=a..b", index=fields_of({"path": "a..b"}, {"path": "a"})) == [0]


def test_passages_that_cannot_be_compared_are_left_out_with_a_note() -> None:
    _, notes = select(REPORTS, [parse_filter("year>=2005")])
    assert notes == ("1 passage left out: 'year' cannot be compared there",)
    missing = fields_of({"year": "2005"}, {"year": "n/a"})  # no value, which is not compared
    assert select(missing, [parse_filter("year>=2005")])[1] == ()


@pytest.mark.parametrize(
    ("other", "n_left", "n_notes"), [("ticker=ETR", 0, 1), ("ticker!=ETR", 2, 0), ("title=", 1, 1)]
)
def test_a_condition_that_fails_decides_over_one_that_cannot_be_compared(
    other: str, n_left: int, n_notes: int
) -> None:
    mask, notes = select(REPORTS, map(parse_filter, ("year>=2005", other)))
    assert (mask.sum(), len(notes)) == (n_left, n_notes)


def test_an_order_of_day_and_month_that_is_guessed_is_said() -> None:
    index = fields_of({"at": "03/04/2023"}, {"at": "05/06/2023"})
    mask, (note,) = select(index, [parse_filter("at>=2023-05-01")])
    assert mask.tolist() == [False, True]
    assert "read month first" in note


def test_an_unknown_field_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no passage has a field 'tiker'") as refused:
        left("tiker=ADI")
    assert refused.value.help == "did you mean 'ticker'?"
    with pytest.raises(UsageError, match="fields: ticker, year, filed, title, document"):
        left("author=ADI")


@pytest.mark.parametrize("text", ["year", "=2005", "", "year>=", "year~ ", ">5", "a!b"])
def test_invalid_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(text)


def test_conditions_that_a_corpus_does_not_allow_are_refused() -> None:
    with pytest.raises(UsageError, match="several fields: Year, YEAR"):
        left("year=1", index=fields_of({"Year": "1", "YEAR": "2"}))
    with pytest.raises(UsageError, match="neither a date nor a number"):
        left("ticker>=ADI")


class Counting(Down):
    """Gives vectors of so many dimensions, one after the other."""

    def __init__(self, *dimensions: int) -> None:
        self.dimensions = [*dimensions]
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        self.asked.append(list(texts))
        await asyncio.sleep(0)
        n = self.dimensions.pop(0) if len(self.dimensions) > 1 else self.dimensions[0]
        return np.full((len(texts), n), n**-0.5, dtype=np.float32)


def test_every_passage_has_its_vector_and_is_embedded_once() -> None:
    index, embedder = Index.build(CorpusDocument(text, text) for text in "abc"), Counting(4)
    told: list[tuple[int, int]] = []

    async def run() -> list[Index]:
        return await asyncio.gather(
            *(embed_index(index, embedder, lambda n, of: told.append((n, of))) for _ in range(3))
        )

    one, two, three = asyncio.run(run())
    assert one is two is three
    assert one.vectors is not None
    assert one.vectors.shape == (3, 4)
    assert embedder.asked == [["a", "b", "c"]]
    assert told == [(3, 3)]
    assert asyncio.run(embed_index(index, embedder)) is one


def test_a_blank_passage_has_no_vector_and_takes_none_of_another() -> None:
    texts = ("iron", " ", "salt")
    index = Index.build(CorpusDocument(f"{i}", text) for i, text in enumerate(texts))
    assert [passage.text for passage in index.passages] == list(texts)
    vectors = asyncio.run(embed_index(index, Counting(4))).vectors
    assert vectors is not None
    assert [bool(vector.any()) for vector in vectors] == [True, False, True]


def test_vectors_of_different_dimensions_are_not_joined() -> None:
    index = Index.build(CorpusDocument(f"{n}", f"passage {n}") for n in range(STEP + 5))
    with pytest.raises(ModelError, match="different dimensions"):
        asyncio.run(embed_index(index, Counting(2, 3)))
