"""Decisions of people about results: an append-only file for each run or results file; for each field, the latest decision that was not undone counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.rows import shortened
from pearl.errors import StoreError
from pearl.errors.escaping import counted, json_bytes
from pearl.errors.validation import decoded
from pearl.plugins.persistence import FAILURES, connect, create_private, to_store_error
from pearl.runs.extraction import (
    ANSWER,
    MAX_QUOTE,
    NOT_STATED,
    PERSON,
    UNDECIDED,
    Rows,
    document_of,
    entries_of,
    id_of,
    record_of,
    results_of,
    text_of,
)
from pearl.runs.store import Store

if TYPE_CHECKING:
    from pearl.data.schemas import Schema
    from pearl.documents.record import Record

_TABLE = "CREATE TABLE IF NOT EXISTS decisions (number INTEGER PRIMARY KEY, body BLOB NOT NULL)"

What = Literal["accepted", "corrected", "not_stated", "skipped", "undone"]


class Decision(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A person's decision about a field of a row; for a row without fields, `path` is "answer"."""

    row: str
    path: str
    entry: str = ""
    what: What
    was: dict[str, Any] = {}  # State and value that the person was shown
    result: dict[str, Any] = {}
    person: str
    time: str
    sample: str = ""  # The seed, if the field was drawn at random
    undoes: int = 0
    number: int = 0

    @property
    def field(self) -> tuple[str, str]:
        """The row and the path of the decided field."""
        return self.row, self.path

    @property
    def said(self) -> dict[str, Any]:
        """The decided result, with the person and the time."""
        return {**self.result, "decided_by": self.person, "decided_at": self.time}


class Decisions:
    """The decisions in a file, which the first one creates; other processes may write to it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_run(cls, store: Store, run_id: str) -> Decisions:
        """The decisions about a run."""
        return cls(store.review_path(run_id))

    @classmethod
    def beside(cls, file: Path) -> Decisions:
        """The decisions about a results file, stored next to it."""
        return cls(file.with_name(f"{file.name}.review"))

    def add(self, decision: Decision) -> None:
        """Store a decision; return when it is on disk."""
        body = json_bytes(replace(decision, number=0))
        try:
            create_private(self.path)
            with closing(connect(self.path, "rw")) as connection:
                # Also synchronises the journal's folder, so that a commit survives a power failure.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute("INSERT INTO decisions (body) VALUES (?)", (body,))
                connection.execute("COMMIT")
        except FAILURES as error:
            raise to_store_error(error, self.path, "free space on its disk, or repair it") from None

    def all(self) -> Sequence[Decision]:
        """All decisions in order, including those of other processes."""
        try:
            if not self.path.exists() or not self.path.stat().st_size:
                return ()
            # Opened for writing, to roll back what a killed process left unfinished.
            with closing(connect(self.path, "rw")) as connection:
                found = connection.execute(
                    "SELECT number, body FROM decisions ORDER BY number"
                ).fetchall()
            return [replace(decoded(body, Decision), number=number) for number, body in found]
        except FAILURES as error:
            raise to_store_error(error, self.path, "restore a copy, or move it away") from None
        except msgspec.DecodeError:
            raise StoreError(
                "a decision cannot be read", path=self.path, help="use the pearl that wrote it"
            ) from None


def in_force(decisions: Iterable[Decision]) -> dict[tuple[str, str], Decision]:
    """The valid decision about each field: the latest that was not undone."""
    decisions = list(decisions)
    undone = {each.undoes for each in decisions}
    return {
        each.field: each
        for each in decisions
        if each.what not in ("skipped", "undone") and each.number not in undone
    }


class DecidedRows:
    """Rows with people's decisions applied, in the form of a schema if there is one; `problems` has the decisions that could not be applied."""

    def __init__(self, rows: Rows, decisions: Decisions) -> None:
        self._rows = rows
        self.decisions: dict[str, list[Decision]] = {}
        for each in in_force(decisions.all()).values():
            self.decisions.setdefault(each.row, []).append(each)
        self.schema: Schema | None = None
        self.problems: dict[int, str] = {}
        self.statuses: Counter[str] = Counter()

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows, from the beginning."""
        self.statuses.clear()
        for row in self._rows():
            taken = self.taken(row)
            taken = taken if self.schema is None else in_form(taken, self.schema)
            self.statuses[str(taken.get("status"))] += 1
            yield taken

    def taken(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Apply people's decisions to a row."""
        decisions = self.decisions.get(id_of(row), ())
        if not decisions:
            return row
        if "record" not in row:
            return _answered(row, decisions) if isinstance(row.get("answer"), str) else row
        record = json.loads(json.dumps(record_of(row)))
        results = {path: (entry, result) for path, entry, result in results_of(record)}
        for each in decisions:
            now, result = results.get(each.path, ("", None))
            if result is None:
                self.problems[each.number] = f"'{document_of(row)}' has no '{each.path}' now"
            elif each.entry != now:
                self.problems[each.number] = f"'{each.path}' belongs to another entry now: {now}"
            else:
                said = each.said
                entries = entries_of(result) if said["state"] == "found" else ()
                result.clear()
                result |= {**said, **({"entries": entries} if entries else {})}
        taken = _told_again(row, record)
        n = sum(result["state"] == UNDECIDED for _, result in results.values())
        is_whole = all(entries_of(r) or r.get("basis") == PERSON for _, r in results.values())
        why = str(row.get("why"))  # As `Record.why_undecided` says it, or another reason
        if is_whole or " fields is undecided" in why or " fields are undecided" in why:
            taken.pop("why", None)
            taken |= {"why": f"{counted(n, 'field')} undecided"} if n else {"status": "answered"}
        return taken


def reviewed(store: Store, run_id: str) -> DecidedRows:
    """The rows of a run with people's decisions applied."""
    return DecidedRows(partial(store.rows, run_id), Decisions.of_run(store, run_id))


def seen(result: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a result that a decision is compared with."""
    return {"state": result.get("state"), "value": result.get("value")}


def in_form(row: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """Convert the record of a row to the form of a schema: `value`, `undecided`, `reasons`, `partial`."""
    record = _record(row)
    if record is None:
        return row
    said = schema.read(record).to_dict()
    if row.get("status") == "answered" and said["undecided"]:  # The schema rejects a value
        status = "undecided" if said["value"] is None else "degraded"
        said |= {"status": status, "why": said["reasons"][0]}
    return {**row, **said}


def _record(row: Mapping[str, Any]) -> Record | None:
    """The record of a row; None if it has none, or one that another program wrote."""
    from pearl.interpreter.row import restored_record  # Imported on use: tables need no answers

    try:
        return restored_record(row)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def row_path(number: int, column: str) -> str:
    """The path of a row behind an answer, or of one of its columns."""
    return f"row {number}.{column}" if column else f"row {number}"


def row_entry(row: Mapping[str, Any]) -> str:
    """The text that identifies a row behind an answer."""
    return shortened(row["text"] or row["value"] or "", MAX_QUOTE)


def _answered(row: Mapping[str, Any], decisions: Sequence[Decision]) -> Mapping[str, Any]:
    """Apply decisions to a row without fields: to its answer and the rows behind it."""
    given = next((each.said for each in decisions if each.path == ANSWER), None)
    by_path = {each.path: each for each in decisions}
    evidence: list[Mapping[str, Any]] = []
    n_rows = 0
    for number, each in enumerate(row.get("evidence", ()), start=1):
        fields = dict(each.get("fields", ()))
        paths = {row_path(number, column): column for column in ("", *fields)}
        own = [by_path[path] for path in paths if path in by_path and by_path[path].entry == row_entry(each)]  # fmt: skip
        n_rows += bool(own)
        fields |= {column: text_of(of.said["value"] or NOT_STATED) for of in own if (column := paths[of.path])}  # fmt: skip
        by = [*each.get("decided_by", ()), *(str(of.said["decided_by"]) for of in own)]
        state = UNDECIDED if None in fields.values() else "found"
        if not any(of.path == row_path(number, "") and of.said["value"] is not True for of in own):
            evidence.append({**each, "fields": fields, "decided_by": by, "state": state} if own else each)  # fmt: skip
    notes = list(row.get("notes", ()))
    if n_rows and given is None:
        notes.append(f"persons decided {counted(n_rows, 'row')} after the answer was computed, which counts them as undecided")  # fmt: skip
    taken = {**row, "evidence": evidence, "notes": notes} if n_rows else row
    if given is None:
        return taken
    # The rest of what the row says about the answer comes from the model, and is removed.
    gone = ["why"]
    if given["value"] != row["answer"]:
        gone += ["value", "partial", "undecided", "reasons"]
        taken = {**taken, "markdown": "", "parts": []}
    kept = {name: value for name, value in taken.items() if name not in gone}
    status = "answered" if given["state"] == "found" else "nothing_found"
    notes.append(f"the answer was decided by a person: {given['decided_by']}, {given['decided_at']}")  # fmt: skip
    return {**kept, "status": status, "answer": given["value"] or NOT_STATED, "notes": notes}


def _told_again(row: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the record of a row; if the answer is the text of the old record, replace it by that of the new one."""
    taken = {**row, "record": record}
    old, new = _record(row), _record(taken)
    if old is None or new is None:
        return taken
    was, now = ([line for line, _ in each.lines] for each in (old, new))
    if row.get("answer") != "\n".join(was):
        return taken
    told = [f"- {line}" for line in now]
    marked = str(row.get("markdown", "")).splitlines()
    if len(was) == len(now) == len(marked):  # Unchanged lines keep their references
        told = [m if a == b else t for a, b, m, t in zip(was, now, marked, told, strict=True)]
    return {**taken, "parts": [], "answer": "\n".join(now), "markdown": "\n".join(told) + "\n"}
