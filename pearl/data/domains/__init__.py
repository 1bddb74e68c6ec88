"""Domains: how to read a kind of data, and which library and examples go with it. One module is one domain.

A domain module has `DOMAIN` and `read(source: Source) -> Iterator[Sample | DataError]`, which
yields a sample a question in the order of the data, and an error that names file and line for every
row that is none; the rest goes on. It raises `DataError` only where the data cannot be read at all,
and `UsageError` where there is no such split, field or column. `pearl.data.rows` has what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pearl import plugins
from pearl.errors import DataError

if TYPE_CHECKING:  # the library and examples of a domain are needed more often than its data
    from pearl.data.rows import Row
    from pearl.data.samples import Sample

__all__ = ["CONTRACT", "Domain", "DomainModule", "Source", "load_domain", "read_samples"]


@dataclass(frozen=True, slots=True)
class Domain:
    """What the planner is given for a kind of document.

    Attributes:
        description: One line for people.
        library: Name of the action library.
        examples: Name of the bank of examples.
        formats: Fields that tell its rows from those of others, one set for each kind of row. Other
            domains say whose they are.
    """

    description: str
    library: str
    examples: str
    formats: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where data comes from.

    Attributes:
        name: A file, a folder of a saved dataset, or the name of a dataset on a Hugging Face hub.
        split: Part of a dataset.
        columns: Which column holds a field of a sample, where it is not called as the field is; or
            several, as `a,b,c`, that hold an array together.
        allow_outside: Whether rows may name documents outside the folder of the data.
    """

    name: str
    split: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    allow_outside: bool = False

    def rows(self) -> Iterator[Row | DataError]:
        """The rows, as `pearl.data.rows.read_rows` reads them."""
        from pearl.data.rows import read_rows

        return read_rows(self.name, self.split, allow_outside=self.allow_outside)


class DomainModule(Protocol):
    """What a module of this folder looks like to its users."""

    DOMAIN: Domain

    def read(self, source: Source) -> Iterator[Sample | DataError]:
        """A sample a question, and an error a row that is none.

        Raises:
            DataError: The data cannot be read at all.
            UsageError: There is no such split, field or column.
        """
        ...


CONTRACT = DomainModule


def load_domain(name: str) -> Domain:
    """The domain of that name.

    Raises:
        UsageError: There is none.
    """
    domain: Domain = plugins.load(__name__, name, "domain").DOMAIN
    return domain


def read_samples(domain: str, source: Source) -> Iterator[Sample | DataError]:
    """The samples of some data, an error for every row that is none.

    Raises:
        UsageError: There is no such domain, split, field or column.
        DataError: The data cannot be read at all.
    """
    samples: Iterator[Sample | DataError] = plugins.load(__name__, domain, "domain").read(source)
    return samples
