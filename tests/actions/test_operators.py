"""What each operator on rows computes, and what it says of rows that it cannot decide."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions import native
from pearl.actions.by_row import with_column
from pearl.actions.values import EmptyListError, Scalar, Value, as_text, wilson
from pearl.documents.document import Document
from pearl.documents.rows import Row, Rows, document_rows
from pearl.errors import Span

TEXT = """Date: Feb 02, 2023 || User: 12 || Amount: 1,250 mg || Text: one
Date: Jun 01, 2023 || User: 7 || Amount: 3 mg || Text: two
Date: Jun 30, 2023 || User: 12 || Amount: 4 || Text: three
Date: soon || User: Bob || Amount: 2 g || Text: four
Date: Mar 03, 2024 || User: bob || Amount: many || Text: five
"""


def run(name: str, *values: Value) -> Value:
    return native.compute(native.known()[name], list(values))


def rows_of(name: str, *values: Value) -> Rows:
    result = run(name, *values)
    assert isinstance(result, Rows)
    return result


def scalar_of(name: str, *values: Value) -> Scalar:
    result = run(name, *values)
    assert isinstance(result, Scalar)
    return result


@pytest.fixture
def entries() -> Rows:
    return rows_of("SPLIT", document_rows(Document(TEXT, "x")), "entry")


def texts(rows: Rows) -> list[str]:
    return [str(row.fields["Text"]) for row in rows]


@pytest.mark.parametrize(
    ("name", "op", "x", "sure", "doubtful"),
    [
        ("Date", "before", "2023-06-01", ["one"], ["four"]),
        ("Date", "before", "June 2023", ["one"], ["four"]),
        ("Date", "after", "2023-06", ["five"], ["four"]),
        ("Date", "after", 2023, ["five"], ["four"]),
        ("Date", "at least", "1 June 2023", ["two", "three", "five"], ["four"]),
        ("Date", "at most", "2023-06-01", ["one", "two"], ["four"]),
        ("Date", "is", "June 2023", ["two", "three"], ["four"]),
        ("Date", "is not", "June 2023", ["one", "five"], ["four"]),
        ("Date", "contains", "jun", ["two", "three"], []),
        ("the date", "after", "2024", [], ["four"]),
        ("Amount", "at least", 4, ["one", "three"], ["four", "five"]),
        ("Amount", "at most", "3 mg", ["two"], ["four", "five"]),
        ("Amount", "is", 1250, ["one"], []),
        ("User", "is", "BOB", ["four", "five"], []),
        ("users", "in", [7, 12], ["one", "two", "three"], []),
        ("User IDs", "not in", "7; 12", ["four", "five"], []),
        ("text", "contains", "|| user: 7 ||", ["two"], []),
    ],
)  # fmt: skip
def test_where(
    entries: Rows, name: str, op: str, x: Value, sure: list[str], doubtful: list[str]
) -> None:
    if isinstance(x, list):
        x = [str(each) for each in x]
    found = rows_of("WHERE", entries, name, op, x)
    assert texts(found) == sure
    assert [row.fields["Text"] for row in found.doubtful] == doubtful


def test_notes_of_where(entries: Rows) -> None:
    dates = rows_of("WHERE", entries, "Date", "after", "2023-06")
    assert dates.notes == ("values of Date that cannot be compared: 1",)
    amounts = rows_of("WHERE", entries, "Amount", "at most", 3)
    assert amounts.notes == (
        "numbers in different units: mg, g",
        "values of Amount that cannot be compared: 2",
    )
    found = rows_of("WHERE", entries, "Day", "before", "2024")
    assert found.notes[0] == "'Day' is not a field: using Date, the only field of dates"
    both = rows_of("WHERE", entries, "User", "is", "bob")
    assert both.notes == ("User: all spellings are included: Bob, bob",)


def test_a_field_is_found_by_its_last_words_if_no_other_ends_so() -> None:
    row = Row("x", {"medical_specialty": "Urology", "start date": "a", "end date": "b"})
    found = rows_of("FIELD", Rows((row,)), "specialties")
    assert found.values == ["Urology"]
    said = "'specialties' is not a field: using medical_specialty, the only field with this ending"
    assert found.notes == (said,)
    with pytest.raises(ValueError, match="may mean any of the fields start date, end date"):
        rows_of("FIELD", Rows((row,)), "date")
    with pytest.raises(ValueError, match="there is no field 'ty'"):
        rows_of("FIELD", Rows((row,)), "ty")


def test_an_empty_field_is_never_before_or_after() -> None:
    rows = Rows(tuple(Row(d, {"Date": d}) for d in ("2023-01-01", "", "2024-01-01")))
    before = rows_of("WHERE", rows, "Date", "before", "2024")
    assert (before.values, before.doubtful, before.notes) == (
        ["2023-01-01"],
        (),
        ("rows without Date: 1",),
    )
    assert rows_of("WHERE", rows, "Date", "is not", "2023-01-01").values == ["", "2024-01-01"]


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("WHERE", ["Dates", "like", "x"], "unknown operator 'like'; operators are is, is not, in"),
        ("WHERE", ["Colour", "is", "x"], "there is no field 'Colour'; the rows have: Date, User, Amount, Text, text"),
        ("WHERE", ["Date", "before", "soon"], "'soon' is neither a date nor a number"),
        ("WHERE", ["Date", "before", ["2023", "2024"]], "compares with one value"),
        ("GROUP", ["Colour"], "there is no field 'Colour'"),
        ("FIELD", ["Colour"], "there is no field 'Colour'"),
        ("HAVING", ["at least", 2], "the rows are not groups; use GROUP or COUNT_BY first"),
        ("NTH", [0], "K has to be a whole number from 1, not 0"),
        ("NTH", [1.5], "K has to be a whole number from 1, not 1.5"),
        ("NTH", ["second"], "no number in 'second'"),
        ("SAMPLE", [-3], "N has to be a whole number from 1, not -3"),
        ("NEAR", [["a"], 0], "K has to be a whole number from 1"),
        ("SPLIT", ["verse"], "unknown unit 'verse'; units are document, entry, line"),
        ("SPLIT", ["page"], "no pages"),
    ],
)  # fmt: skip
def test_reasons(entries: Rows, name: str, arguments: list[Value], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run(name, entries, *arguments)


def test_groups_that_differ_in_case_are_different_and_noted(entries: Rows) -> None:
    users = rows_of("COUNT_BY", entries, "user")
    assert users.lines() == ["12: 2", "7: 1", "Bob: 1", "bob: 1"]
    assert users.notes == ("User: keys that differ only in case are counted separately: Bob, bob",)
    assert [row.fields["count"] for row in users] == ["2", "1", "1", "1"]
    assert [member.spans for member in users[0].members] == [entries[0].spans, entries[2].spans]


def test_months(entries: Rows) -> None:
    months = rows_of("COUNT_BY", entries, "Date by month")
    assert months.lines() == ["2023-02: 1", "2023-06: 2", "2024-03: 1"]
    assert [row.text for row in months.doubtful] == [entries[3].text]
    assert months.notes == ("values of Date without a month: 1 of 5",)
    assert as_text(scalar_of("MOST", months)).startswith("2023-06 (1 undecided)")
    assert rows_of("FIELD", entries, "Date by year").values == ["2023", "2023", "2023", "2024"]


def test_places_and_ties() -> None:
    rows = Rows(tuple(map(Row, "dabbccaadd")))
    assert [scalar_of("NTH", rows, k).value for k in (1, 2, 3, 4)] == [
        "d; a",
        "d; a",
        "b; c",
        "b; c",
    ]
    assert scalar_of("LEAST", rows).value == "b; c"
    none = scalar_of("NTH", rows, 5)
    assert (none.value, none.rows.notes) == ("none", ("there are only 4",))
    assert as_text(scalar_of("MOST", [])) == "none"
    assert rows_of("RANKED", rows).lines() == ["d: 3", "a: 3", "b: 2", "c: 2"]


def test_rated_rows_are_ranked_by_number() -> None:
    rows = tuple(
        Row(v, {"grade": v}, (Span(i, i + 1),), f"text {i}") for i, v in enumerate(["3", "10", "9"])
    )
    rated = Rows(rows, "grade", is_answered=True)
    assert scalar_of("MOST", rated).value == "text 1"
    assert [row.value for row in rows_of("RANKED", rated)] == ["10", "9", "3"]
    unread = Rows((*rows, Row(None, {}, (Span(9, 10),), "text 9")), "grade", is_answered=True)
    assert as_text(scalar_of("MOST", unread)) == "text 1 (1 undecided)"
    for value, place in (("11", "text 1 (1 undecided)"), ("8", "text 1")):
        doubtful = Row(value, {"grade": value}, (Span(9, 10),), "text 9")
        may_be = Rows(rows, "grade", (doubtful,), is_answered=True)
        assert as_text(scalar_of("MOST", may_be)) == place


def test_undecided_rows_that_cannot_change_a_result_leave_it_decided() -> None:
    labels = Rows((*map(Row, "aaab"), Row(None)), "label", is_answered=True)
    most = scalar_of("MOST", rows_of("COUNT_BY", labels, "label"))
    assert (most.rows.undecided, most.rows.notes) == ((), ("1 undecided rows cannot change it",))
    a, b = (scalar_of("COUNT_OF", labels, key) for key in "ab")
    assert [(each.value, each.low, each.high) for each in (a, b)] == [(3, 3, 4), (1, 1, 2)]
    assert as_text(scalar_of("RELATION", a, b)) == "more"
    assert as_text(scalar_of("RELATION", b, 2)) == "less (1 undecided)"


def test_shares_that_may_be_equal_are_compared_to_the_same_digits() -> None:
    rows = [
        Row(label, {"n": n, "label": label}) for n, label in zip("122222", "bbbbb?", strict=True)
    ]
    rows[-1] = Row(None, {"n": "2", "label": None})
    labels = Rows(tuple(rows), "label", is_answered=True)
    shares = (scalar_of("SHARE_OF", labels, *each) for each in (("label", "a"), ("n", "1")))
    assert as_text(scalar_of("RELATION", *shares)) == "less (1 undecided)"


def test_pairs() -> None:
    a, b = Rows(tuple(map(Row, ("100", "9", "9")))), Rows(tuple(map(Row, ("20", "9", "100"))))
    assert rows_of("PAIRS", a, b).values == ["(9, 20)", "(9, 100)", "(20, 100)"]
    names = Rows(tuple(map(Row, ("x", "10", "9"))))
    assert rows_of("PAIRS", names, names).values == ["(10, 9)", "(10, x)", "(9, x)"]
    users = Rows(tuple(Row(str(i)) for i in range(231)))
    assert len(rows_of("PAIRS", users, users)) == 26_565
    with pytest.raises(ValueError, match="pairs are too many; at most 1,000,000 are made"):
        run("PAIRS", [str(i) for i in range(1_500)], [f"x{i}" for i in range(1_500)])


def test_a_row_is_not_its_own_match(entries: Rows) -> None:
    found = rows_of("JOIN", entries, entries, "User")
    assert [[row.fields["Text"] for row in pair.members] for pair in found] == [["one", "three"]]
    assert found[0].fields["Amount (2)"] == "4"


def test_near_takes_the_best_that_share_a_word() -> None:
    drugs = Rows(
        tuple(
            Row(v, {}, (Span(i, i + 1),), v)
            for i, v in enumerate(["iron pills", "salt", "iron iron", "gold"])
        )
    )
    assert rows_of("NEAR", ["pills of iron"], drugs, 2).values == [
        "A: pills of iron\nB: iron pills",
        "A: pills of iron\nB: iron iron",
    ]
    assert [tuple(r.value for r in pair.members) for pair in rows_of("NEAR", drugs, drugs, 1)] == [
        ("iron pills", "iron iron")
    ]


def test_a_sample_is_the_same_each_time_and_says_what_it_is() -> None:
    rows = Rows(tuple(Row(f"{i}", {"label": "ab"[i % 4 == 0]}) for i in range(1_000)))
    drawn = rows_of("SAMPLE", rows, 200)
    assert drawn == rows_of("SAMPLE", rows, "200")
    assert drawn.values == sorted(set(drawn.values), key=int)
    count = scalar_of("COUNT", rows_of("WHERE", drawn, "label", "is", "b"))
    low, high = (round(end * 1_000) for end in wilson(int(count.value), 200))
    assert as_text(count).endswith(
        f"(an estimate: 200 of 1,000 rows) (95 % interval for all 1,000 rows: {low} to {high})"
    )
    assert low < 250 < high
    share = scalar_of("SHARE_OF", drawn, "label", "b")
    assert "95 % interval of the share: 0." in as_text(share)
    assert rows_of("SAMPLE", rows, 1_000) == rows


@given(st.integers(1, 500), st.data())
def test_the_interval_holds_the_share_and_lies_in_0_to_1(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1
    assert low < high


def test_columns_side_by_side(entries: Rows) -> None:
    label = Rows(
        tuple(row.with_column("kind", value) for row, value in zip(entries, ["p|q", None, "r"], strict=False)),
        "kind", (entries[3],), is_answered=True,
    )  # fmt: skip
    table = rows_of("SHOW", rows_of("FIELD", entries, "Text"), label)
    assert as_text(table).split("\n") == [
        "| Text | kind |", "| --- | --- |", "| one | p&#124;q |", "| two | undecided |", "| three | r |",
        "| four | undecided |", "| five |  |", "(2 undecided)",
    ]  # fmt: skip
    assert table[0].fields["Date"] == "Feb 02, 2023"


def test_a_doubtful_row_that_no_model_was_asked_about_has_no_label() -> None:
    rows = Rows((Row("a", text="a"),), doubtful=(Row("b", text="b"),))
    labels = with_column(rows, ["x"], "label")
    counts = rows_of("COUNT_BY", labels, "label")
    assert as_text(counts) == "- x: 1\n(1 undecided)"
    assert [row.value for row in counts.doubtful] == [None]
    assert as_text(rows_of("WHERE", labels, "label", "is not", "x")) == "(1 undecided)"


def test_lists_give_rows_back(entries: Rows) -> None:
    users = rows_of("FIELD", entries, "User")
    assert texts(rows_of("SORT", users, "User", "ascending")) == [
        "one",
        "three",
        "two",
        "four",
        "five",
    ]
    assert texts(rows_of("UNIQUE", users)) == ["one", "two", "four"]
    assert texts(rows_of("DIFFERENCE", users, ["BOB"])) == ["one", "two", "three"]
    assert texts(rows_of("INTERSECT", users, ["7", "12"])) == ["one", "two"]
    union = rows_of("UNION", ["x"], users)
    assert [(row.value, bool(row.spans)) for row in union] == [
        ("x", False),
        ("12", True),
        ("7", True),
        ("Bob", True),
    ]


def test_split_splits_doubtful_rows_and_texts_that_were_answered_about() -> None:
    row = Row("yes", {"kept": "yes"}, (Span(10, 15),), "a b\nc")
    rows = Rows((row,), "kept", (row.with_column("kept", None),), is_answered=True)
    found = rows_of("SPLIT", rows, "line")
    assert [(part.value, part.spans) for part in found] == [
        ("a b", (Span(10, 13),)),
        ("c", (Span(14, 15),)),
    ]
    assert [part.value for part in found.doubtful] == ["a b", "c"]
    pages = Document("one\ntwo\nthree", "x", pages=(("1", 0), ("2", 4)))
    lines = rows_of("SPLIT", document_rows(pages), "line")
    assert [part.fields["Page"] for part in rows_of("SPLIT", lines, "page")] == ["1", "2", "2"]


def test_split_notes_text_that_is_left_out() -> None:
    text = TEXT.replace("Date: soon", "\n\nHere something else stands.\n\nDate: soon")
    (note,) = rows_of("SPLIT", document_rows(Document(text, "x")), "record").notes
    assert "27 characters of the text belong to no record" in note
    around = f"Entries:\n{TEXT}\nThe end."
    assert rows_of("SPLIT", document_rows(Document(around, "x")), "record").notes == ()


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=30))
def test_groups_count_like_a_counter(pairs: list[tuple[str, str]]) -> None:
    rows = Rows(tuple(Row(v, {"k": k, "v": v}) for k, v in pairs))
    want = Counter(k for k, _ in pairs)
    counts = rows_of("COUNT_BY", rows, "k")
    assert {row.value: len(row.members) for row in counts} == want
    assert [scalar_of("COUNT_OF", counts, k).value for k in "abcd"] == [want[k] for k in "abcd"]
    assert set(rows_of("HAVING", counts, "at least", 3).values) == {k for k in want if want[k] >= 3}
    most = [k for k in want if want[k] == max(want.values())]
    assert scalar_of("MOST", counts).value == ("; ".join(most) or "none")
    if pairs:
        share = scalar_of("SHARE_OF", rows, "k", "a").value
        assert share == want["a"] / len(pairs)


def test_nothing_is_empty_and_no_error() -> None:
    nothing = Rows(())
    for name, arguments in [
        ("WHERE", ["x", "is", "y"]), ("GROUP", ["x"]), ("COUNT_BY", ["x"]), ("FIELD", ["x"]), ("RANKED", []),
        ("HAVING", ["is", 1]), ("PAIRS", [nothing]), ("JOIN", [nothing, "x"]), ("NEAR", [nothing, 1]),
        ("SAMPLE", [3]), ("SHOW", [nothing]), ("LIMIT", [3]), ("SORT", ["x", "ascending"]), ("MEAN_BY", ["x", "y"]),
    ]:  # fmt: skip
        assert len(rows_of(name, nothing, *arguments)) == 0, name
    assert scalar_of("COUNT_OF", nothing, "a").value == 0
    with pytest.raises(EmptyListError):
        run("SHARE_OF", nothing, "x", "y")
