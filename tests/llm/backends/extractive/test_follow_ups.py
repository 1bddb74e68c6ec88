"""Questions about figures that were asked for before, by rule."""

from __future__ import annotations

import json

import pytest

from pearl.dsl.signatures import ActionLibrary
from pearl.llm import DecomposeTask
from pearl.llm.backends.extractive.decomposition import decompose
from pearl.llm.backends.extractive.follow_ups import follow_up
from pearl.llm.backends.extractive.standalone import asked_with

SALES = "what were net sales in {}"


def parts(question: str, *earlier: str) -> list[dict[str, object]]:
    task = DecomposeTask(asked_with(question, "; ".join(earlier)), ActionLibrary("none", []))
    found: list[dict[str, object]] = json.loads(decompose(task))["parts"]
    return found


@pytest.mark.parametrize("years", [("2015", "2016"), ("2016", "2015")])
@pytest.mark.parametrize(
    ("question", "operation"),
    [
        ("What is the net change?", "difference"),
        ("how much did it change in that time?", "difference"),
        ("what was the difference between these values?", "difference"),
        ("and as a percentage?", "percentage change"),
        ("what percentage change does this represent?", None),
        ("what was the percent change?", "percentage change"),
        ("what is the growth rate over these years?", "percentage change"),
    ],
)
def test_a_change_is_the_later_figure_less_the_earlier(
    question: str, operation: str | None, years: tuple[str, str]
) -> None:
    *figures, last = parts(question, *(SALES.format(year) for year in years))
    if operation is None:
        assert last["kind"] == "other"
        return
    assert (last["kind"], last["operation"]) == ("calculation", operation)
    period = {part["id"]: part["period"] for part in figures}
    assert [period[id] for id in last["operands"]] == ["2016", "2015"]  # type: ignore[attr-defined]


def test_what_was_computed_in_between_is_no_operand() -> None:
    *_, last = parts(
        "and as a percentage?", SALES.format(2015), SALES.format(2016), "what is the net change"
    )
    assert last["operation"] == "percentage change"


def test_the_last_two_figures_are_meant() -> None:
    first, second, _ = parts("what is the change?", *(SALES.format(y) for y in (2013, 2015, 2016)))
    assert (first["period"], second["period"]) == ("2015", "2016")


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("what is the change?", [SALES.format(2015)]),
        ("what is the change?", [SALES.format(2015), "what was the operating income in 2016"]),
        ("what is the change?", [SALES.format(2015), SALES.format(2015)]),
        ("what is the change?", [SALES.format(2015), "why did they rise", SALES.format(2016), "who sold"]),
        ("what is the change in tax?", [SALES.format(2015), SALES.format(2016)]),
        ("why did it change?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the sum?", [SALES.format(year) for year in (2014, 2015, 2016)]),
        ("what is the ratio?", [SALES.format(2015), SALES.format(2016)]),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_left_to_the_planner(question: str, earlier: list[str]) -> None:
    (part,) = parts(question, *earlier)
    assert part["kind"] == "other"


def test_both_figures_are_added() -> None:
    *_, last = parts("what is the total of these?", SALES.format(2015), SALES.format(2016))
    assert last["operation"] == "sum"


def test_a_question_without_those_before_it_has_no_operands() -> None:
    assert follow_up("What is the change?", "") == ("difference", ())
