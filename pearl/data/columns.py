"""Column mapping: rows with the data's column names → rows with the field names of a sample."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any, Self

from pearl.data.rows import Offset, Row
from pearl.documents.digest import DigestTable
from pearl.errors import DataError, UsageError, suggest
from pearl.errors.privacy import is_private

_END = b"\xff"  # in no text of UTF-8


def rename(
    rows: Iterable[Row | DataError], columns: Mapping[str, str], fields: Iterable[str]
) -> Iterator[Row | DataError]:
    """Rename columns to sample fields, as `Source.columns` says; the first row must have these columns."""
    fields = list(fields)
    for field in columns:
        _check("field", field, fields, "--column")
    if not columns:
        yield from rows
        return
    sources: dict[str, list[str]] | None = None
    for row in rows:
        if isinstance(row, DataError):
            yield row
            continue
        if sources is None:
            sources = {field: _names(column, row) for field, column in columns.items()}
        used = {name for names in sources.values() for name in names}
        kept = {name: value for name, value in row.fields.items() if name not in used}
        held = {field: _value(names, row) for field, names in sources.items()}
        yield replace(row, fields={**kept, **held})


def _names(column: str, row: Row) -> list[str]:
    names = [column] if column in row.fields else [name.strip() for name in column.split(",")]
    for name in names:
        _check("column", name, row.fields, row.path)
    return names


def _value(names: list[str], row: Row) -> Any:
    values = [row.fields.get(name) for name in names]
    return values[0] if len(values) == 1 else values


def _check(what: str, name: str, known: Iterable[str], where: str) -> None:
    if name not in known:
        is_quoting = what == "column" and is_private()
        help = None if is_quoting else suggest(name, known, f"{what}s")
        raise UsageError(f"{where}: no {what} '{name}'", help=help)


class Names:
    """Registry of ids and document names of a file: equal texts share a name, different texts never do."""

    def __init__(self) -> None:
        self._lines = DigestTable()
        self._names = bytearray(_END)  # of all texts, each with its end
        self._places = DigestTable()  # digest of a text → place of its name
        self._taken = DigestTable()

    def claim_id(self, id: str, row: Row) -> str:
        """Register an id for a row and return it; ids at addresses may be the same in several files."""
        if row.home is not None:
            return id
        key = id.encode(errors="surrogatepass")
        if after := self._lines[key]:  # the line + 1: 0 is none
            raise row.error(
                f"duplicate id '{id}', first used in line {after - 1}", help="use another id"
            )
        self._lines.add(key, row.line + 1)
        return id

    def claim(self, digest: str, name: str, line: int) -> str:
        """Return the name of the text with this digest: its first name, with the line number if another text has that name."""
        key = bytes.fromhex(digest)
        if place := self._places[key]:
            end = self._names.index(_END, place)
            return self._names[place:end].decode(errors="surrogatepass")
        while self._taken[name.encode(errors="surrogatepass")]:
            name = f"{name}, line {line}"
        self._taken.add(name.encode(errors="surrogatepass"))
        self._places.add(key, len(self._names))
        self._names += name.encode(errors="surrogatepass") + _END
        return name

    def write(self, file: IO[bytes]) -> None:
        """Write the registry to a file, for `read`."""
        for table in (self._lines, self._places, self._taken):
            table.write(file)
        file.write(array("Q", (len(self._names),)).tobytes() + self._names)

    @classmethod
    def read(cls, file: IO[bytes]) -> Self:
        """Read a registry that `write` wrote."""
        names, size = cls(), array("Q")
        names._lines, names._places, names._taken = (DigestTable.read(file) for _ in range(3))
        size.fromfile(file, 1)
        names._names = bytearray(file.read(size[0]))
        return names


@dataclass(slots=True)
class Position(Offset):
    """How far a JSON Lines file has been read, and the names of its rows so far."""

    names: Names = dataclasses.field(default_factory=Names)

    def write(self, file: IO[bytes]) -> None:
        """Write the position to a file, for `read`."""
        file.write(array("Q", (self.offset, self.line)).tobytes())
        self.names.write(file)

    @classmethod
    def read(cls, file: IO[bytes]) -> Self:
        """Read a position that `write` wrote."""
        place = array("Q")
        place.fromfile(file, 2)
        offset, line = place
        return cls(offset, line, Names.read(file))
