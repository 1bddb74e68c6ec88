"""How near clients come to a rate limit that they are not told. A table, then one JSON line.

    python experiments/bench/rate_limits.py --sim SIM_SERVER.py [--rps 5 50 200] [--steady-s 60]
    python experiments/bench/rate_limits.py --sim SIM_SERVER.py --rps 0 --refused 0.05 --call-s 0.2

For each limit N, a simulated server (`--rps N`, a bucket of one second, `Retry-After: 1`) answers
64 workers that never rest: once through `Retrying(Limited(model))`, once through `AsyncOpenAI` with
its own retries at the same concurrency, each in a process of its own. After `--warm-s` seconds,
counted by the server for `--steady-s` seconds: what it answered, as a share of N, and what it
refused, as a share of all it was asked. With `--rps 0` there is no limit, and N is what as many
places as there are workers answer at most; there are then twice as many workers as places, so that
those which wait to ask again hold up no place. With `--refused` that share of the calls is refused
at random, with `--retry-after`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AT_ONCE = 64


def request(text: str) -> Any:
    from pearl.llm import ChooseTask, Message, Request

    return Request((Message("user", text),), ChooseTask(text, ("yes", "no")))


async def ours(url: str, seconds: float, n_workers: int) -> None:
    """Ask through the wrappers, for so long."""
    from pearl.errors import ModelError
    from pearl.llm.backends import ModelSettings, create_model
    from pearl.llm.middleware.rate import Limited
    from pearl.llm.middleware.retry import Retrying

    model = create_model("openai:sim", ModelSettings(url))
    limited = Limited(model, AT_ONCE)
    wrapped = Retrying(limited, breaker=limited.breaker)

    async def ask(text: str) -> bool:
        try:
            await wrapped.complete(request(text))
        except ModelError:
            return False
        return True

    await work(ask, seconds, n_workers)
    await model.aclose()


async def bare(url: str, seconds: float, n_workers: int) -> None:
    """Ask through the client with its own retries, for so long."""
    from openai import AsyncOpenAI, RateLimitError

    async with AsyncOpenAI(api_key="none", base_url=url) as client:

        async def ask(text: str) -> bool:
            try:
                await client.chat.completions.create(
                    model="sim", messages=[{"role": "user", "content": text}], temperature=0.0
                )
            except RateLimitError:
                return False
            return True

        await work(ask, seconds, n_workers)


async def work(ask: Callable[[str], Awaitable[bool]], seconds: float, n_workers: int) -> None:
    """Let the workers ask, and print how many of their questions failed for good."""
    until = time.monotonic() + seconds
    n_failed = 0

    async def worker(number: int) -> None:
        nonlocal n_failed
        i = 0
        while time.monotonic() < until:
            n_failed += not await ask(f"worker {number}, question {(i := i + 1)}")

    tasks = [asyncio.create_task(worker(number)) for number in range(n_workers)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(n_failed)


@contextmanager
def simulated(sim: Path, rps: float, options: argparse.Namespace) -> Iterator[str]:
    """The address of a simulated server with a rate limit, for the length of a block."""
    arguments = ["--rps", str(rps), "--call-s", str(options.call_s), "--slots", "1000"]
    arguments += ["--retry-after", options.retry_after]
    arguments += ["--faults", json.dumps({"429": options.refused})]
    command = [sys.executable, str(sim), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def stats(address: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{address}/__stats", timeout=10) as reply:
        found: dict[str, float] = json.load(reply)
    return found


def measure(side: str, rps: float, options: argparse.Namespace) -> dict[str, Any]:
    """One client against one limit."""
    warm_s, steady_s = options.warm_s, options.steady_s
    n_workers = AT_ONCE if rps else 2 * AT_ONCE
    with simulated(options.sim, rps, options) as address:
        arguments = ["--side", side, "--url", f"{address}/v1", "--steady-s", str(warm_s + steady_s)]
        arguments += ["--workers", str(n_workers)]
        child = subprocess.Popen(
            [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True
        )
        while "calls" not in stats(address):  # imports take their time
            time.sleep(0.05)
        time.sleep(warm_s)
        before, began = stats(address), time.monotonic()
        time.sleep(steady_s - 1)  # the client stops by itself a little later
        after, taken_s = stats(address), time.monotonic() - began
        output, _ = child.communicate()
    answered, limited, faults, calls = (
        after.get(name, 0) - before.get(name, 0)
        for name in ("answered", "status_429", "fault_429", "calls")
    )
    most = rps or AT_ONCE / options.call_s
    return {
        "side": side,
        "rps": rps,
        "goodput": round(answered / taken_s / most, 3),
        "refused": round((limited + faults) / max(1, calls), 4),
        "failed": int(output),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sim", type=Path, metavar="PATH", help="a simulated server to start")
    parser.add_argument("--rps", type=float, nargs="+", default=[5, 50, 200])
    parser.add_argument("--warm-s", type=float, default=20.0)
    parser.add_argument("--steady-s", type=float, default=60.0)
    parser.add_argument("--sides", nargs="+", default=["ours", "bare"], choices=["ours", "bare"])
    parser.add_argument("--call-s", type=float, default=0.05)
    parser.add_argument("--refused", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--retry-after", default="1", metavar="SECONDS")
    parser.add_argument("--side", choices=["ours", "bare"], help="one side, in this process")
    parser.add_argument("--url", help="for --side")
    parser.add_argument("--workers", type=int, help="for --side")
    options = parser.parse_args()
    if options.side:
        side = ours if options.side == "ours" else bare
        asyncio.run(side(options.url, options.steady_s, options.workers))
        return
    if options.sim is None:
        parser.error("--sim PATH")
    rows = []
    print(f"{'limit':>8} {'client':>8} {'goodput':>8} {'429s':>8} {'failed':>8}")
    for rps in options.rps:
        for side in options.sides:
            row = measure(side, rps, options)
            rows.append(row)
            print(
                f"{rps:>6g}/s {side:>8} {row['goodput']:>8.1%} {row['refused']:>8.2%} {row['failed']:>8}",
                flush=True,
            )
    print(json.dumps({"bench": "rate_limits", "at_once": AT_ONCE, "rows": rows}))


if __name__ == "__main__":
    main()
