"""Whatever a weak planner writes: the rules leave it alone, or make a valid plan of it without repeats."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library
from pearl.dsl.checker import compile_plan
from pearl.dsl.nodes import CTX
from pearl.planner.writer import finish_plan, n_reading_steps
from tests.examples import examples

LIBRARY = load_library("seed")

ARGUMENTS = st.sampled_from(
    ["CTX", '"Nils"', '"the boat"', '"a dragon"', "a", "b", "zzz", "7", '["Nils", a]', '[zzz]', '""', "[]"]
)  # fmt: skip
STEPS = st.builds(
    "{}. {} = {}({}){}".format,
    st.integers(1, 5),
    st.sampled_from(["a", "b", "CTX", "v1", "1"]),
    st.sampled_from(
        ["FIND", "find", "FIND_EMOTION", "SUMMARIZE", "CONCAT", "COUNT", "LIST_ALL", "FLY"]
    ),
    st.lists(ARGUMENTS, max_size=3).map(", ".join),
    st.sampled_from(["", " : why", " : "]),
)
REPLIES = st.one_of(
    st.lists(st.one_of(STEPS, st.sampled_from(["Sure!", "", "New actions:", "- None"])), max_size=8).map("\n".join),
    st.text(max_size=40),
)  # fmt: skip


@given(
    REPLIES,
    st.sampled_from(["Why did Nils sell the boat?", "How many boats?", "?"]),
    st.integers(1, 4),
)
@examples(200)
def test_a_reply_becomes_a_valid_plan_or_stays_as_it_is(
    reply: str, question: str, max_steps: int
) -> None:
    text, notes = finish_plan(reply, question, LIBRARY, max_written=2, max_steps=max_steps)
    if text == reply and not notes:
        return
    plan = compile_plan(text, LIBRARY, max_steps=max_steps).plan
    calls = [(step.action, step.arguments) for step in plan.steps]
    assert len(set(calls)) == len(calls)
    assert len([step for step in plan.steps if any(r.name == CTX for r in step.references())]) <= 3
    used = {each.name for step in plan.steps for each in step.references()}
    unused = [step.output for step in plan.steps if step.output not in used]
    assert len(unused) == 1 or len(plan.steps) == max_steps


def test_steps_by_the_parts_of_a_question() -> None:
    asked = ("Who?", "Who came, and why did they leave?", "How does A's view differ from B's?")
    assert [n_reading_steps(question, 3) for question in asked] == [1, 2, 2]
    assert n_reading_steps("Who came, and why did they leave?", 1) == 1
