"""Orders of replies and questions, many documents, exceptions of plug-ins."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pearl import Document, Pearl
from pearl.llm import ActionTask, PlanTask, Request
from tests.clock import computed
from tests.faults.programs import Lab, essence
from tests.models import Acting, MemoryReplies, written
from tests.plugins.test_foreign import install
from tests.suite import Trial

MEASURED = """
import resource, sys
from pearl.cli import run
code = run(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)
sys.exit(code)
"""
ONE_STEP = 'New actions:\n- None\n\n1. ans = FIND(CTX, "it") : Find it\n'


def documents(n: int) -> str:
    """Rows of so many documents."""
    return "".join(
        json.dumps({"id": str(i), "document": f"She left on day {i}."}) + "\n" for i in range(n)
    )


@pytest.mark.row("R31", "memory with many documents")
def test_memory_is_flat(trial: Trial, lab: Lab) -> None:
    n = trial.n(ci=2_000, nightly=100_000, release=100_000)
    rules = json.dumps([{"match": "day (\\d+)", "reply": "It was day \\1."}])
    peaks = []
    for n_documents in (n // 10, n):
        folder = lab.folder_of(
            {"d.jsonl": documents(n_documents), "a.plan": ONE_STEP, "rules.json": rules}
        )
        command = "execute a.plan --data d.jsonl --out rows.jsonl --model scripted:rules.json --store kept"
        told = lab.programs.run(folder, "-c", MEASURED, *command.split()).stdout
        peaks.append(float(told.split("peak")[1]))
        n_rows = (folder / "rows.jsonl").read_bytes().count(b"\n")
    trial.figure("documents", n)
    trial.figure("rows missing", n - n_rows, at_most=0)
    trial.figure(
        "megabytes more than with a tenth of them", round(peaks[1] - peaks[0], 1), at_most=50
    )


@pytest.mark.row("R31", "the first new call of a resumed run")
def test_resumed_run_soon_calls(trial: Trial, lab: Lab) -> None:
    n = trial.n(ci=500, nightly=10_000, release=100_000)
    folder = lab.folder_of({"d.jsonl": documents(n), "a.plan": ONE_STEP})
    model = f"--model openai:test-model --base-url {lab.server.url} --concurrency 32"
    command = f"execute a.plan --data d.jsonl --out rows.jsonl --store kept {model}".split()
    program = lab.programs.start(folder, *command, "--max-calls", str(n - 1))
    code = program.wait()
    start_s = time.monotonic()
    program = lab.programs.start(folder, *command)
    while len(lab.server.requests) < n and program.is_alive:
        time.sleep(0.01)
    first_s = time.monotonic() - start_s
    program.wait()
    trial.figure("documents", n)
    trial.figure("ends other than by the limit", code != 7, at_most=0)
    trial.figure("calls in all", len(lab.server.requests), at_most=n)
    trial.figure("seconds until the first new call", round(first_s, 1), at_most=10)


BAD = """
from pearl.dsl.signatures import Action, Parameter, ValueType
PARAMETERS = (Parameter("ITEMS", ValueType.LIST),)
ACTION = Action("LONGEST", PARAMETERS, "Return the longest of ITEMS", returns=ValueType.TEXT, is_native=True)
def run(items):
    if "7" in items[0]:
        {raising}
    return max(items, key=len)
"""
RAISING = ["raise ZeroDivisionError('by 7')", "raise KeyError", "raise RecursionError", "assert False",
           "raise MemoryError", "raise StopIteration", "raise OSError(28, 'full')", "raise UnicodeError", "items[99]"]  # fmt: skip


@pytest.mark.row("R33", "an exception of a native action of a plug-in")
@pytest.mark.parametrize("raising", RAISING)
def test_exception_of_a_plug_in(trial: Trial, lab: Lab, raising: str) -> None:
    plan = 'New actions:\n- None\n\n1. things = LIST_ALL(CTX, "days") : List\n2. ans = LONGEST(things) : Longest\n'
    actions = "LIST_ALL(CTX, X) : List all X\nLONGEST(ITEMS) : Return the longest of ITEMS\n"
    rules = json.dumps(
        [{"match": "day (\\d+)", "reply": '{"entries": ["day \\1", "another day"]}'}]
    )
    folder = lab.folder_of(
        {"d.jsonl": documents(10), "a.plan": plan, "a.actions": actions, "rules.json": rules}
    )
    site = folder / "site"
    install(site, "pearl-bad", {"pearl.actions.native": {"longest": "bad_longest"}})
    (site / "bad_longest.py").write_text(BAD.format(raising=raising))
    command = "execute a.plan --data d.jsonl --out rows.jsonl --model scripted:rules.json --library a.actions --trace t.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "pearl", *command.split()], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{site}:{Path(__file__).parents[2]}"},
    )  # fmt: skip
    rows = {
        row["id"]: row for row in map(json.loads, (folder / "rows.jsonl").read_text().splitlines())
    }
    answered = {id for id, row in rows.items() if row["status"] == "answered"}
    trial.figure("rows", len(rows), at_least=10)
    trial.figure("other documents without an answer", 9 - len(answered - {"7"}), at_most=0)
    trial.figure("answers where the action failed", "7" in answered, at_most=0)
    trial.figure(
        "failures that do not name the step",
        "step 'ans'" not in f"{rows['7'].get('error')} {rows['7'].get('why')}",
        at_most=0,
    )
    trial.figure(
        "tracebacks on the terminal",
        any(word in done.stderr for word in ("Traceback", "a bug in PEARL")),
        at_most=0,
    )


ORDERED = """\
New actions:
- None

1. a = FIND(CTX, "a") : Find a
2. b = FIND(CTX, "b") : Find b
3. c = FIND(CTX, a) : Find c
4. rows = SPLIT(CTX, "line") : Split
5. told = CLASSIFY(rows, ["good", "bad"], "the mood") : Label
6. n = COUNT(told) : Count
7. ans = CONCAT(b, c) : Join
"""


@pytest.mark.row("R34", "replies in any order")
def test_order_of_replies(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are computed: calls end in an order that the seed decides."""
    text = "\n".join(f"Line {i} is about a boat." for i in range(80))
    outcomes = set()
    for _ in range(trial.n(ci=100, nightly=1_000, release=10_000)):
        chance = random.Random(trial.random.random())

        async def act(request: Request, chance: random.Random = chance) -> str:
            await asyncio.sleep(chance.random())
            if isinstance(request.task, ActionTask):
                return f"It is {request.task.output} of {len(str(request.messages))}."
            prompt = str(request.messages[-1].content)
            numbers = re.findall(r"<item \d+>\nLine (\d+) is", prompt)
            return written(prompt, ["good" if int(i) % 3 else "bad" for i in numbers])

        replies = MemoryReplies()

        async def main(act: object = act, replies: MemoryReplies = replies) -> str:
            model = Acting(act)  # type: ignore[arg-type]
            model.reads_prompts = True  # or no reply is kept
            async with Pearl(model, replies=replies, concurrency=8) as pearl:
                answer = await pearl.execute(ORDERED, Document(text, "boats.txt"))
                return json.dumps(essence(json.dumps(answer.to_dict())))

        with computed(monkeypatch) as runner:
            outcomes.add((runner.run(main()), frozenset(replies.replies)))
    trial.figure("orders", trial.n(ci=100, nightly=1_000, release=10_000))
    trial.figure("replies kept", len(next(iter(outcomes))[1]), at_least=5)
    trial.figure("different answers or keys of replies", len(outcomes) - 1, at_most=0, at_least=0)


@pytest.mark.row("R35", "questions do not change the plans of others")
def test_order_of_questions(trial: Trial) -> None:
    """Each plan defines an action under the same name with another meaning."""
    questions = [f"Why did {name} leave?" for name in ("Ada", "Nils", "Mara", "Tom", "Ida")]

    async def act(request: Request) -> str:
        assert isinstance(request.task, PlanTask)
        name = next(q.split()[2] for q in questions if q in str(request.messages[-1].content))
        await asyncio.sleep(0.001 * len(name))
        return f'New actions:\n- WEIGH(CTX, X) : Weigh what {name} did by X\n\n1. ans = WEIGH(CTX, "{name}") : Weigh\n'

    async def plans(order: list[str], *, at_once: bool) -> dict[str, str]:
        async with Pearl(Acting(act)) as pearl:
            if at_once:
                texts = [str(plan) for plan in await asyncio.gather(*map(pearl.plan, order))]
            else:
                texts = [str(await pearl.plan(question)) for question in order]
        return dict(zip(order, texts, strict=True))

    alone = {q: asyncio.run(plans([q], at_once=False))[q] for q in questions}
    n_orders = trial.n(ci=10, nightly=120, release=120)
    n_different = 0
    for number in range(n_orders):
        order = trial.random.sample(questions, len(questions))
        n_different += asyncio.run(plans(order, at_once=bool(number % 2))) != alone
    trial.figure("orders", n_orders)
    trial.figure("plans", len(set(alone.values())), at_least=5)
    trial.figure("orders with another plan", n_different, at_most=0)
