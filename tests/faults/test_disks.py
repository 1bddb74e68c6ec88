"""Disks that are full, read-only, broken, without locks or without power."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pearl.runs.store import Store
from tests.faults.programs import WORKS, Lab, Program, kept_keys
from tests.skips import needs_root, needs_strace
from tests.suite import Trial

LIMITED = """
import resource, sys
from pearl.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(run(sys.argv[2:]))
"""


@contextmanager
def mounted(at: Path, *options: str) -> Iterator[Path]:
    """A file system for the length of a block."""
    at.mkdir()
    subprocess.run(["mount", *options, str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def is_plain(code: int, program: Program) -> bool:
    """Whether a command ended well, or with an exit code of its own and a short message."""
    told = program.stderr.rpartition("pearl: ")[2]
    return (
        code in (0, 1, 3, 8)
        and not any(word in program.stderr for word in ("Traceback", "a bug in PEARL"))
        and len(told.splitlines()) <= 3
    )


def check_full(trial: Trial, lab: Lab, name: str, sizes: range, *, is_disk: bool) -> None:
    """Carry out a work where there is too little room, then again where there is enough."""
    work = WORKS[name]
    expected, n = lab.expected(work), Counter[str]()
    for number in range(trial.n(ci=4, nightly=34, release=340)):
        folder = lab.folder(work)
        args, n_bytes, filler = (
            lab.args(work, folder),
            trial.random.choice(sizes) if number else sizes[0],
            lab.disk / "filler",
        )
        if is_disk:
            free = os.statvfs(lab.disk)
            filler.write_bytes(bytes(max(0, free.f_bavail * free.f_bsize - n_bytes)))
            program = lab.programs.start(folder, *args)
        else:
            program = lab.programs.start(folder, "-c", LIMITED, str(n_bytes), *args)
        code = program.wait()
        n["failed"] += code != 0
        n["not plain"] += not is_plain(code, program)
        if code and work.result and (folder / work.result).is_file() and name != "eval":
            n["halves"] += lab.result(work, folder, program) != expected
        filler.unlink(missing_ok=True)
        keys = kept_keys(folder)
        program = lab.programs.run(folder, *args)
        n["lost"] += len(keys - kept_keys(folder))
        n["different"] += lab.result(work, folder, program) != expected
        shutil.rmtree(folder)
    trial.figure("runs without enough room", n["failed"], at_least=1)
    trial.figure("ends without a plain message", n["not plain"], at_most=0)
    trial.figure("half-written files", n["halves"], at_most=0)
    trial.figure("replies and rows lost", n["lost"], at_most=0)
    trial.figure("different results once there is room", n["different"], at_most=0)


@needs_root
@pytest.mark.row("R18", "disk full")
@pytest.mark.parametrize("name", ["documents", "embeddings", "export"])
def test_full_disk(trial: Trial, lab: Lab, name: str) -> None:
    lab.n_documents = 10
    with mounted(lab.disk / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as lab.disk:
        check_full(trial, lab, name, range(0, 150_000, 4_096), is_disk=True)


@pytest.mark.row("R18", "files may not grow (RLIMIT_FSIZE)")
@pytest.mark.parametrize("name", ["documents", "eval"])
def test_limited_files(trial: Trial, lab: Lab, name: str) -> None:
    lab.n_documents = 10
    check_full(trial, lab, name, range(1_000, 100_000), is_disk=False)


@needs_root
@pytest.mark.row("R19", "read-only folder")
@pytest.mark.parametrize("name", [name for name in WORKS if name != "batches"])
def test_read_only_disk(trial: Trial, lab: Lab, name: str) -> None:
    work = WORKS[name]
    lab.n_documents = 4
    expected = lab.expected(work)
    with mounted(lab.disk / "disk", "-t", "tmpfs", "tmpfs") as lab.disk:
        folder = lab.folder(work)
        args = lab.args(work, folder)
        subprocess.run(["mount", "-o", "remount,ro", str(lab.disk)], check=True)
        program = lab.programs.start(folder, *args)
        code = program.wait()
        is_told = "ead-only" in program.stderr or "cannot be" in program.stderr
        trial.figure("ends without a plain message", not is_plain(code, program), at_most=0)
        trial.figure("ends that do not name the cause", not is_told, at_most=0)
        trial.figure("calls paid for", lab.n_calls)
        subprocess.run(["mount", "-o", "remount,rw", str(lab.disk)], check=True)
        program = lab.programs.run(folder, *args)
        trial.figure("different results once it can be written", lab.result(work, folder, program) != expected, at_most=0)  # fmt: skip


@needs_strace
@pytest.mark.row("R19", "input/output errors of the disk")
@pytest.mark.parametrize("name", ["documents", "embeddings", "export"])
def test_disk_errors(trial: Trial, lab: Lab, name: str) -> None:
    """The k-th call of its kind, and all after it, fail with EIO."""
    work, n = WORKS[name], Counter[str]()
    lab.n_documents = 4
    expected = lab.expected(work)
    for _ in range(trial.n(ci=3, nightly=60, release=600)):
        folder = lab.folder(work)
        call, k = trial.random.choice(["pwrite64", "pread64", "fsync", "fdatasync", "rename"]), trial.random.randrange(1, 12)  # fmt: skip
        args, inject = lab.args(work, folder), f"-einject={call}:error=EIO:when={k}+"
        code, _, program = lab.programs.trace(folder, *args, by=[f"-etrace={call}", inject])
        if "cannot read file data" not in program.stderr:  # of a library of Python, by the loader
            n["failed"] += code != 0
            n["not plain"] += not is_plain(code, program)
        program = lab.programs.run(folder, *args)
        n["different"] += lab.result(work, folder, program) != expected
    trial.figure("runs that failed", n["failed"])
    trial.figure("ends without a plain message", n["not plain"], at_most=0)
    trial.figure("different results afterwards", n["different"], at_most=0)


@pytest.mark.row("R19", "the store is removed during the run")
def test_removed_store(trial: Trial, lab: Lab) -> None:
    work = WORKS["documents"]
    expected, folder = lab.expected(work), lab.folder(work)
    lab.server.hold_after = 5
    program = lab.programs.start(folder, *lab.args(work, folder))
    while len(lab.server.requests) <= 5:
        pass
    shutil.rmtree(folder / "kept")
    lab.server.hold_after = None
    trial.figure("ends other than by 'the store cannot be used'", program.wait() != 8, at_most=0)
    trial.figure(
        "ends that do not name the cause", "moved or removed" not in program.stderr, at_most=0
    )
    program = lab.programs.run(folder, *lab.args(work, folder))
    trial.figure("different results afterwards", lab.result(work, folder, program) != expected, at_most=0)  # fmt: skip


FILLING = """
import asyncio, os
from pathlib import Path
from pearl.llm import Completion
from pearl.runs.store import Store
acknowledged = os.open("acknowledged", os.O_CREAT | os.O_WRONLY)
async def keep(store, i):
    await store.keep(i.to_bytes(32, "big"), Completion(f"{i} " * 9_000, "m"))
    os.write(acknowledged, b"%d\\n" % i)
async def main():
    with Store.open(Path("kept")) as store:
        for i in range(0, 180, 3):
            await asyncio.gather(*(keep(store, n) for n in range(i, i + 3)))
asyncio.run(main())
"""
CALL = re.compile(
    r'\d+ +(\w+)\((?:\d+<)?"?([^">,)]+)"?>?(?:, "([^"]*)")?(?:, (\d+))?(?:, (\d+))?\)'
)

Event = tuple[str, str, bytes, int]
"""A system call: its name, the name of its file, the bytes written, their place or the new size."""


def events_of(log: str) -> list[Event]:
    """The system calls of a log of strace, in the order in which they began."""
    begun: dict[str, str] = {}
    events = []
    for line in log.splitlines():
        pid = line.split()[0]
        if "<unfinished ...>" in line:
            begun[pid] = line.replace(" <unfinished ...>", "")
            continue
        whole = begun.pop(pid) + line.partition("resumed>")[2] if "resumed>" in line else line
        if match := CALL.match(whole):
            call, path, data, first, second = match.groups()
            name, data = (bytes.fromhex((text or "").replace("\\x", "")) for text in (path, data))
            events.append((call, Path(name.decode()).name, data, int(second or first or 0)))
    return events


def disk_after(events: list[Event], trial: Trial) -> dict[str, bytearray]:
    """The files after a loss of power: synchronised changes, and a random part of the others, some torn."""
    files: dict[str, bytearray] = {}
    synced = {name: i for i, (call, name, *_) in enumerate(events) if call.endswith("sync")}
    for i, (call, name, data, number) in enumerate(events):
        is_sure = i < synced.get(name, -1)
        if not is_sure and trial.random.random() < 0.5:
            continue
        file = files.setdefault(name, bytearray())
        match call:
            case "ftruncate":
                del file[number:]
            case "unlink":
                file.clear()
            case "pwrite64":
                if not is_sure and trial.random.random() < 0.2:
                    data = data[: len(data) // 1_024 * 512]
                file.extend(bytes(max(0, number + len(data) - len(file))))
                file[number : number + len(data)] = data
    return files


@needs_strace
@pytest.mark.row(
    "R20", "power loss: writes up to each barrier, and a random part of the later ones"
)
def test_power_loss(trial: Trial, lab: Lab) -> None:
    folder = lab.folder(WORKS["documents"])
    paths = [
        f"-P{folder / name}" for name in ("kept/store.db", "kept/store.db-wal", "acknowledged")
    ]
    by = [
        "-y",
        "-xx",
        "-s10000000",
        "-etrace=pwrite64,write,fsync,fdatasync,ftruncate,unlink",
        *paths,
    ]
    code, log, program = lab.programs.trace(folder, "-c", FILLING, by=by)
    assert code == 0, program.stderr
    events = events_of(log)
    barriers = [i for i, (call, *_) in enumerate(events) if call.endswith("sync")]
    n: Counter[str] = Counter()
    n_cuts = trial.n(ci=50, nightly=500, release=5_000)
    for number in range(n_cuts):
        cut = (
            trial.random.choice(barriers) + 1 if number % 2 else trial.random.randrange(len(events))
        )
        files = disk_after(events[:cut], trial)
        acknowledged = {
            int(data)
            for call, name, data, _ in events[:cut]
            if name == "acknowledged" and call == "write"
        }
        disk = lab.disk / f"disk {number}"
        disk.mkdir()
        for name in ("store.db", "store.db-wal"):
            (disk / name).write_bytes(files.get(name, b""))
        n["acknowledged"] += len(acknowledged)
        if not acknowledged and not files.get("store.db"):
            continue
        with Store.open(disk) as store:
            replies = {i: asyncio.run(store.reply(i.to_bytes(32, "big"))) for i in range(180)}
            n["damaged"] += store.all("PRAGMA integrity_check") != [(b"ok",)]
        kept = {i for i, reply in replies.items() if reply}
        n["lost"] += len(acknowledged - kept)
        n["wrong"] += sum(reply.text != f"{i} " * 9_000 for i, reply in replies.items() if reply)
        shutil.rmtree(disk)
    trial.figure("cut points", n_cuts)
    trial.figure("barriers of the run", len(barriers))
    trial.figure("acknowledged replies before the cuts", n["acknowledged"], at_least=1)
    trial.figure("acknowledged replies lost", n["lost"], at_most=0)
    trial.figure("wrong replies", n["wrong"], at_most=0)
    trial.figure("damaged stores", n["damaged"], at_most=0)


@needs_strace
@pytest.mark.row("R23", "a disk without locks")
@pytest.mark.parametrize(("call", "error"), [("flock", "ENOLCK"), ("fcntl", "EOPNOTSUPP")])
def test_disk_without_locks(trial: Trial, lab: Lab, call: str, error: str) -> None:
    """NFS is not here: system calls for locks fail as they do there."""
    work, folder = WORKS["documents"], lab.folder(WORKS["documents"])
    path = folder / "kept" / ("write.lock" if call == "flock" else "store.db")
    by = [f"-etrace={call}", f"-einject={call}:error={error}", f"-P{path}"]
    code, _, program = lab.programs.trace(folder, *lab.args(work, folder), by=by)
    trial.figure("ends without a plain message", not is_plain(code, program), at_most=0)
    trial.figure("runs that went on without locks", code != 8, at_most=0)
    trial.figure("calls paid for", lab.n_calls, at_most=0)


@needs_root
@pytest.mark.row("R23", "an overlay file system")
def test_overlay(trial: Trial, lab: Lab) -> None:
    work = WORKS["documents"]
    expected = lab.expected(work)
    with mounted(lab.disk / "below", "-t", "tmpfs", "tmpfs") as below:
        for name in ("lower", "upper", "work"):
            (below / name).mkdir()
        options = f"lowerdir={below}/lower,upperdir={below}/upper,workdir={below}/work"
        with mounted(lab.disk / "disk", "-t", "overlay", "-o", options, "overlay") as lab.disk:
            folder = lab.folder(work)
            program = lab.programs.run(folder, *lab.args(work, folder))
            trial.figure(
                "different results", lab.result(work, folder, program) != expected, at_most=0
            )
