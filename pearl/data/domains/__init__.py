"""Domains: a data format with its action library and examples. Every other module is one domain.

A domain module has `DOMAIN` and `read(source: Source) -> Iterator[Sample | DataError]`, which
yields one sample per question in order, and an error that names file and line for every invalid
row. It raises `DataError` only if the data cannot be read at all, and `UsageError` for an unknown
split, field or column. `pearl.data.rows` provides the readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from pearl import plugins
from pearl.errors import DataError

if TYPE_CHECKING:  # most uses of a domain need its library and examples only
    from pearl.data.rows import Position, Row
    from pearl.data.samples import Sample


class Domain(Struct, frozen=True):
    """The defaults of a kind of document."""

    description: str  # One line, shown to users
    library: str  # Name of the action library
    examples: str  # Name of the bank of examples
    formats: tuple[frozenset[str], ...] = ()
    """Sets of fields that identify its rows, one per kind; other domains reject such rows, naming this one."""
    is_dated: bool = False


class Source(Struct, frozen=True):
    """A data source."""

    name: str  # A file, a folder of a saved dataset, or a dataset on a Hugging Face hub
    split: str | None = None  # Part of a dataset
    columns: Mapping[str, str] = {}
    """Field → column, for columns named differently; or several columns, as `a,b,c`, that form an array."""
    allow_outside: bool = False  # Rows may refer to documents outside the folder of the data
    position: Position | None = None
    """Where to start reading; then updated as rows are read. A domain may ignore it."""

    def rows(self, position: Position | None = None) -> Iterator[Row | DataError]:
        """The rows of the source; `position` skips those already read of a JSON Lines file."""
        from pearl.data.rows import read_rows

        return read_rows(self.name, self.split, allow_outside=self.allow_outside, position=position)


class DomainModule(Protocol):
    """The contract of a domain plug-in."""

    DOMAIN: Domain

    def read(self, source: Source) -> Iterator[Sample | DataError]:
        """Yield one sample per question, and one error per invalid row; raises `DataError` and `UsageError` as `read_samples`."""
        ...


CONTRACT = DomainModule


def load_domain(name: str) -> Domain:
    """Load a domain by name; `UsageError` for an unknown one."""
    domain: Domain = plugins.load(__name__, name, "domain").DOMAIN
    return domain


def read_samples(domain: str, source: Source) -> Iterator[Sample | DataError]:
    """The samples of a source, with an error for every invalid row. Raises `UsageError` for unknown names, `DataError` for data."""
    samples: Iterator[Sample | DataError] = plugins.load(__name__, domain, "domain").read(source)
    return samples
