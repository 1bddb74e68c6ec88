"""Traces grow as things happen: what kills a command leaves what it did until then, in whole lines."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from pearl import Trace, read_trace
from pearl.cli.writing import GrowingFile, OutputWriter
from pearl.errors import UsageError
from pearl.trace import StepFailed
from tests.cli.terminal import Terminal
from tests.cli.test_kept import PLAN as TWO_STEPS
from tests.cli.test_kept import wait_for
from tests.server import Canned, Server, completion, quoting

QUESTION = "Why did Nils sell the boat?"


def online(server: Server) -> list[str]:
    return ["--model", "openai:test-model", "--base-url", server.url, "--concurrency", "1"]


def killed(server: Server, n: int, *command: str) -> list[Trace]:
    """The trace of a command that is killed while it waits for the reply after `n`."""
    server.hold_after = n
    with subprocess.Popen(
        [sys.executable, "-m", "pearl", *command, *online(server), "--trace", "trace.jsonl"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        wait_for(server, n + 1, child)
        child.kill()
    assert child.returncode == -signal.SIGKILL
    server.hold_after = None
    return read_trace("trace.jsonl")


def events(traces: list[Trace]) -> Counter[str]:
    return Counter(event.event for trace in traces for event in trace)


@pytest.mark.slow
def test_a_killed_run_leaves_a_trace_and_writes_a_whole_one_in_the_end(
    pearl: Terminal, openai_server: Server
) -> None:
    for name in "abcd":
        Path(f"{name}.txt").write_text(f"She left on day {name}.", encoding="utf-8")
    Path("two.plan").write_text(TWO_STEPS, encoding="utf-8")
    command = ["execute", "two.plan", *(f"{name}.txt" for name in "abcd"), "--out", "o.jsonl"]
    traces = killed(openai_server, 5, *command)
    assert events(traces)["model_called"] >= 4  # that of the fifth reply may be on its way
    traced = [*online(openai_server), "--trace", "trace.jsonl"]
    seen: list[list[Trace]] = []
    openai_server.answer = lambda asked: (
        seen.append(read_trace("trace.jsonl")) or Canned(quoting(completion(), asked.prompt))  # type: ignore[func-returns-value]
    )
    pearl(*command, *traced)
    # As long as it goes on the file has what is done, from before, too.
    assert events(seen[-1])["run_finished"] >= events(traces)["run_finished"]
    whole = read_trace("trace.jsonl")
    assert [trace.id for trace in whole] == [f"{name}.txt" for name in "abcd"]
    n = events(whole)
    assert (n["model_called"], n["run_finished"]) == (8, 4)
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "export", run["id"], "--trace", "again.jsonl", "-o", "again.rows.jsonl")
    assert Path("again.jsonl").read_bytes() == Path("trace.jsonl").read_bytes()


@pytest.mark.parametrize("command", [["plan", QUESTION], ["ask", QUESTION, "story.txt"]])
def test_a_command_that_comes_to_nothing_leaves_the_trace_of_before(
    pearl: Terminal, command: list[str]
) -> None:
    Path("a.actions").write_text("FIND_REASON(CTX, X) : Find why X\n", encoding="utf-8")
    command = [*command, "--library", "a.actions", "--trace", "trace.jsonl", "--force"]
    pearl(*command)
    before = Path("trace.jsonl").read_bytes()
    assert before
    Path("a.actions").unlink()
    pearl(*command, code=3)
    assert Path("trace.jsonl").read_bytes() == before
    assert not [path for path in Path().iterdir() if path.name.startswith(".trace")]


def test_what_somebody_puts_there_meanwhile_stays(pearl: Terminal) -> None:
    growing = GrowingFile(OutputWriter(), "trace.jsonl")
    Path("trace.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="exists already"), growing:
        growing.write("a line\n")
    assert Path("trace.jsonl").read_text(encoding="utf-8") == "mine"


def test_lines_of_several_writers_stay_whole(pearl: Terminal) -> None:
    trace = Trace()
    trace.append(StepFailed(step="a", error="x" * 20_000))
    (event,) = trace
    with GrowingFile(OutputWriter(), "trace.jsonl") as growing:

        def write(id: str) -> None:
            for _ in range(50):
                growing.append(id, event)

        writers = [threading.Thread(target=write, args=(f"{i}",)) for i in range(8)]
        growing.append("0", event)
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    traces = read_trace("trace.jsonl")
    assert sum(map(len, traces)) == 401
    assert {trace.id for trace in traces} == {f"{i}" for i in range(8)}


def test_a_full_disk_ends_the_writing_and_is_told_in_the_end(pearl: Terminal) -> None:
    told = pearl("ask", QUESTION, "story.txt", "-o", "answer.txt", "--trace", "/dev/full", code=3)
    assert told == ""
    assert "/dev/full: cannot be written: No space left on device" in pearl.talk
    assert "rotten" in Path("answer.txt").read_text(encoding="utf-8")  # which is paid for


def test_a_pipe_is_told_as_things_happen(pearl: Terminal) -> None:
    told = pearl("ask", QUESTION, "story.txt", "-o", "answer.txt", "--trace", "-")
    names = [json.loads(line)["event"] for line in told.splitlines()]
    assert (names[0], names[-1]) == ("plan_attempted", "run_finished")
    assert "model_progressed" not in names
