"""Rows of a run → Parquet files in a folder at an address; a run is resumed by the keys in these files.

A file is named by its content (`part-00007-DIGEST.parquet`), appears when it is complete, and is never changed. Failed
rows are in files of their own (`failed-...`), which the next run deletes before it repeats these rows.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections import Counter, deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import numpy as np

from pearl.data.storage import OutputFolder, StoredFile
from pearl.documents.digest import text_sha256
from pearl.dsl.parser import parse
from pearl.errors import DataError, UsageError
from pearl.runs.export import Cell, arrow_schema, check_format, column_types, columns_of
from pearl.runs.tasks import PASSED_ON

MAX_ROWS = 1_000
MAX_CHARACTERS = 16_000_000
MAX_S = 60.0
"""A part is written when it has so many rows or characters, or with the first row after so many seconds."""

_KEY_BYTES = 16
_READ_AT_ONCE = 16
_MARK = b"pearl.work"
"""The metadata of a part: the plan and the settings that its rows depend on."""


class Parts:
    """The rows of a run in a folder: a `pearl.runs.session.RowStore`."""

    def __init__(
        self, folder: OutputFolder, plan: str, settings: Mapping[str, object], shard: str = ""
    ) -> None:
        check_format("parquet")
        self._folder = folder
        self._shard = f"{shard.replace('/', '-of-')}-" if shard else ""
        outputs = dict.fromkeys(step.output for step in parse(plan).steps)
        self._columns: dict[str, Cell] = columns_of(outputs, ("record", *PASSED_ON))
        work = json.dumps({**settings, "plan": text_sha256(plan)}, sort_keys=True)
        self._work = json.loads(work)
        types = {"key": str, **column_types(self._columns)}
        self._schema = arrow_schema(types).with_metadata({_MARK: work})
        self.statuses: Counter[str] = Counter()
        self._keys = np.empty((0, 2), np.uint64)
        self._n_parts = 0
        self._begun: dict[str, _Part] = {}
        self._is_broken = False

    def open(self) -> None:
        """Read the keys of the rows that are there, and delete failed rows.

        Raises:
            UsageError: The folder has Parquet files of something else.
        """
        parts, failed = list[StoredFile](), list[StoredFile]()
        for file in self._folder.files():
            name = file.key.rpartition("/")[2]
            if name.startswith(f"failed-{self._shard}"):
                failed.append(file)
            elif file.suffix == ".parquet":
                parts.append(file)
        keys = [self._keys]
        with ThreadPoolExecutor(_READ_AT_ONCE) as threads:
            deque(threads.map(self._read, failed), maxlen=0)  # so that nothing of others is deleted
            for statuses, read in threads.map(self._read, parts):
                self.statuses.update(statuses)
                keys.append(read)
            deque(threads.map(self._folder.delete, failed), maxlen=0)
        joined = np.concatenate(keys)
        self._keys = joined[np.lexsort((joined[:, 1], joined[:, 0]))]
        self._n_parts = len(parts)

    def _read(self, file: StoredFile) -> tuple[dict[str, int], Any]:
        """The statuses and the keys of a part; its other columns are not read."""
        import pyarrow
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(file.ranges()) as part:
                said = (part.schema_arrow.metadata or {}).get(_MARK)
                if said is None:
                    raise self._foreign(file, "was not written by `pearl execute --out`")
                self._check(file, json.loads(said))
                table = part.read(["key", "status"])
        except (pyarrow.ArrowException, ValueError) as error:
            if isinstance(error, DataError | UsageError):
                raise
            raise self._foreign(file, "is no valid Parquet file") from None
        keys = b"".join(map(bytes.fromhex, table["key"].to_pylist()))
        statuses = {
            each["values"]: each["counts"] for each in table["status"].value_counts().to_pylist()
        }
        return statuses, np.frombuffer(keys, ">u8").astype(np.uint64).reshape(-1, 2)

    def _check(self, file: StoredFile, work: Any) -> None:
        work = work if isinstance(work, dict) else {}
        names = sorted(self._work.keys() | work.keys())
        if differing := [name for name in names if work.get(name) != self._work.get(name)]:
            more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
            raise self._foreign(
                file, f"has the rows of other work; different: {', '.join(differing[:3])}{more}"
            )

    def _foreign(self, file: StoredFile, what: str) -> UsageError:
        return UsageError(f"{file} {what}", help="name another folder with --out")

    def has(self, key: bytes) -> bool:
        """Whether a row with this key is in a part."""
        first, second = np.frombuffer(key[:_KEY_BYTES], ">u8").astype(np.uint64)
        at = int(np.searchsorted(self._keys[:, 0], first))
        while at < len(self._keys) and self._keys[at, 0] == first:
            if self._keys[at, 1] == second:
                return True
            at += 1
        return False

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str
    ) -> None:
        """Add a row, and write its part if this is complete."""
        status = str(row.get("status"))
        if status == "unfinished":  # it has no result; the next run begins it again
            return
        self.statuses[status] += 1
        kind = "failed" if status == "failed" else "part"
        cells = {
            "key": key[:_KEY_BYTES].hex(),
            **{n: cell(row) for n, cell in self._columns.items()},
        }
        part = self._begun.setdefault(kind, _Part())
        part.add(cells)
        if part.is_complete:
            del self._begun[kind]
            await asyncio.to_thread(self._write, kind, part.rows)

    def close(self) -> None:
        """Write the rows that are in no part yet."""
        while self._begun and not self._is_broken:
            kind, part = self._begun.popitem()
            self._write(kind, part.rows)

    def _write(self, kind: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow
        from pyarrow import parquet

        file = io.BytesIO()
        table = pyarrow.Table.from_pylist(rows, self._schema)
        parquet.write_table(table, file, compression="zstd")
        data = file.getvalue()
        number, self._n_parts = self._n_parts, self._n_parts + 1
        digest = hashlib.sha256(data).hexdigest()[:16]
        try:
            self._folder.put(f"{kind}-{self._shard}{number:05}-{digest}.parquet", data)
        except BaseException:
            self._is_broken = True
            raise


class _Part:
    """The rows of a part that is not yet written."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._n_characters = 0
        self._since = monotonic()

    def add(self, cells: dict[str, Any]) -> None:
        """Add a row."""
        self.rows.append(cells)
        self._n_characters += sum(len(cell) for cell in cells.values() if isinstance(cell, str))

    @property
    def is_complete(self) -> bool:
        """Whether it has to be written now."""
        is_full = len(self.rows) >= MAX_ROWS or self._n_characters >= MAX_CHARACTERS
        return is_full or monotonic() - self._since >= MAX_S
