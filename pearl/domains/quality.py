"""Stories and essays, as in QuALITY."""

from __future__ import annotations

from collections.abc import Iterator

from pearl.domains import Domain, Source
from pearl.errors import DataError
from pearl.samples import Sample

DOMAIN = Domain("Stories and essays, as in QuALITY", library="quality", examples="quality")


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file.

    Raises:
        DataError: The file cannot be read at all.
    """
    raise NotImplementedError
