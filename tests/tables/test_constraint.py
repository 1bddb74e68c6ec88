from __future__ import annotations

import json
from functools import cache

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pearl.dsl.decoding.constraint import Constraint, validate
from pearl.tables.specification import OPERATORS, SIGNS, query_constraint, read_query

COLUMNS = ["City", 'The "new" \\ name', "Größe (m²)"]


@cache
def constraint() -> Constraint:
    return query_constraint(COLUMNS)


texts = st.text(alphabet='abc "\\é|%', max_size=6)
name = st.sampled_from(COLUMNS)
column = st.recursive(
    name,
    lambda inner: st.builds(
        lambda operation, operands: {operation: operands},
        st.sampled_from([*SIGNS]),
        st.lists(inner | st.integers(-(10**15), 10**15) | st.just(1.19), min_size=2, max_size=3),
    ),
    max_leaves=3,
)
condition = st.fixed_dictionaries(
    {"column": column, "op": st.sampled_from(OPERATORS), "value": st.lists(texts, max_size=3)}
)
where = st.recursive(
    condition,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"no": inner}),
    ),
    max_leaves=4,
)
queries = st.fixed_dictionaries(
    {
        "limit": st.sampled_from([None, 1, 20]),  # in any order
        "cannot": st.none() | texts,
        "select": st.lists(column, max_size=3),
        "where": st.none() | where,
        "group": st.lists(name, max_size=2),
        "aggregate": st.lists(
            st.fixed_dictionaries({"function": st.just("count"), "column": st.none() | column}),
            max_size=2,
        ),
        "sort": st.lists(
            st.fixed_dictionaries({"descending": st.booleans(), "by": texts | column}), max_size=2
        ),
    }
)


@cache
def parser() -> lark.Lark:
    return lark.Lark(constraint().lark, parser="earley", lexer="dynamic")


@pytest.mark.slow
@settings(max_examples=40)
@given(queries)
def test_the_grammar_accepts_everything_that_the_schema_accepts(said: object) -> None:
    form = constraint().json_form
    assert form is not None
    text = form.text_of(said)
    parser().parse(text)
    assert json.loads(text) == said
    assert Draft202012Validator(dict(form.schema)).is_valid(said)


EMPTY = {
    "cannot": None, "select": [], "where": None, "group": [], "aggregate": [], "sort": [], "limit": None,
}  # fmt: skip


def test_decoders_take_the_grammar() -> None:
    validate(constraint().lark)
    assert constraint().gbnf.startswith("root ::=")


@pytest.mark.parametrize(
    "said",
    [
        EMPTY | {"select": ["Town"]},
        EMPTY | {"select": [{"multiply": ["City", "Town"]}]},
        EMPTY | {"select": [{"multiply": ["City"]}]},
        EMPTY | {"group": [{"multiply": ["City", 2]}]},
        EMPTY | {"limit": -1},
        {"select": []},
        [],
    ],
)
def test_invalid_forms_are_refused(said: object) -> None:
    form = constraint().json_form
    assert form is not None
    with pytest.raises(ValueError, match=r".+"):
        form.text_of(said)
    assert not Draft202012Validator(dict(form.schema)).is_valid(said)


def test_a_valid_form_is_read_as_a_query() -> None:
    said = EMPTY | {
        "where": {"all": [{"column": "City", "op": "is", "value": ["x"]}]},
        "aggregate": [{"function": "count", "column": None}],
    }
    form = constraint().json_form
    assert form is not None
    assert read_query(json.loads(form.text_of(said))).aggregate[0].name == "count"
