"""Rows of a document."""

from __future__ import annotations

from pearl.documents.rows import Row, Rows


def test_a_collection_of_many_rows_is_shown_shortly() -> None:
    """`asyncio.run` makes the text of what the main task returns: seconds for 10,000 rows in full."""
    rows = Rows(tuple(Row(str(i)) for i in range(10_000)), column="kind")
    assert repr(rows) == "Rows(10,000 rows, column='kind')"
