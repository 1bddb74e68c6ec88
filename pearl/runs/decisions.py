"""What persons decide about results: lines that are never changed, beside a run or a file; the latest counts that was not taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from pearl.data.log_files import Frozen
from pearl.errors import StoreError
from pearl.plugins.persistence import FAILURES, connect, create_private, to_store_error
from pearl.runs.extraction import AnsweredRows, PersonAnswer
from pearl.runs.store import Store

_TABLE = "CREATE TABLE IF NOT EXISTS decisions (number INTEGER PRIMARY KEY, body BLOB NOT NULL)"

What = Literal["accepted", "corrected", "not_stated", "skipped", "undone"]


class Decision(Frozen):
    """What a person said of a field of a row; of a row without fields, `path` is "answer"."""

    row: str
    path: str
    entry: str = ""
    what: What
    was: dict[str, Any] = Field(default_factory=dict)  # State and value that the person saw
    result: dict[str, Any] = Field(default_factory=dict)
    person: str
    time: str
    sample: str = ""  # The seed, if the field was drawn
    undoes: int = 0
    number: int = 0

    @property
    def field(self) -> tuple[str, str]:
        """What it is about."""
        return self.row, self.path


class Decisions:
    """The decisions of a file, which is created by the first of them; other processes may write it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: list[Decision] = []

    @classmethod
    def of_run(cls, store: Store, run_id: str) -> Decisions:
        """Those about a run."""
        return cls(store.review_path(run_id))

    @classmethod
    def beside(cls, file: Path) -> Decisions:
        """Those about a file of results."""
        return cls(file.with_name(f"{file.name}.review"))

    def add(self, decision: Decision) -> None:
        """Store a decision; returns when it is on the disk."""
        body = decision.model_dump_json(exclude={"number"}).encode("utf-8", "backslashreplace")
        try:
            create_private(self.path)
            with closing(connect(self.path, "rw")) as connection:
                # With it the folder of the journal is synchronised: a commit survives a loss of power.
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(_TABLE)
                connection.execute("INSERT INTO decisions (body) VALUES (?)", (body,))
                connection.execute("COMMIT")
        except FAILURES as error:
            raise to_store_error(error, self.path, "free or mend its disk") from None

    def all(self) -> Sequence[Decision]:
        """All of them in order, those of other processes included."""
        last = self._known[-1].number if self._known else 0
        try:
            if not self.path.exists() or not self.path.stat().st_size:
                return ()
            # What a killed process has begun is rolled back, which needs the right to write.
            with closing(connect(self.path, "rw")) as connection:
                new = connection.execute(
                    "SELECT number, body FROM decisions WHERE number > ? ORDER BY number", (last,)
                ).fetchall()
            for number, body in new:
                found = Decision.model_validate_json(body)
                self._known.append(found.model_copy(update={"number": number}))
        except FAILURES as error:
            raise to_store_error(error, self.path, "restore a copy, or move it away") from None
        except ValidationError:
            raise StoreError(
                "a decision cannot be read", path=self.path, help="use the pearl that wrote it"
            ) from None
        return self._known


def in_force(decisions: Iterable[Decision]) -> dict[tuple[str, str], Decision]:
    """The decision that counts for each field: the latest that was not taken back."""
    decisions = list(decisions)
    undone = {each.undoes for each in decisions}
    return {
        each.field: each
        for each in decisions
        if each.what not in ("skipped", "undone") and each.number not in undone
    }


def decided_rows(rows: Any, decisions: Decisions) -> AnsweredRows:
    """Rows with what persons decided about them."""
    answers: dict[str, list[PersonAnswer]] = {}
    for each in in_force(decisions.all()).values():
        given = {**each.result, "decided_by": each.person, "decided_at": each.time}
        answer = PersonAnswer(each.number, each.path, each.entry, given)
        answers.setdefault(each.row, []).append(answer)
    return AnsweredRows(rows, answers)


def reviewed(store: Store, run_id: str) -> AnsweredRows:
    """The rows of a run with what persons decided about them."""
    return decided_rows(partial(store.rows, run_id), Decisions.of_run(store, run_id))


def seen(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a result a decision is about."""
    return {"state": result.get("state"), "value": result.get("value")}
