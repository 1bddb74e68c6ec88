"""`Sample`: a question about a document, with its options and what is right, where there are any.

What mining, the bank of examples and the evaluation read. The modules of `pearl.data.domains` make
samples of the files that each kind of data comes in.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pearl.documents.document import Document, file_source, load
from pearl.errors import DataError

__all__ = ["Sample", "letter"]


def letter(index: int) -> str:
    """How option `index`, counted from 0, is called.

    Example:
        >>> letter(2)
        'C'
    """
    return string.ascii_uppercase[index]


@dataclass(frozen=True, slots=True)
class Sample:
    """One question.

    Attributes:
        id: Names the sample; no other sample of the data has it.
        question: On one line; "" where the data is a document without a question.
        document: What it is asked of, as read or as the file to read; None for a bare question.
        options: The answers to choose from, in order; none where the answer is in words.
        gold: Which option is right, counted from 0.
        reference: A right answer in words.
        subsets: Parts of the data that it belongs to, as `hard` or `long`.
        extra: What else its row says, kept on the way from file to file.
    """

    id: str
    question: str
    document: Document | Path | None = field(default=None, repr=False)
    options: tuple[str, ...] = ()
    gold: int | None = None
    reference: str | None = None
    subsets: frozenset[str] = frozenset()
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    @property
    def document_name(self) -> str:
        """The name of its document; "" if it has none."""
        if self.document is None:
            return ""
        return self.document.name if isinstance(self.document, Document) else str(self.document)

    def load(self) -> Document:
        """Its document, read now if it is a file.

        Raises:
            DataError: There is none, or it cannot be read.
        """
        if self.document is None:
            raise DataError(f"sample '{self.id}' has no document")
        return self.document if isinstance(self.document, Document) else load(self.document)

    @property
    def loader(self) -> Callable[[], Document] | None:
        """Loads its document; those of samples over one document are equal. None without a document."""
        if self.document is None:
            return None
        document = self.document
        return (
            partial(_given, document) if isinstance(document, Document) else partial(load, document)
        )

    @property
    def source(self) -> str:
        """What tells its document from others without reading it; "" where nothing does."""
        if isinstance(self.document, Document):
            return f"{self.document.name} {self.document.digest}"
        return "" if self.document is None else file_source(self.document)

    def to_json(self) -> dict[str, Any]:
        """A row that the `generic` domain reads as the same sample."""
        row: dict[str, Any] = {**self.extra, "id": self.id, "question": self.question}
        if isinstance(self.document, Document):
            row["document"] = self.document.text
            row["document_name"] = self.document.name
        elif self.document is not None:
            row["document_path"] = str(self.document)
        if self.options:
            row["options"] = list(self.options)
        if self.gold is not None:
            row["gold"] = letter(self.gold)
        if self.reference is not None:
            row["reference"] = self.reference
        if self.subsets:
            row["subsets"] = sorted(self.subsets)
        return row


def _given(document: Document) -> Document:
    return document
