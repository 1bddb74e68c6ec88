"""Conditions on fields: which passages they leave, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from pearl.errors import UsageError
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from pearl.retrieval.search import parse_filter, select


def fields_of(*rows: dict[str, str]) -> Index:
    """An index of one passage for each row of fields."""
    return Index.build(CorpusDocument(f"d{i}", "text", row) for i, row in enumerate(rows))


REPORTS = fields_of(
    {"ticker": "ADI", "year": "2004", "filed": "2004-12-01", "title": "Annual report"},
    {"ticker": "UNP", "year": "2005", "filed": "2005-06-30", "title": "Half-year report"},
    {"ticker": "adi", "year": "2009", "filed": "2009-12-01"},
    {"ticker": "ETR", "year": "n/a", "filed": "soon"},
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


def test_numbers_are_compared_as_numbers() -> None:
    prices = fields_of({"price": "9"}, {"price": "10"}, {"price": "1,000"})
    assert left("price>9", index=prices) == [1, 2]
    assert left("price=10..999.5", index=prices) == [1]


def test_a_value_with_dots_that_is_no_range_is_a_text() -> None:
    files = fields_of({"path": "a..b"}, {"path": "a"})
    assert left("path=a..b", index=files) == [0]


def test_passages_that_cannot_be_compared_are_left_out_with_a_note() -> None:
    _, notes = select(REPORTS, [parse_filter("year>=2005")])
    assert notes == ("1 passage left out: 'year' cannot be compared there",)


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
    assert refused.value.help == (
        "did you mean 'ticker'? fields: ticker, year, filed, title, document"
    )


def test_a_field_in_another_case_may_not_be_two() -> None:
    with pytest.raises(UsageError, match="several fields: Year, YEAR"):
        left("year=1", index=fields_of({"Year": "1", "YEAR": "2"}))


@pytest.mark.parametrize("text", ["year", "=2005", "", "year>=", "year~ ", ">5"])
def test_invalid_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(text)


def test_texts_have_no_order() -> None:
    with pytest.raises(UsageError, match="neither a date nor a number"):
        left("ticker>=ADI")
