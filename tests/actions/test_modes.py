"""The most frequent value for each key, and when undecided rows may change it."""

from __future__ import annotations

from pearl.actions import native
from pearl.actions.values import Value
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import Span

LIBRARY = ActionLibrary("native", native.known().values())


def rows(
    *labelled: tuple[str, str | None], doubtful: tuple[tuple[str, str | None], ...] = ()
) -> Rows:
    """Rows of a day and a label each."""

    def row(i: int, day: str, label: str | None) -> Row:
        return Row(label, {"Date": day, "label": label}, (Span(i, i + 1),), f"row {i}")

    sure = [row(i, *each) for i, each in enumerate(labelled)]
    unsure = [row(100 + i, *each) for i, each in enumerate(doubtful)]
    return Rows(tuple(sure), "label", tuple(unsure), is_answered=True)


def most_by(given_rows: Rows, name: str = "Date") -> Rows:
    found = native.compute(LIBRARY["AGGREGATE"], [given_rows, name, "mode", "label"])
    assert isinstance(found, Rows)
    return found


def test_months_by_their_most_frequent_label() -> None:
    tops = most_by(
        rows(
            ("Jan 02, 2023", "a"), ("Jan 30, 2023", "a"), ("Jan 31, 2023", "b"),
            ("Feb 01, 2023", "a"), ("Feb 02, 2023", "b"), ("Mar 01, 2024", "b"),
        ),
        "Date by month",
    )  # fmt: skip
    assert [(row.fields["Date by month"], row.value) for row in tops] == [
        ("2023-01", "a"),
        ("2023-02", "a; b"),
        ("2024-03", "b"),
    ]
    assert [len(row.members) for row in tops] == [3, 2, 1]
    where = native.compute(LIBRARY["WHERE"], [tops, "mode", "is", "b"])
    assert isinstance(where, Rows)
    assert [row.fields["Date by month"] for row in where] == ["2024-03"]  # a tie is not the most
    count: Value = native.compute(LIBRARY["COUNT"], [where])
    assert getattr(count, "value", count) == 1


def test_labels_that_are_numbers_are_counted_not_compared() -> None:
    assert most_by(rows(("x", "9"), ("x", "1"), ("x", "1"))).values == ["1"]


def test_a_label_that_undecided_rows_may_change_is_undecided() -> None:
    close = most_by(rows(("x", "a"), ("x", "a"), ("x", "b"), ("x", None), ("y", "c")))
    assert [row.value for row in close] == [None, "c"]
    clear = most_by(rows(("x", "a"), ("x", "a"), ("x", "a"), ("x", "b"), ("x", None)))
    assert [row.value for row in clear] == ["a"]


def test_rows_that_may_not_belong_count_as_possible() -> None:
    found = most_by(rows(("x", "a"), ("x", "b"), ("x", "b"), doubtful=(("x", "a"), ("z", "a"))))
    assert [(row.value, row.fields["Date"]) for row in found] == [(None, "x")]
    assert [row.fields["Date"] for row in found.doubtful] == ["z"]


def test_a_row_without_a_key_may_belong_to_any() -> None:
    given_rows = rows(
        ("x", "a"), ("x", "a"), ("x", "b"), ("y", "a"), ("y", "b"), ("y", "b"), ("y", "b")
    )
    unknown = Row("a", {"Date": None, "label": "a"}, (Span(90, 91),), "row 90")
    found = most_by(Rows((*given_rows.rows, unknown), "label", is_answered=True))
    assert [row.value for row in found] == ["a", "b"]
    other = Row("b", {"Date": None, "label": "b"}, (Span(91, 92),), "row 91")
    found = most_by(Rows((*given_rows.rows, unknown, other), "label", is_answered=True))
    assert [row.value for row in found] == [None, "b"]
