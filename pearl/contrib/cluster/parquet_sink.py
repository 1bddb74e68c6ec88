"""Write rows of a run to Parquet files at an address, named by content; the keys in them let a run resume."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import numpy as np

from pearl.data.storage import OutputFolder, StoredFile
from pearl.documents.digest import text_sha256
from pearl.dsl.parser import parse
from pearl.errors import UsageError
from pearl.interpreter.row import read_row
from pearl.runs.export import arrow_type, check_format, columns_of
from pearl.runs.extraction import field_cells, field_columns, fields_of_plan, record_of
from pearl.runs.tasks import PASSED_ON

MAX_ROWS = 1_000
MAX_CHARACTERS = 16_000_000
MAX_S = 60.0
"""A part is written when it reaches the maximum rows or characters, or with the first row after the maximum seconds."""

_KEY = np.dtype("S16")
_READ_AT_ONCE = 16  # threads; a part is a request that waits for the network
_MARK = b"pearl.work"  # The metadata of a part: the plan and the settings that its rows depend on

DESCRIPTION = "Parquet files in a folder at an address"

_Rows = tuple[list[dict[str, Any]], list[dict[str, Any]]]  # Rows with a result, and failed ones


class Parts:
    """The rows of a run in a folder: a `pearl.runs.sinks.Sink`."""

    def __init__(
        self, folder: OutputFolder, plan: str, settings: Mapping[str, object], shard: str = ""
    ) -> None:
        check_format("parquet")
        import pyarrow

        self._folder = folder
        self._shard = f"{shard.replace('/', '-of-')}-" if shard else ""
        parsed = parse(plan)
        outputs = dict.fromkeys(step.output for step in parsed.steps)
        given = ["parameters"] if parsed.parameters else []
        self._columns = columns_of(outputs, ("record", *given, *PASSED_ON))
        work = json.dumps({**settings, "plan": text_sha256(plan)}, sort_keys=True)
        self._work = json.loads(work)
        self._fields = fields_of_plan(plan)
        self._types = types = dict[str, type](key=str)
        of_fields = (each for field in self._fields for each in field_columns(field, "parquet"))
        of_rows = ((name, column.kind) for name, column in self._columns.items())
        for name, kind in (*of_rows, *of_fields):
            while name in types:  # an output may be called `key`, a field `status`
                name += "_"
            types[name] = kind
        schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in types.items()])
        self._schema = schema.with_metadata({_MARK: work})
        self.statuses: Counter[str] = Counter()
        self._keys = np.empty(0, _KEY)
        self._n_parts = 0
        self._rows: _Rows = ([], [])
        self._begin()

    def open(self) -> None:
        """Read the keys of the rows that are there, and delete failed rows."""
        files = [file for file in self._folder.files() if file.suffix == ".parquet"]
        start = f"failed-{self._shard}"
        failed = {file for file in files if file.key.rpartition("/")[2].startswith(start)}
        parts = [file for file in files if file not in failed]
        with ThreadPoolExecutor(_READ_AT_ONCE) as threads:
            for _ in threads.map(self._read, failed):  # refuses files of other runs
                pass
            self._keys = np.sort(np.concatenate([self._keys, *threads.map(self._count, parts)]))
            for _ in threads.map(self._folder.delete, failed):
                pass
        self._n_parts = len(parts)

    def _count(self, file: StoredFile) -> Any:
        """Read the keys of a part, and count its rows."""
        table = self._read(file)
        self.statuses.update(table["status"].to_pylist())
        return np.frombuffer(b"".join(map(bytes.fromhex, table["key"].to_pylist())), _KEY)

    def _read(self, file: StoredFile) -> Any:
        """Read only the keys and statuses of a part."""
        import pyarrow
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(file.ranges()) as part:
                mark = (part.schema_arrow.metadata or {}).get(_MARK, b"{}")
                work = json.loads(mark)
                names = sorted(self._work.keys() | work.keys())
                differing = [name for name in names if work.get(name) != self._work.get(name)]
                if differing:
                    shown = ", ".join(differing[:3]) + (", ..." if len(differing) > 3 else "")
                    raise UsageError(
                        f"{file} has the rows of other work (different: {shown})",
                        help="name another folder with --out",
                    )
                return part.read(["key", "status"])
        except pyarrow.ArrowException:
            raise UsageError(
                f"{file} is no valid Parquet file", help="name another folder with --out"
            ) from None

    def has(self, key: bytes) -> bool:
        """Whether a row with this key is in a part."""
        wanted = np.frombuffer(key, _KEY, 1)[0]
        at = np.searchsorted(self._keys, wanted)
        return bool(at < len(self._keys) and self._keys[at] == wanted)

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str
    ) -> None:
        """Add a row, and write the part if it is complete."""
        status = str(row.get("status"))
        if status == "unfinished":  # it has no result; the next run begins it again
            return
        self.statuses[status] += 1
        record, read = record_of(row), read_row(row)
        cells = [
            key[: _KEY.itemsize].hex(),
            *(column.read(read) for column in self._columns.values()),
            *(
                cell
                for f in self._fields
                for cell in field_cells(f, record.get(f.name, {}), "parquet")
            ),
        ]
        values = {
            name: str(cell) if kind is str and cell is not None else cell
            for (name, kind), cell in zip(self._types.items(), cells, strict=True)
        }
        self._rows[status == "failed"].append(values)
        self._n_rows += 1
        self._n_characters += sum(len(each) for each in values.values() if isinstance(each, str))
        is_full = self._n_rows >= MAX_ROWS or self._n_characters >= MAX_CHARACTERS
        if is_full or monotonic() - self._since >= MAX_S:
            rows = self._begin()
            await asyncio.to_thread(self._write, rows)

    def close(self) -> None:
        """Write the rows that are in no part yet."""
        self._write(self._begin())

    def _begin(self) -> _Rows:
        """Begin another part; return the rows of the last one."""
        rows, self._rows = self._rows, ([], [])
        self._n_rows = self._n_characters = 0
        self._since = monotonic()
        return rows

    def _write(self, rows: _Rows) -> None:
        import pyarrow
        from pyarrow import parquet

        for kind, of_kind in zip(("part", "failed"), rows, strict=True):
            if of_kind:
                file = io.BytesIO()
                table = pyarrow.Table.from_pylist(of_kind, self._schema)
                parquet.write_table(table, file, compression="zstd")
                number, self._n_parts = self._n_parts, self._n_parts + 1
                digest = hashlib.sha256(file.getvalue()).hexdigest()[:16]
                name = f"{kind}-{self._shard}{number:05}-{digest}.parquet"
                self._folder.put(name, file.getvalue())


def create(address: str, plan: str, settings: Mapping[str, object], shard: str) -> Parts:
    """The parts in the folder at an address."""
    parts = Parts(OutputFolder(address), plan, settings, shard)
    parts.open()
    return parts
