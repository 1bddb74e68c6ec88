from __future__ import annotations

import json

import pytest

from pearl.documents.rows import Row, Rows
from pearl.tables.columns import QueryTable
from pearl.tables.lookup import (
    RowSearch,
    Thesaurus,
    column_terms,
    examples_like,
    shipped_examples,
    synonyms_of,
)
from pearl.tables.specification import read_query

CITIES = ["Tel Aviv-Yafo", "Tel Sheva", "Haifa", "Modi'in-Maccabim-Re'ut", "Zürich"]
SERVICES = ["Ophthalmology; Urology", "Neurology", "Pediatrics", "Pharmacy", "Cardiology"]
TABLE = QueryTable(
    Rows(
        tuple(
            Row("", {"City": city, "Service": service, "Fee": "12", "Phone": f"03-55512{i}"})
            for i, (city, service) in enumerate(zip(CITIES, SERVICES, strict=True))
        )
    )
)


@pytest.mark.parametrize(
    ("question", "column", "term"),
    [
        ("Which pharmacies are in Tel Aviv?", "City", "Tel Aviv-Yafo"),
        ("Which pharmacies are in Tel Aviv?", "Service", "Pharmacy"),
        ("Is there an oculist?", "Service", "Ophthalmology"),
        ("an eye doctor near me", "Service", "Ophthalmology"),
        ("a urologist", "Service", "Urology"),
        ("a neurologist", "Service", "Neurology"),
        ("a heart specialist in Modiin", "Service", "Cardiology"),
        ("a heart specialist in Modiin", "City", "Modi'in-Maccabim-Re'ut"),
        ("pediatrition for my son", "Service", "Pediatrics"),
        ("clinics in zurich", "City", "Zürich"),
    ],
)
def test_the_nearest_term_is_what_is_meant(question: str, column: str, term: str) -> None:
    assert Thesaurus(TABLE).nearest(question)[column][0] == term


def test_at_most_n_terms_of_each_text_column_are_found() -> None:
    found = Thesaurus(TABLE).nearest(
        "Tel Aviv-Yafo Tel Sheva Haifa Zürich Neurology 03-555120 12", 2
    )
    assert {column: len(terms) for column, terms in found.items()} == {"City": 2, "Service": 2}
    assert Thesaurus(TABLE).nearest("") == {}


def test_a_synonym_counts_as_a_whole() -> None:
    assert "ophthalmology" in map(str.casefold, synonyms_of("Is there an oculist?"))
    assert synonyms_of("Is there a pond?") == []


def test_lists_in_cells_are_cut_and_prose_has_no_terms() -> None:
    columns = {column.name: column_terms(column) for column in TABLE.columns}
    assert columns["Service"][:2] == ["Ophthalmology", "Urology"]
    assert columns["Phone"] == columns["Fee"] == []
    prose = QueryTable(Rows((Row("", {"note": "word " * 30}),)))
    assert column_terms(prose.columns[0]) == []


def test_rows_like_a_question_and_rows_unlike_it() -> None:
    search = RowSearch(TABLE)
    assert search.like("neurology in Tel Sheva", 1) == [1]
    unlike = search.unlike("neurology in Tel Sheva", 3)
    assert len(unlike) == 3
    assert not {0, 1} & set(unlike)
    assert search.unlike("neurology in Tel Sheva", 3) == unlike


@pytest.mark.parametrize(
    ("question", "like"),
    [
        ("Does the Katz clinic permit dogs?", "Does the H&C clinic in Norwood allow service animals?"),
        ("How many pharmacies are there in Lod?", "How many libraries are there in Easton?"),
        ("Which pharmacies are open on Sunday at 9?", "Which post offices in Easton are open on Friday at 18:30?"),
        ("What is the phone number of the Haifa Clinic in Lod?", "What is the phone number of the Easton bakery in Norwood?"),
        ("Which five cities have most clinics?", "Which three towns have most bridges?"),
    ],
)  # fmt: skip
def test_the_example_most_like_a_question_is_shown(question: str, like: str) -> None:
    assert examples_like(question, 1)[0].question == like


def test_every_example_has_a_query() -> None:
    for example in shipped_examples():
        read_query(json.loads(example.query))
        assert example.explanation
