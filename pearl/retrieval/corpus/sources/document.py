"""Files that are one document each, read by the readers of `pearl.documents`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pearl import plugins
from pearl.documents.digest import digest
from pearl.documents.document import from_bytes, read_bytes
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.corpus.sources import DIGEST, Entry, New, SourceFile, rows

_READERS = "pearl.documents.readers"


def suffixes() -> tuple[str, ...]:
    """Those of all readers, but for files of rows: these are several documents."""
    readers = [plugins.load(_READERS, name) for name in plugins.names(_READERS)]
    of_rows = rows.suffixes()
    return tuple(s for reader in readers for s in reader.SUFFIXES if s not in of_rows)


def in_folders() -> tuple[str, ...]:
    """All of them."""
    return suffixes()


def read(file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
    """The document that a file is."""
    data = read_bytes(file.path, file.label)
    key = digest([file.label, data])[:DIGEST]
    place = known.get(key)
    if place is not None:
        yield (place,)
        return
    document = from_bytes(data, file.path, name=file.label)
    yield New(key, CorpusDocument(file.label, document.text, {}, document.pages))
