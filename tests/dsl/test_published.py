"""The plans published with PEARL: all of them are read, and exactly those that mean nothing fail."""

from __future__ import annotations

import json

import pytest

from pearl.actions.library import format_library, read_library
from pearl.dsl.checker import check
from pearl.dsl.nodes import Plan, print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanCheckError
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
def plans(texts: list[str]) -> list[Plan]:
    return [parse(text) for text in texts]


@pytest.fixture(scope="module")
def library() -> ActionLibrary:
    text = shared("pearl_traces/actions_refined.txt").read_text(encoding="utf-8")
    return read_library(text, "refined")


def test_every_plan_is_read(plans: list[Plan]) -> None:
    assert len(plans) == 1_255


def test_every_plan_round_trips(plans: list[Plan]) -> None:
    for plan in plans:
        printed = print_plan(plan)
        again = parse(printed)
        assert again == plan
        assert print_plan(again) == printed


def test_the_library_is_read_and_keeps_its_meaning_when_formatted(library: ActionLibrary) -> None:
    assert len(library) == 81
    assert [action.name for action in library.values() if action.is_native] == ["CONCAT"]
    text = shared("pearl_traces/actions_refined.txt").read_text(encoding="utf-8")
    formatted = format_library(text)
    assert dict(read_library(formatted, "refined")) == dict(library)
    assert format_library(formatted) == formatted


def test_the_invalid_ones_call_actions_that_are_defined_nowhere(
    plans: list[Plan], library: ActionLibrary
) -> None:
    broken = [(plan, error) for plan in plans if (error := error_of(plan, library))]
    assert len(broken) == 29
    for plan, error in broken:
        known = {*library, *(action.name for action in plan.new_actions)}
        for found in error.diagnostics:
            if found.severity == "error":
                assert found.code == "unknown-action"
                assert error.text[found.span.start : found.span.end] not in known


def error_of(plan: Plan, library: ActionLibrary) -> PlanCheckError | None:
    try:
        check(plan, library)
    except PlanCheckError as error:
        return error
    return None
