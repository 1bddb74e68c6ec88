"""Forecasts: exact where possible, and never less than a run sends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.actions.library import read_library
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.dsl.nodes import print_plan
from pearl.dsl.signatures import NOTHING
from pearl.errors import DataError, ExecutionError, PearlError
from pearl.interpreter.answer import Answer
from pearl.interpreter.cost_ranges import Range
from pearl.llm import ActionTask, CheckTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.prices import Price
from pearl.pipeline import Pearl
from pearl.runs.executors import Task
from pearl.runs.forecast import PLANNING, Forecast, StepForecast, forecast
from tests.dsl.strategies import valid_plans
from tests.examples import examples
from tests.interpreter.test_row_estimate import sent, within
from tests.models import Reading, Small

LIBRARY = read_library(
    """\
FIND(CTX, X) : Find X in CTX
COMPARE(CTX, X, Y) : Compare X and Y
MERGE(A, B) : Merge A and B
CONCAT(S1, S2, ...) : Join
COUNT(ITEMS) : Count
UNIQUE(ITEMS) : Drop repeats
FIRST(ITEMS) : The first
FIRST_FOUND(A, B, ...) : The first that found something
""",
    "test",
)
TEXTS = read_library(
    "\n".join(
        f"{action.signature} : {action.definition}"
        for action in LIBRARY.values()
        if action.name in ("FIND", "COMPARE", "MERGE", "CONCAT", "FIRST_FOUND")
    ),
    "texts",
)
PLAN = """\
New actions:
- None

1. a = FIND(CTX, "bees") : Find the bees
2. b = FIND(CTX, "goats") : Find the goats
3. c = COMPARE(CTX, a, [b, "goats"]) : Compare them
4. d = CONCAT(a, c) : Join
5. n = COUNT(d) : Count
6. e = FIND(d, "honey") : Look there
7. f = MERGE(n, e) : Merge
"""
PARAGRAPHS = (
    "Ada keeps bees. They gave her forty jars of honey in the summer of 1912.",
    "Ben keeps goats, and he says that the milk of the goats is the best of the whole valley.",
    "Les chèvres de Ben étaient fatiguées; il n'y avait plus d'herbe nulle part.",
    "| 1912 | 40 | 3.5 |\n| 1913 | 38 | 3.25 |",
    "养蜂人把蜂蜜卖给了山羊的主人。",
)
TABLES = (
    "Honey of the valley, in jars:\n\n| year | jars of Ada | price of a jar |\n| --- | --- | --- |\n"
    + "\n".join(f"| {1900 + i} | {40 + i} | {3 + i / 4} |" for i in range(12)),
    "The goats:\n\n| goat | milk |\n|---|---|\n| Liesel | 3 |",
)
ENGLISH = "the end of the day and of the story "


def story(n: int, seed: int = 0, *, tables: bool = False) -> str:
    draw, paragraphs = random.Random(seed), (*PARAGRAPHS, *TABLES * tables)
    return "\n\n".join(draw.choice(paragraphs) for _ in range(n))


def replies(limit: int, seed: int = 0) -> Callable[[Request], str]:
    """Replies of any length up to a limit, in tokens as we count them."""
    draw, count = random.Random(seed), Counter().count

    def reply(request: Request) -> str:
        if count(NOTHING) <= limit and draw.random() < 0.3:
            return NOTHING
        unit = draw.choice([ENGLISH, "bee; ", "Ziege\n", "> 蜂 ", "x", "1\n", "word "])
        text = (unit * draw.choice([1, 2, limit, 4 * limit]))[: draw.randint(1, 5 * limit)]
        while text and count(text) > limit:
            text = text[: len(text) * 3 // 4]
        return text if text.strip() else "x"

    return reply


def pearl(model: Scripted, **settings: Any) -> Pearl:
    return Pearl(model, library=LIBRARY, **settings)


def task(plan: str, text: str, id: str = "") -> Task:
    return Task(id, partial(Document, text, "farm.txt"), plan=plan)


def run(this: Pearl, plan: str, text: str) -> Answer | None:
    try:
        return asyncio.run(this.execute(plan, Document(text, "farm.txt")))
    except ExecutionError:
        return None  # what was sent until then counts all the same


@pytest.mark.parametrize("as_of", [None, date(2024, 5, 1)])
def test_forecast_of_a_planning_prompt_is_exact(as_of: date | None) -> None:
    def text(i: int) -> str:
        return f"Date: 2023-01-02 || {'User' if i < 2 else 'Item'}: {i}\n" * 3

    model = Scripted(lambda request: PLAN if isinstance(request.task, PlanTask) else "x")
    this = pearl(model, as_of=as_of)
    tasks = [Task(str(i), partial(Document, text(i)), "How many?") for i in range(4)]
    (planning,) = [step for step in forecast(this, tasks).steps if step.name == PLANNING]

    async def ask() -> None:
        for i in range(4):
            await this.ask("How many?", Document(text(i)))

    asyncio.run(ask())
    written = [request for request in model.requests if isinstance(request.task, PlanTask)]
    assert len(written) == planning.calls.least == 1
    assert planning.input_tokens.least == sum(Counter().count(r.prompt) for r in written)


def by_name(found: Forecast) -> dict[str, StepForecast]:
    return {step.name: step for step in found.steps}


@pytest.mark.parametrize("context", ["auto", "map-reduce", "retrieve"])
@pytest.mark.parametrize("n", [0, 60, 300])
@pytest.mark.parametrize("tables", [False, True])
def test_forecast_of_first_steps_is_exact(context: str, n: int, *, tables: bool) -> None:
    text = story(n, tables=tables)
    model = Scripted(replies(80))
    this = pearl(model, context=context, window=1_200, max_output_tokens=80, looks=0)
    estimated = forecast(this, [task(PLAN, text)])
    assert run(this, PLAN, text)
    within(estimated, model)
    found = by_name(estimated)
    for name in ("a", "b"):
        requests = [
            r for r in model.requests if isinstance(r.task, ActionTask) and r.task.output == name
        ]
        # What is asked once more, and what is merged, is the most, not the least.
        parts = [r for r in requests if r.task.parts is None and len(r.messages) == 2]  # type: ignore[union-attr]
        n_tokens = sum(Counter().count(request.prompt) for request in parts)
        tokens = found[f"{name} = FIND"].input_tokens
        merging = found[f"{name} = FIND"].calls.least - len(parts)
        assert merging == (len(parts) > 1), "merging calls are a range, the others are exact"
        assert n_tokens <= tokens.least
        if len(parts) == 1:
            is_text = name == "b"
            assert (tokens.least == tokens.most) == is_text, "a is counted, so it is a list"
            assert n_tokens == tokens.least
            assert not is_text or len(requests) == 1


@examples(60)
@given(
    plan=valid_plans(TEXTS),
    n=st.sampled_from([0, 1, 5, 30, 60]),
    seed=st.integers(0, 10_000),
    context=st.sampled_from(["auto", "auto", "full", "map-reduce", "retrieve"]),
    window=st.sampled_from([None, 400, 700, 1_500, 4_000, 30_000]),
    limit=st.sampled_from([None, 10, 60, 300]),
    tables=st.booleans(),
)
def test_requests_stay_within_the_forecast(
    plan: Any,
    n: int,
    seed: int,
    context: str,
    window: int | None,
    limit: int | None,
    *,
    tables: bool,
) -> None:
    text, source = story(n, seed, tables=tables), print_plan(plan)
    settings_: dict[str, Any] = {"window": window, "max_output_tokens": limit, "context": context}
    model = Reading(lambda request: "", window=window)
    this = pearl(model, **settings_)
    model._reply = replies(this.limits.reply_tokens or 100, seed)
    found = forecast(this, [task(source, text)])
    done = run(this, source, text)
    if found.n_problems:
        # It may not be needed.
        assert done is None or "FIRST_FOUND" in source, "a step that does not fit was foreseen"
        return
    within(found, model, is_whole=done is not None)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("window", [None, 1_500, 4_000])
@pytest.mark.parametrize("limit", [10, 300])
def test_the_two_turns_of_a_small_model_stay_within_the_forecast(
    n: int, window: int | None, limit: int
) -> None:
    plan = "New actions:\n- ASK(CTX, QUESTION) : Answer QUESTION from CTX\n\n"
    plan += '1. a = ASK(CTX, "Who keeps bees?") : Answer it'
    model = Small(replies(limit), window=window)
    this = pearl(model, max_output_tokens=limit, window=window)
    found = forecast(this, [task(plan, story(n))])
    assert run(this, plan, story(n))
    within(found, model)
    if n == 3:  # read in one piece
        assert by_name(found)["a = ASK"].calls.most == sent(model)["a"][0] == 2


@pytest.mark.parametrize("limit", [200, 300])
def test_results_that_are_merged_level_by_level_stay_within_the_forecast(limit: int) -> None:
    """Every reply is as long as it may be, so merging takes as many calls as it can."""
    model = Scripted(lambda request: ENGLISH * (limit // 10))
    this = pearl(model, window=1_500, max_output_tokens=limit, looks=0)
    plan = 'New actions:\n- TELL(CTX, X) : Tell X\n\n1. a = TELL(CTX, "it all") : Tell'
    found = forecast(this, [task(plan, story(300))])
    assert run(this, plan, story(300))
    merging = [r for r in model.requests if isinstance(r.task, ActionTask) and r.task.parts]
    assert len(merging) > 2
    within(found, model)


@pytest.mark.parametrize("verdict", ['{"verdicts": [{"id": 1, "verdict": "supported"}]}', "No."])
@pytest.mark.parametrize(
    ("n", "limit", "n_sentences", "blanks", "n_checks"),
    [(2, 4, 1, 0, 1), (12, 900, 40, 10, 2), (12, 80, 41, 0, 0), (12, 4, 40, 130, 0), (13, 900, 1, 0, 0)],
)  # fmt: skip
def test_composing_and_checking_stay_within_the_forecast(
    n: int, limit: int, n_sentences: int, blanks: int, n_checks: int, verdict: str
) -> None:
    def said(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdict
        names = list(product("xyzuvwst", "abcdef"))[:n_sentences]
        return " ".join(f"It is so {'é' * blanks}{a}{b} [1]." for a, b in names)

    finding = [f'{i}. v{i} = FIND(CTX, "goat {i}") : Find goat {i}' for i in range(1, n + 1)]
    results = ", ".join(f"v{i}" for i in range(1, n + 1))
    finding.append(f'{n + 1}. a = ANSWER("Which {"goats " * 30}?", {results}) : Answer')
    plan = "New actions:\n- None\n\n" + "\n".join(finding)
    of_steps = replies(limit)
    model = Reading(
        lambda request: of_steps(request) if "<text>" in request.prompt else said(request)
    )
    this = pearl(model, window=16_000, max_output_tokens=1_000)
    found = forecast(this, [task(plan, story(3))])
    assert run(this, plan, story(3))
    within(found, model)
    assert ("a" in sent(model)) == (n <= 12)
    n_asked = sum(isinstance(each.task, CheckTask) for each in model.requests)
    assert n_asked == (2 * bool(n_checks) if verdict == "No." else n_checks)


def test_documents_and_questions_are_added_up() -> None:
    model = Scripted(replies(50))
    this = pearl(model, max_output_tokens=50)
    one = forecast(this, [task(PLAN, story(5))])
    both = forecast(this, [task(PLAN, story(5), "1"), task(PLAN, story(9), "2")])
    other = forecast(this, [task(PLAN, story(9))])
    assert both.total.input_tokens == one.total.input_tokens + other.total.input_tokens
    assert both.total.output_tokens.most == 2 * (5 + 2) * 50, "two lists may be asked for again"
    assert [step.n for step in both.steps] == [2] * 5, "computed steps take no call"


def cost_of(step: StepForecast, price: Price) -> Range:
    cost = replace(step, price=price).usd
    assert cost is not None
    return cost


def test_the_cost_is_between_all_cached_and_all_written() -> None:
    this = pearl(Scripted(replies(50)), max_output_tokens=50)
    found = by_name(forecast(this, [task(PLAN, story(60))]))
    step = found["b = FIND"]
    cost = cost_of(step, Price(input_usd=10, cached_usd=1, output_usd=100))
    n = step.input_tokens.least
    assert cost.least == pytest.approx((n + 100) / 1e6)
    assert cost.most == pytest.approx((n * 10 + 50 * 100) / 1e6)
    asked = Price.read("input=10,cached=1,write=12,write_long=20,output=0,write_on_request=true")
    for name, usd in (
        ("a = FIND", 10),
        ("b = FIND", 20),
    ):  # the last read of a document writes nothing
        cost = cost_of(found[name], asked)
        assert cost.most == pytest.approx(found[name].input_tokens.upper * usd / 1e6)


@pytest.mark.parametrize(("is_asked", "above"), [(False, 1), (False, 100_000), (True, 100_000)])
def test_the_bounds_include_what_may_be_written_or_long(is_asked: bool, above: int) -> None:
    price = Price.read(f"input=10,write=12,write_long=20,output=100,long.above={above},"
                       f"long.input=20,long.output=150,write_on_request={str(is_asked).lower()}")  # fmt: skip
    this = pearl(Scripted(replies(50)), max_output_tokens=50)
    step = by_name(forecast(this, [task(PLAN, story(60))]))["a = FIND"]
    cost, n = cost_of(step, price), step.input_tokens
    assert cost.least == pytest.approx((n.least * 10 + 100) / 1e6)
    read, said = (10 if is_asked else 12) * n.upper, 100 * step.output_tokens.upper
    most = 2 * read + 1.5 * said if above == 1 else read + said
    assert cost.most == pytest.approx(most / 1e6)


@pytest.mark.parametrize(
    ("call", "context"),
    [
        ('EXTRACT(d, "drugs: [str]")', "auto"),
        ('EXTRACT(d, "name")', "auto"),
        ('EXTRACT(d, "name")', "retrieve"),  # which reads the whole text all the same
        ('FIND(d, "a goat")', "auto"),
    ],
)
def test_what_a_step_takes_over_a_text_without_a_bound_is_unknown(call: str, context: str) -> None:
    finding = "\n".join(f'{i}. v{i} = FIND(CTX, "bee {i}") : Find' for i in range(1, 9))
    results = ", ".join(f"v{i}" for i in range(1, 9))
    plan = f"{finding}\n9. d = CONCAT({results}) : Join\n10. r = {call} : Read"
    this = pearl(
        Reading(replies(50), window=2_000), max_output_tokens=500, context=context, looks=0
    )
    found = forecast(this, [task(plan, story(3))])
    assert (found.problems, found.total.calls.most) == ([], None)
    assert found.total.calls.least == 9


def test_unknown_price() -> None:
    this = pearl(Scripted(replies(50)))
    found = forecast(this, [task(PLAN, story(3))])
    assert found.cost_usd is None
    assert found.to_dict()["total"]["cost_usd"] is None
    plan = '1. n = COUNT(["a", "b"]) : Count'
    found = forecast(this, [task(plan, "x")])  # no call costs nothing, whatever its price
    assert found.to_dict()["total"]["cost_usd"] == {"least": 0, "most": 0}


def test_forecast_of_questions() -> None:
    def ask(*questions: str) -> Forecast:
        this = pearl(Scripted(lambda request: ""), max_repairs=2)
        return forecast(
            this, [Task(str(i), lambda: Document("x"), q) for i, q in enumerate(questions)]
        )

    one = ask("Who keeps bees?")
    assert [step.name for step in one.steps] == ["(plans)"]
    assert one.steps[0].calls.to_dict() == {"least": 1, "most": 3}
    assert (one.n_unplanned, one.total.calls.most) == (1, None)
    many = ask("Who keeps bees?", "Who keeps bees?", "Who keeps goats?")
    assert many.steps[0].calls.to_dict() == {"least": 2, "most": 6}
    assert many.n_unplanned == 3


def test_problems_of_tasks_are_in_the_forecast() -> None:
    def missing() -> Document:
        raise DataError("cannot be read", path="gone.txt")

    this = pearl(Scripted(replies(50)), window=2_000, context="full")
    tasks = [
        Task("1", missing, plan=PLAN), Task("2", problem=PearlError("a bad row")),
        task("no plan", "x", "3"), task(PLAN, story(200), "4"), task(PLAN, story(1), "5"),
    ]  # fmt: skip
    found = forecast(this, tasks)
    assert (found.n_tasks, found.n_problems) == (5, 4)
    assert found.problems[0] == "1: gone.txt: cannot be read"
    assert forecast(this, tasks[:2]).cost_usd is None  # no task can run: not nothing
