"""Documents in corpus order and their passages (ranges of their texts), as immutable arrays in memory or mapped from a file."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pearl.documents.digest import digest
from pearl.documents.passages import Stem
from pearl.documents.units import Piece
from pearl.errors import Span
from pearl.retrieval import Passage
from pearl.retrieval.corpus import DIGEST, CorpusDocument
from pearl.retrieval.postings import (
    Postings,
    PostingsBuilder,
    Texts,
    TextsBuilder,
    merge,
    nested,
)

Arrays = dict[str, NDArray[Any]]
Item = TypeVar("Item")


class _Lazy(Sequence[Item]):
    """A sequence whose items are created on access."""

    def __init__(self, n: int, make: Callable[[int], Item]) -> None:
        self._n = n
        self._make = make

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        numbers = range(self._n)[index]
        if isinstance(numbers, range):
            return [self._make(number) for number in numbers]
        return self._make(numbers)


@dataclass(frozen=True)
class Contents:
    """Documents and their passages."""

    texts: Texts
    names: Texts
    metadata: Texts
    digests: NDArray[np.uint8]
    document_of: NDArray[np.int32]
    """The document number of each passage, ascending, shape (passages,)."""
    spans: NDArray[np.int32]
    byte_spans: NDArray[np.int32]
    fields: Texts | None
    """The fields that the unit gives to each passage, as JSON; None if it gives none."""
    terms: Postings
    field_names: tuple[str, ...]  # Names of all document metadata and passage fields

    @classmethod
    def of_arrays(cls, arrays: Arrays, field_names: Sequence[str]) -> Contents:
        """Restore contents from stored arrays, with the names that `flat` gives them."""
        parts = nested(arrays)
        for name in ("texts", "names", "metadata"):
            parts[name] = Texts(**parts[name])
        terms = {**parts.pop("terms")}
        terms["names"] = Texts(**terms["names"])
        fields = Texts(**parts.pop("fields")) if "fields" in parts else None
        return cls(**parts, fields=fields, terms=Postings(**terms), field_names=tuple(field_names))

    @property
    def n_documents(self) -> int:
        """The number of documents."""
        return len(self.names)

    @property
    def n_passages(self) -> int:
        """The number of passages."""
        return len(self.document_of)

    @cached_property
    def passage_starts(self) -> NDArray[np.int64]:
        """The number of each document's first passage, and the total; shape (documents + 1,)."""
        counts = np.bincount(self.document_of, minlength=self.n_documents)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def id(self) -> str:
        """Identifies the passages to which stored vectors belong."""
        return digest([self.digests.tobytes(), self.byte_spans.tobytes()]).hex()[:16]

    def text(self, passage: int) -> str:
        """The text of a passage."""
        start, end = self.byte_spans[passage].tolist()
        return self.texts.part(int(self.document_of[passage]), start, end)

    def document_metadata(self, document: int) -> dict[str, str]:
        """The metadata of a document."""
        return dict(json.loads(self.metadata[document] or "{}").get("metadata", {}))

    @cached_property
    def passages(self) -> Sequence[Passage]:
        """The passages, created on access."""
        metadata = lru_cache(maxsize=1_024)(self.document_metadata)  # read with all pages of a PDF

        def passage(number: int) -> Passage:
            document = int(self.document_of[number])
            start, end = self.spans[number].tolist()
            fields = dict(metadata(document))
            if self.fields is not None:
                fields |= json.loads(self.fields[number] or "{}")
            name, text = self.names[document], self.text(number)
            return Passage(number, name, Span(start, end), text, fields)

        return _Lazy(self.n_passages, passage)

    @cached_property
    def documents(self) -> Sequence[CorpusDocument]:
        """The documents in order, created on access."""

        def document(number: int) -> CorpusDocument:
            about = json.loads(self.metadata[number] or "{}")
            named = {"name": self.names[number], "text": self.texts[number], **about}
            return msgspec.convert(named, CorpusDocument)

        return _Lazy(self.n_documents, document)


class ContentsBuilder:
    """Collects documents and their passages."""

    def __init__(self, stem: Stem) -> None:
        self._texts, self._names, self._metadata = TextsBuilder(), TextsBuilder(), TextsBuilder()
        self._fields = TextsBuilder()
        self._digests = bytearray()
        self._documents, self._spans, self._bytes = array("i"), array("i"), array("i")
        self._field_names: dict[str, None] = {}
        self._terms = PostingsBuilder(stem)

    @property
    def n_documents(self) -> int:
        """Number of documents so far."""
        return len(self._names.starts) - 1

    @property
    def n_bytes(self) -> int:
        """Number of bytes of text so far."""
        return len(self._texts.data)

    def add(self, document: CorpusDocument, pieces: Sequence[Piece], digest: bytes) -> None:
        """Add a document."""
        number, text = self.n_documents, document.text
        data = text.encode("utf-8", "replace")  # "replace": a `Document` has no lone surrogates
        offset = int if len(data) == len(text) else _byte_offsets(text)
        for start, end, fields in pieces:
            self._documents.append(number)
            self._spans.extend((start, end))
            self._bytes.extend((offset(start), offset(end)))
            self._fields.add(_json(fields) if fields else b"")
            self._field_names.update(dict.fromkeys(fields))
            self._terms.add(text[start:end])
        self._field_names.update(dict.fromkeys(document.metadata))
        about = {name: getattr(document, name) for name in ("metadata", "pages", "ocr", "notes")}
        about = {name: value for name, value in about.items() if value}
        self._texts.add(data)
        self._names.add(document.name)
        self._metadata.add(_json(about) if about else b"")
        self._digests += digest

    def finish(self) -> Contents:
        """Return the contents; the builder cannot be used afterwards."""
        return Contents(
            self._texts.finish(),
            self._names.finish(),
            self._metadata.finish(),
            np.frombuffer(self._digests, np.uint8).reshape(-1, DIGEST),
            np.array(self._documents, np.int32),
            np.array(self._spans, np.int32).reshape(-1, 2),
            np.array(self._bytes, np.int32).reshape(-1, 2),
            self._fields.finish() if self._fields.data else None,
            self._terms.finish(),
            tuple(self._field_names),
        )


_BLOCK = 1_024  # Characters of a block whose byte offset is kept


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _byte_offsets(text: str) -> Callable[[int], int]:
    """Return the function that maps the offset of a character to that of its first byte."""
    blocks = (text[at : at + _BLOCK] for at in range(0, len(text), _BLOCK))
    sizes = (len(block.encode("utf-8", "replace")) for block in blocks)
    starts = array("q", accumulate(sizes, initial=0))

    def offset(at: int) -> int:
        number = at // _BLOCK
        return starts[number] + len(text[number * _BLOCK : at].encode("utf-8", "replace"))

    return offset


def arranged(parts: Sequence[Contents], documents: NDArray[np.int64]) -> Contents:
    """Combine documents of several contents, without analysing their texts again."""
    every = _joined([np.diff(part.passage_starts) for part in parts])
    starts, counts = (np.cumsum(every) - every)[documents], every[documents]
    ends = np.cumsum(counts)
    passages = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
    new = np.full(sum(part.n_passages for part in parts), -1, np.int64)
    new[passages] = np.arange(len(passages))
    edges = np.cumsum([part.n_passages for part in parts])[:-1]
    fields = None
    if any(part.fields is not None for part in parts):
        fields = _taken(
            [part.fields or Texts.of([b""] * part.n_passages) for part in parts], passages
        )
    return Contents(
        _taken([part.texts for part in parts], documents),
        _taken([part.names for part in parts], documents),
        _taken([part.metadata for part in parts], documents),
        np.concatenate([part.digests for part in parts])[documents],
        np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        np.concatenate([part.spans for part in parts])[passages],
        np.concatenate([part.byte_spans for part in parts])[passages],
        fields,
        merge([part.terms for part in parts], np.split(new, edges)),
        tuple(dict.fromkeys(name for part in parts for name in part.field_names)),
    )


def _joined(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _taken(parts: Sequence[Texts], numbers: NDArray[np.int64]) -> Texts:
    """The strings with these numbers, which run through all parts; strings with consecutive numbers are copied at once."""
    firsts = np.cumsum([0, *(len(part) for part in parts)])
    part_of = np.searchsorted(firsts, numbers, side="right") - 1
    breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(part_of) != 0)) + 1
    pieces: list[NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
    if len(numbers):
        for start, end in pairwise([0, *breaks.tolist(), len(numbers)]):
            part, first = parts[part_of[start]], int(numbers[start] - firsts[part_of[start]])
            pieces.append(part.data[part.starts[first] : part.starts[first + end - start]])
    sizes = _joined([np.diff(part.starts) for part in parts])[numbers]
    return Texts(np.concatenate(pieces), np.concatenate([[0], np.cumsum(sizes)]))
