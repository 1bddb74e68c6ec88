"""Fuzzed inputs of every reader: each is read, or refused with a documented error of at most three lines."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress

import pytest

from pearl.errors import PlanError
from tests.faults.fuzzing import TARGETS, plans, read_plan
from tests.suite import Trial

CALL = "1. ans = FIND(CTX, "
STEP = CALL + '"x") : y\n'

TEXTS = {
    # name: (what comes before, what is repeated, what comes after); {} counts
    "steps": ("", '{}. a{} = FIND(CTX, "x") : y\n', ""),
    "steps with lapses": ("", "{}) a{} = FIND( CTX, 'x')\n", ""),
    "steps that mean nothing": ("", "{}. a{} = FINDX(b{}) : y\n", ""),
    "declarations": ("New actions:\n", "- F{}(X) : y\n", "\n" + STEP),
    "declarations without a heading": ("", "- F{}(X) : y\n", STEP),
    "bullets": ("", "- F(X) : y\n", ""),
    "numbered prose": ("", "1. foo\n", "\n" + STEP),
    "names": (CALL, "a{}, ", "b) : x"),
    "the same name": (CALL, "a, ", "b) : x"),
    "parameters": ("New actions:\n- F(", "X, ", "...) : y"),
    "quotes": ("", '"', ""),
    "quotes in a call": (CALL, '"', ""),
    "quoted words in a string": (CALL + '"', ' "a" b', '")'),
    "quoted words in a string not closed": (CALL + '"', ' "a" b', ""),
    "smart quotes": (CALL, "“", ""),
    "single quotes and blanks": (CALL + "'a", "' ", ""),
    "backslashes": ("", "\\", ""),
    "backslashes in a string": (CALL + '"', "\\", '")'),
    "unknown escapes": (CALL + '"', "\\d", '") : x'),
    "characters in two halves": (CALL + '"', "\\ud83d\\ude00", '") : x'),
    "control characters": (CALL + '"', "\x07a", '") : x'),
    "opening parentheses": ("", "(", ""),
    "opening parentheses in a call": (CALL, "(", ""),
    "closing parentheses": (CALL + '"x"', ")", " : x"),
    "parentheses after a call": (CALL + '"x") (', ").", "x"),
    "brackets": (CALL, "[", ""),
    "items": (CALL + "[", "a,", ""),
    "commas": (CALL, ",", ""),
    "blanks": ("", " ", ""),
    "blanks in a call": (CALL, " ", ""),
    "blanks after a call": (CALL + '"x")', " ", "x"),
    "blanks after a number": ("1", " ", "x"),
    "blanks in a heading": ("new", " ", "x"),
    "digits": ("", "1", ""),
    "digits in a call": (CALL, "1", ""),
    "a = ": ("", "a = ", ""),
    "a = in lines": ("", "a = \n", ""),
    "capitals": ("1. ", "A", ""),
    "words": ("1. ", "A ", ""),
    "marks": ("", "*", "question"),
    "marks after a step": (f'**{CALL}"x") : x', " *", "x"),
    "line breaks": ("", "\n", ""),
    "fences": ("", "```\n", ""),
    "steps in fences": ("", '```\n{}. a{} = FIND(CTX, "x") : y\n```\n', ""),
    "headings": ("", "New actions:\n", ""),
    "a question": ("Question: ", "x", "\x07"),
}
"""Texts that are slow to read unless reading is linear."""


def text_of(kind: str, length: int) -> str:
    """A text of one kind, of about so many characters."""
    before, unit, after = TEXTS[kind]
    units = (unit.replace("{}", str(i)) for i in range(1, length // len(unit)))
    return before + "".join(units) + after


FOUND = [
    ("response_bodies", b'{"ch\xed\xa0\x80oices": []}'),
    ("jsonl_documents", b'{}\n{"id": 2, "text": "b"}\n'),
    ("typed_replies", b"; ;"),
    ("typed_replies", b'[{"animal": "dog", "quote": "The farmer has a dog"}, true]'),
    ("extracted_records", b'{"age": 1e' + b"1" * 30 + b"}"),
    ("extracted_records", b'{"name": {"value": "Ada, ]}, \\\0'),
    ("extracted_records", b'{"name": {"value": "A`,]},\\\0 d"},"},'),
    ("composed_answers", b"It leaked [1] {nn [2]o } and {n}."),
    ("queries", b'{"aggregate": [{"function": "sum", "column": ""}]}'),
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
    trial.figure("inputs", sum(int(row["inputs"]) for row in rows))
    trial.figure("readers", len(rows))
    report(trial, problems)


@pytest.mark.row("R9", "fuzzed bodies of responses")
def test_no_body_is_taken_for_a_reply(trial: Trial) -> None:
    n = trial.n(ci=5_000, nightly=100_000, release=1_000_000)
    n_accepted, problems = tried(trial, "response_bodies", n)
    trial.figure("bodies", n)
    trial.figure("accepted, with a text", n_accepted)
    report(trial, problems)


@pytest.mark.row("R13", "broken plans")
@pytest.mark.parametrize("half", [1, 2], ids="half {}".format)
def test_a_broken_plan_is_a_plan_error_with_its_place(trial: Trial, half: int) -> None:
    n = trial.n(ci=10_000, nightly=500_000, release=5_000_000)
    n_accepted, problems = tried(trial, "plans", n)
    trial.figure("plans", n)
    trial.figure("still valid", n_accepted)
    report(trial, problems)


@pytest.mark.row("R13", "reading time against the length of a plan")
def test_time_is_linear_in_the_length_of_a_plan(trial: Trial) -> None:
    length = trial.n(ci=40_000, nightly=400_000, release=1_000_000)
    growth = Counter[str]()
    plans(STEP.encode())
    for kind in TEXTS:
        for _ in range(3):  # a busy machine slows some of them down
            short, long = (seconds(text_of(kind, n)) for n in (length // 4, length))
            growth[kind] = min(growth[kind] or 99, round(long / max(short, 1e-3), 1))
            if growth[kind] < 8:
                break
    trial.figure("kinds of hostile plans", len(TEXTS))
    trial.figure("most steps", text_of("steps", length).count("\n"))
    trial.figure("times as long for 4 times the length", max(growth.values()), at_most=8)


def seconds(text: str) -> float:
    """Processor time of reading a plan strictly and tolerantly, and of reporting its errors."""
    start = time.process_time()
    for tolerant in (False, True):
        with suppress(PlanError):
            read_plan(text, tolerant=tolerant)
    return time.process_time() - start
