"""Terms of queries: without stop words where there is anything else, by any stemming."""

from __future__ import annotations

import pytest

from pearl.retrieval.queries import Stem, analyzer


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


@pytest.mark.parametrize("stem", ["english", "porter", "none"])
def test_stop_words_alone_are_a_query(stem: Stem) -> None:
    assert analyzer(stem)("to be or not") == ["to", "be", "or", "not"]
    assert analyzer(stem)("") == analyzer(stem)("?!") == []


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
