"""`Sample`: a question about a document, with options and the gold answer if known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pearl.data.storage import StoredFile
from pearl.documents.document import Document, file_source, load
from pearl.errors import DataError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The letters of options."""


def letter(index: int) -> str:
    """The letter of option `index`, counted from 0."""
    return LETTERS[index]


@dataclass(frozen=True, slots=True)
class Sample:
    """One question."""

    id: str
    question: str
    document: Document | Path | StoredFile | None = field(default=None, repr=False)
    options: tuple[str, ...] = ()
    gold: int | None = None
    reference: str | None = None
    subsets: frozenset[str] = frozenset()
    gold_passages: tuple[str, ...] = field(default=(), repr=False, kw_only=True)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def document_name(self) -> str:
        """The name of its document; "" if it has none."""
        if self.document is None:
            return ""
        return self.document.name if isinstance(self.document, Document) else str(self.document)

    def load(self) -> Document:
        """The document; reads a file."""
        if (loader := self.loader) is None:
            raise DataError(f"sample '{self.id}' has no document")
        return loader()

    @property
    def loader(self) -> Callable[[], Document] | None:
        """A function that loads the document; equal for samples over the same document. None without one."""
        return None if self.document is None else loader_of(self.document)

    @property
    def source(self) -> str:
        """Identity of the document, known without reading it; "" without a document."""
        if isinstance(self.document, Document):
            return f"{self.document.name} {self.document.digest}"
        if isinstance(self.document, StoredFile):
            return self.document.source
        return "" if self.document is None else file_source(self.document)

    def to_dict(self) -> dict[str, Any]:
        """A row that the `generic` domain parses to the same sample."""
        row: dict[str, Any] = {**self.extra, "id": self.id, "question": self.question}
        if isinstance(self.document, Document):
            row["document"] = self.document.text
            row["document_name"] = self.document.name
        elif self.document is not None:
            row["document_path"] = str(self.document)
        others = {
            "options": list(self.options),
            "gold": None if self.gold is None else letter(self.gold),
            "reference": self.reference,
            "subsets": sorted(self.subsets),
            "gold_passages": list(self.gold_passages),
        }
        return row | {name: value for name, value in others.items() if value}


def loader_of(document: Document | str | Path | StoredFile) -> Callable[[], Document]:
    """A function that loads a document; those of the same document are equal."""
    if isinstance(document, Document):
        return partial(given, document)
    if isinstance(document, StoredFile):
        return partial(StoredFile.load, document)
    return partial(load, document)


def given(document: Document) -> Document:
    """Return the document; used as the loader of a document in memory."""
    return document
