"""Tables in documents of any form, their cells, and where each cell stands."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import Document, from_text, join, load
from pearl.documents.rows import Row
from pearl.documents.table import (
    Table,
    as_markdown,
    chunks,
    find_tables,
    markdown,
    tables_of_rows,
)

GOLDEN = Path(__file__).parent / "golden"

REPORT = """Boats Inc. ($ in millions, except per share and shares)

| item | 2008 | 2007 |
|---|---|---|
| sales | $5,735 | $5,180 |
| loss | (1,315) | (27) |
| earnings per share | $1.25 | $1.10 |
| shares | 120 | 110 |

The second table has people:

| city | people | rate |
|---|---|---|
| Oslo | 27 | 12.5% |
| Bergen | 31 | 3% |
"""


def tables(text: str, name: str = "report.md") -> tuple[Table, ...]:
    return find_tables(from_text(text, name))


def shown(table: Table) -> dict[str, object]:
    return {
        "source": table.source,
        "caption": table.caption,
        "columns": list(table.columns),
        "cells": [
            [q and f"{q.amount:f} {q.unit}".strip() for q in (c.quantity for c in table.cells(i))]
            for i in range(1, len(table.rows) + 1)
        ],
    }


FORMS = {
    "report.md": REPORT,
    "years.csv": 'item,2008,2007\nsales,100,90\ncost,"1,000",80\nshort,1\nlong,1,2,345\n',
    "marks.tsv": "item\t\t2008\t\t\t2007\t\nsales\t$\t9,000\t\t$\t8,000\t\ncost\t$\t(1,315\t)\t$\t(27\t)\nshare\t\t14.6\t%\t\t0.3\t%\n",
    "report.json": json.dumps({"title": "Boats", "rows": [{"a": "$1,000", "b": 2}, {"a": "$3", "b": None}],
                               "more": {"other": [{"c": 1}, {"c": 2}]}}),
    "names.csv": "name,name,,amount\nAnn,Bo,1,3 kg\nCy,Di,2,4 g\n",
    "two.csv": "a,b\n1,2\n3,4\n\nName,Age,City\nAnn,30,Oslo\nBob,41,Bergen\n",
    "quarters.tsv": "item\t2008\t2008\n\tQ1\tQ2\nsales\t1\t2\ncosts\t3\t4\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_golden(name: str) -> None:
    found = [shown(table) for table in tables(FORMS[name], name)]
    golden = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    assert f"{json.dumps(found, indent=1, ensure_ascii=False)}\n" == golden


def test_a_cell_names_its_place() -> None:
    table, other = tables(REPORT)
    cell = table.cell(1, "2007")
    assert (str(cell), cell.source) == ("row 'sales', column '2007'", "report.md")
    assert cell.span is not None
    assert REPORT[cell.span.start : cell.span.end] == cell.text == "$5,180"
    assert str(other.cell(2, "people")) == "row 'Bergen', column 'people'"


def test_scales_apply_only_to_amounts() -> None:
    table, _ = tables(REPORT)
    scales = [table.cell(i, "2008").quantity for i in range(1, 5)]
    assert [q and q.scale for q in scales] == [6, 6, 0, 0]


def test_joined_files_have_their_own_tables() -> None:
    both = join([from_text(FORMS["years.csv"], "a.csv"), from_text(REPORT, "b.md")], "both")
    found = find_tables(both)
    assert [table.source for table in found] == ["a.csv", "b.md", "b.md"]
    span = found[1].cell(1, "item").span
    assert span is not None
    assert both.text[span.start : span.end] == "sales"


def test_a_page_with_merged_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<html><body><p>In thousands</p><table><tr><th>item</th><th colspan=2>2008</th></tr>"
        "<tr><th></th><th>Q1</th><th>Q2</th></tr>"
        "<tr><td>sales</td><td>$1</td><td>$2</td></tr><tr><td>costs</td><td>(3)</td><td>(4)</td></tr>"
        "</table></body></html>",
        encoding="utf-8",
    )
    (table,) = find_tables(load(page))
    assert list(table.columns) == ["item", "2008 Q1", "2008 Q2"]
    assert [q and str(q.amount) for q in table.columns["2008 Q2"]] == ["2E+3", "-4E+3"]
    assert table.caption == "In thousands"


def test_a_text_without_a_table_has_none() -> None:
    assert tables("Nothing here, really.\nNothing at all.") == ()


def test_selected_rows_are_tables_by_their_fields() -> None:
    rows = [Row("", {"a": "1"}), Row("", {"b": "2"}), Row("", {"a": "3"}), Row("x")]
    assert [len(table.rows) for table in tables_of_rows(rows)] == [2, 1]


def test_markdown_is_cut_to_a_number_of_rows() -> None:
    (table,) = tables("Numbers\n\n| a | b |\n|---|---|\n| 0 | x |\n| 1 | y |\n| 2 | z |\n")
    shown_rows = "Numbers\n\n| a | b |\n| --- | --- |\n| 0 | x |\n... and 2 more rows"
    assert as_markdown(table, 1) == shown_rows
    assert list(chunks(table))[1] == "Numbers; a: 1; b: y"


words = st.text(alphabet="abc xyzÄß|-", min_size=1, max_size=8).map(
    lambda text: " ".join(text.split())
)
filled = words.filter(
    lambda text: bool(text) and any(c.isalpha() for c in text) and text[-1] not in "|-"
)


@given(st.lists(st.lists(filled, min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_is_written_in_markdown_is_read_back(rows: list[list[str]]) -> None:
    text = f"Before.\n\n{markdown(['one', 'two', 'three'], rows)}\n"
    (table,) = find_tables(Document(text, "x"))
    assert [[cell.text for cell in table.cells(i + 1)] for i in range(len(rows))] == rows
    for i, row in enumerate(rows):
        for cell, expected in zip(table.cells(i + 1), row, strict=True):
            assert cell.span is not None
            if "|" not in expected:
                assert text[cell.span.start : cell.span.end] == expected


plain = st.text(alphabet="abcÄ ,\"'x", min_size=1, max_size=8).map(
    lambda text: " ".join(text.split())
)


@given(
    st.lists(st.tuples(plain.filter(bool), st.integers(-(10**6), 10**6)), min_size=2, max_size=6),
    st.sampled_from([",", "\t", ";"]),
)
def test_what_is_written_as_csv_is_read_back(rows: list[tuple[str, int]], delimiter: str) -> None:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(
        [("name", "amount"), *rows]
    )
    (table,) = find_tables(from_text(file.getvalue(), "x.csv"))
    read = [q and int(q.value) for q in table.columns["amount"]]
    are_years = all(1900 <= amount < 2100 for _, amount in rows)
    assert read == ([None] * len(rows) if are_years else [amount for _, amount in rows])


@given(st.text(alphabet='a1,|\n\t"-{}[]: $(%)', max_size=80))
def test_any_text_has_tables_with_true_places(text: str) -> None:
    if not text.strip():
        return
    document = from_text(text)
    for table in find_tables(document):
        for i, row in enumerate(table.rows, start=1):
            for cell in table.cells(i):
                assert cell.span is not None
                assert row.spans[0].start <= cell.span.start <= cell.span.end <= row.spans[0].end
