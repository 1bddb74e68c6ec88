"""The plans published with PEARL: all of them are read, and exactly those that mean nothing fail."""

from __future__ import annotations

import json

import pytest

from pearl.actions.library import format_library, read_library
from pearl.dsl.checker import check
from pearl.dsl.decoding.grammar import static_grammar
from pearl.dsl.nodes import Plan, print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanCheckError
from tests.dsl.sampling import admits_each
from tests.examples import times
from tests.shared import shared


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [
        row["plan"]
        for path in sorted(shared("pearl_traces").glob("*.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if row.get("plan")
    ]


@pytest.fixture(scope="module")
def library() -> ActionLibrary:
    text = shared("pearl_traces/actions_refined.txt").read_text(encoding="utf-8")
    formatted = format_library(text)
    known = read_library(text, "refined")
    assert dict(read_library(formatted, "refined")) == dict(known)
    assert format_library(formatted) == formatted
    return known


def error_of(plan: Plan, library: ActionLibrary) -> PlanCheckError | None:
    try:
        check(plan, library)
    except PlanCheckError as error:
        return error
    return None


def test_every_plan_round_trips(texts: list[str]) -> None:
    assert len(texts) == 1_255
    for plan in map(parse, texts[: times(len(texts))]):
        printed = print_plan(plan)
        again = parse(printed)
        assert again == plan
        assert print_plan(again) == printed


@pytest.mark.slow
def test_the_invalid_ones_call_unknown_actions_and_the_grammar_admits_the_others(
    texts: list[str], library: ActionLibrary
) -> None:
    assert len(library) == 81
    valid = []
    for plan in map(parse, texts):
        if (error := error_of(plan, library)) is None:
            valid.append(print_plan(plan))
            continue
        known = {*library, *(action.name for action in plan.new_actions)}
        for found in error.diagnostics:
            if found.severity == "error":
                assert found.code == "unknown-action"
                assert error.text[found.span.start : found.span.end] not in known
    admitted = admits_each(static_grammar(library), valid)
    assert (len(texts) - len(valid), admitted.count(False)) == (29, 0)
