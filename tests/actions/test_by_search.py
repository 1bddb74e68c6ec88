"""RETRIEVE: rows of a document or of an earlier step, ranked; what may change the first K is undecided."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pearl.actions import by_search
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import as_text
from pearl.documents.document import Document, from_text, join
from pearl.documents.rows import Row, Rows
from pearl.retrieval.search import Searcher

SALT = "Salt is kept in the shed.\n\nThe lamp is out.\n\nIron rusts."
IRON = "Iron and salt, salt, salt.\n\nNobody came."
BOTH = join([from_text(SALT, "a.txt"), from_text(IRON, "b.txt")], "both")


def retrieve(given: Any, query: Any, k: Any) -> by_search.FoundRows:
    action = by_search.known()["RETRIEVE"]
    if isinstance(given, Document):
        given = SearchedDocument(given)
    return asyncio.run(by_search.search(action, Searcher(), [given, query, k]))


def rows_of(*texts: str | None, doubtful: tuple[str, ...] = ()) -> Rows:
    return Rows(tuple(map(Row, texts)), doubtful=tuple(map(Row, doubtful)))


def test_passages_of_each_document_come_with_their_places_the_best_first() -> None:
    rows, fetched = retrieve(BOTH, "salt", 9)
    assert rows.values == ["Iron and salt, salt, salt.", "Salt is kept in the shed."]
    assert [row.fields["Document"] for row in rows] == ["b.txt", "a.txt"]
    assert [row.fields["rank"] for row in rows] == ["1", "2"]
    scores = [float(row.fields["score"] or "") for row in rows]
    assert scores == sorted(scores, reverse=True)
    for row, hit in zip(rows, fetched.hits, strict=True):
        (span,) = row.spans
        assert BOTH.text[span.start : span.end] == row.text == hit.text
        assert hit.span == span


def test_a_note_reports_further_matches() -> None:
    all_of_them, _ = retrieve(BOTH, "salt", 2)
    some, _ = retrieve(BOTH, "salt", 1)
    assert all_of_them.notes == ()
    assert some.notes == ("among the 1 that match 'salt' best; more match",)
    assert as_text(some).endswith("(among the 1 that match 'salt' best; more match)")


@pytest.mark.parametrize(
    ("query", "k", "why"), [("salt", 0, "K has to be"), ("salt", 1.5, "K has"), ("", 3, "no query"), ([], 3, "no query")]
)  # fmt: skip
def test_invalid_searches_are_errors(query: Any, k: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        retrieve(BOTH, query, k)


def test_rows_of_an_earlier_step_are_ranked_and_keep_their_fields() -> None:
    rows = Rows((Row("iron", {"rank": "my own"}), Row("salt"), Row("much iron, iron")))
    found, _ = retrieve(rows, "iron", 9)
    assert [(row.value, row.fields) for row in found][-1][0] in ("iron", "much iron, iron")
    own = next(row.fields for row in found if row.value == "iron")
    assert own["rank"] == "my own"
    assert own["rank (2)"] in ("1", "2")


def test_an_undecided_row_may_take_a_place_among_the_first() -> None:
    rows = rows_of("iron iron iron", "iron and more of it", doubtful=("iron iron iron iron",))
    found, _ = retrieve(rows, "iron", 2)
    assert found.values == ["iron iron iron"]
    assert {row.value for row in found.doubtful} == {"iron iron iron iron", "iron and more of it"}
    every, _ = retrieve(rows, "iron", 3)
    assert len(every) == 2
    assert [row.value for row in every.doubtful] == ["iron iron iron iron"]


def test_a_row_whose_value_is_not_known_may_be_before_all_others() -> None:
    found, _ = retrieve(rows_of("iron", None, "iron, and salt"), "iron", 1)
    assert found.values == []
    assert {row.value for row in found.doubtful} == {"iron", None}
