"""Tables in documents of any form, and where each cell stands."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import Document, from_text, join
from pearl.documents.table import cell_span, markdown, mended, table_rows

REPORT = """Boats Inc. ($ in millions, except per share and shares)

| item | 2008 | 2007 |
|---|---|---|
| sales | $5,735 | $5,180 |
| loss | (1,315) | (27) |

The second table has people:

| city | people | rate |
|---|---|---|
| Oslo | 27 | 12.5% |
"""


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("report.md", REPORT, [
            ("Boats Inc. ($ in millions, except per share and shares)",
             [["item", "2008", "2007"], ["sales", "$5,735", "$5,180"], ["loss", "(1,315)", "(27)"]]),
            ("The second table has people:", [["city", "people", "rate"], ["Oslo", "27", "12.5%"]]),
        ]),
        ("marks.tsv", "item\t\t2008\t\t\t2007\t\nsales\t$\t9,000\t\t$\t8,000\t\ncost\t$\t(1,315\t)\t$\t(27\t)\nshare\t\t14.6\t%\t\t0.3\t%\n",
         [("", [["item", "2008", "2007"], ["sales", "$9,000", "$8,000"], ["cost", "$(1,315)", "$(27)"], ["share", "14.6%", "0.3%"]])]),
        ("quarters.tsv", "item\t2008\t2008\n\tQ1\tQ2\nsales\t1\t2\ncosts\t3\t4\n",
         [("", [["item", "2008 Q1", "2008 Q2"], ["sales", "1", "2"], ["costs", "3", "4"]])]),
        ("report.json", json.dumps({"title": "Boats", "rows": [{"a": "$1,000", "b": 2}], "more": {"other": [{"c": 1}, {"c": 2}]}}),
         [("rows", [["a", "b"], ["$1,000", "2"]]), ("other", [["c"], ["1"], ["2"]])]),
        ("two.csv", "a,b\n1,2\n3,4\n\nName,Age,City\nAnn,30,Oslo\nBob,41,Bergen\n",
         [("", [["a", "b"], ["1", "2"], ["3", "4"]]), ("", [["Name", "Age", "City"], ["Ann", "30", "Oslo"], ["Bob", "41", "Bergen"]])]),
        ("prose.md", "Nothing here, really.\nNothing at all.", []),
    ],
)  # fmt: skip
def test_tables_of_any_form(name: str, text: str, found: list[tuple[str, list[list[str]]]]) -> None:
    shown = []
    for table in table_rows(from_text(text, name)):
        rows = mended(table.rows)
        shown.append((table.caption, [[*rows[0].fields], *([*row.fields.values()] for row in rows)]))  # fmt: skip
        assert table.source == name
    assert shown == found


def test_joined_files_have_their_own_tables() -> None:
    text = "item,2008,2007\nsales,100,90\ncost,7,8\n"
    both = join([from_text(text, "a.csv"), from_text(REPORT, "b.md")], "both")
    found = list(table_rows(both))
    assert [table.source for table in found] == ["a.csv", "b.md", "b.md"]
    span = cell_span(found[1].rows[0], "item")
    assert span is not None
    assert both.text[span.start : span.end] == "sales"


words = st.text(alphabet="abc xyzÄß|-", min_size=1, max_size=8).map(
    lambda text: " ".join(text.split())
)
filled = words.filter(
    lambda text: bool(text) and any(c.isalpha() for c in text) and text[-1] not in "|-"
)


@given(st.lists(st.lists(filled, min_size=3, max_size=3), min_size=1, max_size=5))
def test_what_is_written_in_markdown_is_read_back(rows: list[list[str]]) -> None:
    text = f"Before.\n\n{markdown(['one', 'two', 'three'], rows)}\n"
    (table,) = table_rows(Document(text, "x"))
    assert [[*row.fields.values()] for row in table.rows] == rows
    for row, cells in zip(table.rows, rows, strict=True):
        for name, expected in zip(row.fields, cells, strict=True):
            span = cell_span(row, name)
            assert span is not None
            if "|" not in expected:
                assert text[span.start : span.end] == expected


@given(st.text(alphabet='a1,|\n\t"-{}[]: $(%)', max_size=80))
def test_any_text_has_tables_with_true_places(text: str) -> None:
    if not text.strip():
        return
    for table in table_rows(from_text(text)):
        for row in table.rows:
            for name in row.fields:
                span = cell_span(row, name)
                assert span is not None
                assert row.spans[0].start <= span.start <= span.end <= row.spans[0].end
