"""Domains: how to read a kind of data, and which library and examples go with it. One module is one domain.

A domain module has `DOMAIN` and `read(source: Source) -> Iterator[Sample | DataError]`, which
yields a sample a question in the order of the data, and an error that names file and line for every
row that is none; the rest goes on. It raises `DataError` only where the data cannot be read at all,
and `UsageError` where there is no such split, field or column. `pearl.data.rows` has what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pearl import plugins
from pearl.data.rows import Row, read_rows
from pearl.data.samples import Sample
from pearl.errors import DataError, UsageError, did_you_mean

__all__ = ["Domain", "Source", "load_domain", "read_samples"]


@dataclass(frozen=True, slots=True)
class Domain:
    """What the planner is given for a kind of document.

    Attributes:
        description: One line for people.
        library: Name of the action library.
        examples: Name of the bank of examples.
    """

    description: str
    library: str
    examples: str


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
        return read_rows(self.name, self.split, allow_outside=self.allow_outside)


def _check(name: str) -> None:
    if not plugins.is_there(__name__, name):
        known = plugins.names(__name__)
        close = did_you_mean(name, known)
        hint = f"did you mean '{close}'?" if close else f"domains: {', '.join(known)}"
        raise UsageError(f"unknown domain '{name}'", help=hint)


def load_domain(name: str) -> Domain:
    """The domain of that name.

    Raises:
        UsageError: There is none.
    """
    _check(name)
    domain: Domain = plugins.load(__name__, name).DOMAIN
    return domain


def read_samples(domain: str, source: Source) -> Iterator[Sample | DataError]:
    """The samples of some data, an error for every row that is none.

    Raises:
        UsageError: There is no such domain, split, field or column.
        DataError: The data cannot be read at all.
    """
    _check(domain)
    samples: Iterator[Sample | DataError] = plugins.load(__name__, domain).read(source)
    return samples
