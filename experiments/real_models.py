"""How a language model on this machine does what PEARL asks of it: seconds, valid plans, a kill survived.

    python experiments/real_models.py --model llamacpp:FILE [--parts ask plans eval] [--data FILE]

ask: seconds of `pearl ask` on the shipped story, on a terminal: until something is shown, until the plan
is, until the answer is. plans: questions about the shipped documents, none of them in a bank of examples:
how many have a valid plan, seconds of each, and plans that have two identical steps. eval: `pearl eval`
over samples of --data, which have options; it is killed (SIGKILL) amid its work and given again. Of the
rows that were kept before the kill it tells how many were made again. The model is named above the
figures. For SmolLM2 on two cores this takes half an hour, most of it the evaluation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from pearl import Pearl  # noqa: E402
from pearl.errors import ModelError, PlanningError, StoreError  # noqa: E402
from pearl.evals.log import read_log  # noqa: E402
from pearl.plugins.files import find_data  # noqa: E402
from pearl.runs.store import Store  # noqa: E402

FACTS = ROOT / "tests/embedded/document_facts.jsonl"

QUESTION = "Why was the ferry going to be closed down?"

LOOK_S = 0.5

Figures = Iterator[tuple[str, object]]


def pearl(*arguments: object) -> list[str]:
    """A command in a process of its own."""
    return [sys.executable, "-m", "pearl", *map(str, arguments)]


def ask(options: argparse.Namespace) -> Figures:
    """Seconds until a user sees what."""
    story = find_data("documents", "demo", "story.txt")
    ours, theirs = pty.openpty()
    began, seen, at = time.monotonic(), b"", {}
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            pearl("ask", QUESTION, story, "--model", options.model, "--json"),
            stdout=out,
            stderr=theirs,
        )
        os.close(theirs)
        with suppress(OSError):  # the terminal ends with the last that writes to it
            while said := os.read(ours, 65_536):
                at.setdefault("something shown", time.monotonic() - began)
                seen += said
                if b"step 1 of" in seen:
                    at.setdefault("plan there", time.monotonic() - began)
        code = child.wait()
        yield from ((f"ask: s until {what}", f"{s:.1f}") for what, s in at.items())
        yield "ask: s until the answer", f"{time.monotonic() - began:.1f}"
        out.seek(0)
        answer = json.loads(out.read() or b"{}")
    yield "ask: exit code, status", f"{code}, {answer.get('status', 'no answer')}"


def plans(options: argparse.Namespace) -> Figures:
    """How questions are planned, one after the other."""
    rows = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    questions = [row["question"] for row in rows][:: max(1, len(rows) // options.n_plans)]
    seconds, n_repeating, n_valid = [], 0, 0

    async def run() -> None:
        nonlocal n_repeating, n_valid
        async with Pearl(options.model, planned_by=options.planner) as asked:
            for question in questions[: options.n_plans]:
                began = time.monotonic()
                with suppress(PlanningError, ModelError):
                    steps = (await asked.plan(question)).plan.steps
                    calls = {(step.action, step.arguments) for step in steps}
                    n_valid += 1
                    n_repeating += len(calls) < len(steps)
                seconds.append(time.monotonic() - began)

    asyncio.run(run())
    yield "plans: valid, of", f"{n_valid} of {len(seconds)}"
    yield "plans: with two identical steps", n_repeating
    yield "plans: s, median (longest)", f"{statistics.median(seconds):.1f} ({max(seconds):.1f})"


def evaluate(options: argparse.Namespace) -> Figures:
    """An evaluation that is killed and goes on, with what reads nothing beside it."""
    folder = Path(options.folder or tempfile.mkdtemp(prefix="real_models-"))
    store, log = folder / "store", folder / "eval.jsonl"
    command = pearl(
        "eval", "--data", options.data, "--domain", "quality", "--limit", options.n,
        "--methods", ",".join(options.methods), "--model", options.model,
        "--token-budget", options.token_budget, "--max-output-tokens", options.max_output_tokens,
        "--store", store, "-o", log,
    )  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as killed:
        while killed.poll() is None and len(kept(store)) < options.kill_after:
            time.sleep(LOOK_S)
        killed.kill()
    before = kept(store)
    yield (
        "eval: ended by",
        signal.Signals(-killed.returncode).name if killed.returncode < 0 else "itself",
    )
    yield "eval: rows kept before", len(before)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = kept(store)
    yield "eval: of these made again", sum(after.get(key) != row for key, row in before.items())
    records = read_log(log).records if log.exists() else ()
    yield "eval: exit code, records", f"{done.returncode}, {len(records)}"
    print(done.stdout)


def kept(store: Path) -> dict[str, dict[str, object]]:
    """Rows in a store that have a reply, by what they are of; others are tried again."""
    with suppress(StoreError), Store.open(store, read_only=True) as opened:
        return {
            f"{row['sample']} {row['method']}": row
            for run in opened.runs()
            for row in opened.rows(run.id)
            if row["status"] != "failed"
        }
    return {}  # it is being made


PARTS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "ask": ask, "plans": plans, "eval": evaluate,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="as for pearl --model")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["ask", "plans"])
    parser.add_argument("--planner", default="auto", help="of the plans")
    parser.add_argument("--n-plans", type=int, default=25)
    parser.add_argument("--data", type=Path, help="a file of QuALITY, for eval")
    parser.add_argument("--n", type=int, default=200, help="samples of it")
    parser.add_argument("--kill-after", type=int, default=50, help="rows")
    parser.add_argument("--methods", nargs="+", default=["mcq"], help="of eval")
    parser.add_argument("--token-budget", type=int, default=700, help="of a document, for a sample")
    parser.add_argument("--max-output-tokens", type=int, default=64, help="of a reply, for eval")
    parser.add_argument("--folder", type=Path, help="for the store and the log of eval")
    options = parser.parse_args()
    if "eval" in options.parts and options.data is None:
        parser.error("eval needs --data")
    print(f"model: {options.model}")
    for part in options.parts:
        for what, figure in PARTS[part](options):
            print(f"{what:<42}{figure}", flush=True)


if __name__ == "__main__":
    main()
