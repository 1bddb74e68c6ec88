"""Reads replies, outcomes and runs while other processes write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pearl.errors import StoreError, did_you_mean
from pearl.llm import Completion, Usage
from pearl.runs.store.database import FAILURES, decoded, to_store_error
from pearl.runs.store.rows import checksum, is_done, unpacked, unpacked_reply, unpacked_trace
from pearl.runs.store.runs import COLUMNS, RunInfo, info_of

MOST = 2**63
"""No count of tokens reaches it."""

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


def row_sum(key: bytes, seq: int, row: bytes) -> bytes:
    """The checksum of a result."""
    return checksum(key, str(seq).encode(), row)


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
        rows = self.all("SELECT checksum, body FROM replies WHERE key = ?", (key,))
        if not rows:
            return None
        completion = unpacked_reply(key, *rows[0])
        if completion is None:
            self.n_bad_replies += 1
        return completion

    def outcome(self, run_id: str, key: bytes) -> dict[str, Any] | None:
        """The row that was recorded under this key, if any."""
        kept = self._kept(run_id, key)
        return self._whole(kept) if kept else None

    def is_done(self, run_id: str, key: bytes) -> bool:
        """Whether a whole row is recorded under this key that is no failure."""
        kept = self._kept(run_id, key)
        if not kept or not self._is_whole(*kept):
            return False
        # To parse it takes as long again, and is seldom needed.
        is_plain = b'"failed"' not in kept[3] and b'"unfinished"' not in kept[3]
        return is_plain or is_done(unpacked(kept[3]) or {})

    def _kept(self, run_id: str, key: bytes) -> tuple[Any, ...]:
        found = self.all(
            "SELECT seq, checksum, row FROM results WHERE run_id = ? AND key = ?", (run_id, key)
        )
        # The key is the one that was asked for: a damaged index leads to other rows, whole ones.
        return (key, *found[0]) if found else ()

    def rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """The rows of a run, in their order; damaged ones are counted and left out."""
        for page in self._pages(run_id, "key, seq, checksum, row"):
            for each in page:
                row = self._whole(each)
                if row is not None:
                    yield row

    def traces(self, run_id: str) -> Iterator[str]:
        """What happened in every task of a run, as JSON lines, in the order of its rows."""
        for page in self._pages(run_id, "trace"):
            yield from (unpacked_trace(trace) for (trace,) in page)

    def outcomes(self, run_id: str) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """The rows of a run with what `with_trace` finds them by; None for damaged ones."""
        for page in self._pages(run_id, "results.rowid, key, seq, checksum, row"):
            yield from ((rowid, self._whole(tuple(kept))) for rowid, *kept in page)

    def with_trace(self, rowid: int) -> tuple[dict[str, Any] | None, str]:
        """A row that `outcomes` gave, and what happened, as JSON lines; None if it is no longer there."""
        found = self.all(
            "SELECT key, seq, checksum, row, trace FROM results WHERE rowid = ?", (rowid,)
        )
        return (self._whole(found[0][:4]), unpacked_trace(found[0][4])) if found else (None, "")

    def results(self, run_id: str) -> Iterator[list[tuple[Any, ...]]]:
        """Everything that is kept of a run's results, some rows at a time, as it is in the file."""
        return self._pages(run_id, "key, seq, task_id, status, checksum, row, trace")

    def tally(self, run_id: str) -> dict[str, int]:
        """How many rows of a run have which status."""
        found = self.all(
            "SELECT status, count(*) FROM results WHERE run_id = ? GROUP BY status", (run_id,)
        )
        return dict(Counter({decoded(status): n for status, n in found}))

    def usage(self, run_id: str) -> Usage:
        """Tokens of all rows of a run, of replies that were of use."""
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
        """The run whose id begins like this, or continues like this after the day."""
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
        """Whether the indexes lead to every row of a run; False where they are damaged."""
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

    def _whole(self, kept: tuple[Any, ...]) -> dict[str, Any] | None:
        row = unpacked(kept[3]) if self._is_whole(*kept) else None
        if row is None:
            self.n_bad_rows += 1
        return row

    @staticmethod
    def _is_whole(key: Any, seq: Any, digest: Any, data: Any) -> bool:
        is_typed = isinstance(key, bytes) and isinstance(data, bytes) and isinstance(seq, int)
        return is_typed and bool(digest == row_sum(key, seq, data))
