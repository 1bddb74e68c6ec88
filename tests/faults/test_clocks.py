"""Clocks that jump amid a run."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.programs import WORKS, Lab, Programs, replying
from tests.server import FAULTS, Canned
from tests.skips import needs_faketime
from tests.suite import Trial


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The file that says how wrong the clock is."""
    path = tmp_path / "clock"
    path.write_text("+0")
    return path


@pytest.fixture
def lab(tmp_path: Path, clock: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A laboratory whose commands see that clock, and whose waits are those of this machine."""
    library = subprocess.check_output(["faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD"], text=True).strip()  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "none-1")
    (tmp_path / "outputs").mkdir()
    programs = Programs(
        tmp_path / "outputs", LD_PRELOAD=library, FAKETIME_TIMESTAMP_FILE=str(clock),
        FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", TZ="Europe/Berlin",
    )  # fmt: skip
    with replying() as server:
        yield Lab(programs, server, tmp_path)
    programs.close()


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


@needs_faketime
@pytest.mark.row("R24", "the clock jumps during a run, between a kill and its resumption, and during waits")
@pytest.mark.parametrize("jump", ["+3600", "-3600", "+10y", "-10y", "@2026-10-25 00:59:59"])
def test_clock_that_jumps(trial: Trial, lab: Lab, clock: Path, jump: str) -> None:
    """The last one is the end of summer time in Berlin, where an hour of the clock comes twice."""
    work = WORKS["documents"]
    lab.n_documents = 8
    expected, folder = lab.expected(work), lab.folder(work)
    args = [*lab.args(work, folder), "--trace", "trace.jsonl"]
    lab.server.hold_after = 3
    program = lab.programs.start(folder, *args)
    while len(lab.server.requests) <= 3:
        time.sleep(0.01)
    clock.write_text(jump)
    lab.server.hold_after = None
    time.sleep(0.05)
    program.signal(signal.SIGKILL)
    program.wait()
    clock.write_text("+0")
    lab.server.next(*[Canned(FAULTS["429"].body, 429, {"retry-after": "1"})] * 2)
    program, start_s = lab.programs.start(folder, *args), time.monotonic()
    n_before = len(lab.server.requests)
    while len(lab.server.requests) <= n_before and program.is_alive:
        time.sleep(0.01)
    clock.write_text(jump)  # amid the wait that the server asked for
    code = program.wait()
    took_s = time.monotonic() - start_s
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    events = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    listed = json.loads(lab.programs.run(folder, "runs", "list", "--store", "kept", "--json").stdout)
    trial.figure("runs that did not end well", code != 0, at_most=0)
    trial.figure("different results", lab.result(work, folder, program) != expected, at_most=0)
    trial.figure("runs in the store", len(listed), at_most=1)
    trial.figure("negative durations", sum(s < 0 for s in durations([rows, events, listed])), at_most=0)
    trial.figure("longest duration in seconds", max(durations([rows, events, listed])), at_most=3_000)
    trial.figure("wait of 1 s asked for: seconds until the end", round(took_s, 1), at_least=0.9, at_most=30)
