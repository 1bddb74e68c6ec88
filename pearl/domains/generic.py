"""Documents of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from pearl.domains import Domain, Source
from pearl.errors import DataError
from pearl.samples import Sample

DOMAIN = Domain("Documents of any kind", library="seed", examples="generic")


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file.

    Raises:
        DataError: The file cannot be read at all.
    """
    raise NotImplementedError
