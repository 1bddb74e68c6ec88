"""Runs of many documents while the server fails: what is finished stays, what is not is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import pearl
from pearl.errors import PlanningError
from pearl.runs.executors import Task
from pearl.runs.store import Store
from pearl.runs.store.database import unpacked_reply
from tests.conftest import PROXIES
from tests.server import FAULTS, PAGE, Canned, Seen, Server, completion, error, quoting
from tests.suite import Trial

PLAN = """\
New actions:
- None

1. why = FIND(CTX, "why she leaves") : Find why
2. ans = FIND(CTX, why) : Find what came of it
"""
Rows = dict[str, dict[str, Any]]


def tasks(n: int) -> list[Task]:
    return [Task(f"d{i}", partial(pearl.Document, f"She left on day {i:05}."), plan=PLAN) for i in range(n)]  # fmt: skip


def reply(seen: Seen) -> Canned:
    """Every prompt has a reply of its own."""
    said = completion(f"The reason has the number {crc32(seen.prompt.encode())}.")
    return Canned(quoting(said, seen.prompt))


def rows_of(
    server: Server, folder: Path, work: Sequence[Task], *, url: str = "", **settings: Any
) -> Rows:
    """Run, or go on with the run: the rows in the store, by their task."""
    options = {"concurrency": 8, "first_wait_s": 0.002, "prefix": "off", **settings}
    asked = pearl.Pearl("openai:m", base_url=url or server.url, **options)

    async def main() -> None:
        try:
            await pearl.Session(asked, store=folder).run(work)
        finally:
            await asked.aclose()

    pearl.run(main())
    with Store.open(folder, read_only=True) as store:
        (info,) = store.runs()
        return {row["id"]: row for row in store.rows(info.id)}


def answers(rows: Rows) -> dict[str, Any]:
    return {id: (row["status"], row.get("answer")) for id, row in rows.items()}


STOPS: dict[str, tuple[Canned, int]] = {
    **{name: (FAULTS[name], 5) for name in ("401", "402", "403", "quota")},
    "billing": (Canned(error("limit", code="billing_hard_limit_reached"), 429), 5),
    "in two hours": (Canned(error("later"), 429, {"retry-after": "7200"}), 75),
}
"""What no call can get past, and the exit code."""


@pytest.mark.row("R3", "a spent quota, a rejected key, a wait of hours: the run pauses")
def test_runs_pause(trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    names = trial.random.sample(list(STOPS), trial.n(ci=2, nightly=len(STOPS), release=len(STOPS)))
    n_documents = 6
    (tmp_path / "why.plan").write_text(PLAN)
    documents = [f"d{i}.txt" for i in range(n_documents)]
    for name in documents:
        (tmp_path / name).write_text(f"She left on the day of {name}.")
    figures: Counter[str] = Counter()
    for name in names:
        for n_at_once in (1, 4):
            sent, code = STOPS[name]
            out = f"{name} {n_at_once}.jsonl"
            n_answered = trial.random.randrange(2 * n_documents - 4)

            def execute() -> subprocess.CompletedProcess[str]:
                openai_server.requests.clear()
                command = ["execute", "why.plan", *documents, "--out", out, "--store", f"{out} kept"]  # noqa: B023  # fmt: skip
                model = ["--model", "openai:m", "--base-url", openai_server.url]
                return subprocess.run(
                    [sys.executable, "-m", "pearl", *command, *model, "--concurrency", f"{n_at_once}"],  # noqa: B023
                    cwd=tmp_path, capture_output=True, text=True, check=False,
                )  # fmt: skip

            def answer(seen: Seen) -> Canned:
                return sent if len(openai_server.requests) > n_answered else reply(seen)  # noqa: B023

            openai_server.answer = answer
            paused = execute()
            n_paid = min(n_answered, len(openai_server.requests))
            figures["calls after the first that failed, beyond those in flight"] += max(0, len(openai_server.requests) - n_answered - n_at_once)  # fmt: skip
            figures["wrong exit codes"] += paused.returncode != code
            said = paused.stderr
            figures["messages without the way to go on"] += "pearl runs resume " not in said
            figures["tracebacks"] += any(word in said for word in ("Traceback", "a bug in PEARL"))
            openai_server.answer = reply
            done = execute()
            figures["wrong exit codes"] += done.returncode != 0
            n_twice = n_paid + len(openai_server.requests) - 2 * n_documents
            figures["replies paid for twice, beyond those in flight"] += max(0, n_twice - n_at_once + 1)  # fmt: skip
            rows = [json.loads(line) for line in (tmp_path / out).read_text().splitlines()]
            figures["rows lost"] += n_documents - sum(row["status"] == "answered" for row in rows)
    trial.figure("runs", 2 * len(names))
    for name, value in figures.items():
        trial.figure(name, value, at_most=0)


@pytest.mark.row("R4", "three in ten answers are errors of the server (500, 502, 503, 504, 529)")
def test_server_errors(trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    n_documents = trial.n(ci=500, nightly=5_000, release=50_000)
    work, attempts, n_places = tasks(n_documents), 4, 32
    openai_server.answer = reply
    expected = answers(rows_of(openai_server, tmp_path / "calm", work, concurrency=n_places))
    openai_server.requests.clear()
    n_failed: Counter[str] = Counter()

    def fail(seen: Seen) -> Canned:
        if n_failed[seen.prompt] < attempts - 1 and trial.random.random() < 0.31:
            n_failed[seen.prompt] += 1
            status = trial.random.choice((500, 502, 503, 504, 529))
            return Canned(trial.random.choice((b"", PAGE, error("overloaded"))), status)
        return reply(seen)

    openai_server.answer, openai_server.n_at_once, openai_server.delay_s = fail, 0, 0.005
    rows = rows_of(openai_server, tmp_path / "faulty", work, concurrency=n_places)
    n_calls = len(openai_server.requests)
    trial.figure("calls", n_calls)
    trial.figure("share that failed", n_failed.total() / n_calls, at_least=0.25)
    different = {id for id in expected if answers(rows).get(id) != expected[id]}
    trial.figure("documents lost or changed", len(different), at_most=0)
    most = max(Counter(seen.prompt for seen in openai_server.requests).values())
    trial.figure("most calls for a step", most, at_most=attempts)
    trial.figure("calls at once, of 32", openai_server.n_at_once, at_least=n_places * 0.9)
    trial.figure("steps paid for twice", n_calls - n_failed.total() - 2 * n_documents, at_most=0)


@pytest.mark.row("R5", "no server, no name, no trusted connection, a reset before any answer")
@pytest.mark.parametrize("fault", ["refused", "unknown name", "TLS", "reset"])
def test_connections_that_fail(
    fault: str, trial: Trial, openai_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    n_documents = trial.n(ci=8, nightly=100, release=1_000)
    work = tasks(n_documents)
    openai_server.answer = reply
    port = openai_server.url.split(":")[2]
    url = {"unknown name": f"http://nowhere.invalid:{port}", "TLS": f"https://127.0.0.1:{port}"}.get(fault, openai_server.url)  # fmt: skip
    if fault == "refused":
        openai_server.stop()
    if fault == "reset":
        openai_server.answer = lambda seen: FAULTS["reset"] if "finish" in seen.prompt or crc32(seen.data) % 2 else reply(seen)  # fmt: skip
    settings = {"url": url, "attempts": 2}
    failed = rows_of(openai_server, tmp_path, work, **settings)
    said = {row["error"]["message"] for row in failed.values() if row["status"] == "failed"}
    words = {"refused": "no server at", "unknown name": "no such host", "reset": "closed the connection",
             "TLS": "no trusted connection to .*: the server ended the connection in the handshake"}  # fmt: skip
    trial.figure("documents", n_documents)
    trial.figure("failures", sum(row["status"] == "failed" for row in failed.values()), at_least=1)
    trial.figure("errors of another kind", sum(not re.search(words[fault], message) for message in said), at_most=0)  # fmt: skip
    if fault in ("refused", "reset"):
        n_paid = sum(step["calls"] for row in failed.values() for step in row.get("steps", ()))
        if fault == "refused":
            openai_server.start()
        openai_server.answer = reply
        openai_server.requests.clear()
        done = rows_of(openai_server, tmp_path, work, **settings)
        expected = answers(rows_of(openai_server, tmp_path / "calm", work))
        trial.figure("documents lost or changed", sum(answers(done).get(id) != expected[id] for id in expected), at_most=0)  # fmt: skip
        trial.figure("calls for documents that were finished", max(0, len(openai_server.requests) - 4 * n_documents + n_paid), at_most=0)  # fmt: skip


@pytest.mark.parametrize(
    ("names", "statuses", "most_calls"),
    [
        pytest.param(("null content", "empty content", "blank content", "no choices"), {"failed"}, 4,
                     marks=pytest.mark.row("R10", "a reply without a text"), id="blank"),
        pytest.param(("cut", "cut while thinking"), {"undecided", "failed", "degraded"}, 2,
                     marks=pytest.mark.row("R11", "a reply that ends at its limit"), id="cut"),
        pytest.param(("content filter", "refusal", "filtered prompt"), {"refused", "failed"}, 2,
                     marks=pytest.mark.row("R12", "a reply that is filtered or refused"), id="refused"),
    ],
)  # fmt: skip
def test_replies_that_are_no_answers(
    names: Sequence[str], statuses: set[str], most_calls: int, trial: Trial, openai_server: Server, tmp_path: Path,
) -> None:  # fmt: skip
    n_documents = trial.n(ci=60, nightly=1_000, release=10_000)
    work = tasks(n_documents)
    openai_server.answer = reply
    expected = answers(rows_of(openai_server, tmp_path / "calm", work))
    openai_server.requests.clear()
    hit = {f"{i:05}": names[i % len(names)] for i in range(0, n_documents, 3)}

    def fail(seen: Seen) -> Canned:
        day = re.search(r"on day (\d{5})", seen.prompt)
        return FAULTS[hit[day[1]]] if day and day[1] in hit else reply(seen)

    openai_server.answer = fail
    rows = rows_of(openai_server, tmp_path / "faulty", work)
    of_hit = [row for id, row in rows.items() if f"{int(id[1:]):05}" in hit]
    trial.figure("documents", n_documents)
    trial.figure("documents whose replies are no answers", len(of_hit), at_least=len(hit))
    trial.figure(
        "taken for an answer", sum(row["status"] not in statuses for row in of_hit), at_most=0
    )
    others = [id for id in expected if f"{int(id[1:]):05}" not in hit]
    trial.figure("other documents lost or changed", sum(answers(rows).get(id) != expected[id] for id in others), at_most=0)  # fmt: skip
    most = max(Counter(seen.prompt for seen in openai_server.requests).values())
    trial.figure("most calls for a prompt", most, at_most=most_calls)
    with Store.open(tmp_path / "faulty", read_only=True) as store:
        bodies = [unpacked_reply(*row) for row in store.all("SELECT key, body FROM replies")]
    trial.figure("such replies stored", sum(body is None or "reason" not in body.text for body in bodies), at_most=0)  # fmt: skip


@pytest.mark.row("R14", "plans whose repair keeps failing")
def test_plans_that_stay_broken(trial: Trial, openai_server: Server, tmp_path: Path) -> None:
    n_questions, max_repairs = trial.n(ci=40, nightly=1_000, release=10_000), 3
    head = "New actions:\n- None\n\n"
    good = f'{head}1. ans = FIND(CTX, "why she leaves") : Find it'
    broken = (
        "I cannot plan that.", f"{head}1. ans = NOSUCH(CTX) : x", f"{head}1. ans = FIND(CTX, other) : x",
        f"{head}1. ans = FIND(CTX, ans) : x", f"{head}1. ans = FIND(CTX", head, "1. ans = FIND() : x",
        f"{good}\n2. b = FIND(CTX, a) : x", "```\n{}\n```", f"{head}1. ans = FIND(CTX, {'(' * 900}",
    )  # fmt: skip

    def answer(seen: Seen) -> Canned:
        number = re.search(r"day (\d+)x", seen.prompt)
        if "New actions" not in seen.prompt:
            return reply(seen)
        return Canned(completion(trial.random.choice(broken) if number and int(number[1]) % 2 else good))  # fmt: skip

    openai_server.answer = answer
    questions = [Task(f"q{i}", partial(pearl.Document, "She left."), f"Why on day {i}x?") for i in range(n_questions)]  # fmt: skip
    rows = rows_of(
        openai_server,
        tmp_path,
        questions,
        max_repairs=max_repairs,
        is_shared=False,
        fallback="none",
    )
    plannings = Counter(m[1] for seen in openai_server.requests if "New actions" in seen.prompt and (m := re.search(r"day (\d+)x", seen.prompt)))  # fmt: skip
    trial.figure("questions", n_questions)
    most = 2 * (1 + max_repairs)  # what refuses to plan is asked once more
    trial.figure("most calls for the plan of a question", max(plannings.values()), at_most=most)
    odd = [rows[f"q{i}"] for i in range(1, n_questions, 2)]
    trial.figure("broken plans that ran", sum(row["status"] != "failed" for row in odd), at_most=0)
    trial.figure("errors of another kind", sum(row["error"]["exit_code"] != PlanningError.exit_code for row in odd if row["status"] == "failed"), at_most=0)  # fmt: skip
    even = [rows[f"q{i}"] for i in range(0, n_questions, 2)]
    trial.figure("other questions lost", sum(row["status"] != "answered" for row in even), at_most=0)  # fmt: skip
