"""Rows of a document."""

from __future__ import annotations

from pearl.documents.rows import Row, Rows
from pearl.errors import Span


def test_the_repr_of_many_rows_is_short() -> None:
    """`asyncio.run` makes the text of what the main task returns: seconds for 10,000 rows in full."""
    rows = Rows(tuple(Row(str(i)) for i in range(10_000)), column="kind")
    assert repr(rows) == "Rows(10,000 rows, column='kind')"


def test_rows_in_another_order_than_the_documents_have_gaps_between_them() -> None:
    text = "One.\nTwo."
    one, two = (Row(t, {}, (Span(i, i + 4),), t) for i, t in ((0, "One."), (5, "Two.")))
    assert Rows((one, two)).as_context() == text
    assert Rows((two, one)).as_context() == "Two.\n[...]\nOne."
