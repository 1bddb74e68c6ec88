"""Terms of queries: analysis, years."""

from __future__ import annotations

import pytest

from pearl.retrieval.queries import (
    Stem,
    analyzer,
    years_in,
)


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("english", ["child", "run", "relat"]),
        ("porter", ["children", "ran", "relat"]),
        ("none", ["children", "ran", "relational"]),
    ],
)
def test_stemming(stem: Stem, expected: list[str]) -> None:
    assert analyzer(stem)("Why the children's Ran, relational?") == expected


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("motoring", "motor"),
        ("generalizations", "gener"),
        ("keys", "kei"),
    ],
)
def test_porter_is_porters(word: str, stemmed: str) -> None:
    """Examples of Porter 1980, and one word where Snowball's English stemmer differs."""
    assert analyzer("porter")(word) == [stemmed]


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("in 2008?", (2008,)),
        ("2008, 2009 and 2010.", (2008, 2009, 2010)),
        ("2008 and 2010", (2008, 2010)),
        ("between 2008 and 2010", (2008, 2009, 2010)),
        ("from 2008 to 2010", (2008, 2009, 2010)),
        ("2008 through 2010", (2008, 2009, 2010)),
        ("2008–10", (2008, 2009, 2010)),
        ("the 2008/09 season", (2008, 2009)),
        ("FY2008-FY2009", (2008, 2009)),
        ("FY08, fy '09 and fiscal year 2010", (2008, 2009, 2010)),
        ("filed 2008-06-01", (2008,)),
        ("filed 2009-10-05", (2009,)),
        ("1850 to 1950", (1850, 1950)),
        ("2010 to 2008", (2008, 2010)),
        ("$2008, 2,008, 2008 %, 2008.5 or 20089", ()),
        ("version 3.2008, 10-K2008x", ()),
        ("", ()),
    ],
)
def test_years(text: str, years: tuple[int, ...]) -> None:
    assert years_in(text) == years
