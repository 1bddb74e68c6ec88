from __future__ import annotations

from pathlib import Path

import pytest

from experiments.directory.evaluate import has_its_terms, is_right, table_of
from experiments.directory.questions import KINDS, PER_KIND, questions
from experiments.directory.records import N_RECORDS, records, write
from pearl.actions.native import compute, known
from pearl.documents.document import Document
from pearl.documents.rows import Rows, document_rows
from pearl.tables.lookup import Thesaurus
from pearl.tables.specification import read_query

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "n", [2_000, pytest.param(N_RECORDS, marks=pytest.mark.slow)], ids=["small", "whole"]
)
def test_gold_queries_give_the_answers_that_no_query_computed(n: int) -> None:
    found = records(n)
    table = table_of(found)
    asked = questions(found)
    assert len(asked) == len(KINDS) * PER_KIND == 140
    assert [q.text for q in asked if not is_right(q, read_query(q.query), table)] == []
    thesaurus = Thesaurus(table)
    assert sum(has_its_terms(q, thesaurus) for q in asked) >= 135


def test_a_directory_is_the_same_for_the_same_seed_and_has_its_traps(tmp_path: Path) -> None:
    found = records(500, seed=3)
    assert found == records(500, seed=3)
    assert found != records(500, seed=4)
    names = [record.name for record in found]
    assert len(set(names)) < len(names)
    write(tmp_path / "directory.csv", found)
    text = (tmp_path / "directory.csv").read_text(encoding="utf-8")
    rows = compute(known()["SPLIT"], [document_rows(Document(text, "directory.csv")), "record"])
    assert isinstance(rows, Rows)
    assert [dict(row.fields) for row in rows] == [record.cells() for record in found]
