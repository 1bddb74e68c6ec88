"""Terms of queries: analysis, earlier questions, years, synonyms."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.errors import DataError
from pearl.retrieval.queries import (
    QueryThesaurus,
    Stem,
    analyzer,
    contextual_query,
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


def test_the_question_and_the_first_one_count_in_full() -> None:
    query = contextual_query("and tea?", ["price of salt", "", "its change", "the tea price"])
    assert [weight for _, weight in query.parts] == [1.0, 0.6, 0.6, 1.0]
    terms = query.terms(analyzer("english"))
    assert terms == {"price": 1.0, "salt": 1.0, "chang": 0.6, "tea": 1.0}
    assert query.text == "price of salt\nits change\nthe tea price\nand tea?"


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    analyse = analyzer("english")
    assert list(contextual_query("what is it?", ["salt"]).terms(analyse)) == ["salt"]
    assert list(contextual_query("what is it?").terms(analyse)) == analyse("what is it?")


@pytest.fixture
def thesaurus(tmp_path: Path) -> QueryThesaurus:
    path = tmp_path / "synonyms.txt"
    path.write_text(
        "# groups\n\ncar automobiles vehicle\nbank shore\nbank lender\n"
        "IITD, Indian Institute of Technology Delhi\n",
        "utf-8",
    )
    return QueryThesaurus.read(path)


def test_a_synonym_has_a_weight_below_that_of_the_term(thesaurus: QueryThesaurus) -> None:
    assert thesaurus({"car": 1.0, "red": 0.4}) == {
        "car": 1.0, "red": 0.4, "automobil": 0.5, "vehicl": 0.5
    }  # fmt: skip


def test_a_term_of_the_query_keeps_its_weight(thesaurus: QueryThesaurus) -> None:
    assert thesaurus({"car": 1.0, "vehicl": 0.1})["vehicl"] == 0.1


def test_groups_are_not_joined(thesaurus: QueryThesaurus) -> None:
    assert set(thesaurus({"bank": 1.0})) == {"bank", "shore", "lender"}
    assert set(thesaurus({"shore": 1.0})) == {"shore", "bank"}


def test_a_phrase_is_found_as_a_whole_and_shares_its_weight(thesaurus: QueryThesaurus) -> None:
    phrase = {"indian": 1.0, "institut": 1.0, "technolog": 0.8, "delhi": 1.0}
    assert thesaurus({"iitd": 1.0}) == {"iitd": 1.0, **dict.fromkeys(phrase, 0.125)}
    assert thesaurus(phrase) == {**phrase, "iitd": 0.4}
    del phrase["delhi"]
    assert thesaurus(phrase) == phrase


def test_the_weight_may_be_chosen_and_0_adds_nothing(thesaurus: QueryThesaurus) -> None:
    assert QueryThesaurus(thesaurus.groups, 0.2)({"car": 1.0})["vehicl"] == 0.2
    assert QueryThesaurus(thesaurus.groups, 0.0)({"car": 1.0}) == {"car": 1.0}


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"car automobile\nboat\n", 2, "one entry"),
        (b"car, \n", 1, "without a word"),
        (b"# x\ncar ???\n", 2, "without a word"),
        (b"car auto\n\xff\xfe bad\n", 2, "UTF-8"),
    ],
)
def test_an_invalid_thesaurus_is_an_error_with_its_line(
    tmp_path: Path, content: bytes, line: int, message: str
) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        QueryThesaurus.read(path)
    assert (error.value.path, error.value.line) == (path, line)
    assert len(str(error.value).splitlines()) <= 3
