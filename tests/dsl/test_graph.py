"""The graph of a plan: what waits for what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions import native
from pearl.dsl.checker import check, compile_plan
from pearl.dsl.graph import build_graph
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from tests.dsl.strategies import libraries, valid_plans

LIBRARY = ActionLibrary(
    "test",
    [
        Action("FIND", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")), "x"),
        Action("CONCAT", (Parameter("S1"), Parameter("S2")), "x", is_variadic=True),
    ],
)
TEXT = (
    '1. a = FIND(CTX, "x") : x\n2. b = FIND(CTX, "y") : x\n3. c = FIND(CTX, ["z", a]) : x\n'
    "4. d = CONCAT(b, c, a, a) : x"
)


def test_dependencies_and_levels() -> None:
    graph = build_graph(compile_plan(TEXT, LIBRARY))
    assert [sorted(needs) for needs in graph.dependencies] == [[], [], [0], [0, 1, 2]]
    assert graph.levels() == ((0, 1), (2,), (3,))
    assert [step.output for step in graph.steps] == ["a", "b", "c", "d"]


@given(st.data(), libraries())
def test_step_order_is_an_order_of_execution(data: st.DataObject, library: ActionLibrary) -> None:
    graph = build_graph(check(data.draw(valid_plans(library)), library))
    for index, needs in enumerate(graph.dependencies):
        assert all(i < index for i in needs)
    levels = graph.levels()
    assert sorted(i for level in levels for i in level) == list(range(len(graph.steps)))
    level_of = {i: n for n, level in enumerate(levels) for i in level}
    for index, needs in enumerate(graph.dependencies):
        assert level_of[index] == 1 + max((level_of[i] for i in needs), default=-1)


TYPED = ActionLibrary(
    "typed",
    [
        *LIBRARY.values(),
        Action("LIST_ALL", (Parameter("CTX", ValueType.CONTEXT),), "x", returns=ValueType.LIST),
        native.known()["CONCAT"], native.known()["COUNT"], native.known()["FIRST"],
    ],
)  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "gives"),
    [
        ('a = FIND(CTX, "x")', {"a": "Text"}),
        ("a = LIST_ALL(CTX)", {"a": "List"}),
        ('a = FIND(CTX, "x"); n = COUNT(a)', {"a": "List", "n": "Number"}),
        ('a = FIND(CTX, "x"); b = FIND(CTX, a)', {"a": "Text", "b": "Text"}),
        # through what only joins texts
        ('a = FIND(CTX, "x"); c = CONCAT(a, a); n = COUNT(c)', {"a": "List", "c": "List", "n": "Number"}),
        ('a = FIND(CTX, "x"); f = FIRST(a); n = COUNT(f)', {"a": "List", "f": "List", "n": "Number"}),
        # read twice, in either order
        ('a = FIND(CTX, "x"); c = CONCAT(a, a); n = COUNT(a)', {"a": "List", "c": "Text", "n": "Number"}),
        ('a = FIND(CTX, "x"); n = COUNT(a); c = CONCAT(a, a)', {"a": "List", "n": "Number", "c": "Text"}),
        # the entries of a list in a list are entries of it
        ('a = FIND(CTX, "x"); n = COUNT([a, "y"])', {"a": "List", "n": "Number"}),
    ],
)  # fmt: skip
def test_what_reads_an_output_says_what_it_gives(steps: str, gives: dict[str, str]) -> None:
    text = "\n".join(f"{i}. {step} : x" for i, step in enumerate(steps.split("; "), 1))
    assert build_graph(compile_plan(text, TYPED)).gives == gives
