"""Schemas of any size, from the plan to typed data: many fields in groups, long lists in one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import pearl
from pearl import Document, Pearl
from pearl.dsl.fields import Field, parse_fields, print_fields
from pearl.dsl.graph import build_graph
from pearl.interpreter.cost_ranges import StepCosts
from pearl.interpreter.estimate import CostEstimator
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.reply_limits import READING_TOKENS
from pearl.planner.prompt_selection import extraction_plan
from pearl.replies.extracted import wanted_fields


def value_of(field: Field) -> dict[str, Any] | None:
    """What a reply says of a field whose name ends in its number; a third is not stated."""
    i = int(field.name[-4:])
    return {"value": i + 1000, "quote": f"{field.name[-10:]} is {i + 1000}"} if i % 3 else None


def replying(of: Callable[[Field], Any]) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        fields = dict(request.task.arguments)["FIELDS"]  # type: ignore[union-attr]
        return json.dumps({f.name: of(f) for f in wanted_fields(fields, is_all=False)})

    return reply


FLAT = [Field(f"field_{i:04}", "int", True) for i in range(369)]
DEEP = [Field(f"part_{i // 200}.group_{i // 8}.field_{i:04}", "int", True) for i in range(2000)]


@pytest.mark.parametrize(
    ("fields", "n_most"),
    [pytest.param(FLAT, 7, id="flat"), pytest.param(DEEP, 32, id="deep", marks=pytest.mark.slow)],
)
def test_many_fields_are_asked_for_in_groups(fields: Sequence[Field], n_most: int) -> None:
    text = "".join(f"The {f.name[-10:]} is {int(f.name[-4:]) + 1000}.\n" for f in fields)
    model = Scripted(replying(value_of))
    (result,) = asyncio.run(
        pearl.extract(print_fields(fields), [Document(text, "a.txt")], model=model, check="off")
    )
    assert result.status == "answered"
    flat = {name: f.value for name, f in result.fields.items()}
    assert flat == {
        f.name: (int(f.name[-4:]) + 1000 if int(f.name[-4:]) % 3 else None) for f in fields
    }
    for i, field in enumerate(fields):
        assert i % 3 == 0 or text[result.fields[field.name].evidence[0].span.start :].startswith(
            field.name[-10:]
        )
    assert len(model.requests) <= n_most
    assert json.loads(json.dumps(result.value)) == result.value
    # the forecast has the number of requests
    runner = Pearl(model, check="off")
    plan = runner.plan_extraction(parse_fields(print_fields(fields)))
    costs = CostEstimator(RequestBuilder(build_graph(plan), Document(text, "a.txt"), runner.limits))
    calls = sum(map(costs.step, plan.plan.steps), StepCosts()).calls
    assert (calls.least, calls.upper) == (len(model.requests), 3 * len(model.requests))


def test_groups_are_cut_at_objects() -> None:
    fields = [Field(f"part_{i // 30}.group_{i // 6}.field_{i:04}", "int") for i in range(120)]
    plan = extraction_plan(fields, reply_tokens=READING_TOKENS)
    groups = [parse_fields(step.arguments[1].value) for step in plan.plan.steps]  # type: ignore[union-attr]
    assert [f.name for group in groups for f in group] == [f.name for f in fields]
    ends = {group[-1].name.split(".")[1] for group in groups}
    starts = {group[0].name.split(".")[1] for group in groups}
    assert not ends & starts
    (one,) = extraction_plan(
        parse_fields("a: [[[{b: [str], c: [{d: int}]}]]]"), reply_tokens=50
    ).plan.steps
    assert one.output == "record"


@pytest.mark.parametrize("n", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_a_list_of_many_objects_is_read_whole(n: int) -> None:
    text = "".join(
        f"Drug D{i:04} has {i + 1000} mg at {i % 24} h with A{i:04}.\n" for i in range(n)
    )
    fields = "drugs: [{name: str, mg: int, at: [int], more: [{a: str}]}]"

    def of(field: Field) -> Any:
        return [
            {
                "name": {"value": f"D{i:04}", "quote": f"Drug D{i:04}"},
                "mg": {"value": i + 1000, "quote": f"has {i + 1000} mg"},
                "at": [{"value": i % 24, "quote": f"at {i % 24} h"}],
                "more": [{"a": {"value": f"A{i:04}", "quote": f"with A{i:04}"}}],
            }
            for i in range(n)
        ]

    (result,) = asyncio.run(
        pearl.extract(fields, [Document(text, "a.txt")], model=Scripted(replying(of)), check="off")
    )
    assert result.fields["drugs"].plain == [
        {"name": f"D{i:04}", "mg": i + 1000, "at": [i % 24], "more": [{"a": f"A{i:04}"}]}
        for i in range(n)
    ]
    for i, entry in enumerate(result.fields["drugs"].entries):
        (hour,) = entry["at"].entries
        assert [text.count("\n", 0, e.span.start) for e in hour["value"].evidence] == [i]
