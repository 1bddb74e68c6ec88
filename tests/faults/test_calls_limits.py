"""Calls that are given up in flight, and budgets under concurrency."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from pearl.documents.tokens import Counter
from pearl.errors import BudgetError
from pearl.llm import Usage
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.budget import FRAME_TOKENS, Budget
from pearl.llm.prices import Price
from tests.faults.calls import model_of, request
from tests.faults.test_calls_waits import on_computed_clock
from tests.server import Canned, Seen, Server, completion
from tests.suite import Trial


def held() -> tuple[int, int, int]:
    """Open files, threads and tasks of this process."""
    n_files = len(list(Path("/proc/self/fd").iterdir()))
    return n_files, threading.active_count(), len(asyncio.all_tasks())


@pytest.mark.row("R32", "500 calls in flight that are cancelled, or run out of time")
@pytest.mark.parametrize("ends_by", ["cancel", "time limit"])
def test_calls_given_up_in_flight(ends_by: str, trial: Trial, openai_server: Server) -> None:
    n_calls, n_rounds = 500, trial.n(ci=1, nightly=20, release=200)

    async def give_up(n_calls: int) -> int:
        """How many calls were in flight when they were given up."""
        openai_server.requests.clear()
        openai_server.hold_after = 0
        settings = ClientSettings(model_of(openai_server), concurrency=n_calls, prefix="off")
        client = Client(settings)
        tasks = [asyncio.create_task(client.complete(request(i))) for i in range(n_calls)]
        while len(openai_server.requests) < n_calls:  # noqa: ASYNC110  another thread
            await asyncio.sleep(0.01)
        if ends_by == "cancel":
            for task in tasks:
                task.cancel()
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.gather(*tasks)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await client.aclose()
        openai_server.hold_after = None
        while openai_server._connections:  # noqa: ASYNC110  until it notices that its clients left
            await asyncio.sleep(0.01)
        return sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)

    async def main() -> tuple[int, list[int]]:
        await give_up(1)  # what a process has once, such as a thread, comes with the first call
        await asyncio.sleep(0.5)
        before = held()
        n_given_up = sum([await give_up(n_calls) for _ in range(n_rounds)])
        for _ in range(1_000):  # the server closes its side a little later
            if held() <= before:
                break
            await asyncio.sleep(0.02)
        return n_given_up, [after - old for old, after in zip(before, held(), strict=True)]

    n_given_up, (files, threads, tasks) = asyncio.run(main())
    trial.figure("calls given up in flight", n_given_up, at_least=n_calls * n_rounds)
    trial.figure("files and sockets left", files, at_most=0)
    trial.figure("threads left", threads, at_most=0)
    trial.figure("tasks left", tasks, at_most=0)


def told(draw: random.Random, honest: dict[str, int]) -> Any:
    """The usage that a server reports: what it took, nothing, or something else."""
    few = {"prompt_tokens": 1, "completion_tokens": 0}
    strange = {"prompt_tokens": -5, "completion_tokens": "many"}
    cached = {**honest, "prompt_tokens_details": {"cached_tokens": honest["prompt_tokens"]}}
    return draw.choice((honest, honest, None, {}, few, strange, [], cached))


@pytest.mark.row(
    "R36", "a budget of calls, tokens and money, with servers that report what they like"
)
@pytest.mark.parametrize("is_honest", [True, False], ids=["true usage", "false usage"])
def test_budgets(is_honest: bool, trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    n_runs = trial.n(ci=60, nightly=1_000, release=20_000)
    over = {"calls": 0.0, "tokens": 0.0, "US dollars": 0.0}
    n_refused = n_calls = 0
    counter = Counter()
    for _ in range(n_runs):
        draw = random.Random(trial.random.random())
        price = Price(input_usd=draw.choice([0.1, 3.0, 30.0]), output_usd=draw.choice([0.4, 15.0, 600.0]))  # fmt: skip
        limits: dict[str, Any] = {
            "max_tokens": draw.choice([None, draw.randint(100, 9_000)]),
            "max_cost_usd": draw.choice([None, draw.random() / 100]),
            "max_calls": draw.choice([None, draw.randint(1, 20)]),
        }
        budget = Budget(counter, price=price, reply_tokens=draw.randint(5, 100), **limits)
        billed = Usage()
        asked = [request(draw.randrange(10 ** draw.choice((2, 200)))) for _ in range(30)]

        async def use(client: Client, server: Server) -> tuple[list[Any], int]:
            def answer(seen: Seen) -> Canned:
                nonlocal billed
                n_output = draw.randint(1, seen.body.get("max_tokens", 50))  # noqa: B023
                n_input = counter.count(seen.prompt) + draw.randint(0, FRAME_TOKENS)  # noqa: B023
                billed += Usage(n_input, n_output)
                if draw.random() < 0.1:  # noqa: B023
                    return Canned(manner="reset")
                text = " ".join(f"w{i}" for i in range(n_output))
                while counter.count(text) > n_output:
                    text = text[: len(text) // 2] or "w"
                    if text == "w":
                        break
                honest = {"prompt_tokens": n_input, "completion_tokens": n_output}
                usage = honest if is_honest else told(draw, honest)  # noqa: B023
                return Canned({**completion(text), "usage": usage})

            server.answer, server.delay_s = answer, 0.01
            outcomes = await asyncio.gather(*map(client.complete, asked), return_exceptions=True)  # noqa: B023
            return outcomes, len(server.requests)

        outcomes, n_sent = on_computed_clock(
            monkeypatch, use, budget=budget, concurrency=draw.randint(1, 16), attempts=2, is_shared=False,
        )  # fmt: skip
        n_calls += n_sent
        n_refused += sum(isinstance(outcome, BudgetError) for outcome in outcomes)
        spent = {"calls": n_sent, "tokens": billed.n_tokens, "US dollars": price.cost_usd(billed)}
        bounds = dict(zip(over, (limits["max_calls"], limits["max_tokens"], limits["max_cost_usd"]), strict=True))  # fmt: skip
        for name, bound in bounds.items():
            if bound is not None:
                over[name] = max(over[name], spent[name] - bound)
    trial.figure("runs", n_runs)
    trial.figure("calls", n_calls)
    trial.figure("calls that a budget refused", n_refused, at_least=1)
    for name, most in over.items():
        if is_honest or name == "calls":
            trial.figure(f"{name} beyond the limit", most, at_most=1e-9)
        else:
            trial.figure(f"{name} beyond the limit that the server hid", most)
