"""Plans of one question: drawn each with a seed of its own, and equal ones told."""

from __future__ import annotations

import asyncio

import pytest

from pearl.dsl.checker import CheckedPlan
from pearl.errors import ModelError, PlanningError, UsageError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.pipeline import Pearl
from pearl.planner.candidates import DRAWN_AT, Draws, Plans, different_plans
from pearl.trace import PlanAttempted, PlanFailed, Trace

FIND = '1. ans = FIND(CTX, "the key") : Find it'


JOINED = '1. a = FIND(CTX, "x") : f\n2. b = FIND(CTX, "y") : f\n3. c = CONCAT(a, b) : join'
DIG = 'New actions:\n- DIG(CTX, X) : Find X {}\n\n1. ans = DIG(CTX, "the key") : Find it'


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (FIND, '1. key = FIND(CTX, "the key") : Say where it lies', True),
        (FIND, '1. ans = FIND(CTX, "The  key") : Find it', True),
        (JOINED, '1. b = FIND(CTX, "y") : f\n2. a = FIND(CTX, "x") : f\n3. c = CONCAT(a, b) : join', True),
        (JOINED, JOINED.replace("(a, b)", "(b, a)"), False),
        (FIND, '1. ans = FIND(CTX, "the lock") : Find it', False),
        (FIND, '1. ans = FIND_REASON(CTX, "the key") : Find it', False),
        (FIND, '1. a = FIND(CTX, "the key") : Find it\n2. ans = SUMMARIZE_X(CTX, a) : Sum up', False),
        (DIG.format("below"), DIG.format("above"), False),
    ],
)  # fmt: skip
def test_plans_with_the_same_calls_are_one(one: str, other: str, are_same: bool) -> None:
    pearl = Pearl()
    plans = different_plans([pearl.compile(one), pearl.compile(other)])
    assert plans.written == (((1, 2),) if are_same else ((1,), (2,)))


@pytest.mark.parametrize("n", [0, 21])
def test_a_number_of_plans_out_of_range_is_refused(n: int) -> None:
    with pytest.raises(UsageError, match="n_plans must be"):
        Pearl(n_plans=n)


def written(
    replies: dict[int, str | ModelError], *, client: Client | None = None, **settings: object
) -> tuple[Plans, list[Request], Trace]:
    """What comes of scripted replies by the number of the plan, which the seed of a request gives away."""
    seeds: dict[int | None, int] = {}

    def reply(request: Request) -> str:
        number = seeds.setdefault(request.seed, len(seeds) + 1)
        said = replies[number]
        if isinstance(said, ModelError):
            raise said
        return said

    model, trace = Scripted(reply), Trace("q")
    pearl = Pearl(client or model, n_plans=len(replies), max_repairs=0, **settings)  # type: ignore[arg-type]
    plans = asyncio.run(
        pearl.planner.write_several("Where?", lambda trace: model, pearl.draws, trace)
    )
    return plans, model.requests, trace


def test_the_first_plan_is_written_as_set_and_the_others_are_drawn() -> None:
    plans, requests, trace = written({1: FIND, 2: FIND.replace("key", "lock"), 3: FIND})
    assert plans.written == ((1, 3), (2,))
    first, *others = requests
    assert (first.seed, first.temperature) == (None, 0.0)
    assert len({request.seed for request in requests}) == 3
    assert {request.temperature for request in others} == {DRAWN_AT}
    attempts = [event for event in trace if isinstance(event, PlanAttempted)]
    assert sorted(event.plan_number or 0 for event in attempts) == [1, 2, 3]


def test_seeds_of_plans_follow_from_the_seed_of_the_run() -> None:
    def seeds(seed: int | None, temperature: float | None) -> list[tuple[int | None, float | None]]:
        model = Scripted(lambda request: FIND)
        settings = ClientSettings(model, seed=seed, temperature=temperature)

        async def main() -> None:
            async with Pearl(Client(settings), n_plans=3) as pearl:
                await pearl.planner.write_several("Where?", pearl.calls, pearl.draws, Trace())

        asyncio.run(main())
        return sorted((r.seed or 0, r.temperature) for r in model.requests)

    assert seeds(None, None) == seeds(None, None)
    assert {seed for seed, _ in seeds(1, None)} & {seed for seed, _ in seeds(2, None)} == set()
    assert (1, 0.0) in seeds(1, None)
    assert {temperature for _, temperature in seeds(1, 0.3)} == {0.3}


def test_seeds_of_an_evaluation_draw_other_plans() -> None:
    model = Scripted(lambda request: FIND)
    one, other = (Pearl(model, n_plans=2).unshared(seed, 0.5) for seed in (1, 2))
    assert (one.draws, other.draws) == (Draws(2, 1, 0.5), Draws(2, 2, 0.5))


def test_a_plan_that_cannot_be_written_fails_no_other() -> None:
    broken = ModelError("cut off", kind="refused")
    plans, _, trace = written({1: "no plan", 2: FIND, 3: broken})
    assert plans.written == ((2,),)
    assert [type(error) for error in plans.errors] == [PlanningError, ModelError]
    failed = [event for event in trace if isinstance(event, PlanFailed)]
    assert [(event.plan_number, event.n_attempts) for event in failed] == [(1, 1)]


def test_callers_of_a_question_share_one_plan_or_one_failure_that_is_not_kept() -> None:
    replies = [ModelError("gone", kind="bad_request"), FIND]

    def reply(request: Request) -> str:
        said = replies.pop(0)
        if isinstance(said, ModelError):
            raise said
        return said

    async def main() -> None:
        async with Pearl(Scripted(reply)) as pearl:

            async def plan() -> CheckedPlan:
                written = pearl.planner.write_several("Where?", pearl.calls, pearl.draws, Trace())
                return (await written).different[0]

            failed = await asyncio.gather(plan(), plan(), plan(), return_exceptions=True)
            assert [type(error) for error in failed] == [ModelError] * 3
            assert await plan() is await plan()

    asyncio.run(main())
    assert not replies


def test_without_any_plan_the_error_says_why() -> None:
    with pytest.raises(PlanningError, match="no valid plan"):
        written({1: ModelError("cut off", kind="refused"), 2: "no plan"})
    with pytest.raises(ModelError, match="cut off"):
        written({1: ModelError("cut off", kind="refused"), 2: ModelError("too", kind="refused")})


def test_only_the_first_plan_is_written_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    from pearl.planner.routing import Route

    by_rule = Pearl().compile('1. ans = FIND_REASON(CTX, "it") : By rule')

    async def route(*_: object, **__: object) -> Route:
        return Route(by_rule)

    monkeypatch.setattr("pearl.planner.routing.route", route)
    plans, requests, _ = written({1: FIND, 2: FIND}, route=True)
    assert str(plans.different[0]) == str(by_rule)
    assert plans.written == ((1,), (2,))
    assert len(requests) == 1
