"""Fuzzed inputs of every reader: each is read, or refused with a documented error of at most three lines."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress

import pytest

from pearl.errors import PlanError
from tests.faults.fuzzing import TARGETS, libraries, plans
from tests.suite import Trial

FOUND = [
    ("jsonl_documents", b'{}\n{"id": 2, "text": "b"}\n'),
    ("typed_replies", b"; ;"),
    ("queries", b'{"where": {"column": "City", "op": ["is"]}}'),
    ("trace_files", b"[]\n"),
    ("trace_files", b'{"v": 1, "id": [], "event": "step_failed", "step": "a", "error": "x"}\n'),
    ("trace_files", b"[" * 100_000 + b"\n"),
]
"""Inputs that once ended in another error: what a fuzzer finds becomes a line."""


def tried(trial: Trial, name: str, n: int) -> tuple[int, list[str]]:
    """How many of `n` fuzzed inputs a target accepts, and what ended otherwise than documented."""
    n_accepted, problems = 0, []
    for data in TARGETS[name].inputs(n, trial.random):
        try:
            n_accepted += TARGETS[name].accepts(data)
        except Exception as error:  # noqa: BLE001 - every error that is not documented
            problems.append(f"{name}: {type(error).__name__}: {error}: {data!r}")
    return n_accepted, problems


def report(trial: Trial, problems: list[str]) -> None:
    """The inputs are shown where the test fails."""
    print(*(problem[:4_000] for problem in problems[:20]), sep="\n")  # noqa: T201
    trial.figure("other errors", len(problems), at_most=0)


@pytest.mark.row("R39", "fuzzed inputs of every reader")
def test_every_reader_reads_or_refuses(trial: Trial) -> None:
    rows: list[dict[str, float | str]] = []
    problems = []
    for name, data in FOUND:
        TARGETS[name].accepts(data)
    for name, target in TARGETS.items():
        n = max(3, target.share * trial.n(ci=200, nightly=4_000, release=100_000) // 100)
        n_accepted, other = tried(trial, name, n)
        rows.append({"reader": name.replace("_", " "), "inputs": n, "accepted": n_accepted})
        problems += other
    trial.table("readers", rows)
    trial.figure("readers", len(rows))
    trial.figure("inputs", sum(int(row["inputs"]) for row in rows))
    report(trial, problems)


@pytest.mark.row("R9", "fuzzed bodies of responses")
def test_no_body_is_taken_for_a_reply(trial: Trial) -> None:
    n = trial.n(ci=5_000, nightly=100_000, release=1_000_000)
    n_accepted, problems = tried(trial, "response_bodies", n)
    trial.figure("bodies", n)
    trial.figure("accepted, with a text", n_accepted)
    report(trial, problems)


@pytest.mark.row("R13", "broken plans")
@pytest.mark.parametrize("shard", range(2))
def test_a_broken_plan_is_a_plan_error_with_its_place(trial: Trial, shard: int) -> None:
    n = trial.n(ci=10_000, nightly=500_000, release=5_000_000)
    n_accepted, problems = tried(trial, "plans", n)
    trial.figure("plans", n)
    trial.figure("still valid", n_accepted)
    report(trial, problems)


STEP = '{i}. x{i} = FIND(CTX, "the dog") : Find it\n'
LARGE = {
    "steps": lambda n: "".join(STEP.format(i=i) for i in range(1, n)),
    "steps with errors": lambda n: "".join(
        f"{i}. x{i} = FINDX(CTX, y{i} : z\n" for i in range(1, n)
    ),
    "prose": lambda n: "Let me think of the dog (and of CTX) first.\n" * n + STEP.format(i=1),
    "fences": lambda n: f"```\n{STEP.format(i=1)}```\n" * n,
    "nested lists": lambda n: f"1. a = FIND(CTX, {'[' * n * 10}) : x",
    "nested calls": lambda n: f"1. a = {'FIND(CTX, ' * n}CTX{')' * n} : x",
    "a long literal": lambda n: f'1. a = FIND(CTX, "{"dog " * n * 10}") : x',
    "digits": lambda n: f"1. a = FIND(CTX, {'9' * n * 10}) : x",
    "NULs": lambda n: "\0" * n * 10 + STEP.format(i=1),
    "quotation marks": lambda n: "1. a = FIND(CTX, " + "“" * n * 10,
    "headings": lambda n: "New actions:\n- None\n" * n + STEP.format(i=1),
    "blanks": lambda n: f"1. a = FIND({' ' * n * 10}CTX : x",
}


@pytest.mark.row("R13", "plans of 10,000 lines take linear time")
def test_time_is_linear_in_the_length_of_a_plan(trial: Trial) -> None:
    rows: list[dict[str, float | str]] = []
    libraries()
    for name, make in LARGE.items():
        seconds = Counter[int]()
        for n in (2_500, 10_000):
            for _ in range(2):
                start = time.process_time()
                for tolerant in b" ", b"":  # an odd length is read tolerantly
                    data = make(n).encode()
                    data += tolerant if len(data) % 2 == 0 else b""
                    with suppress(PlanError):
                        plans(data)
                taken = time.process_time() - start
                seconds[n] = min(seconds[n] or taken, taken)
        rows.append(
            {
                "plan": name,
                "seconds": round(seconds[10_000], 2),
                "growth": round(seconds[10_000] / seconds[2_500], 1),
            }
        )
    trial.table("plans", rows)
    trial.figure(
        "growth of time over 4 times the length",
        max(float(row["growth"]) for row in rows),
        at_most=8,
    )
