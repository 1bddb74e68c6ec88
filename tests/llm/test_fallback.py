"""What a model is held to while it writes, and how far down that goes."""

from __future__ import annotations

import asyncio

import pytest

from pearl.actions.library import load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import ModelError, PlanningError, UsageError
from pearl.llm import Constrains, Model
from pearl.llm.backends.scripted import Scripted
from pearl.llm.fallback import ConstraintFallback, Mode
from pearl.mining.miner import Miner, Question
from pearl.pipeline import Pearl
from pearl.planner.prompt_selection import Shown
from pearl.planner.writer import RepairLoop
from pearl.trace import ConstraintRefused, PlanAttempted, Trace
from tests.examples import times
from tests.models import RandomWriter

LIBRARY = load_library("quality")


def attempt(
    model: Model,
    fallback: ConstraintFallback | None = None,
    library: ActionLibrary = LIBRARY,
    max_repairs: int = 0,
) -> tuple[CheckedPlan | PlanningError, Trace]:
    """The plan that a model writes, or the error, with its trace."""
    trace, question = Trace(), "Why did Ada sell the boat?"
    loop = RepairLoop(question, Shown(library), model, fallback=fallback, trace=trace, max_repairs=max_repairs)  # fmt: skip
    try:
        return asyncio.run(loop.write()), trace
    except PlanningError as error:
        return error, trace


def plan(
    model: Model, fallback: ConstraintFallback | None = None, library: ActionLibrary = LIBRARY
) -> tuple[CheckedPlan, Trace]:
    checked, trace = attempt(model, fallback, library, max_repairs=20)
    assert isinstance(checked, CheckedPlan)
    return checked, trace


def rungs(trace: Trace) -> list[str]:
    return [event.constraint for event in trace if isinstance(event, PlanAttempted)]


def refused(trace: Trace) -> list[str]:
    return [event.constraint for event in trace if isinstance(event, ConstraintRefused)]


def test_what_random_weights_write_under_a_grammar_is_a_valid_plan_at_once() -> None:
    """But for what no grammar says: that some step has to read the document."""
    model, fallback, n, n_calls = RandomWriter(), None, 0, 2
    for _ in range(times(30)):
        fallback = fallback or ConstraintFallback(model.constrains)
        checked, trace = plan(model, fallback)
        assert set(rungs(trace)) == {"grammar"}
        *blind, attempt = [event for event in trace if isinstance(event, PlanAttempted)]
        n += len(blind) + 1
        assert len(model.requests) == n * n_calls
        assert attempt.diagnostics == ()
        assert all("[unread-document]" in only for one in blind for only in one.diagnostics)
        assert attempt.usage.n_input_tokens == 10 * n_calls
        assert compile_plan(str(checked), LIBRARY).plan == checked.plan


def test_steps_down_where_it_is_refused_and_does_not_ask_again() -> None:
    model = RandomWriter(["grammar", "json"], refuses=["new-actions", "steps"])
    fallback = ConstraintFallback(model.constrains)
    for n in range(2):
        _, trace = attempt(model, fallback)  # it can be read, and need not mean anything
        assert rungs(trace) == ["json"]
        assert refused(trace) == (["grammar"] if n == 0 else [])


def test_the_end_of_the_ladder_is_the_repair_loop() -> None:
    good = "1. ans = FIND(CTX, 'the key') : Find it"

    class Refusing(Scripted):
        constrains = Constrains(frozenset({"grammar", "json"}))

    def reply(request: object) -> str:
        if model.requests[-1].constraint is not None:
            raise ModelError("no grammars here", kind="unconstrained")
        return good

    model = Refusing(reply)
    _, trace = plan(model)
    assert refused(trace) == ["grammar", "json"]
    assert rungs(trace) == ["none"]
    reasons = [event.reason for event in trace if isinstance(event, ConstraintRefused)]
    assert set(reasons) == {"no grammars here"}


def test_a_model_that_ignores_its_grammar_is_detected() -> None:
    error, trace = attempt(RandomWriter(ignores=True), max_repairs=3)
    assert isinstance(error, PlanningError)
    assert refused(trace) == ["grammar"]
    assert rungs(trace) == ["grammar", "none", "none"]  # once more would repeat the request
    reason = next(event.reason for event in trace if isinstance(event, ConstraintRefused))
    assert "violates the grammar" in reason


@pytest.mark.parametrize("mode", ["grammar", "json"])
def test_mandatory_constraints_have_no_fallback(mode: Mode) -> None:
    model = RandomWriter(["grammar", "json"], refuses=["new-actions", "steps", "plan"])
    fallback = ConstraintFallback(model.constrains, mode)
    with pytest.raises(ModelError) as caught:
        plan(model, fallback)
    assert caught.value.kind == "unconstrained"


def test_impossible_constraints_are_refused_before_a_call() -> None:
    with pytest.raises(UsageError, match="does not support constraints"):
        Pearl("extractive", constrain="grammar")
    with pytest.raises(UsageError, match="'grammar'"):
        Pearl("extractive", constrain="gramar")  # type: ignore[arg-type]


def test_concurrent_tasks_step_down_once() -> None:
    model = RandomWriter(["grammar", "json"], refuses=["new-actions"])
    fallback = ConstraintFallback(model.constrains)

    async def several() -> None:
        writes = (
            RepairLoop(f"Why {i}?", Shown(LIBRARY), model, fallback=fallback, max_repairs=0).write()
            for i in range(5)
        )
        for result in await asyncio.gather(*writes, return_exceptions=True):
            assert not isinstance(result, ModelError)

    asyncio.run(several())
    assert fallback.level == "json"


def test_an_empty_library_has_plans_of_new_actions_only() -> None:
    empty = ActionLibrary("empty", [])
    checked, _ = plan(RandomWriter(), library=empty)
    assert checked.plan.new_actions


def test_mining_is_held_to_a_grammar_of_its_own() -> None:
    model = RandomWriter()
    miner = Miner(model, LIBRARY)
    for i in range(times(20)):
        row = asyncio.run(miner.ask(Question(str(i), i, "Why did Ada sell the boat?")))
        assert row.constraint == "grammar"
        assert row.status == "mined"
        assert row.reply.startswith("New actions:\n- ")
