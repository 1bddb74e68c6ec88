"""Limits of money, tokens, calls and time: kept to under concurrency, failures and cancellation."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest
from msgspec.structs import replace

from pearl.documents.tokens import Counter
from pearl.errors import BudgetError, ModelError, PearlError, UsageError
from pearl.llm import ChooseTask, Completion, Constrains, Message, Model, Request, Usage
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.scripted import Scripted
from pearl.llm.middleware.budget import FRAME_TOKENS, Budget, Budgeted, Call, Spent
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from pearl.llm.prices import Price
from tests.clock import computed
from tests.models import Acting
from tests.server import Canned, Server, completion

COUNTER = Counter()
PRICE = Price(input_usd=2.0, output_usd=8.0)


def request(text: str, limit: int | None = None) -> Request:
    return Request((Message("user", text),), ChooseTask(text, ("yes", "no")), limit)


class Seams:
    """A vocabulary of words, by which no text is known to the token before it is encoded."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode_ordinary(self, text: str) -> list[int]:
        self.encoded.append(text)
        return [0] * len(text.split())


def over(document: str, question: str, limit: int | None = None) -> Request:
    task = ChooseTask(question, ("yes", "no"), document)
    return Request((Message("user", f"{document}\n\n{question}"),), task, limit)


def settle(
    budget: Budget, call: Call, usage: Usage | None, reply: str = "", *, is_sure: bool = True
) -> None:
    asyncio.run(budget.reserve(call))
    call.usage, call.reply = usage, reply
    budget.settle(call, is_sure=is_sure)


@pytest.mark.parametrize(("reported", "counted"), [(303, 304), (304, 304), (310, 310), (0, 304)])
def test_tokens_that_a_server_does_not_report_count(reported: int, counted: int) -> None:
    budget = Budget(Counter("seams", Seams()), max_tokens=100_000)  # type: ignore[arg-type]
    call = budget.worst(over("word " * 300, "is it so 1", 10), is_exact=True)
    settle(budget, call, Usage(reported, 5), reply="y")
    assert budget._counted.n_input_tokens == counted


class Billing:
    """A model that keeps its own account, as a server does: what is sent is billed, come what may."""

    name = identity = "billing"
    reply = "y"
    notice = ""
    reads_prompts = True
    window: int | None = None
    constrains = Constrains()

    def __init__(
        self, seed: int, *, fails: float = 0.0, extra: int = FRAME_TOKENS, price: Price = PRICE
    ) -> None:
        self.random = random.Random(seed)
        self.price = price
        self.billed_usd = 0.0
        self.fails = fails
        self.extra = extra
        self.billed = Usage()
        self.n_calls = 0
        self.limits: list[int | None] = []

    async def complete(self, request: Request) -> Completion:
        self.n_calls += 1
        self.limits.append(request.max_output_tokens)
        if self.random.random() < self.fails / 2:
            raise ModelError("slow down", kind="rate_limited")
        n_output = self.random.randint(1, request.max_output_tokens or 50)
        n_input = COUNTER.count(request.prompt) + self.random.randint(0, self.extra)
        usage, told = self.usage(n_input, n_output)
        self.billed += usage
        self.billed_usd += self.price.cost_usd(usage, is_long=self.price.is_long(n_input))
        await asyncio.sleep(self.random.random() / 500)
        if self.random.random() < self.fails:
            raise ModelError("cut off", kind="transport")
        return Completion(self.reply, self.name, told)

    def usage(self, n_input: int, n_output: int) -> tuple[Usage, Usage]:
        """What a call takes, and what the server tells of it: all, or all but its own writes."""
        n_cached = self.random.randint(0, n_input)
        n_written = self.random.randint(0, n_input - n_cached)
        n_long = self.random.randint(0, n_written)
        usage = Usage(n_input, n_output, n_cached, 0, n_written, n_long)
        is_unasked = not self.price.write_on_request and n_input - n_cached >= 1_024
        if is_unasked and self.random.random() < 0.5:
            usage = msgspec.structs.replace(usage, n_written_long_tokens=0)
            return usage, msgspec.structs.replace(usage, n_written_tokens=0)
        return usage, usage

    async def aclose(self) -> None:
        """Nothing to let go of."""


def any_price(draw: random.Random) -> Price:
    """A price whose rates have any order."""
    usd = [round(draw.choice([1, 10]) * draw.random(), 3) for _ in range(7)]
    names = ("input", "cached", "write", "write_long", "output", "long.input", "long.output")
    rates = ",".join(f"{name}={n}" for name, n in zip(names, usd, strict=True))
    way = draw.choice(["true", "false"])
    return Price.read(f"{rates},long.above={draw.choice([50, 1_200])},write_on_request={way}")


class Reporting(Billing):
    """Reports this usage, whatever it took."""

    def __init__(self, usage: Usage | Callable[[Request], Usage]) -> None:
        super().__init__(0)
        self.usage = usage

    async def complete(self, request: Request) -> Completion:
        self.n_calls += 1
        await asyncio.sleep(0.001)
        usage = self.usage(request) if callable(self.usage) else self.usage
        return Completion("yes", self.name, usage)


async def hang(request: Request) -> str:
    await asyncio.sleep(60)
    raise AssertionError


def test_a_document_is_counted_once_for_all_its_calls_and_to_the_token_near_a_limit() -> None:
    document = "word " * 300
    vocabulary = Seams()
    counter = Counter("seams", vocabulary)  # type: ignore[arg-type]
    exact = 300 + 4 + 1 + FRAME_TOKENS + 10  # its worst case to the token

    async def spend(max_tokens: int, n: int) -> Budget:
        budget = Budget(counter, max_tokens=max_tokens)
        model = Reporting(Usage(304, 1))
        for i in range(n):
            await Budgeted(model, budget).complete(over(document, f"is it so {i}", 10))
        return budget

    asyncio.run(spend(100_000, 5))
    assert sum("word" in text for text in vocabulary.encoded) == 1
    asyncio.run(spend(exact, 1))
    with pytest.raises(BudgetError):
        asyncio.run(spend(exact - 1, 1))


async def ask(model: Model, texts: list[str], cancelled: set[int] | None = None) -> list[object]:
    """Ask all at once; some are cancelled while they are under way."""
    tasks = [asyncio.create_task(model.complete(request(text))) for text in texts]
    await asyncio.sleep(0.001)
    for i in cancelled or ():
        tasks[i].cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("block", range(4))
def test_nothing_is_spent_beyond_the_limits(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(block * 50, block * 50 + 50):
        draw = random.Random(seed)
        price = any_price(draw)
        model = Billing(seed, fails=draw.choice([0.0, 0.3]), price=price)
        limits = {
            "max_tokens": draw.choice([None, draw.randint(0, 3_000)]),
            "max_cost_usd": draw.choice([None, draw.random() / draw.choice([10, 100])]),
            "max_calls": draw.choice([None, draw.randint(0, 20)]),
        }
        budget = Budget(COUNTER, price=price, reply_tokens=draw.randint(1, 200), **limits)  # type: ignore[arg-type]
        n = draw.randint(1, 12)
        texts = ["word " * draw.choice([draw.randint(1, 60), 1_500]) for _ in range(24)]
        cancelled = set(draw.sample(range(24), draw.choice([0, 6])))
        with computed(monkeypatch) as runner:
            runner.run(ask(Limited(Budgeted(model, budget), n), texts, cancelled))
        n_billed = model.billed.n_input_tokens + model.billed.n_output_tokens
        if limits["max_tokens"] is not None:
            assert n_billed <= limits["max_tokens"]
        if limits["max_cost_usd"] is not None:
            assert model.billed_usd <= limits["max_cost_usd"]
        if limits["max_calls"] is not None:
            assert model.n_calls <= limits["max_calls"]
        assert not budget._held, "every reservation is released"
        assert model.n_calls == budget.spent.n_calls


@pytest.mark.parametrize("seed", range(5))
def test_the_budget_is_used_up(seed: int) -> None:
    model = Billing(seed)
    budget = Budget(COUNTER, max_tokens=2_000, reply_tokens=50)
    done = asyncio.run(ask(Limited(Budgeted(model, budget), 8), ["word " * 20] * 100))
    assert any(isinstance(one, BudgetError) for one in done)
    left = 2_000 - model.billed.n_input_tokens - model.billed.n_output_tokens
    assert 0 <= left < COUNTER.count("word " * 20) + FRAME_TOKENS + 1 + 50, "less than one call"


def test_a_call_waits_for_unused_reservations() -> None:
    model = Billing(1, extra=0)
    model.random.randint = lambda low, high: low  # type: ignore[method-assign]
    worst = COUNTER.count("word") + FRAME_TOKENS + 1 + 100
    budget = Budget(COUNTER, max_tokens=2 * worst, reply_tokens=100)
    done = asyncio.run(ask(Budgeted(model, budget), ["word"] * 20))
    assert all(isinstance(one, Completion) for one in done), "each takes far less than its worst"


def test_calls_refused_before_sending_are_not_counted() -> None:
    def refuse(request: Request) -> str:
        raise ModelError("no grammar", kind="unconstrained", is_sent=request.prompt != "unsent")

    budget = Budget(COUNTER, max_calls=1)
    model = Budgeted(Scripted(refuse), budget)
    for text in ("unsent", "unsent", "sent"):
        with pytest.raises(ModelError):
            asyncio.run(model.complete(request(text)))
    assert budget.spent.n_calls == 1
    with pytest.raises(BudgetError):
        asyncio.run(model.complete(request("unsent")))


def test_money_needs_a_price() -> None:
    with pytest.raises(UsageError, match="max_cost_usd` needs the price"):
        Budget(COUNTER, max_cost_usd=1.0)


def test_reserved_replies_have_a_limit() -> None:
    for limits, sent in (({"max_tokens": 10_000}, 70), ({"max_calls": 3}, None)):
        model = Billing(1)
        budget = Budget(COUNTER, reply_tokens=70, **limits)  # type: ignore[arg-type]
        asyncio.run(ask(Budgeted(model, budget), ["word"]))
        assert model.limits == [sent]
    model = Billing(1)
    asked = Budgeted(model, Budget(COUNTER, max_tokens=10_000, reply_tokens=70))
    asyncio.run(asked.complete(request("word", 30)))
    assert model.limits == [30], "a request's own limit stays"


def test_time_is_up_before_and_during_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Acting(hang)

    async def main() -> None:
        budget = Budget(COUNTER, max_time_s=0.1)
        model = Retrying(Limited(Budgeted(slow, budget), 2), budget=budget)
        done = await ask(model, ["a", "b", "c"])
        assert [type(one) for one in done] == [BudgetError] * 3
        assert [asked.prompt for asked in slow.requests] == ["a", "b"], "none after the end"
        assert budget.spent.n_calls == 2

    with computed(monkeypatch) as runner:
        runner.run(main())


@pytest.mark.parametrize("wait_s", [None, 500.0])
def test_no_requested_wait_exceeds_the_deadline(
    wait_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: Request) -> str:
        raise ModelError("slow down", kind="rate_limited", retry_after_s=wait_s)

    async def run() -> float:
        budget = Budget(COUNTER, max_time_s=20.0)
        model = Retrying(Limited(Budgeted(Scripted(refuse), budget), 8), budget=budget)
        began = asyncio.get_running_loop().time()
        with pytest.raises(BudgetError, match="max_minutes"):
            await model.complete(request("q"))
        return asyncio.get_running_loop().time() - began

    with computed(monkeypatch) as runner:
        assert runner.run(run()) <= 20.1


def test_the_deadline_wakes_waiting_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with computed(monkeypatch) as runner:
        budget = Budget(COUNTER, max_time_s=0.1, max_calls=1)
        done = runner.run(ask(Budgeted(Acting(hang), budget), ["a", "b"]))
    assert [type(one) for one in done] == [BudgetError] * 2
    assert "the limit of 0.1 s is over" in str(done[1])


@pytest.mark.parametrize(("kind", "is_billed"), [("rate_limited", False), ("transport", True)])
def test_failures_that_may_be_billed_count(kind: str, is_billed: bool) -> None:
    def fail(request: Request) -> str:
        raise ModelError("no", kind=kind)  # type: ignore[arg-type]

    budget = Budget(COUNTER, max_tokens=10_000, reply_tokens=100)
    with suppress(PearlError):
        asyncio.run(Budgeted(Scripted(fail), budget).complete(request("word")))
    assert bool(budget.spent.n_unsure_tokens) is is_billed
    assert budget.spent.n_calls == 1


@pytest.mark.parametrize("ends", ["length", "content_filter"])
def test_an_unusable_reply_counts_with_its_reported_usage(openai_server: Server, ends: str) -> None:
    """With no limit of tokens, too: what is told at the end is the bill."""
    openai_server.next(Canned(completion("half a sen", finish_reason=ends)))
    budget = Budget(COUNTER)

    async def main() -> None:
        model = Budgeted(create_model("openai:m", ModelSettings(openai_server.url)), budget)
        with pytest.raises(ModelError):
            await model.complete(request("why?"))
        await model.aclose()

    asyncio.run(main())
    assert budget.spent == Spent(Usage(100, 3, 64), n_calls=1, n_failed_calls=1)


def test_calls_under_way_together_stretch_later_prompts_once() -> None:
    def doubled(asked: Request) -> Usage:
        return Usage(2 * COUNTER.count(asked.prompt) + 2 * (1 + FRAME_TOKENS), 1)

    budget = Budget(COUNTER, max_tokens=100_000)
    single = budget.worst(request("word " * 100, 1)).n_input
    asyncio.run(ask(Budgeted(Reporting(doubled), budget), ["word " * 100] * 8))
    assert budget.worst(request("word " * 100, 1)).n_input <= 2.1 * single


@pytest.mark.parametrize(
    "usage", [Usage(), Usage(1, 0), Usage(0, 1), Usage(0, 0, 0, 1), Usage(5, 1, 5, 1)]
)
def test_no_reported_usage_breaks_a_limit(usage: Usage) -> None:
    model = Reporting(usage)
    budget = Budget(COUNTER, max_tokens=2_000, reply_tokens=20)
    done = asyncio.run(ask(Limited(Budgeted(model, budget), 1), ["word " * 100] * 60))
    assert any(isinstance(one, BudgetError) for one in done)
    n_real = COUNTER.count("word " * 100) + COUNTER.count("yes")
    assert model.n_calls * n_real <= 2_000 < (model.n_calls + 1) * (n_real + 40)


def test_limits_count_the_larger_of_reported_and_own_usage() -> None:
    budget = Budget(COUNTER, max_tokens=2_000, max_cost_usd=1.0, price=PRICE, reply_tokens=20)
    asyncio.run(Budgeted(Reporting(Usage(10, 1)), budget).complete(request("word " * 100)))
    assert budget.spent.usage == Usage(10, 1)
    assert budget.cost_usd == PRICE.cost_usd(Usage(10, 1))
    with pytest.raises(BudgetError) as caught:
        asyncio.run(Budgeted(Reporting(Usage(10, 1)), budget).complete(request("word " * 2_000)))
    assert caught.value.spent >= COUNTER.count("word " * 100)


def test_implausible_usage_is_replaced_and_flagged() -> None:
    budget = Budget(COUNTER)
    asyncio.run(Budgeted(Reporting(Usage(0, 3, 0, 1)), budget).complete(request("word " * 100)))
    own = COUNTER.count("word " * 100)
    assert budget.spent.usage == Usage(own, 3, 0, 1)


def test_implausible_usage_gives_no_discount() -> None:
    price = Price(input_usd=10.0, output_usd=0.0, cached_usd=0.0)
    n = COUNTER.count("word " * 100)
    limit = price.cost_usd(Usage(2 * n + 40))
    budget = Budget(COUNTER, max_cost_usd=limit, price=price, reply_tokens=20)
    model = Reporting(Usage(n, 1, n, 1))
    asyncio.run(ask(Limited(Budgeted(model, budget), 1), ["word " * 100] * 10))
    assert model.n_calls == 2


def test_a_call_without_usage_costs_what_its_prompt_may_cost() -> None:
    price = Price.read("input=10,cached=1,write=12.5,write_long=20,output=0,write_on_request=true")
    n = COUNTER.count("word " * 100)
    limit = price.worst_usd(2 * n + 40, 20)
    budget = Budget(COUNTER, max_cost_usd=limit, price=price, reply_tokens=20)
    model = Reporting(Usage())
    asyncio.run(ask(Limited(Budgeted(model, budget), 1), ["word " * 100] * 10))
    assert model.n_calls == 2


def test_a_reply_of_a_cheaper_service_tier() -> None:
    class Flexible(Reporting):
        async def complete(self, request: Request) -> Completion:
            return replace(await super().complete(request), is_flex=True)

    budget = Budget(COUNTER, price=Price.read("input=2,output=8,flex=0.5"))
    asyncio.run(Budgeted(Flexible(Usage(100, 10)), budget).complete(request("word")))
    assert budget.cost_usd == (100 * 2 + 10 * 8) / 1e6 / 2


def test_repeated_discrepancies_multiply() -> None:
    """A prompt that is reserved with a stretch, and is still too low, stretches by both together."""
    budget = Budget(COUNTER, max_tokens=1_000_000, reply_tokens=20)
    plain = budget.worst(request("word " * 100)).n_input
    for _ in range(2):
        worst = budget.worst(request("word " * 100))
        settle(budget, worst, Usage(2 * worst.n_input, 1))
    assert budget.worst(request("word " * 100)).n_input >= 3.5 * plain


def test_a_call_without_usage_adds_no_tokens_without_a_token_limit() -> None:
    budget = Budget(COUNTER, max_calls=2)
    settle(budget, budget.worst(request("word")), None, is_sure=False)
    assert budget.spent == Spent(Usage(), n_calls=1, n_unsure_calls=1, n_unsure_tokens=0)
