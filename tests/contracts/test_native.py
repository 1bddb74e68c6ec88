"""What every native action has to be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import plugins
from pearl.actions import native
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import Span

NAMES = plugins.names("pearl.actions.native")

PYTHON_TYPES: dict[ValueType, type | tuple[type, ...]] = {
    ValueType.TEXT: str,
    ValueType.NUMBER: (int, float),
    ValueType.BOOL: bool,
    ValueType.DATE: str,
    ValueType.LIST: (list, Rows),
    ValueType.CONTEXT: str,
}

entries = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", " ", "12", "-3.5 mg", "1,000", "two", "1 or 2", "9" * 50, "1e999", "٣", "Oslo", "oslo "]),
    st.integers().map(str),
)  # fmt: skip

values: st.SearchStrategy[Value] = st.one_of(
    st.lists(entries, max_size=6),
    st.lists(entries, max_size=6).map("\n".join),
    st.lists(st.sampled_from(["> ", "- ", "1. ", "b) ", ""]), max_size=4).map("a\n".join),
    entries,
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)

WORDS = [
    "User",
    "Date",
    "text",
    "Date by month",
    "label",
    "is",
    "in",
    "before",
    "at least",
    "line",
    "a",
    "2023",
]

cells = st.sampled_from(["a", "b", "B", "", "12", "3 mg", "2023-06-01", "01/02/2023", "2023", None])

a_row = st.builds(
    lambda at, user, date, value: Row(
        value, {"User": user, "Date": date}, (Span(at, at + 3),), f"row {at}"
    ),
    st.integers(0, 9), cells, cells, cells,
)  # fmt: skip

collections: st.SearchStrategy[Value] = st.builds(
    lambda rows, doubtful, column, is_answered: Rows(
        tuple(rows), column, tuple(doubtful), is_answered=is_answered
    ),
    st.lists(a_row, max_size=5), st.lists(a_row, max_size=2),
    st.sampled_from(["text", "User", "label"]), st.booleans(),
)  # fmt: skip

groups = st.builds(
    lambda rows: native.compute(native.known()["GROUP"], [rows, "User"]), collections
)

numbers_of_rows = st.builds(
    lambda rows: native.compute(native.known()["COUNT"], [rows]), collections
)

any_value = st.one_of(values, st.sampled_from(WORDS), collections, groups, numbers_of_rows)


def action_of(name: str) -> Action:
    action: Action = plugins.load("pearl.actions.native", name).ACTION
    return action


def test_every_action_is_native_typed_and_found_by_its_name() -> None:
    for name in NAMES:
        action = action_of(name)
        assert native.known()[action.name] == action
        assert action.name == name.upper().replace("-", "_")
        assert action.is_native
        assert action.definition
        assert not action.definition.endswith(".")
        assert action.parameters
        assert {p.type for p in action.parameters} <= set(PYTHON_TYPES)
        assert action.returns in PYTHON_TYPES
        assert action.repeated_parameter is None
        if action.returns is ValueType.NUMBER and action.parameters[0].type is ValueType.LIST:
            # Of these, notes say which undecided rows may change the number.
            assert {"counts", "sums_up"} & set(action.traits)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_value_gives_the_declared_type_or_a_reason(name: str, data: st.DataObject) -> None:
    action = action_of(name)
    n_parameters = len(action.parameters)
    n = data.draw(st.integers(action.min_arity, n_parameters + 2 * action.is_variadic))
    given_ = [data.draw(_fitting(action.parameter(i))) for i in range(n)]
    kept = [list(value) if isinstance(value, list) else value for value in given_]
    try:
        result = native.compute(action, given_)
    except ValueError as error:
        assert re.search(r"\w", str(error))  # noqa: PT017, the reason is what is tested
    else:
        value = result.value if isinstance(result, Scalar) else result
        # A number is a text, too; declared as one, it would multiply the states of grammars.
        is_other = name in ("share", "first-found", "date-diff") and not isinstance(value, str)
        is_other |= "figures" in action.traits and isinstance(value, Rows)
        assert is_other or isinstance(value, PYTHON_TYPES[action.returns])
        assert is_other or isinstance(value, bool) == (action.returns is ValueType.BOOL)
        assert isinstance(as_text(result), str)
        assert native.compute(action, given_) == result
    assert given_ == kept  # values belong to other steps, too


def _fitting(parameter: Parameter) -> st.SearchStrategy[Value]:
    """Any value, more often one that is of use there."""
    if parameter.choices:
        return st.one_of(st.sampled_from(parameter.choices), any_value)
    if parameter.reads == "rows":
        return st.one_of(collections, groups, any_value)
    return st.one_of(st.integers(-1, 4), st.sampled_from(WORDS), any_value)


def test_an_action_of_a_library_is_bound_by_name_and_shape() -> None:
    for name in NAMES:
        check_binding(name, action_of(name))


def check_binding(name: str, action: Action) -> None:
    plain = Action(
        action.name,
        tuple(
            Parameter.named(p.name if native.is_operator(action) else f"Q{i}")
            for i, p in enumerate(action.parameters)
        ),
        "In other words",
        action.is_variadic,
    )
    bound = native.bind(plain)
    assert bound.is_native
    assert (bound.parameters, bound.definition) == (action.parameters, "In other words")
    longer = Action(action.name, (*plain.parameters, type(plain.parameters[0])("Z")), "x")
    assert not native.bind(longer).is_native
    if native.is_operator(action):
        other = (Parameter("ITEMS"), *plain.parameters[1:])
        assert not native.bind(Action(action.name, other, "x", action.is_variadic)).is_native
    assert not native.bind(Action(name, plain.parameters, "x", action.is_variadic)).is_native
