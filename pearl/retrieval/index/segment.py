"""A batch of documents and their passages in arrays, which are in memory or mapped from files.

A segment is never changed. Texts are UTF-8, one after the other; a passage is a stretch of the text
of its document, so that passages that overlap take no room of their own.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pearl.documents.passages import Stem
from pearl.documents.units import Piece
from pearl.errors import DataError
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.corpus.sources import DIGEST
from pearl.retrieval.postings import Postings


@dataclass(frozen=True, slots=True)
class SegmentTexts:
    """Strings as UTF-8, one after the other."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> str:
        return self.part(number, 0, None)

    def part(self, number: int, start: int, end: int | None) -> str:
        """A string, or what is between two offsets in its bytes."""
        begin, stop = int(self.starts[number]), int(self.starts[number + 1])
        end = stop if end is None else begin + end
        return self.data[begin + start : end].tobytes().decode("utf-8", "replace")

    def every(self) -> list[bytes]:
        """All strings, as UTF-8."""
        data, starts = self.data.tobytes(), self.starts.tolist()
        return [data[start:end] for start, end in pairwise(starts)]


@dataclass(frozen=True)
class Segment:
    """Documents and their passages."""

    texts: SegmentTexts
    names: SegmentTexts
    metadata: SegmentTexts
    digests: NDArray[np.uint8]
    documents: NDArray[np.int32]
    spans: NDArray[np.int32]
    byte_spans: NDArray[np.int32]
    fields: SegmentTexts | None
    terms: Postings
    field_names: tuple[str, ...]

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return len(self.names)

    @property
    def n_passages(self) -> int:
        """How many passages there are."""
        return len(self.documents)

    @cached_property
    def passage_counts(self) -> NDArray[np.int64]:
        """How many passages each document has, shape (documents,)."""
        return np.bincount(self.documents, minlength=self.n_documents)

    def text(self, passage: int) -> str:
        """What a passage reads."""
        start, end = self.byte_spans[passage].tolist()
        return self.texts.part(int(self.documents[passage]), start, end)

    def document_metadata(self, document: int) -> dict[str, str]:
        """The metadata of a document."""
        return _strings(_parsed(self.metadata[document]).get("metadata", {}))

    def pages(self, document: int) -> tuple[tuple[str, int], ...]:
        """The pages of a document."""
        pages = _parsed(self.metadata[document]).get("pages", [])
        try:
            return tuple((str(name), int(start)) for name, start in pages)
        except (TypeError, ValueError):
            raise _damaged() from None

    def passage_fields(self, passage: int) -> dict[str, str]:
        """What the unit names in a passage."""
        return _strings(_parsed(self.fields[passage])) if self.fields is not None else {}


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise _damaged() from None
    if not isinstance(value, dict):
        raise _damaged()
    return value


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _damaged()
    return {str(k): str(v) for k, v in value.items()}


def _damaged() -> DataError:
    return DataError(
        "the metadata of the index is damaged", help="make it anew: pearl index CORPUS --fresh"
    )


class TextsBuilder:
    """Collects strings."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = array("q", [0])

    def add(self, text: str | bytes) -> None:
        """Add a string, or its UTF-8."""
        self.data += text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        self.starts.append(len(self.data))

    def finish(self) -> SegmentTexts:
        """All of them."""
        return SegmentTexts(
            np.frombuffer(bytes(self.data), np.uint8), np.array(self.starts, np.int64)
        )


class SegmentBuilder:
    """Collects documents for a segment."""

    def __init__(self) -> None:
        self._texts, self._names, self._metadata = TextsBuilder(), TextsBuilder(), TextsBuilder()
        self._fields = TextsBuilder()
        self._digests = bytearray()
        self._documents, self._spans, self._bytes = array("i"), array("i"), array("i")
        self._field_names: dict[str, None] = {}
        self._passages: list[str] = []

    @property
    def n_documents(self) -> int:
        """Documents so far."""
        return len(self._names.starts) - 1

    @property
    def n_passages(self) -> int:
        """Passages so far."""
        return len(self._documents)

    @property
    def n_bytes(self) -> int:
        """Bytes of text so far."""
        return len(self._texts.data)

    def add(self, document: CorpusDocument, pieces: Sequence[Piece], digest: bytes) -> None:
        """Add a document."""
        number, text = self.n_documents, document.text
        data = text.encode("utf-8", "replace")  # lone surrogates, as in no `Document`
        offsets = None if len(data) == len(text) else _byte_offsets(data)
        for start, end, fields in pieces:
            self._documents.append(number)
            self._spans.extend((start, end))
            if offsets is None:
                self._bytes.extend((start, end))
            else:
                self._bytes.extend((int(offsets[start]), int(offsets[end])))
            self._fields.add(_json(fields) if fields else b"")
            self._field_names.update(dict.fromkeys(fields))
            self._passages.append(text[start:end])
        about: dict[str, Any] = {}
        if document.metadata:
            about["metadata"] = dict(document.metadata)
            self._field_names.update(dict.fromkeys(document.metadata))
        if document.pages:
            about["pages"] = document.pages
        self._texts.add(data)
        self._names.add(document.name)
        self._metadata.add(_json(about) if about else b"")
        self._digests += digest

    def finish(self, stem: Stem) -> Segment:
        """The segment; the builder is of no use afterwards."""
        terms = Postings.build(self._passages, stem)
        self._passages = []
        return Segment(
            self._texts.finish(),
            self._names.finish(),
            self._metadata.finish(),
            np.frombuffer(bytes(self._digests), np.uint8).reshape(-1, DIGEST),
            np.array(self._documents, np.int32),
            np.array(self._spans, np.int32).reshape(-1, 2),
            np.array(self._bytes, np.int32).reshape(-1, 2),
            self._fields.finish() if self._fields.data else None,
            terms,
            tuple(self._field_names),
        )


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _byte_offsets(data: bytes) -> NDArray[np.int64]:
    """The offset in the bytes of each character, and of the end; shape (characters + 1,)."""
    first = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    return np.append(np.flatnonzero(first), len(data))


def passage_texts(segment: Segment) -> Iterator[str]:
    """What all passages of a segment read, in order."""
    return (segment.text(number) for number in range(segment.n_passages))
