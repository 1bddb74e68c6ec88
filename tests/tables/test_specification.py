from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.rows import Row, Rows
from pearl.tables.checking import check
from pearl.tables.columns import QueryTable
from pearl.tables.specification import MAX_CONDITIONS, Query, QueryError, conditions, read_query

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
        ({"where": {"column": "City", "op": "open", "value": "Friday"}}, "'open' needs opening hours"),
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
