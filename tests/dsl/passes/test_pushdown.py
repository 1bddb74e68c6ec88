"""Selections are computed before a model reads, and the answer is the same."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.documents.rows import Rows
from pearl.documents.tokens import Counter
from pearl.dsl.graph import build_graph
from pearl.dsl.passes import pushdown, rewrite_plan
from pearl.interpreter.answer import StepResult
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.execution import run
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.trace import PlanRewritten, Trace
from tests.examples import examples
from tests.models import item_lines

MODEL_STEPS = {
    "CLASSIFY": 'CLASSIFY(rows, ["calm", "angry"], "the mood")',
    "FILTER": 'FILTER(rows, "is about the boat")',
    "MAP": 'MAP(rows, "the thing")',
    "RATE": 'RATE(rows, "how loud it is")',
    "OWN": "HARM(rows)",
}
HEADER = "New actions:\n- HARM(ROWS) : Name the harm\n\n"


def pearl(model: Scripted) -> Pearl:
    return Pearl(model, items_per_call=3)


def plan_of(model_step: str, where: str, last: str = "SHOW(found, found)") -> str:
    return (
        f'{HEADER}1. rows = SPLIT(CTX, "record") : One row a record\n'
        f"2. mood = {model_step} : Read each\n"
        f"3. found = WHERE(mood, {where}) : Select\n"
        f"4. ans = {last} : Show them"
    )


class Oracle:
    """Says of each item what its digest says; where that is not a line, of some of them nothing."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __call__(self, request: Request) -> str:
        before = request.messages[-1].content.split("<item")[0]
        pairs = {"yes": ("yes", "no"), "calm": ("calm", "angry"), "0": ("3", "9")}
        kind = next((k for k in pairs if re.search(rf"\b{k}\b", before)), "")

        def value(text: str) -> str | None:
            self.asked.add(text)
            n = sha256(text.encode()).digest()[0]
            return pairs.get(kind, ("knot", "flag"))[n % 2] if n % 5 or not kind else None

        return item_lines(request, value) or "I cannot say."


def values(
    text: str, document: Document, *, is_pushed: bool
) -> tuple[dict[str, StepResult], set[str]]:
    oracle = Oracle()
    asked = pearl(Scripted(oracle))
    graph = build_graph(asked.compile(text))
    graph = pushdown(graph).graph if is_pushed else graph
    limits = ContextLimits(Counter(), items_per_call=3)
    results = asyncio.run(run(graph, document, Scripted(oracle), limits, Trace()))
    return {result.output: result for result in results}, oracle.asked


def without_notes(value: Any) -> Any:
    """Rows without notes: rows that were left out first cannot stay undecided."""
    return replace(value, notes=()) if isinstance(value, Rows) else value


records = st.lists(
    st.tuples(
        st.sampled_from(["Ada", "ada ", "Nils", "7", "07", "2023-01-02", ""]),
        st.sampled_from(["the boat", "the rope", "tar", "salt", "the quay", "a gull"]),
    ),
    min_size=2,
    max_size=12,
).map(lambda rows: "\n".join(f"Who: {who} || Said: {said}" for who, said in rows))


@pytest.mark.parametrize("step", MODEL_STEPS.values(), ids=MODEL_STEPS)
@examples(12)
@given(
    text=records,
    where=st.sampled_from(
        ['"Who", "is", "Ada"', '"who", "is not", "Nils"', '"Whos", "in", ["Ada", "Nils"]',
         '"Who", "not in", ["ada"]', '"Said", "contains", "the"', '"Who", "contains", "7"']
    ),
)  # fmt: skip
def test_what_is_selected_first_is_the_same_in_the_end(step: str, text: str, where: str) -> None:
    document = Document(text)
    plan = plan_of(step, where)
    written, asked = values(plan, document, is_pushed=False)
    pushed, asked_less = values(plan, document, is_pushed=True)
    assert "mood_rows" in pushed
    for name in ("rows", "found", "ans"):
        one, other = written[name], pushed[name]
        values_of_step = [without_notes(result.value) for result in (one, other)]
        assert values_of_step[0] == values_of_step[1]
        assert (one.state, one.why) == (other.state, other.why)
    assert asked_less <= asked
    kept = pushed["mood_rows"].rows
    assert kept is not None
    assert not kept.doubtful
    assert asked_less == {row.text for row in kept} & asked


@pytest.mark.parametrize(
    ("model_step", "where", "last"),
    [
        ('CLASSIFY(rows, ["a", "b"], "x")', '"mood", "is", "a"', "COUNT(found)"),
        ('CLASSIFY(rows, ["a", "b"], "x")', '"Moods", "is", "a"', "COUNT(found)"),
        ('CLASSIFY(rows, ["a", "b"], "x")', '"Who", "is", "7"', "COUNT(found)"),
        ('CLASSIFY(rows, ["a", "b"], "x")', '"Who", "is", 7', "COUNT(found)"),
        ('FILTER(rows, "x")', '"Date", "before", "2023-06-01"', "COUNT(found)"),
        ('FILTER(rows, "x")', '"Date by month", "is", "May"', "COUNT(found)"),
        ('MAP(rows, "x")', '"text", "contains", "boat"', "COUNT(found)"),
        ('MAP(rows, "x")', '"Who", "is", "Ada"', "SHOW(mood, found)"),
        ('TOP(rows, "x", 2)', '"Who", "is", "Ada"', "COUNT(found)"),
        ('FIELD(rows, "Said")', '"Who", "is", "Ada"', "COUNT(found)"),
    ],
)
def test_what_might_change_the_answer_stays(model_step: str, where: str, last: str) -> None:
    graph = build_graph(pearl(Scripted(Oracle())).compile(plan_of(model_step, where, last)))
    assert pushdown(graph).graph is graph


def test_it_goes_before_all_model_steps_it_follows() -> None:
    text = """\
1. rows = SPLIT(CTX, "record") : Rows
2. boat = FILTER(rows, "is about the boat") : Which
3. mood = CLASSIFY(boat, ["calm", "angry"], "the mood") : Mood
4. hers = WHERE(mood, "Who", "is", "Ada") : Hers
5. ans = COUNT_BY(hers, "mood") : Count"""
    graph = build_graph(pearl(Scripted(Oracle())).compile(text))
    after = rewrite_plan(graph)
    of = {step.output: step for step in after.graph.steps}
    assert str(of["boat_rows"].arguments[0]) == str(of["boat"].arguments[0]).replace(
        "boat_rows", "rows"
    )
    assert [rewrite.by for rewrite in after.rewrites] == ["pushdown", "pushdown"]
    assert rewrite_plan(after.graph).graph is after.graph


def test_a_run_asks_less_and_its_answer_follows_the_plan_as_written() -> None:
    text = "\n".join(f"Who: {'Ada' if i < 4 else 'Nils'} || Said: thing {i}" for i in range(40))
    plan = plan_of(MODEL_STEPS["CLASSIFY"], '"Who", "is", "Ada"', 'COUNT_BY(found, "mood")')
    oracle, trace = Oracle(), Trace()
    answer = asyncio.run(pearl(Scripted(oracle)).execute(plan, Document(text), trace=trace))
    assert len(oracle.asked) == 4
    assert [step.output for step in answer.steps] == ["rows", "mood", "found", "ans"]
    said = [event.what for event in trace if isinstance(event, PlanRewritten)]
    assert said == ["mood reads those rows only that found keeps"]
