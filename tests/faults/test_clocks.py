"""Clocks that jump amid a run."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.faults.programs import WORKS, Lab, Programs
from tests.server import FAULTS, Canned
from tests.suite import Trial

CLOCK = """
import datetime, os, time
true_s = time.time
time.time = lambda: true_s() + float(open(os.environ["CLOCK"]).read())
time.time_ns = lambda: int(time.time() * 1e9)
class Datetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Datetime
"""
"""What Python reads of the clock is wrong by the seconds in a file. (libfaketime stops threads that wait.)"""
YEAR_S, AUTUMN_S = 31_556_952, datetime(2026, 10, 25, 0, 59, 58, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says how wrong the clock is."""
    path = tmp_path_factory.mktemp("clock") / "clock"
    path.write_text("0")
    return path


@pytest.fixture(scope="module")
def programs(clock: Path) -> Iterator[Programs]:
    """Commands that read that clock."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", "none-1")
        programs = Programs(clock.parent, CLOCK, CLOCK=str(clock), TZ="Europe/Berlin")
    yield programs
    programs.close()


def set_to(clock: Path, wrong_by_s: str) -> None:
    """Change the file at once: a program that reads it meanwhile finds a number."""
    part = clock.with_suffix(".part")
    part.write_text(wrong_by_s)
    part.replace(clock)


def durations(value: object) -> Iterator[float]:
    """All durations of a result."""
    match value:
        case dict():
            for name, inner in value.items():
                if name.endswith("_s") and isinstance(inner, int | float):
                    yield inner
                yield from durations(inner)
        case list():
            for inner in value:
                yield from durations(inner)


@pytest.mark.row(
    "R24", "the clock jumps during a run, between a kill and its resumption, and during waits"
)
@pytest.mark.parametrize(
    "jump",
    [
        pytest.param(3_600, id="1 h on"),
        pytest.param(-3_600, id="1 h back"),
        pytest.param(10 * YEAR_S, id="10 years on"),
        pytest.param(-10 * YEAR_S, id="10 years back"),
        pytest.param(None, id="end of summer time"),
    ],
)
def test_clock_that_jumps(trial: Trial, lab: Lab, clock: Path, jump: int | None) -> None:
    """None: to the end of summer time in Berlin, where an hour of the clock comes twice."""
    wrong_by = str(AUTUMN_S - time.time() if jump is None else jump)
    # What was found out about a server counts for a day: on another day it is asked first, and told to wait.
    work = WORKS["documents"]
    work = replace(work, args=(*work.args, "--constrain", "off"))
    lab.n_documents = 8
    set_to(clock, "0")
    expected, folder = lab.expected(work), lab.folder(work)
    args = [*lab.args(work, folder), "--trace", "trace.jsonl"]
    lab.server.hold_after = 3
    program = lab.programs.start(folder, *args)
    while len(lab.server.requests) <= 3:
        time.sleep(0.01)
    set_to(clock, wrong_by)
    lab.server.hold_after = 8  # it goes on, and is killed before it has ended
    while len(lab.server.requests) <= 8:
        time.sleep(0.01)
    program.signal(signal.SIGKILL)
    program.wait()
    lab.server.hold_after = None
    while lab.server.n_open:  # what was held is not answered by the replies that follow
        time.sleep(0.01)
    set_to(clock, "0")
    lab.server.next(*[Canned(FAULTS["429"].body, 429, {"retry-after": "1"})] * 2)
    program, start_s = lab.programs.start(folder, *args), time.monotonic()
    n_before = len(lab.server.requests)
    while len(lab.server.requests) <= n_before and program.is_alive:
        time.sleep(0.01)
    set_to(clock, wrong_by)  # amid the wait that the server asked for
    code = program.wait()
    took_s = time.monotonic() - start_s
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    events = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    listed = json.loads(
        lab.programs.run(folder, "runs", "list", "--store", "kept", "--json").stdout
    )
    trial.figure("runs that did not end well", code != 0, at_most=0)
    trial.figure("different results", lab.result(work, folder, program) != expected, at_most=0)
    trial.figure("runs in the store", len(listed), at_most=1)
    trial.figure(
        "negative durations", sum(s < 0 for s in durations([rows, events, listed])), at_most=0
    )
    trial.figure(
        "longest duration in seconds", max(durations([rows, events, listed])), at_most=3_000
    )
    trial.figure(
        "wait of 1 s asked for: seconds until the end", round(took_s, 1), at_least=0.9, at_most=30
    )
