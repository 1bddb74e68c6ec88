"""Reads replies, outcomes and runs while other processes write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pearl.errors import StoreError, did_you_mean
from pearl.llm import Completion, Usage
from pearl.plugins.persistence import FAILURES, to_store_error
from pearl.runs.store.database import decoded, is_done, unpacked, unpacked_reply, unpacked_trace
from pearl.runs.store.runs import COLUMNS, RunInfo, info_of

MOST = 2**63
"""Upper bound of a token count; larger values are damaged."""

_BY_SEQ = "results_by_seq"
_BY_KEY = "sqlite_autoindex_results_1"

_COUNT = "SELECT count(*) FROM results AS a INDEXED BY {} WHERE a.run_id = ?1"
_COUNT_IN_BOTH = """
SELECT count(*) FROM results AS a INDEXED BY {} CROSS JOIN results AS b INDEXED BY {}
ON b.run_id = a.run_id AND b.rowid = a.rowid AND b.key = a.key AND b.seq = a.seq WHERE a.run_id = ?1
"""
_COUNTS = " UNION ALL ".join(
    [
        _COUNT.format(_BY_SEQ), _COUNT.format(_BY_KEY),
        _COUNT_IN_BOTH.format(_BY_SEQ, _BY_KEY), _COUNT_IN_BOTH.format(_BY_KEY, _BY_SEQ),
    ]
)  # fmt: skip
"""Rows of a run by each index, and by each of those that the other index leads to, too."""

_PAGE = 200
"""Rows read at once: a bound for the memory, and for how long a reader keeps the log from ending."""


class Reader:
    """Reads through one connection."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self.n_bad_replies = 0
        self.n_bad_rows = 0

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def all(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement that reads."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except FAILURES as error:
            raise to_store_error(error, self._path) from None

    def kept_reply(self, key: bytes) -> Completion | None:
        """The reply that was kept under this key, if any."""
        # The row is read by its place and its own key compared: a damaged index leads to others.
        rows = self.all(
            "SELECT b.body FROM replies AS a CROSS JOIN replies AS b ON b.rowid = a.rowid"
            " WHERE a.key = ?1 AND +b.key = ?1",
            (key,),
        )
        if not rows:
            return None
        completion = unpacked_reply(rows[0][0])
        if completion is None:
            self.n_bad_replies += 1
        return completion

    def outcome(self, run_id: str, key: bytes) -> dict[str, Any] | None:
        """The row that was recorded under this key, if any."""
        data = self._recorded(run_id, key)
        return None if data is None else self._whole(data)

    def is_done(self, run_id: str, key: bytes) -> bool:
        """Whether a row is recorded under this key that is no failure."""
        data = self._recorded(run_id, key)
        if not isinstance(data, bytes):
            return False
        # Parsing takes as long again, and is seldom needed.
        is_plain = b'"failed"' not in data and b'"unfinished"' not in data
        return is_plain or is_done(unpacked(data) or {"status": "failed"})

    def _recorded(self, run_id: str, key: bytes) -> object:
        # As for replies: a damaged index leads to other rows.
        found = self.all(
            "SELECT b.row FROM results AS a CROSS JOIN results AS b ON b.rowid = a.rowid"
            " WHERE a.run_id = ?1 AND a.key = ?2 AND +b.key = ?2",
            (run_id, key),
        )
        return found[0][0] if found else None

    def rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The rows of a run, in their order; damaged ones are counted and left out."""
        for page in self._pages(run_id, "row"):
            for (data,) in page:
                row = self._whole(data)
                if row is not None:
                    yield row

    def traces(self, run_id: str) -> Iterator[str]:
        """The traces of a run as JSON lines, in the order of its rows."""
        for page in self._pages(run_id, "trace"):
            yield from (unpacked_trace(trace) for (trace,) in page)

    def outcomes(self, run_id: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """The rows of a run with what `with_trace` finds them by; None for damaged ones."""
        for page in self._pages(run_id, "results.rowid, row"):
            yield from ((rowid, self._whole(data)) for rowid, data in page)

    def with_trace(self, rowid: int) -> tuple[dict[str, Any] | None, str]:
        """A row that `outcomes` gave, and what happened, as JSON lines; None if it is no longer there."""
        found = self.all("SELECT row, trace FROM results WHERE rowid = ?", (rowid,))
        return (self._whole(found[0][0]), unpacked_trace(found[0][1])) if found else (None, "")

    def results(self, run_id: str) -> Iterator[list[tuple[Any, ...]]]:
        """Everything that is kept of a run's results, some rows at a time, as it is in the file."""
        return self._pages(run_id, "key, seq, task_id, status, row, trace")

    def tally(self, run_id: str) -> dict[str, int]:
        """The number of rows of a run by status."""
        found = self.all(
            "SELECT status, count(*) FROM results WHERE run_id = ? GROUP BY status", (run_id,)
        )
        return dict(Counter({decoded(status): n for status, n in found}))

    def usage(self, run_id: str) -> Usage:
        """Tokens of all usable replies of a run."""
        names = ("input_tokens", "output_tokens", "cached_tokens", "implausible_calls")
        sums = ", ".join(
            # Records of evaluations, drafts and curations name them as `Usage` does.
            "total(CASE WHEN json_valid(row) THEN coalesce("
            f"json_extract(row, '$.usage.{name}'), json_extract(row, '$.usage.n_{name}')) END)"
            for name in names
        )
        (found,) = self.all(f"SELECT {sums} FROM results WHERE run_id = ?", (run_id,))
        # Rows may come from elsewhere: what no count can be is none, and ends no command.
        return Usage(*(int(n) if 0 <= n < MOST else 0 for n in found))

    def runs(self, spec_key: bytes | None = None) -> list[RunInfo]:
        """All runs, or those of the same work, the latest first."""
        where, values = ("", ()) if spec_key is None else ("WHERE spec_key = ?", (spec_key,))
        found = self.all(
            f"SELECT {COLUMNS} FROM runs {where} ORDER BY created DESC, rowid DESC", values
        )
        return [info_of(row) for row in found]

    def run(self, name: str) -> RunInfo:
        """The run whose id starts with a prefix, with or without the day."""
        ids = [decoded(id) for (id,) in self.all("SELECT id FROM runs ORDER BY created DESC")]
        close = [id for id in ids if id.startswith(name) or id.partition("-")[2].startswith(name)]
        if name in ids:
            close = [name]
        if len(close) != 1:
            raise self._unknown(name, close, ids)
        found = self.all(f"SELECT {COLUMNS} FROM runs WHERE id = ?", (close[0],))
        if not found:
            raise self._unknown(name, [], ids)
        return info_of(found[0])

    def _unknown(self, name: str, close: list[str], ids: list[str]) -> StoreError:
        if close:
            shown = ", ".join(close[:5]) + (", ..." if len(close) > 5 else "")
            return StoreError(
                f"{len(close)} runs begin with '{name}'", path=self._path, help=f"one of: {shown}"
            )
        meant = did_you_mean(name, ids)
        help = f"did you mean '{meant}'?" if meant else "'pearl runs list' shows all"
        return StoreError(f"no run '{name}'", path=self._path, help=help)

    def are_indexed(self, run_id: str) -> bool:
        """Whether the indexes of the database cover every row of a run; False if they are damaged."""
        try:
            return len(set(self.all(_COUNTS, (run_id,)))) == 1
        except StoreError:
            return False

    def _pages(self, run_id: str, columns: str) -> Iterator[list[tuple[Any, ...]]]:
        seq, rowid = -(1 << 62), 0
        how = f"INDEXED BY {_BY_SEQ}" if self.are_indexed(run_id) else "NOT INDEXED"
        while True:
            found = self.all(
                f"SELECT seq, rowid, {columns} FROM results {how} WHERE run_id = ? "
                "AND (seq, rowid) > (?, ?) ORDER BY seq, rowid LIMIT ?",
                (run_id, seq, rowid, _PAGE),
            )
            if not found:
                return
            last = found[-1]
            if not isinstance(last[0], int) or (last[0], last[1]) <= (seq, rowid):
                raise StoreError("the file is damaged", path=self._path, help="move it away")
            seq, rowid = last[0], last[1]
            yield [row[2:] for row in found]

    def _whole(self, data: object) -> dict[str, Any] | None:
        row = unpacked(data)
        if row is None:
            self.n_bad_rows += 1
        return row
