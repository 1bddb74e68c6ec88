"""Synonyms of a file: words, phrases and weights; a file that is none is told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.errors import DataError
from pearl.retrieval.methods import Query
from pearl.retrieval.queries import Expansion, QueryThesaurus
from tests.retrieval.searching import ranked


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


def test_an_expansion_finds_what_the_words_alone_do_not(thesaurus: QueryThesaurus) -> None:
    rows = [["automobil"], ["car"], ["boat"]]

    def by_hand(terms: dict[str, float]) -> dict[str, float]:
        return {**terms, "boat": 0.1}

    expansions: list[Expansion] = [thesaurus, by_hand]  # type: ignore[list-item]
    found = [ranked(rows, Query(e({"car": 1.0}))).passages.tolist() for e in expansions]
    assert found == [[1, 0], [1, 2]]


def test_stemming_is_that_of_the_index(tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text("cars automobiles\n", "utf-8")
    assert QueryThesaurus.read(path, "none").groups == ((("cars",), ("automobiles",)),)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"car automobile\nboat\n", 2, "one entry"),
        (b"car, \n", 1, "without a word"),
        (b"# x\ncar ???\n", 2, "without a word"),
        (b"car auto\n\xff\xfe bad\n", 2, "UTF-8"),
    ],
)
def test_a_bad_file_is_told_with_its_line(
    tmp_path: Path, content: bytes, line: int, message: str
) -> None:
    path = tmp_path / "s.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        QueryThesaurus.read(path)
    assert (error.value.path, error.value.line) == (path, line)
    assert len(str(error.value).splitlines()) <= 3


def test_no_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(DataError):
            QueryThesaurus.read(path)
