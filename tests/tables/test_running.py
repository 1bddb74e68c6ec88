from __future__ import annotations

import pytest

from pearl.documents.rows import Row, Rows
from pearl.tables.columns import QueryTable
from pearl.tables.running import run, why_empty
from pearl.tables.specification import Query, QueryError, read_query
from tests.tables.filtering import Record


def table(found: list[Record]) -> QueryTable:
    return QueryTable(Rows(tuple(Row("", dict(record)) for record in found)))


def test_a_column_that_is_asked_about_is_shown_beside_those_that_are_filtered_on() -> None:
    one = table([{"Name": "H&C", "City": "Haifa", "Access": "no animals"}])
    query = read_query(
        {"select": ["access"], "where": {"column": "name", "op": "contains", "value": "h&c"}}
    )
    result = run(query, one)
    assert result.columns == ("Access", "Name")
    assert result.lines[0].cells == ("no animals", "H&C")


def test_columns_of_alternatives_are_shown_and_must_exist() -> None:
    boats = table([{"Name": "Skylark", "Port": "Haifa"}, {"Name": "Ada", "Port": "Acre"}])

    def query(column: str) -> Query:
        port = {"column": column, "op": "is", "value": ["Haifa"]}
        either = [port, {"column": "Name", "op": "is", "value": ["Rex"]}]
        return read_query({"select": ["Name"], "where": {"any": either}})

    result = run(query("Port"), boats)
    assert [line.cells for line in result.lines] == [("Skylark", "Haifa")]
    with pytest.raises(QueryError, match="no column 'Pier'"):
        run(query("Pier"), boats)


def test_case_accents_and_quotes_do_not_matter() -> None:
    cafes = table([{"Name": "Café d\u2019Été"}, {"Name": "Cafe"}])
    found = {"column": "Name", "op": "is", "value": ["CAFE D'ETE"]}
    result = run(read_query({"select": ["Name"], "where": found}), cafes)
    assert [line.cells for line in result.lines] == [("Café d\u2019Été",)]


def test_sums_are_exact() -> None:
    tenth = table([{"x": "0.1"}, {"x": "0.2"}, {"x": "7"}])
    query = read_query({"aggregate": [{"function": "sum", "column": "x"}]})
    assert run(query, tenth).lines[0].cells == ("7.3",)


def test_cells_that_are_not_numbers_are_noted_and_not_summed() -> None:
    mixed = table([{"Fee": "10"}, {"Fee": "20"}, {"Fee": "ask"}, {"Fee": ""}])
    result = run(read_query({"aggregate": [{"function": "mean", "column": "Fee"}]}), mixed)
    assert result.lines[0].cells == ("15",)
    assert "1 cell of Fee cannot be read" in result.notes
    assert result.undecided == (2,)


@pytest.mark.parametrize(
    ("cells", "figure", "undecided"),
    [
        ([*map(str, range(20)), "50%"], "190", (20,)),
        (["$10", "$20", "EUR 30"], "30", (2,)),
        (["10", "20", "30", "$5", "€5"], "60", (3, 4)),
        (["10", "20", "$50", "30"], "60", (2,)),
        (["$10", "20", "30", "$60"], "120", ()),
        (["5 mg", "6 mg", "7"], "18", ()),
        (["5", "6", "7 mg"], "11", (2,)),
        (["10", "20", "<20", "~30", "1st", "2nd", "#DIV/0!", "50+", "60 or more", "7", "8", "9", "11", "12", "13"], "90", (2, 3, 4, 5, 6, 7, 8)),
        (["5", "5", "5", "50%", "60%"], "15", (3, 4)),
        (["$10", "20", "30", "€5"], "50", (0, 3)),
        (["5 apples", "1 apple", "7 Apples", "3 pears", "2 pears"], "13", (3, 4)),
        (["5 square km", "6 square km", "8 or more", "9 or more", "7"], "18", (2, 3)),
        (["27 ( 27 % )", "-3 ( 3 % )", "12.5 %"], "36.5", ()),
        (["1st", "2nd", "3rd", "4th", "5", "6", "7", "8", "9"], "35", (0, 1, 2, 3)),
        (["10", "20", "n/a", "—", ""], "30", ()),
    ],
)  # fmt: skip
def test_a_figure_is_undecided_where_a_value_is_left_out(
    cells: list[str], figure: str, undecided: tuple[int, ...]
) -> None:
    query = read_query({"aggregate": {"function": "sum", "column": "x"}})
    result = run(query, table([{"x": cell} for cell in cells]))
    assert (result.lines[0].cells, result.undecided) == ((figure,), undecided)


def test_rows_without_a_sort_key_are_undecided_if_a_limit_cuts_the_result() -> None:
    fees = table([{"Fee": fee} for fee in ("ask", "10", "", "20")])
    all_rows = [(1,), (3,), (0,), (2,)]
    for limit, lines, undecided in ((3, [(1,), (3,), (2,)], (0,)), (4, all_rows, ())):
        result = run(read_query({"sort": {"by": "fee"}, "limit": limit}), fees)
        assert ([line.rows for line in result.lines], result.undecided) == (lines, undecided)


def test_a_word_in_a_column_of_numbers_is_found_and_not_ordered() -> None:
    mixed = table([{"Fee": "10"}, {"Fee": "20"}, {"Fee": "30"}, {"Fee": "Ask"}])
    for op, rows in (("is", [3]), ("in", [3])):
        result = run(read_query({"where": {"column": "Fee", "op": op, "value": "ask"}}), mixed)
        assert [line.rows[0] for line in result.lines] == rows
    for op, value in (("at least", "ask"), ("is", "unknown")):
        with pytest.raises(ValueError, match=f"Fee is a column of numbers; '{value}'"):
            run(read_query({"where": {"column": "Fee", "op": op, "value": value}}), mixed)


@pytest.mark.parametrize("function", ["count", "count different", "mean", "min"])
def test_undecided_cells_are_noted_beside_a_figure(function: str) -> None:
    cells = ["7", None, "9", "", None, "ask"]
    rows = Rows(tuple(Row("", {"Fee": cell}) for cell in cells))
    query = read_query({"aggregate": [{"function": function, "column": "Fee"}]})
    result = run(query, QueryTable(rows))
    figures = {"count": ("3", 2), "count different": ("3", 2), "mean": ("8", 3), "min": ("7", 3)}
    figure, n_left_out = figures[function]  # a word counts, and has no number
    assert result.lines[0].cells == (figure,)
    assert any(f"{n_left_out} cells of Fee" in note for note in result.notes)


@pytest.mark.parametrize(("function", "figure"), [("min", "2023-06-01"), ("max", "2023-12-31")])
def test_the_first_and_the_last_of_dates_are_days_of_their_periods(
    function: str, figure: str
) -> None:
    dated = table([{"When": "June 2023"}, {"When": "2023-11-30"}, {"When": "December 2023"}])
    query = read_query({"aggregate": [{"function": function, "column": "When"}]})
    assert run(query, dated).lines[0].cells == (figure,)


def test_units_are_not_mixed() -> None:
    mixed = table([{"Dose": "10 mg"}, {"Dose": "20 mg"}, {"Dose": "3 g"}])
    result = run(read_query({"aggregate": [{"function": "sum", "column": "Dose"}]}), mixed)
    assert (result.columns, result.lines[0].cells) == (("sum of Dose (mg)",), ("30",))
    assert any("3 g" in note for note in result.notes)
    with pytest.raises(ValueError, match="in mg; '2 g' is in g"):
        run(read_query({"where": {"column": "Dose", "op": ">", "value": "2 g"}}), mixed)
    bare = table([{"Dose": "10"}, {"Dose": "20"}])
    with pytest.raises(ValueError, match="without a unit; '2 g' is in g"):
        run(read_query({"where": {"column": "Dose", "op": ">", "value": "2 g"}}), bare)
    with pytest.raises(ValueError, match="'<15' is not clearly a number"):
        run(read_query({"where": {"column": "Dose", "op": ">", "value": "<15"}}), bare)


def test_dates_are_compared_as_periods() -> None:
    dated = table(
        [
            {"When": "2023-05-31"},
            {"When": "2023-06-15"},
            {"When": "June 2023"},
            {"When": "2023"},
            {"When": ""},
        ]
    )
    after = run(
        read_query({"where": {"column": "when", "op": "at least", "value": "June 2023"}}), dated
    )
    assert [line.rows[0] for line in after.lines] == [1, 2]
    assert after.undecided == (3,)
    within = run(read_query({"where": {"column": "when", "op": "is", "value": "June 2023"}}), dated)
    assert [line.rows[0] for line in within.lines] == [1, 2]
    assert within.undecided == (3,)


def test_opening_hours() -> None:
    hours = table(
        [
            {"Hours": "Sun-Thu 08:00-16:00; Fri 08:00-12:00"},
            {"Hours": "Mon-Wed 22:00-02:00"},
            {"Hours": "by appointment"},
            {"Hours": ""},
            {"Hours": "24/7"},
        ]
    )

    def found(value: str) -> list[int]:
        query = read_query({"where": {"column": "hours", "op": "open", "value": value}})
        result = run(query, hours)
        assert result.undecided == (2,)
        return [line.rows[0] for line in result.lines]

    assert found("Friday") == [0, 4]
    assert found("Friday 12:00") == [4]
    assert found("Thu 11:59") == [0, 4]
    assert found("Thursday 01:30") == [1, 4]
    assert found("Monday 15:00-17:00") == [4]
    assert found("Monday 23:00-01:00") == [1, 4]
    assert found("Sunday 23:00-01:00") == [4]


def test_an_undecided_cell_is_neither_counted_nor_dropped() -> None:
    rows = Rows((Row("", {"kind": "spam"}), Row("", {"kind": None}), Row("", {"kind": "ham"})))
    result = run(
        read_query({"where": {"column": "kind", "op": "is not", "value": "spam"}}), QueryTable(rows)
    )
    assert [line.rows for line in result.lines] == [(2,)]
    assert result.undecided == (1,)
    fees = Rows(tuple(Row("", {"Fee": fee}) for fee in ("10", None, "20")))
    result = run(read_query({"aggregate": {"function": "sum", "column": "Fee"}}), QueryTable(fees))
    assert (result.lines[0].cells, result.undecided) == (("30",), (1,))
    for function, n in (("count", "2"), ("count different", "2")):
        query = read_query({"aggregate": {"function": function, "column": "kind"}})
        result = run(query, QueryTable(rows))
        assert (result.lines[0].cells, result.undecided) == ((n,), (1,))
        assert "1 cell of kind cannot be read" in result.notes


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            [{"column": "City", "op": "is", "value": "Haifa"}, {"column": "Kind", "op": "is", "value": "Pharmacies"}],
            'no row meets: Kind is "Pharmacies" (Kind has: Pharmacy',
        ),
        (
            [{"column": "City", "op": "is", "value": "Haifa"}, {"column": "Kind", "op": "is", "value": "Clinic"}],
            'rows that meet each: City is "Haifa": 1, Kind is "Clinic": 1. Without City is "Haifa" there are 1',
        ),
    ],
)  # fmt: skip
def test_an_empty_result_names_the_condition_that_no_row_meets(where: object, said: str) -> None:
    small = table([{"City": "Haifa", "Kind": "Pharmacy"}, {"City": "Eilat", "Kind": "Clinic"}])
    result = run(read_query({"where": where}), small)
    assert not result.lines
    assert said in why_empty(result.query, small)


def test_codes_with_leading_zeros_are_texts() -> None:
    codes = table([{"Code": "0048"}, {"Code": "48"}])
    result = run(read_query({"where": {"column": "Code", "op": "is", "value": "48"}}), codes)
    assert [line.rows for line in result.lines] == [(1,)]


def test_a_word_is_not_found_within_another() -> None:
    services = table(
        [
            {"x": "Neurology; Dietetics"},
            {"x": "Urology"},
            {"x": "(urologist)"},
            {"x": "C++"},
            {"x": "C"},
        ]
    )

    def found(value: str) -> list[int]:
        query = read_query({"where": {"column": "x", "op": "contains", "value": value}})
        return [line.rows[0] for line in run(query, services).lines]

    assert found("urolog") == [1, 2]
    assert found("neurology dietetics") == [0]
    assert found("C++") == [3]


def test_numbers_are_read_as_tables_of_finance_write_them() -> None:
    money = table(
        [{"Net": "$9,000"}, {"Net": "$ (1,315)"}, {"Net": "$1.5 million"}, {"Net": "12%"}]
    )
    total = run(read_query({"aggregate": {"function": "sum", "column": "net"}}), money)
    assert total.lines[0].cells == ("1507685",)
    assert any("12%" in note for note in total.notes)
    below = run(read_query({"where": {"column": "net", "op": "before", "value": "0"}}), money)
    assert [line.rows for line in below.lines] == [(1,)]
    assert below.undecided == (3,)
    shares = table([{"x": "12.5%"}, {"x": "27 ( 27 % )"}, {"x": "0.3"}])
    high = run(read_query({"where": {"column": "x", "op": "at least", "value": "20"}}), shares)
    assert [line.rows for line in high.lines] == [(1,)]
    assert high.undecided == (2,)


def test_dates_are_grouped_and_filtered_by_their_parts() -> None:
    days = ["2023-06-01", "2023-06-02", "2022-06-01", "June 2023", "soon", ""]
    dated = table([{"Opened": day} for day in days])
    query = {"group": "opened by Year", "aggregate": {"function": "count"}}
    lines = run(
        read_query({**query, "where": {"column": "Opened", "op": "is not empty"}}), dated
    ).lines
    assert [line.cells for line in lines] == [("2023", "3"), ("2022", "1"), (None, "1")]
    fridays = read_query({"where": {"column": "Opened by weekday", "op": "is", "value": "friday"}})
    found = run(fridays, dated)
    assert [line.rows for line in found.lines] == [(1,)]
    assert found.undecided == (3, 4)
    with pytest.raises(ValueError, match="not a part of a column of dates"):
        run(read_query({"group": "City by year"}), table([{"City": "Haifa"}]))


@pytest.mark.parametrize(
    ("where", "n"),
    [
        ({"column": "Age", "op": "at least", "value": "65"}, 2),
        ({"no": {"column": "Age", "op": "at least", "value": "65"}}, 1),
        ({"no": {"no": {"column": "Age", "op": "at least", "value": "65"}}}, 2),
        ({"no": {"column": "City", "op": "is", "value": "Lod"}}, 2),
        ({"no": {"all": [{"column": "Age", "op": "at least", "value": "65"}, {"column": "City", "op": "is", "value": "Lod"}]}}, 3),
        ({"no": {"any": [{"column": "Age", "op": "at least", "value": "65"}, {"column": "City", "op": "is", "value": "Jaffa"}]}}, 1),
    ],
)  # fmt: skip
def test_an_empty_cell_is_on_neither_side_of_a_bound(where: object, n: int) -> None:
    rows = [("70", "Lod"), ("66", "Haifa"), ("40", "Lod"), ("", "Haifa")]
    asked = read_query({"where": where, "aggregate": [{"function": "count", "column": None}]})
    (line,) = run(asked, table([{"Age": age, "City": city} for age, city in rows])).lines
    assert line.cells == (str(n),)


def test_doubtful_rows_that_may_meet_a_condition_are_undecided_whatever_their_cells_are() -> None:
    sure = [Row(n, {"Fee": n, "City": "Lod"}) for n in ("10", "20")]
    doubtful = [Row(n, {"Fee": n, "City": "Lod"}) for n in ("30", "5", "ask", "no", "free", "")]
    rows = QueryTable(Rows(tuple(sure), doubtful=tuple(doubtful)))
    result = run(read_query({"where": {"column": "Fee", "op": "after", "value": "15"}}), rows)
    assert [line.rows for line in result.lines] == [(1,)]
    assert [row.value for row in result.doubtful] == ["30", "ask", "no", "free"]
    assert "4 doubtful rows left out" in result.notes
