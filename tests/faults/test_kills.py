"""Commands that are killed or stopped: at a random time, at each system call, by Ctrl-C."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter

import pytest

from pearl.cli.run_commands import ONCE_S
from tests.faults.programs import WORKS, Lab, files, kept_keys
from tests.skips import needs_strace
from tests.suite import Trial

AT_ONCE = 8
IN_ONE_PIECE = {"documents", "rows of one document", "export"}
"""Works whose file appears when it is whole."""


@pytest.mark.row("R15", "SIGKILL at a random time")
@pytest.mark.parametrize("name", WORKS)
def test_killed_runs(trial: Trial, lab: Lab, name: str) -> None:
    """The same command is given again until it ends by itself; then the next run begins."""
    work = WORKS[name]
    lab.server.delay_s = 0.005
    for _ in range(2):  # the first one imports more
        folder, start_s = lab.folder(work), time.monotonic()
        program = lab.programs.run(folder, *lab.args(work, folder))
        whole_s = time.monotonic() - start_s
    expected, n_expected, expected_files = (
        lab.result(work, folder, program),
        lab.n_calls,
        files(folder),
    )
    n_kills, n_wanted = 0, trial.n(ci=10, nightly=125, release=12_500)
    n: Counter[str] = Counter()
    while n_kills < n_wanted:
        n["runs"] += 1
        folder, before, n_earlier = lab.folder(work), set[bytes](), n_kills
        args = lab.args(work, folder)
        while True:
            program = lab.programs.start(folder, *args)
            time.sleep(trial.random.uniform(0, whole_s))
            program.signal(signal.SIGKILL)
            code = program.wait()
            n["errors"] += code not in (0, -9)
            if code >= 0:
                break
            n_kills += 1
            keys = kept_keys(folder)
            n["lost"] += len(before - keys)
            before = keys
            if name in IN_ONE_PIECE and (folder / str(work.result)).exists():
                n["halves"] += lab.result(work, folder, program) != expected
        n["different"] += lab.result(work, folder, program) != expected
        n["extra"] += max(0, lab.n_calls - n_expected - AT_ONCE * (n_kills - n_earlier))
        n["again"] += lab.n_calls - n_expected
        n["left"] += len(files(folder) - expected_files)
    trial.figure("kills", n_kills, at_least=n_wanted)
    trial.figure("runs", n["runs"])
    trial.figure("replies, rows and vectors lost", n["lost"], at_most=0)
    trial.figure("different results", n["different"], at_most=0)
    trial.figure("half-written files", n["halves"], at_most=0)
    trial.figure("ends with an error", n["errors"], at_most=0)
    trial.figure("calls made again", n["again"])
    trial.figure("calls beyond kills x concurrency", n["extra"], at_most=0)
    trial.figure("files left behind", n["left"])


CHANGING = "write,pwrite64,fsync,fdatasync,rename,unlink,ftruncate,link"
"""System calls that change files or make changes permanent."""


@needs_strace
@pytest.mark.row("R16", "SIGKILL at each system call that changes a file")
@pytest.mark.parametrize("name", ["documents", "embeddings", "batches", "export", "index"])
def test_killed_at_system_calls(trial: Trial, lab: Lab, name: str) -> None:
    """The k-th call of its kind in a thread never happens; then the same command is given again."""
    work = WORKS[name]
    lab.n_documents = 4
    # Not traced: only the first command of a checkout writes the bytecode of modules.
    lab.programs.run(folder := lab.folder(work), *lab.args(work, folder))
    folder = lab.folder(work)
    code, log, program = lab.programs.trace(
        folder, *lab.args(work, folder), by=[f"-etrace={CHANGING}"]
    )
    assert code == 0, program.stderr
    expected, n_expected = lab.result(work, folder, program), lab.n_calls
    by_thread = Counter(re.findall(r"^(\d+) +(\w+)\(", log, re.MULTILINE))
    most: Counter[str] = Counter()
    for (_, call), n_calls in by_thread.items():
        most[call] = max(most[call], n_calls)
    points = [(call, k) for call in sorted(most) for k in range(1, most[call] + 1)]
    step = trial.n(ci=10, nightly=1, release=1)
    n: Counter[str] = Counter()
    for call, k in points[trial.random.randrange(min(step, len(points))) :: step]:
        folder = lab.folder(work)
        args, inject = lab.args(work, folder), f"-einject={call}:signal=KILL:when={k}"
        code, _, program = lab.programs.trace(folder, *args, by=[f"-etrace={call}", inject])
        n["kills"] += code == -signal.SIGKILL
        n["errors"] += code not in (0, -signal.SIGKILL)
        keys = kept_keys(folder)
        if (folder / str(work.result)).is_file():
            n["halves"] += lab.result(work, folder, program) != expected
        program = lab.programs.run(folder, *args)
        n["lost"] += len(keys - kept_keys(folder))
        n["different"] += lab.result(work, folder, program) != expected
        n["extra"] += max(0, lab.n_calls - n_expected - AT_ONCE)
    trial.figure("kills", n["kills"], at_least=1)
    trial.figure("system calls of a run that change files", len(points))
    trial.figure("replies, rows and vectors lost", n["lost"], at_most=0)
    trial.figure("different results", n["different"], at_most=0)
    trial.figure("half-written files", n["halves"], at_most=0)
    trial.figure("ends with an error", n["errors"], at_most=0)
    trial.figure("calls beyond the concurrency", n["extra"], at_most=0)


@pytest.mark.row("R17", "Ctrl-C once and twice, SIGTERM")
@pytest.mark.parametrize("how", ["Ctrl-C", "Ctrl-C twice", "SIGTERM"])
def test_stopped_runs(trial: Trial, lab: Lab, how: str) -> None:
    """The run is stopped amid its calls, which the server holds, and resumed by the command that it names."""
    work, n_runs = WORKS["documents"], trial.n(ci=5, nightly=70, release=700)
    lab.n_documents = 20
    folder = lab.folder(work)
    expected = lab.result(work, folder, lab.programs.run(folder, *lab.args(work, folder)))
    n: Counter[str] = Counter()
    for _ in range(n_runs):
        folder = lab.folder(work)
        n_held = lab.server.hold_after = trial.random.randrange(1, 30)
        program = lab.programs.start(folder, *lab.args(work, folder))
        while len(lab.server.requests) <= n_held:
            time.sleep(0.01)
        program.signal(signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
        if how == "Ctrl-C twice":
            while "press Ctrl-C again" not in program.stderr:
                time.sleep(0.01)
            time.sleep(2 * ONCE_S)  # two at once count as one
            program.signal(signal.SIGINT)
        else:
            lab.server.hold_after = None
        code = program.wait()
        lab.server.hold_after = None
        expected_code = 143 if how == "SIGTERM" else 130
        n["wrong ends"] += code != expected_code or any(
            word in program.stderr for word in ("Traceback", "a bug in PEARL")
        )
        resume = re.search(r"resume it: pearl (runs resume \S+)", program.stderr)
        n["without a command"] += resume is None
        keys = kept_keys(folder)
        args = (
            [*resume[1].split(), "--store", "kept", "--yes"] if resume else lab.args(work, folder)
        )
        program = lab.programs.run(folder, *args)
        n["lost"] += len(keys - kept_keys(folder))
        n["different"] += lab.result(work, folder, program) != expected
        n["extra"] += max(0, lab.n_calls - 2 * lab.n_documents - AT_ONCE)
    trial.figure("runs", n_runs)
    trial.figure("ends with another exit code or a traceback", n["wrong ends"], at_most=0)
    trial.figure("ends that name no command to resume", n["without a command"], at_most=0)
    trial.figure("replies and rows lost", n["lost"], at_most=0)
    trial.figure("different results", n["different"], at_most=0)
    trial.figure("calls beyond the concurrency", n["extra"], at_most=0)
