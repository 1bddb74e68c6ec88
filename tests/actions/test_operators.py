"""What each operator on rows computes, and what it says of rows that it cannot decide."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.actions import native
from pearl.actions.by_row import with_column
from pearl.actions.values import EmptyListError, Scalar, Value, as_text
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


def nth(groups: Rows, k: int) -> Scalar:
    return scalar_of("NTH", groups, "count", k)


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
        ("Amount", "at least", "4 tablets", ["three"], ["one", "two", "four", "five"]),
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
        ("WHERE", ["count", "at least", 2], "there is no field 'count'"),
        ("NTH", ["User", 0], "K has to be a whole number other than 0, not 0"),
        ("NTH", ["User", 1.5], "K has to be a whole number other than 0, not 1.5"),
        ("NTH", ["User", "second"], "no number in 'second'"),
        ("LIMIT", [-3], "N has to be a whole number from 1, not -3"),
        ("AGGREGATE", ["User", "median", "Amount"], "unknown figure 'median'; figures are mean, sum, min, max, mode"),
        ("SPLIT", ["verse"], "unknown unit 'verse'; units are document, entry, line"),
        ("SPLIT", ["page"], "no pages"),
    ],
)  # fmt: skip
def test_reasons(entries: Rows, name: str, arguments: list[Value], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run(name, entries, *arguments)


def test_groups_that_differ_in_case_are_different_and_noted(entries: Rows) -> None:
    users = rows_of("GROUP", entries, "user")
    assert users.lines() == ["12: 2", "7: 1", "Bob: 1", "bob: 1"]
    assert users.notes == ("User: keys that differ only in case are counted separately: Bob, bob",)
    assert [row.fields["count"] for row in users] == ["2", "1", "1", "1"]
    assert [member.spans for member in users[0].members] == [entries[0].spans, entries[2].spans]
    assert rows_of("GROUP", table_of("k,n; a  b,1; a\u00a0b ,2"), "k").lines() == ["a b: 2"]


def test_months(entries: Rows) -> None:
    months = rows_of("GROUP", entries, "Date by month")
    assert months.lines() == ["2023-02: 1", "2023-06: 2", "2024-03: 1"]
    assert [row.text for row in months.doubtful] == [entries[3].text]
    assert months.notes == ("values of Date without a month: 1 of 5",)
    assert as_text(nth(months, 1)).startswith("2023-06 (1 undecided)")
    assert rows_of("FIELD", entries, "Date by year").values == ["2023", "2023", "2023", "2024"]
    turkish = table_of("İşe giriş; 2023-06-01")
    assert rows_of("FIELD", turkish, "İşe giriş By Years").values == ["2023"]


def test_places_and_ties() -> None:
    rows = rows_of("GROUP", Rows(tuple(map(Row, "dabbccaadd"))), "text")
    assert [nth(rows, k).value for k in (1, 2, 3, 4)] == [
        "d; a",
        "d; a",
        "b; c",
        "b; c",
    ]
    assert nth(rows, -1).value == "b; c"
    none = nth(rows, 5)
    assert (none.value, none.rows.notes) == ("none", ("there are only 4",))
    assert as_text(nth(rows_of("GROUP", [], "text"), 1)) == "none"
    assert rows_of("SORT", rows, "count", "descending").lines() == ["d: 3", "a: 3", "b: 2", "c: 2"]


def test_undecided_rows_that_cannot_change_a_result_leave_it_decided() -> None:
    labels = Rows((*map(Row, "aaab"), Row(None)), "label", is_answered=True)
    most = nth(rows_of("GROUP", labels, "label"), 1)
    assert (most.rows.undecided, most.rows.notes) == ((), ("1 undecided rows cannot change it",))
    a, b = (scalar_of("COUNT", run("WHERE", labels, "label", "is", key)) for key in "ab")
    assert [(each.value, each.low, each.high) for each in (a, b)] == [(3, 3, 4), (1, 1, 2)]
    assert as_text(scalar_of("RELATION", a, b)) == "more"
    assert as_text(scalar_of("RELATION", b, 2)) == "less (1 undecided)"


def test_shares_that_may_be_equal_are_compared_to_the_same_digits() -> None:
    rows = [
        Row(label, {"n": n, "label": label}) for n, label in zip("122222", "bbbbb?", strict=True)
    ]
    rows[-1] = Row(None, {"n": "2", "label": None})
    labels = Rows(tuple(rows), "label", is_answered=True)
    shares = (
        scalar_of("SHARE", run("WHERE", labels, name, "is", x), labels)
        for name, x in (("label", "a"), ("n", "1"))
    )
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


def table_of(text: str, name: str = "t") -> Rows:
    """The lines of a small table as rows: `a,b; 1,2; 3,4`."""
    head, *lines = (line.strip().split(",") for line in text.split(";"))
    rows = enumerate(dict(zip(head, cells, strict=True)) for cells in lines)
    return Rows(tuple(Row(f"{name}{i}", row, (Span(i, i + 1),), f"{name}{i}") for i, row in rows))


@pytest.mark.parametrize(
    ("values", "order", "in_order", "n_undecided"),
    [
        (["10", "9", "-1", "1,000", "2.5"], "ascending", ["-1", "2.5", "9", "10", "1,000"], 0),
        (["10 mg", "12.5", "9 mg"], "descending", ["12.5", "10 mg", "9 mg"], 0),
        (["12", "12.5 mg", "3 g", "7 mg"], "ascending", ["7 mg", "12", "12.5 mg"], 1),
        (["2", "5%", "3"], "ascending", ["2", "3"], 1),
        (["2%", "3", "1%"], "ascending", ["1%", "2%"], 1),
        (["30", "<20", "40", "many"], "ascending", ["30", "40"], 2),  # most begin with digits
        (["7:05", "10:30"], "ascending", [], 2),  # by letters, the largest were 7:05
        (["07:05", "10:30"], "descending", ["10:30", "07:05"], 0),
        (["1.2.10", "1.10.2"], "ascending", [], 2),
        (["v1.10", "v1.9"], "descending", [], 2),
        (["2024-05-01", "Jan 30, 2024", "2023-12-24", "soon"], "ascending",
         ["2023-12-24", "Jan 30, 2024", "2024-05-01"], 1),
        (["1990", "950", "2001"], "ascending", ["950", "1990", "2001"], 0),
        (["b", "A", "10", "9"], "descending", ["b", "A", "9", "10"], 0),
        (["5 GB", "500 MB", "2 GB"], "descending", ["5 GB", "2 GB"], 1),  # units that PEARL does not know
        (["₹5", "$3", "₹4"], "ascending", ["₹4", "₹5"], 1),
        (["5 km/h", "3 km", "7 km/h"], "ascending", ["5 km/h", "7 km/h"], 1),
        (["Apollo 11", "Skylab 4", "Mir 2"], "ascending", ["Apollo 11", "Mir 2", "Skylab 4"], 0),
        (["b", "", "a", ""], "ascending", ["a", "b", "", ""], 0),
        (["b", "", "a"], "descending", ["b", "a", ""], 0),
        ([], "ascending", [], 0),
    ],
)  # fmt: skip
def test_sorting(values: list[str], order: str, in_order: list[str], n_undecided: int) -> None:
    found = rows_of("SORT", values, "text", order)
    assert (found.values, len(found.doubtful)) == (in_order, n_undecided)


def test_equal_values_keep_their_order_in_both_directions() -> None:
    rows = table_of("n,k; x,2; y,1; z,2.0; w,1")
    assert [row.fields["n"] for row in rows_of("SORT", rows, "k", "ascending")] == list("ywxz")
    assert [row.fields["n"] for row in rows_of("SORT", rows, "k", "descending")] == list("xzyw")
    with pytest.raises(ValueError, match="unknown order 'down'"):
        run("SORT", rows, "k", "down")


def test_the_order_of_unclear_numbers_has_a_note() -> None:
    said = ("text: sorted as texts, because most values are not clear numbers or dates",)
    assert rows_of("SORT", ["10:30", "11:15"], "text", "ascending").notes == said
    unclear = ("text: 2 values cannot be compared as numbers: 10:30, 9:15",)
    assert rows_of("SORT", ["10:30", "9:15"], "text", "ascending").notes == unclear
    assert rows_of("SORT", ["Ben", "Ann 2"], "text", "ascending").notes == ()


def test_limit_says_what_is_equal_to_the_last_row() -> None:
    rows = table_of("film,score; a,4; b,2; c,4; d,4.0")
    left = "rows with the same {} as the last one, which are left out: {}"
    by_score = rows_of("SORT", rows, "score", "descending")
    assert left.format("score", 2) in rows_of("LIMIT", by_score, 1).notes
    assert rows_of("LIMIT", by_score, 3).notes == ("the first 3 of 4 rows",)
    counts = rows_of("SORT", rows_of("GROUP", rows, "film"), "count", "descending")
    assert left.format("count", 3) in rows_of("LIMIT", counts, 1).notes
    assert rows_of("LIMIT", rows, 1).notes == ("the first 1 of 4 rows",)


@pytest.mark.parametrize(
    ("sure", "unsure", "first"),
    [
        ("aab", "bbbbb", []),  # b may be larger than a
        ("aaaaab", "bb", ["a"]),
        ("aab", "ccc", []),
        ("aaaab", "ccc", ["a"]),
        ("aab", "???", []),
        ("aaaab", "??", ["a"]),
    ],
)
def test_the_first_groups_are_undecided_if_undecided_rows_may_change_them(
    sure: str, unsure: str, first: list[str]
) -> None:
    rows = [Row(f"{i}", {"k": None if key == "?" else key}, (Span(i, i + 1),), f"{i}")
            for i, key in enumerate(sure + unsure)]  # fmt: skip
    n = len(sure)
    counts = rows_of("GROUP", Rows(tuple(rows[:n]), doubtful=tuple(rows[n:])), "k")
    found = rows_of("LIMIT", run("SORT", counts, "Count", "descending"), 1)
    assert (found.values, not found.undecided) == (first, bool(first))


def test_an_undecided_key_of_a_join_may_change_what_is_computed_from_the_pairs() -> None:
    orders = table_of("k,amount; x,10; y,5; ?,25")
    orders = replace(
        orders, rows=(*orders[:2], orders[2].with_fields({"k": None})), is_answered=True
    )
    pairs = rows_of("JOIN", orders, table_of("k,name,amount; x,Ann,10; y,Ben,6", "n"), "k")
    assert [row.fields["amount (2)"] for row in pairs] == ["10", "6"], "also if they are equal"
    assert "k (2)" not in pairs.names
    sums = rows_of("AGGREGATE", pairs, "name", "sum", "amount")
    assert [(row.fields["name"], row.fields["sum"]) for row in sums] == [
        ("Ann", None),
        ("Ben", None),
    ]
    ann = rows_of("WHERE", pairs, "name", "is", "Ann")
    assert (len(ann), len(ann.doubtful)) == (1, 1)


def test_rows_that_are_none_are_not_found() -> None:
    assert run("FIRST_FOUND", Rows(()), ["b"]) == ["b"]


def test_a_number_below_1_is_no_code() -> None:
    assert rows_of("GROUP", table_of("n; 0.5; 1; 1.0"), "n").values == ["0.5", "1"]
    assert rows_of("GROUP", table_of("n; 05; 1; 1.0"), "n").values == ["05", "1", "1.0"]


def test_the_most_frequent_label_of_each_month() -> None:
    days = "2023-01-02,a; 2023-01-30,a; 2023-01-31,b; 2023-02-01,a; 2023-02-02,b; 2024-03-01,b"
    tops = rows_of("AGGREGATE", table_of(f"day,label; {days}"), "day by month", "mode", "label")
    assert [(row.fields["day by month"], row.value, len(row.members)) for row in tops] == [
        ("2023-01", "a", 3), ("2023-02", "a; b", 2), ("2024-03", "b", 1),
    ]  # fmt: skip
    assert [row.text for row in rows_of("WHERE", tops, "mode", "is", "b")] == ["2024-03"]
    labels = [("x", "9"), ("x", "1"), ("x", "1"), ("x", "1"), ("x", None), ("y", "2"), ("y", None)]
    rows = Rows(tuple(Row(n, {"k": k, "n": n}) for k, n in labels), "n", is_answered=True)
    assert rows_of("AGGREGATE", rows, "k", "mode", "n").values == ["1"], "y may be any"


@pytest.mark.parametrize(
    ("cells", "figures"),
    [
        (["0.1", "0.2"], {"mean": "0.15", "sum": "0.3", "min": "0.1", "max": "0.2"}),
        (["1", "1", "2"], {"mean": "1.33333333333333", "sum": "4", "min": "1"}),
        (["5", "", "7"], {"mean": "6", "sum": "12"}),
        (["", ""], {"mean": "", "sum": ""}),
        (["5", "over 7"], {"mean": None, "max": None}),
        (["5 mg", "7", "2 g"], {"sum": None}),
        (["7", "7.0", "7"], {"max": "7", "min": "7"}),
        (["12345678901234567890.5", "1"], {"sum": "12345678901234567891.5"}),
        (["$3.2 million", "$1"], {"sum": "3200001"}),
        (["500 mg", "2 tablets"], {"sum": None, "max": None}),
        (["5 cents", "$5"], {"sum": None}),
        (["CAD 5", "USD 5"], {"sum": None}),
        (["$5 per day", "$9"], {"sum": None}),
        (["5 stars", "3 star", "1"], {"sum": "9"}),
    ],
)  # fmt: skip
def test_figures_of_groups(cells: list[str], figures: dict[str, str | None]) -> None:
    assert Decimal(1) / 3  # sets a flag of the context, on which no figure may depend
    rows = table_of("g,n; " + "; ".join(f"a,{cell}" for cell in cells) + "; b,1")
    for name, figure in figures.items():
        found = rows_of("AGGREGATE", rows, "g", name, "n")
        shown = {row.fields["g"]: row.fields[name] for row in found}
        assert shown == {"a": figure, "b": "1"}, name
        assert len(found.undecided) == (figure is None)
        if "" in cells:
            assert "rows without n, which are left out" in " ".join(found.notes)


def test_a_figure_of_a_group_is_undecided_only_if_an_undecided_row_may_change_it() -> None:
    sure = table_of("g,n; a,1; a,5; b,3")
    unsure = table_of("g,n; a,4; b,9", "u")
    rows = replace(sure, doubtful=unsure.rows)
    largest = rows_of("AGGREGATE", rows, "g", "max", "n")
    assert [(row.text, row.value) for row in largest] == [("a", "5"), ("b", None)]
    assert largest.notes == ("b: max of its 1 decided rows: 3; 1 undecided",)
    assert scalar_of("NTH", rows_of("AGGREGATE", sure, "g", "mean", "n"), "mean", 1).value == "a; b"
    with pytest.raises(ValueError, match="no value of 'g' is a number"):
        run("AGGREGATE", sure, "n", "sum", "g")


def test_a_join_compares_numbers_as_numbers_and_says_what_it_leaves_out() -> None:
    orders = table_of("customer,amount; 7,a; 7.0,b; 9,c; ,d; 8,e")
    customers = table_of("customer,name; 7,Ann; 8,Ben; 12,Zoe", "c")
    pairs = rows_of("JOIN", orders, customers, "customer")
    assert [(row.fields["amount"], row.fields["name"]) for row in pairs] == [
        ("a", "Ann"), ("b", "Ann"), ("e", "Ben"),
    ]  # fmt: skip
    assert pairs.notes == (
        "rows of A without customer: 1",
        "rows of A without a match: 1 of 5",
        "rows of B without a match: 1 of 3",
    )


def test_a_join_does_not_guess_that_keys_are_equal() -> None:
    codes, names = table_of("k,a; 007,x; 8,y; B1,z"), table_of("k,b; 7,u; 8,v; b1,w", "n")
    pairs = rows_of("JOIN", codes, names, "k")
    assert [row.fields["a"] for row in pairs] == ["y"]
    ships = table_of("k,a; Apollo 11,x; 5 March,y; 12 Oak Street,z; 5 kg,u; 7,v")
    others = table_of("k,b; Gemini 11,x; 5 April,y; 12 Main Street,z; 5,u; 7.0,v", "n")
    assert [row.fields["a"] for row in rows_of("JOIN", ships, others, "k")] == ["v"]
    assert "k: keys that differ only in case do not match: B1, b1" in pairs.notes
    many = table_of("k,a; x,1; x,2; x,3")
    assert (
        "k: 1 value stands in several rows of A and of B, which makes 6 pairs"
        in rows_of("JOIN", many, table_of("k,b; x,1; x,2", "m"), "k").notes
    )
    same = Rows(tuple(Row("x", {"k": "x"}, (Span(i, i + 1),), str(i)) for i in range(1_100)))
    with pytest.raises(ValueError, match="pairs are too many"):
        run("JOIN", same, replace(same, notes=("other",)), "k")


def test_pairs_of_rows_with_the_same_text_are_different_rows() -> None:
    rows = Rows(
        tuple(Row("good", {"f": "x", "id": str(i)}, (Span(i, i + 1),), "good") for i in range(3))
    )
    pairs = rows_of("JOIN", rows, rows, "f")
    both = rows_of("SHOW", run("FIELD", pairs, "id"), run("FIELD", pairs, "id (2)"))
    assert [tuple(row.fields.values())[-2:] for row in both] == [("0", "1"), ("0", "2"), ("1", "2")]


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
    counts = rows_of("GROUP", labels, "label")
    assert as_text(counts) == "- x: 1\n(1 undecided)"
    assert [row.value for row in counts.doubtful] == [None]
    assert as_text(rows_of("WHERE", labels, "label", "is not", "x")) == "(1 undecided)"


def test_rows_of_two_documents_are_the_same_in_both_by_their_text() -> None:
    a, b = (
        Rows(tuple(Row(x, {}, (Span(at + i, at + i + 1),), x) for i, x in enumerate(lines)))
        for at, lines in ((0, "xyx"), (10, "xz"))
    )
    assert rows_of("INTERSECT", a, b).values == ["x"]
    assert rows_of("DIFFERENCE", a, b).values == ["y"]
    assert rows_of("UNION", a, b).values == ["x", "y", "x", "x", "z"]


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
    counts = rows_of("GROUP", rows, "k")
    assert {row.value: len(row.members) for row in counts} == want
    those = [rows_of("WHERE", rows, "k", "is", k) for k in "abcd"]
    assert [scalar_of("COUNT", each).value for each in those] == [want[k] for k in "abcd"]
    many = rows_of("WHERE", counts, "count", "at least", 3)
    assert set(many.values) == {k for k in want if want[k] >= 3}
    most = [k for k in want if want[k] == max(want.values())]
    assert nth(counts, 1).value == ("; ".join(most) or "none")
    if pairs:
        share = scalar_of("SHARE", those[0], rows).value
        assert share == want["a"] / len(pairs)


def test_nothing_is_empty_and_no_error() -> None:
    nothing = Rows(())
    for name, arguments in [
        ("WHERE", ["x", "is", "y"]), ("GROUP", ["x"]), ("FIELD", ["x"]),
        ("WHERE", ["count", "is", 1]), ("PAIRS", [nothing]), ("JOIN", [nothing, "x"]),
        ("SHOW", [nothing]), ("LIMIT", [3]), ("SORT", ["x", "ascending"]), ("AGGREGATE", ["x", "mean", "y"]),
    ]:  # fmt: skip
        assert len(rows_of(name, nothing, *arguments)) == 0, name
    with pytest.raises(EmptyListError):
        run("SHARE", nothing, nothing)
    with pytest.raises(
        ValueError, match="PART is not a part of WHOLE: 1 of its rows are not in WHOLE"
    ):
        run("SHARE", ["a", "c"], ["a", "b"])
