"""Medical transcripts, reports and questions."""

from __future__ import annotations

from collections.abc import Iterator

from pearl.domains import Domain, Source
from pearl.errors import DataError
from pearl.samples import Sample

DOMAIN = Domain("Medical transcripts, reports and questions", library="medical", examples="medical")


def read(source: Source) -> Iterator[Sample | DataError]:
    """The samples of a file.

    Raises:
        DataError: The file cannot be read at all.
    """
    raise NotImplementedError
