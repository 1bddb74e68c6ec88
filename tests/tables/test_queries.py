"""Queries: their form, their check, typed columns."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.rows import Row, Rows
from pearl.dsl.decoding.constraint import Constraint
from pearl.tables.checking import check
from pearl.tables.columns import (
    QueryTable,
    typed_columns,
)
from pearl.tables.specification import (
    MAX_CONDITIONS,
    Query,
    QueryError,
    conditions,
    query_constraint,
    read_query,
)

TABLE = QueryTable(
    Rows(
        (
            Row(
                "", {"Clinic name": "H&C", "City": "Haifa", "Fee": "120 mg", "Since": "2020-01-01"}
            ),
            Row("", {"Clinic name": "Dan", "City": "Eilat", "Fee": "90 mg", "Since": "2021-03-01"}),
        )
    )
)

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["select", "where", "group", "aggregate", "sort", "limit", "column", "op", "value",
                 "all", "any", "no", "by", "function", "cannot", "add", "divide"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_any_data_is_a_query_or_an_error(said: object) -> None:
    try:
        query = read_query(said)
    except ValueError:
        return
    assert read_query(query.model_dump(mode="json")) == query


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"where": {"column": "City", "op": "is"}}, "'is' takes one value"),
        ({"where": {"column": "City", "op": "in", "value": []}}, "takes a list of values"),
        ({"where": {"column": "City", "op": "contains", "value": " "}}, "needs a text"),
        ({"where": {"column": "City", "op": "is empty", "value": "x"}}, "takes no value"),
        ({"aggregate": {"function": "sum"}}, "'sum' needs a column"),
        ({"limit": -1}, "limit: "),
        ({"select": {"multiply": ["Fee"]}}, "select.0.multiply: "),
        ({"select": {"multiply": ["Fee", True]}}, "select.0.multiply.1: "),
        ({"select": {"power": ["Fee", 2]}}, "select.0.power: a query has no such field"),
        ({"select": {"multiply": [2, 3]}}, "arithmetic is of columns, not of numbers alone"),
        ({"select": {"add": ["Fee", 1], "multiply": ["Fee", 2]}}, "arithmetic is one of add, subtract"),
        ({"cannot": "no column has the profit"}, "no column has the profit"),
        ({"filter": 1}, "filter: a query has no such field"),
        ([], "the query: "),
    ],
)  # fmt: skip
def test_invalid_queries_are_refused(said: object, told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is what counts
        read_query(said)
    assert told in str(caught.value)


@pytest.mark.parametrize("depth", [30, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    where: object = {"column": "City", "op": "is", "value": "x"}
    for _ in range(depth):
        where = {"no": where}
    with pytest.raises(ValueError, match="nested more than"):
        read_query({"where": where})


def test_many_conditions_are_refused() -> None:
    one = {"column": "City", "op": "is", "value": "x"}
    assert (
        len(list(conditions(read_query({"where": [one] * MAX_CONDITIONS}).where))) == MAX_CONDITIONS
    )
    with pytest.raises(ValueError, match="61 conditions are more than 60"):
        read_query({"where": [one] * (MAX_CONDITIONS + 1)})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"select": ["Towm", "Cty"]}, "the table has no column 'Cty'; did you mean 'City'? it has: Clinic name, City"),
        # Another quantity is no hint.
        ({"aggregate": {"function": "sum", "column": "Net fee"}}, "the table has no column 'Net fee'; it has: Clinic name, City, Fee, Since; arithmetic"),
        ({"select": {"multiply": ["Fee", "City"]}}, "'multiply' needs numbers; City is a column of texts and has 'Haifa', 'Eilat'"),
        ({"select": {"multiply": ["Fee", "Units"]}}, "the table has no column 'Units'; it has"),
        ({"sort": {"by": {"add": ["Since", 1]}}}, "'add' needs numbers; Since is a column of dates"),
        ({"where": {"column": "City", "op": "at least", "value": "3"}}, "compares numbers and dates; City is a column of texts and has 'Haifa', 'Eilat'"),
        ({"where": {"column": "Fee", "op": "at least", "value": "much"}}, "Fee is a column of numbers; 'much' is not clearly a number; it has '120 mg', '90 mg'"),
        ({"where": {"column": "Since", "op": "before", "value": "long ago"}}, "Since is a column of dates; 'long ago' is not a date; it has '2020-01-01'"),
        ({"aggregate": {"function": "mean", "column": "City"}}, "'mean' needs numbers; City is a column of texts"),
        ({"aggregate": {"function": "count"}, "sort": {"by": "Fee"}}, "the result has no 'Fee' to sort by; it has: count"),
    ],
)  # fmt: skip
def test_errors_name_what_the_table_has_instead(said: object, told: str) -> None:
    with pytest.raises(QueryError) as caught:
        check(read_query(said), TABLE)
    assert told in str(caught.value)


def test_names_are_found_in_other_case_and_number() -> None:
    query = check(read_query({"select": ["clinic_names", "CITIES"], "group": "city"}), TABLE)
    assert query.select == ("Clinic name", "City")
    assert [one.name for one in query.aggregate] == ["count"]
    assert isinstance(query, Query)


COLUMNS = ["City", 'The "new" \\ name', "Größe (m²)"]


@cache
def constraint() -> Constraint:
    return query_constraint(COLUMNS)


EMPTY = {
    "cannot": None, "select": [], "where": None, "group": [], "aggregate": [], "sort": [], "limit": None,
}  # fmt: skip


def test_a_valid_form_is_read_as_a_query() -> None:
    said = EMPTY | {
        "where": {"all": [{"column": "City", "op": "is", "value": ["x"]}]},
        "aggregate": [{"function": "count", "column": None}],
    }
    form = constraint().json_form
    assert form is not None
    assert read_query(json.loads(form.text_of(said))).aggregate[0].name == "count"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["120", "90", "", "1,315", "ask"], "number"),
        (["120 mg", "90 mg", "7.5 mg"], "number"),
        (["$9,000", "$1,315"], "number"),
        (["12.5%", "3%"], "number"),
        (["Katz Clinic 58", "Levi Clinic 7", "Haddad Pharmacy 61"], "text"),
        (["Herzl Street 12", "Allenby Street 7"], "text"),
        (["Day 1", "Day 2", "Acre 40"], "text"),
        (["CHF 500", "EUR 20", "minus 5"], "number"),
        (["12 Herzl St", "7 Allenby St", "9 HaNassi St"], "text"),
        (["03-5551234", "04-5559876"], "text"),
        (["0048", "48", "49"], "text"),
        (["2020-01-01", "May 2021", "unknown"], "date"),
        (["Mon-Fri 8-16", "Sun-Thu 09:00-20:00; Sat 20:00-23:00", "ask"], "text"),
        (["", " "], "text"),
    ],
)
def test_a_column_is_what_most_of_its_cells_are(cells: list[str], kind: str) -> None:
    (column,) = typed_columns(Rows(tuple(Row("", {"x": cell}) for cell in cells)))
    assert column.kind == kind


HOURS = ["Mon-Fri 8-16", "Sunday", "Sun 09:00-20:00", "ask"]


@pytest.mark.parametrize(
    "value", ["Wednesday", "Wed", "sunday", "Friday 10:00", "9:30", "10", "3 pm", "on Sundays"]
)
@pytest.mark.parametrize("op", ["is", "is not", "contains", "does not contain", "in"])
def test_opening_hours_are_texts_that_no_operator_reads(op: str, value: str) -> None:
    table = QueryTable(Rows(tuple(Row("", {"Hours": cell}) for cell in HOURS)))
    query = read_query({"where": {"column": "Hours", "op": op, "value": value}})
    with pytest.raises(QueryError, match="which no operator reads"):
        check(query, table)


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (HOURS, "Mon-Fri 8-16"), (HOURS, "ask"), (HOURS, "month"),
        (["Sunday", "Monday"], "Sunday"), (["10:30", "9:15"], "9:15"), (["Room 12", "2-3 rooms"], "12"),
    ],
)  # fmt: skip
def test_texts_without_ranges_of_times_are_compared(cells: list[str], value: str) -> None:
    table = QueryTable(Rows(tuple(Row("", {"Hours": cell}) for cell in cells)))
    assert check(
        read_query({"where": {"column": "Hours", "op": "contains", "value": value}}), table
    )
