from __future__ import annotations

from pathlib import Path

import pytest

from pearl.documents.rows import Row, Rows
from pearl.errors import DataError
from pearl.tables.query_table import QueryTable
from pearl.tables.terms import SHIPPED, Examples, RowSearch, Synonyms, Thesaurus, column_terms

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


def test_synonyms_are_of_a_file_or_a_callable(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("# own\nbig orange, Tel Aviv-Yafo\n", encoding="utf-8")
    own = Thesaurus(TABLE, Synonyms(path))
    assert own.nearest("In the Big Orange?")["City"] == ["Tel Aviv-Yafo"]
    near = Thesaurus(TABLE, lambda _: ["Sheva hills", "Neurology ward"]).nearest("the bay")
    # Tel Aviv-Yafo and Urology have only a part of these.
    assert near == {"City": ["Tel Sheva"], "Service": ["Neurology"]}
    assert Thesaurus(TABLE, lambda _: []).nearest("an oculist") == {}


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
    assert Examples.read(SHIPPED).like(question, 1)[0].question == like


@pytest.mark.parametrize(
    "text",
    ["[[example]]\nquestion = 'a'\n", "[[example]]\nquestion = 'a'\nquery = '{\"where\": 3}'\n", "?", "example = [3]\n"],
)  # fmt: skip
def test_an_invalid_book_of_examples_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "book.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"book\.toml"):
        Examples.read(path)
