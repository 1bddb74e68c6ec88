"""Every native action, by its parameters alone: its forecast, what its rows are made of, and what stays undecided."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.actions import native
from pearl.actions.values import Scalar, Value
from pearl.documents.rows import Row, Rows
from pearl.dsl.graph import build_graph
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import ExecutionError
from pearl.interpreter.prompt_taint import contents
from pearl.runs.executors import Task
from pearl.runs.forecast import forecast
from tests.actions.test_rows import (
    Base,
    bases,
    check_rows,
    check_scalar,
    native_errors,
    rows_of,
    run,
    worlds,
)
from tests.examples import examples, times
from tests.interpreter.test_row_estimate import entries, oracle, within

ACTIONS = {
    name: action
    for name, action in native.general().items()
    if not action.searches and not any(p.reads in ("results", "date") for p in action.parameters)
}
"""Others read results or dates one by one: tests/dsl and tests/actions have theirs."""

Recipe = Callable[[Rows], Value]

ROWS: dict[str, Recipe] = {
    "rows": lambda r: r,
    "some": lambda r: run("WHERE", r, "label", "is", "a"),
    "groups": lambda r: run("GROUP", r, "label"),
    "numbers": lambda r: run("FIELD", r, "n"),
}
FIELDS = ("label", "n", "count")


def recipe(parameter: Parameter, kinds: list[str], draw: st.DrawFn) -> Recipe:
    """What to give for a parameter, of any rows."""
    fixed: Value
    if parameter.choices:
        fixed = draw(st.sampled_from(parameter.choices))
    elif parameter.name == "NUMBERS":
        return ROWS["numbers"]
    elif parameter.reads == "rows" or parameter.type is ValueType.LIST:
        return ROWS[draw(st.sampled_from(kinds))]
    elif parameter.reads == "figure":
        return lambda r: run("COUNT", run("WHERE", r, "label", "is", "a"))
    elif parameter.reads == "number":
        fixed = draw(st.sampled_from([1, 2, 3, *([-1, -2] * (parameter.least is None))]))
    elif parameter.reads == "value":
        fixed = draw(st.sampled_from(["a", "b", "2"]))
    else:
        fixed = draw(st.sampled_from(FIELDS))
    return lambda _: fixed


@st.composite
def recipes(draw: st.DrawFn, action: Action) -> list[Recipe]:
    # Rows beside their own groups are no table.
    kinds = [kind for kind in ROWS if kind != "groups" or not action.is_variadic]
    return [recipe(parameter, kinds, draw) for parameter in action.parameters]


def sources(row: Row) -> Iterator[Row]:
    """The rows of the document that a row is made of."""
    parts = (*row.members, *row.possible)
    if not parts:
        yield row
    for part in parts:
        yield from sources(part)


@pytest.mark.parametrize("name", [n for n, a in ACTIONS.items() if "splits" not in a.traits])
@examples(100)
@given(data=st.data())
def test_what_is_decided_holds_however_undecided_rows_turn_out(
    name: str, data: st.DataObject
) -> None:
    base: Base = data.draw(bases)
    given_ = data.draw(recipes(ACTIONS[name]))

    def computed(rows: Rows) -> Value:
        return run(name, *(each(rows) for each in given_))

    try:
        found = computed(rows_of(base))
    except native_errors:
        return
    if isinstance(found, Rows):
        known = {row.key for row in rows_of(base).every}
        made = [source for row in found.every for source in sources(row)]
        assert all(source.key in known for source in made if source.spans), made
        assert all(source.spans or source.value is not None for source in made), made
    for world in worlds(base):
        try:
            truth = computed(rows_of(world))
        except native_errors:
            assert not isinstance(found, Scalar) or found.rows.undecided, (base, world)
            continue
        at = f"{base} as {world}: {found} against {truth}"
        if isinstance(found, Rows) and isinstance(truth, Rows):
            check_rows(found, truth, at)
        elif isinstance(found, Scalar):
            check_scalar(found, truth, at)


def written(parameter: Parameter, draw: random.Random) -> str:
    """An argument of a plan."""
    if parameter.choices:
        return f'"{draw.choice(parameter.choices)}"'
    if parameter.type is ValueType.CONTEXT:
        return "kept"
    if parameter.name == "NUMBERS":
        return "users"
    if parameter.reads == "rows" or parameter.type is ValueType.LIST:
        return draw.choice(("kept", "kind", "groups"))
    if parameter.reads == "figure":
        return "n"
    if parameter.reads == "number":
        return str(draw.choice([1, 3, *([-1] * (parameter.least is None))]))
    return draw.choice(('"User"', '"Item"', '"kind"', '"Date"', '"count"', '"fruit"', '"5"'))


@pytest.mark.parametrize("name", ACTIONS)
def test_what_reads_its_result_takes_what_the_forecast_says(name: str) -> None:
    action = ACTIONS[name]
    n_done = 0
    for seed in range(60):
        draw = random.Random(f"{name} {seed}")
        call = f"{name}({', '.join(written(each, draw) for each in action.parameters)})"
        reads = (
            'MAP(x, "its colour")' if action.returns is ValueType.LIST else 'FIND(CTX, ["it", x])'
        )
        steps = [
            'rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "it is a fruit")',
            'kind = CLASSIFY(kept, ["fruit", "root", "something else"], "its kind")',
            'groups = GROUP(kind, "kind")', 'users = FIELD(kept, "User")', "n = COUNT(kept)",
            f"x = {call}", f"said = {reads}", "ans = CONCAT(said, users, n, groups)",
        ]  # fmt: skip
        plan = "\n".join(f"{i}. {step} : Do it" for i, step in enumerate(steps, 1))
        text = entries(draw, draw.choice([5, 40]))
        model = oracle(seed, draw.choice([0.0, 0.1, 0.5]))
        this = Pearl(model, items_per_call=draw.choice([3, 32]))
        found = forecast(this, [Task("", partial(Document, text), plan=plan)])
        is_whole = True
        try:
            answer = asyncio.run(this.execute(plan, Document(text)))
        except ExecutionError:  # of a field that the rows do not have
            is_whole = False
        else:
            shown = contents(build_graph(this.compile(plan)))["x"]
            value = next(each.value for each in answer.steps if each.output == "x")
            value = value.value if isinstance(value, Scalar) else value
            # What is no label is taken out of prompts.
            known = {*shown.labels, "nothing found", "none", ""}
            assert shown.kind != "label" or {*str(value).split("; ")} <= known, "wrong traits"
        if not found.n_problems:
            within(found, model, is_whole=is_whole)
        n_done += is_whole
        if n_done == times(4):
            break
    assert n_done


@pytest.mark.parametrize("name", ACTIONS)
def test_one_value_of_rows_says_that_it_depends_on_all(name: str) -> None:
    """The checker notes where only the best passages of a search are read."""
    action = ACTIONS[name]
    if action.returns is not ValueType.LIST and any(p.reads == "rows" for p in action.parameters):
        assert action.traits & {"counts", "sums_up"}


EVERY_SECOND = """
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "EVERY_SECOND", (Parameter.named("ROWS"),), "Return every second one of ROWS",
    returns=ValueType.LIST, is_native=True, traits=frozenset({"selects"}),
)

def run(rows: Rows) -> Rows:
    return rows.where(rows.rows[::2])
"""
DROPPED = """
import asyncio, sys
import pearl.actions.native
pearl.actions.native.__path__.append(sys.argv[1])
from pearl import Document, Pearl
from pearl.dsl.graph import build_graph
from pearl.interpreter.prompt_taint import contents
from pearl.llm.backends.scripted import Scripted
from pearl.planner.prompt_selection import PlannerMaterial
from pearl.planner.prompt import plan_messages
from pearl.dsl.decoding.grammar import static_grammar

plan = '1. rows = SPLIT(CTX, "line") : Rows\\n2. some = EVERY_SECOND(rows) : Some\\n3. n = COUNT(some) : How many'
this = Pearl(Scripted(lambda request: ""))
print(asyncio.run(this.execute(plan, Document("a\\nb\\nc"))).text)
print(contents(build_graph(this.compile(plan)))["some"].is_list)
print("EVERY_SECOND" in static_grammar(this.actions))
shown = PlannerMaterial(this.library, "generic").shown("How many?")
print("- EVERY_SECOND(ROWS) : Return every second one of ROWS" in plan_messages("How many?", shown)[1].content)
"""


def test_a_native_action_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "every_second.py").write_text(EVERY_SECOND, encoding="utf-8")
    command = [sys.executable, "-c", DROPPED, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["2", "True", "True", "True"]
