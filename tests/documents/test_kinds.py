from __future__ import annotations

from pathlib import Path

import pytest

from pearl.documents.document import DocumentKind, from_text, join, kind_by_name, load
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from tests.skips import NO_LARGE

CSV = "City,Fee\nHaifa,120\nEilat,90\n"


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("fees.csv", CSV, "table"),
        ("fees.TSV", CSV.replace(",", "\t"), "table"),
        ("fees.jsonl", '{"City": "Haifa"}\n{"City": "Eilat"}\n', "table"),
        ("fees.json", '[{"City": "Haifa"},\n {"City": "Eilat"}]', "table"),
        ("settings.json", '{"City": "Haifa", "Fee": 3}', "document"),
        ("story.csv", "It rained all day. Ada slept.\n\nThen she sold the boat.\n", "document"),
        ("report.md", "# Fees\n\n| City | Fee |\n|---|---|\n| Haifa | 120 |\n", "document"),
        ("page.html", "<table><tr><th>City</th></tr><tr><td>Haifa</td></tr></table>", "document"),
        ("notes.txt", CSV, "document"),
    ],
)
def test_a_file_of_records_is_a_table_but_a_text_with_a_table_is_not(
    tmp_path: Path, name: str, text: str, kind: DocumentKind
) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert load(path).kind == load(path, name="row 7").kind == kind


def test_a_long_table_is_known_by_its_first_records() -> None:
    assert from_text("City,Note\n" + 'Haifa,"a, b"\n' * 5_000, "long.csv").kind == "table"


def test_workbooks_and_parquet_are_tables_whatever_they_are_called(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason=NO_LARGE)
    parquet = pytest.importorskip("pyarrow.parquet", reason=NO_LARGE)
    path = tmp_path / "fees.txt"
    parquet.write_table(pyarrow.table({"City": ["Haifa", "Eilat"]}), path)
    assert load(path).kind == "table"
    assert kind_by_name("fees.xlsx") == kind_by_name("fees.parquet") == "table"


def test_the_kind_of_joined_documents_and_of_an_index() -> None:
    table, text = from_text(CSV, "a.csv"), from_text("It rained.", "b.txt")
    assert join([table, from_text(CSV, "c.csv")]).kind == "table"
    assert join([table, text]).kind == "document"
    assert Index.build([CorpusDocument("a", "one")]).document().kind == "corpus"
