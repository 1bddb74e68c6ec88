"""`pearl eval` and `pearl compare`: logs, going on, refusals, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pearl.cli.run_commands import Stopper
from pearl.evals.log import read_log
from tests.cli.terminal import Terminal
from tests.server import Server

STORY = (
    "Nils left the harbour at dawn.\n\nHe sold the boat because the hull was rotten. "
    "Ada kept the oars in the barn.\n\nThe buyer paid with a clock that had no hands."
)
OPTIONS = ["The hull was rotten", "He was tired", "Ada asked him to", "It had sunk"]
PLAN = 'New actions:\n- None\n\n1. ans = FIND_REASON(CTX, "the sale") : Find why'


@pytest.fixture
def pearl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pearl.evals.stats.N_RESAMPLES", 400)
    data([row(i) for i in range(4)])
    return Terminal(tmp_path, capsys)


def row(i: int, **fields: Any) -> dict[str, Any]:
    known = {
        "id": f"q{i}", "question": f"Why did Nils sell boat {i}?",
        "document": f"{STORY} It was boat {i}.",
        "options": OPTIONS, "gold": "A",
    }  # fmt: skip
    return {**known, **fields}


def data(rows: list[Any], name: str = "data.jsonl") -> None:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def served(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, with a plan for every question, an answer and the letter A."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    openai_server.on("Write the plan for this question", PLAN)
    openai_server.on("Reply with the letter", "A")
    openai_server.on("weigh every option", "> rotten\nAnswer: A")
    openai_server.on(".", "It was rotten.")
    return openai_server


def online(server: Server) -> tuple[str, ...]:
    return ("--model", "openai:test-model", "--base-url", server.url)


def test_the_embedded_model_is_scored(pearl: Terminal) -> None:
    found = pearl.json("eval", "--data", "data.jsonl", "--methods", "pearl,direct,mcq", "-o", "l")
    assert [r["method"] for r in found["rows"]] == ["pearl", "direct", "mcq"]
    assert [r["n"] for r in found["rows"]] == [4, 4, 4]
    assert found["chance"] == 0.25
    assert found["header"]["methods"] == ["pearl", "direct", "mcq"]
    assert {each["n_tests"] for each in found["comparisons"]} == {3}
    log = read_log("l")
    for r in found["rows"]:
        assert r["n_correct"] == sum(one.is_correct for one in log.of(r["method"]))
    table = pearl("eval", "--data", "data.jsonl", "--methods", "pearl,direct,mcq")
    assert "guessing gets 25.0 %" in table
    assert table.rstrip().endswith("p: Holm over 3 pairs")


def test_failures_are_counted_told_and_tried_again(pearl: Terminal, served: Server) -> None:
    served.next("400")
    args = ("eval", "--data", "data.jsonl", *online(served), "--methods", "mcq", "-o", "l")
    found = pearl.json(*args, "--concurrency", "1", code=1)
    (counted,) = found["rows"]
    assert (counted["n"], counted["n_failed"], counted["n_correct"]) == (4, 1, 3)
    assert found["errors"][0]["n"] == 1
    assert len(served.requests) == 4
    (counted,) = pearl.json(*args)["rows"]
    assert (counted["n"], counted["n_failed"], counted["n_correct"]) == (4, 0, 4)
    assert len(served.requests) == 5
    assert len(Path("l").read_text("utf-8").splitlines()) == 5
    pearl(*args)
    assert len(served.requests) == 5


def test_prices_and_scorers_make_no_call(pearl: Terminal, served: Server) -> None:
    args = ("eval", "--data", "data.jsonl", *online(served), "--methods", "mcq", "-o", "l")
    pearl(*args)
    n_asked = len(served.requests)
    assert {one.cost_usd for one in read_log("l").records} == {None}
    pearl(*args, "--price", "input=1,cached=0,output=10", "--scorer", "f1")
    assert all(one.cost_usd for one in read_log("l").records)
    assert read_log("l").header.scorer == "f1"
    assert len(served.requests) == n_asked
    pearl("eval", "--rescore", "l", "--scorer", "exact", "-o", "again")
    assert read_log("again").header.scorer == "exact"


def test_a_limit_ends_an_evaluation_and_fails_no_record(pearl: Terminal, served: Server) -> None:
    args = ("eval", "--data", "data.jsonl", *online(served), "--methods", "pearl", "-o", "l")
    table = pearl(*args, "--dry-run", "--price", "input=2,output=8").splitlines()
    assert [line.split()[-1] for line in table[2:4]] == ["unknown", "unknown"]  # US dollars
    found = pearl.json(*args, "--dry-run")
    assert (found["n_tasks"], found["total"]["calls"]) == (4, {"least": 4, "most": None})
    assert served.requests == []
    pearl(*args, "--max-calls", "7", "--concurrency", "1", code=7)
    assert len(served.requests) == 7
    done = read_log("l").records
    assert {one.status for one in done} == {"answered"}
    assert f"stopped with {4 - len(done)} left" in pearl.talk
    pearl(*args)
    log = read_log("l")
    assert log.records[: len(done)] == done
    # What was paid for before counts in full, and is not paid for again.
    assert [one.n_calls for one in log.records] == [3] * 4
    assert all(one.usage.n_input_tokens == 300 for one in log.records)
    assert len(served.requests) == 12


def test_bad_rows_are_told_and_the_rest_goes_on(pearl: Terminal) -> None:
    data([row(0), "no json", row(2, gold="Z"), row(3, gold=None), row(4)])
    pearl("eval", "--data", "data.jsonl", "--methods", "direct", "-o", "l", code=1)
    assert "3 rows left out; the first: data.jsonl:2: invalid JSON" in pearl.talk
    log = read_log("l")
    assert {r.sample for r in log.records} == {"q0", "q4"}
    assert (log.header.n_samples, log.header.n_bad_rows) == (2, 3)
    data([row(0, gold=None)])
    pearl("eval", "--data", "data.jsonl", code=3)
    assert "no sample can be evaluated" in pearl.talk


# --- what is kept of calls --------------------------------------------------------------------------


def test_a_log_says_who_replied_to_what_and_each_reply_is_found(
    pearl: Terminal, served: Server
) -> None:
    served.fingerprint = "fp_7"
    data([row(0)])
    args = ("eval", "--data", "data.jsonl", *online(served), "--methods", "pearl", "-o", "l")
    assert "replies of test-model-2026 (fp_7), temperature 0" in pearl(*args)
    (record,) = (log := read_log("l")).records
    assert [(call.purpose, call.step) for call in record.calls] == [
        ("plan", ""), ("step", "ans"), ("choose", ""),
    ]  # fmt: skip
    assert (
        log.header.prompts["pearl.planner.prompt"] != log.header.prompts["pearl.interpreter.prompt"]
    )
    shown = [
        json.loads(line)
        for line in pearl("runs", "reply", *(c.key for c in record.calls)).splitlines()
    ]
    assert [(one["model"], one["fingerprint"], one["temperature"]) for one in shown] == [
        ("test-model-2026", "fp_7", 0.0)
    ] * 3  # fmt: skip
    assert shown[0]["text"] == PLAN
    assert "Write the plan for this question" in shown[0]["prompt"]
    assert re.search(r"<text: \d+ characters>", shown[1]["prompt"])
    assert "harbour" not in shown[1]["prompt"]
    first = record.calls
    pearl(*args, "--methods", "pearl,direct")
    assert read_log("l").of("pearl")[0].calls == first
    pearl("runs", "reply", "0" * 64, code=8)
    assert "--store names the store" in pearl.talk
    pearl("runs", "reply", "../x", code=2)


# --- results, rescoring, comparing --------------------------------------------------------------


@pytest.mark.usefixtures("_no_waits")
def test_a_run_without_a_single_reply_is_an_error(pearl: Terminal) -> None:
    dead = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    pearl("eval", "--data", "data.jsonl", "--methods", "mcq", "-o", "l", *dead, code=5)
    assert "none of 4 records got a reply; the first error: ModelError" in pearl.talk
    assert {one.status for one in read_log("l").records} == {"failed"}


def test_what_is_left_is_of_this_run_alone(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pearl("eval", "--data", "data.jsonl", "--methods", "direct", "-o", "l")

    enter = Stopper.__enter__

    def at_once(self: Stopper) -> Stopper:
        enter(self).exit_code = 130
        return self

    monkeypatch.setattr(Stopper, "__enter__", at_once)
    pearl("eval", "--data", "data.jsonl", "--methods", "mcq", "-o", "l", code=130)
    assert "stopped with 4 left" in pearl.talk
