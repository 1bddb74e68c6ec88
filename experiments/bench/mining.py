"""How long mining takes beside a bare loop over the same prompts. Prints one JSON line.

    python experiments/bench/mining.py --sim SIM_SERVER.py [--rounds 5] [--questions 2100]
    python experiments/bench/mining.py --server http://127.0.0.1:8000/v1

Mines templated questions, all different, 64 at once, and times beside it, in turns and in the same
run, what `AsyncOpenAI` and a semaphore take for the same messages. Both run as child processes of
their own; the time is that of the calls, from the first to the last row, without the imports.
Beside them, `command_s` is the whole of `pearl mine`, from the start of its process to its end; its
ratio is to the calls of the bare loop alone. The simulated server (`--call-s 0.2 --slots 64`) answers every call after 0.2 s, 64 at once, so that no
client is faster than `floor_s`. A server that is simulated says whether a question was asked twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pearl.actions.library import load_library

AT_ONCE = 64
CALL_S = 0.2
TIMEOUT_S = 600.0
REPLY = (
    "New actions:\n- FIND_MOTIVE(CTX, X) : Find why X acts in CTX\n\n"
    '1. motive = FIND_MOTIVE(CTX, "the captain") : Find what drives the captain\n'
    '2. ans = FIND(CTX, "what became of it") : Find how it ended'
)
WHO = (
    "the captain",
    "the pilot",
    "Ada",
    "the old miller",
    "the patient",
    "Doctor Hale",
    "the twins",
)
WHAT = ("leave", "hide the letter", "lie about it", "come back", "refuse the treatment", "trust it")
WHERE = ("in the harbour", "on the ship", "at the inn", "in chapter", "after visit", "near gate")


def questions(n: int) -> list[str]:
    """Templated questions, no two of them the same."""
    sets = len(WHO), len(WHAT), len(WHERE)
    return [
        f"Why did {WHO[i % sets[0]]} {WHAT[i // 7 % sets[1]]} {WHERE[i // 42 % sets[2]]} {i}?"
        for i in range(n)
    ]


async def prompt() -> tuple[str, str]:
    """The messages that `Miner` sends, without the question, which comes last."""
    from pearl.llm.backends.scripted import Scripted
    from pearl.mining.miner import Miner, Question
    from pearl.pipeline import Pearl

    pearl, model = Pearl(), Scripted(lambda request: "none")
    await Miner(model, load_library("seed"), pearl.material.examples, pearl.library).ask(
        Question("", 0, "")
    )
    head, body = model.requests[0].messages
    return head.content, body.content


async def mine(url: str, n: int, folder: Path) -> float:
    """Seconds that mining takes in this process, each row kept in a store before the next."""
    from pearl.mining.miner import Question, mine_units, miner_of
    from pearl.pipeline import Pearl
    from pearl.runs.recording import run_recorded
    from pearl.runs.store import RunSpec, Store

    with Store.open(folder / "store") as store:
        async with Pearl(
            "openai:sim", base_url=url, concurrency=AT_ONCE, timeout_s=TIMEOUT_S, replies=store
        ) as pearl:
            asked = [Question(str(i), i, text) for i, text in enumerate(questions(n))]
            units = mine_units(asked, "seed", miner_of(pearl, "seed").prompt)
            await pearl.client.model.complete(_request("warm up"))
            began = time.perf_counter()
            run = store.begin(RunSpec(("mine",), {}, {}))
            async for outcome in run_recorded(pearl, enumerate(units), run):
                assert outcome.result.status == "mined", outcome
            return time.perf_counter() - began


def command(url: str, n: int, folder: Path) -> float:
    """Seconds that `pearl mine` takes from its start to its end, imports and all."""
    data = folder / "questions.jsonl"
    rows = [{"id": str(i), "question": text} for i, text in enumerate(questions(n))]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ["--data", str(data), "--out", str(folder / "mined.jsonl"), "--model", "openai:sim"]
    arguments += ["--base-url", url, "--concurrency", str(AT_ONCE)]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pearl", "mine", *arguments], capture_output=True, check=True
    )
    return time.perf_counter() - began


async def bare(url: str, n: int) -> float:
    """Seconds that the client and a semaphore take, replies dropped."""
    from openai import AsyncOpenAI, Timeout

    head, body = await prompt()
    prompts = [
        [{"role": "system", "content": head}, {"role": "user", "content": body + text}]
        for text in questions(n)
    ]
    places = asyncio.Semaphore(AT_ONCE)
    async with AsyncOpenAI(
        api_key="none", base_url=url, max_retries=0, timeout=Timeout(TIMEOUT_S, connect=10.0)
    ) as client:

        async def ask(messages: Any) -> str:
            async with places:
                reply = await client.chat.completions.create(
                    model="sim", messages=messages, temperature=0.0
                )
                return reply.choices[0].message.content or ""

        await ask([{"role": "user", "content": "warm up"}])
        began = time.perf_counter()
        await asyncio.gather(*(ask(prompt) for prompt in prompts))
        return time.perf_counter() - began


def _request(text: str) -> Any:
    from pearl.llm import ChooseTask, Message, Request

    return Request((Message("user", text),), ChooseTask(text, ("yes", "no")))


@contextmanager
def simulated(sim: Path) -> Iterator[str]:
    """The address of a simulated server, for the length of a block."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "rules.json"
        script.write_text(json.dumps([{"match": "", "reply": REPLY}]), encoding="utf-8")
        arguments = ["--call-s", str(CALL_S), "--slots", str(AT_ONCE), "--script", str(script)]
        with subprocess.Popen(
            [sys.executable, str(sim), *arguments], stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            try:
                yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            finally:
                server.terminate()


def measured(side: str, url: str, n: int, folder: Path) -> float:
    """Run one side here."""
    if side == "command":
        return command(url, n, folder)
    return asyncio.run(mine(url, n, folder) if side == "mine" else bare(url, n))


def seconds(side: str, url: str, n: int) -> float:
    """What one side takes, in a process of its own."""
    arguments = [sys.executable, __file__, "--server", url, "--questions", str(n), "--side", side]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return float(done.stdout)


def stats(url: str) -> dict[str, Any]:
    """What a simulated server counted since it was last asked; {} if it does not count."""
    try:
        with urllib.request.urlopen(url.removesuffix("/v1") + "/__stats", timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
        urllib.request.urlopen(url.removesuffix("/v1") + "/__reset", timeout=10).close()
    except OSError:
        return {}
    return found


def compare(url: str, n: int, rounds: int) -> dict[str, Any]:
    """Both sides in turns; the ratio of each turn, and how far they spread."""
    taken: dict[str, list[float]] = {"mine": [], "bare": [], "command": []}
    counted: list[dict[str, Any]] = []
    for i in range(rounds):
        stats(url)
        for side in sorted(taken, reverse=bool(i % 2)):
            taken[side].append(seconds(side, url, n))
            counted.append(stats(url))
    ratios, command_ratios = (
        [round(ours / theirs, 3) for ours, theirs in zip(taken[side], taken["bare"], strict=True)]
        for side in ("mine", "command")
    )
    return {
        "bench": "mining",
        "questions": n,
        "rounds": rounds,
        "floor_s": round(math.ceil(n / AT_ONCE) * CALL_S, 2),
        "mine_s": [round(s, 2) for s in taken["mine"]],
        "bare_s": [round(s, 2) for s in taken["bare"]],
        "command_s": [round(s, 2) for s in taken["command"]],
        "ratios": ratios,
        "median_ratio": round(statistics.median(ratios), 3),
        "command_ratios": command_ratios,
        "median_command_ratio": round(statistics.median(command_ratios), 3),
        "asked_twice": max((found.get("repeated_requests", 0) for found in counted), default=None),
        "peak_in_flight": max((found.get("peak_in_flight", 0) for found in counted), default=None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("--sim", type=Path, metavar="PATH", help="a simulated server to start")
    parser.add_argument("--questions", type=int, default=2_100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--side", choices=["mine", "bare", "command"], help="one side, in this process"
    )
    options = parser.parse_args()
    if (options.server is None) == (options.sim is None):
        parser.error("--server URL or --sim PATH")
    if options.side:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(options.side, options.server, options.questions, Path(folder)))
        return
    if options.server:
        print(json.dumps(compare(options.server, options.questions, options.rounds)))
        return
    with simulated(options.sim) as url:
        print(json.dumps(compare(url, options.questions, options.rounds)))


if __name__ == "__main__":
    main()
