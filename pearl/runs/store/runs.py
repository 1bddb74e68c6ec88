"""The specification and state of a run."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, field

from pearl.documents.digest import digest
from pearl.errors.escaping import json_bytes
from pearl.plugins.persistence import Lease
from pearl.runs.store.database import decoded, unpacked

LOCAL = "name a --store on a local disk"  # Advice for errors about a disk without locks


class Holder(Struct, frozen=True):
    """The process that is writing a run."""

    pid: int
    host: str
    since: float


def lease_file(folder: Path, id: str) -> Path:
    """The file that the process locks that writes a run."""
    return folder / f"run-{id}.lock"


Status = Literal["running", "done", "stopped", "paused"]
"""`stopped` by the user or a limit; `paused` until a server accepts more requests."""

COLUMNS = (
    "id, spec_key, command, folder, settings, inputs, status, created, updated, counts, "
    "lease_pid, lease_host, lease_at, "
    "(SELECT count(*) FROM results WHERE run_id = runs.id), "
    "(SELECT count(*) FROM results WHERE run_id = runs.id AND status = 'failed')"
)
"""Columns that `info_of` reads."""


def is_id(text: str) -> bool:
    """Whether a text has the form of a run id, `20261130-a3f9`, so that it is safe in file names."""
    day, _, rest = text.partition("-")
    is_hex = len(rest) >= 4 and set(rest) <= set("0123456789abcdef")
    return len(day) == 8 and day.isascii() and day.isdecimal() and is_hex


def new_id(n_digits: int = 4) -> str:
    """A new run id, which sorts by day and is short enough to type."""
    return f"{datetime.now():%Y%m%d}-{secrets.token_hex((n_digits + 1) // 2)[:n_digits]}"


_OF_VERSION = frozenset(
    {"pearl_version", "keys", "prompts_sha256", "library_sha256", "n_actions", "bank_sha256", "n_examples", "readers_sha256"}
)  # fmt: skip
"""Settings that may change with the version of PEARL."""


class RunSpec(Struct, frozen=True):
    """The specification of a run's work."""

    command: tuple[str, ...]
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    folder: str = field(default_factory=lambda: str(Path.cwd()))
    work: Mapping[str, Any] = {}

    @property
    def asked(self) -> tuple[bytes, bytes]:
        """Values of the columns `command` and `folder`."""
        argv = {"argv": list(self.command), "work": dict(self.work)}
        return json_bytes(argv), self.folder.encode("utf-8", "backslashreplace")

    @property
    def key(self) -> bytes:
        """32 bytes that identify settings and inputs."""
        said = {"settings": dict(self.settings), "inputs": dict(self.inputs)}
        return digest([json.dumps(said, sort_keys=True)])

    def is_of_other_version(self, other: RunSpec) -> bool:
        """Whether another specification is the same work with other prompts, for which stored replies cannot be used."""
        mine, theirs = dict(self.settings), dict(other.settings)
        common = (mine.keys() & theirs.keys()) - _OF_VERSION
        return (
            self.inputs == other.inputs
            and self.folder == other.folder
            and any(mine.get(name) != theirs.get(name) for name in ("keys", "prompts_sha256"))
            and "command" in common
            and all(mine[name] == theirs[name] for name in common)
        )


class RunInfo(RunSpec, frozen=True, kw_only=True):
    """State of a run."""

    id: str
    spec_key: bytes
    status: Status
    created: float
    updated: float
    counts: Mapping[str, Any]
    n_results: int
    n_failed: int
    holder: Holder | None

    @property
    def state(self) -> str:
        """The status, or `interrupted` if it is `running` but its process has ended."""
        return "interrupted" if self.status == "running" and self.holder is None else self.status

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON data; times are seconds since 1970."""
        return {
            "id": self.id,
            "state": self.state,
            "command": list(self.command),
            "work": dict(self.work),
            "folder": self.folder,
            "settings": dict(self.settings),
            "inputs": dict(self.inputs),
            "created": round(self.created, 3),
            "updated": round(self.updated, 3),
            "results": self.n_results,
            "failed": self.n_failed,
            "counts": dict(self.counts),
            "pid": self.holder.pid if self.holder else None,
        }


def info_of(folder: Path, row: tuple[Any, ...]) -> RunInfo:
    """The run in a row of `COLUMNS` of the store in a folder; damaged values become empty."""
    id, status, pid = decoded(row[0]), decoded(row[6]), row[10]
    holder = None
    # A process that has ended holds no lock, however it ended.
    if isinstance(pid, int) and is_id(id) and Lease.is_held(lease_file(folder, id)):
        holder = Holder(pid, decoded(row[11]), _seconds(row[12]))
    asked = unpacked(row[2]) or {}
    words, work = asked.get("argv"), asked.get("work")
    return RunInfo(
        id=id,
        spec_key=row[1] if isinstance(row[1], bytes) else b"",
        command=tuple(map(str, words)) if isinstance(words, list) else (),
        work=work if isinstance(work, dict) else {},
        folder=decoded(row[3]),
        settings=unpacked(row[4]) or {},
        inputs=unpacked(row[5]) or {},
        status=status if status in get_args(Status) else "stopped",  # type: ignore[arg-type]
        created=_seconds(row[7]),
        updated=_seconds(row[8]),
        counts=unpacked(row[9]) or {},
        n_results=row[13],
        n_failed=row[14],
        holder=holder,
    )


def _seconds(value: object) -> float:
    """A time in seconds; 0 for a damaged value."""
    is_time = isinstance(value, int | float) and 0 <= value <= time.time() + 1e9
    return float(value) if is_time else 0.0  # type: ignore[arg-type]


def insert_run(connection: sqlite3.Connection, id: str, spec: RunSpec, created: float) -> None:
    """Add a new run to the table."""
    connection.execute(
        "INSERT INTO runs (id, spec_key, command, folder, settings, inputs, status, created, updated,"
        " counts) VALUES (?, ?, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),"
        " ?, ?, ?, CAST(? AS TEXT))",
        (
            id, spec.key, *spec.asked, json_bytes(dict(spec.settings)), json_bytes(dict(spec.inputs)),
            "running", created, created, b"{}",
        ),
    )  # fmt: skip
