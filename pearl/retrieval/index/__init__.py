"""Documents → an index: passages, their terms, and vectors if an embedder computed them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.documents.document import Document, DocumentKind, join
from pearl.documents.passages import Stem
from pearl.errors import DataError, Span
from pearl.retrieval import Passage
from pearl.retrieval.corpus import CorpusDocument, Cutting, cut
from pearl.retrieval.postings import Postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pearl.retrieval.index.contents import Contents
    from pearl.retrieval.index.updating import IndexProgress, Opened

DOCUMENT = "document"  # The field of every passage with the name of its document


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """Searchable passages and documents, created on access; `vectors` if they were computed, `opened` if the index is in a folder."""

    contents: Contents
    stem: Stem
    vectors: NDArray[np.float32] | None = None
    opened: Opened | None = None
    _columns: dict[tuple[str, ...], tuple[list[tuple[str, ...]], NDArray[np.int64]]] = field(
        default_factory=dict
    )

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages."""
        return self.contents.passages

    @property
    def documents(self) -> Sequence[CorpusDocument]:
        """All documents, in order."""
        return self.contents.documents

    @property
    def terms(self) -> Postings:
        """The terms of all passages."""
        return self.contents.terms

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, one sentence each."""
        return () if self.opened is None else self.opened.notes

    def __repr__(self) -> str:
        """Short, because notebooks display it."""
        return f"Index({len(self.documents):,} documents, {len(self.passages):,} passages)"

    @classmethod
    def build(
        cls,
        documents: Iterable[CorpusDocument],
        cutting: Cutting | None = None,
        stem: Stem = "english",
    ) -> Index:
        """Index documents in memory."""
        from pearl.retrieval.corpus import DIGEST
        from pearl.retrieval.index.contents import ContentsBuilder

        cutting, builder = cutting or Cutting(), ContentsBuilder(stem)
        for document in documents:
            builder.add(document, cut(document, cutting), bytes(DIGEST))
        return cls(builder.finish(), stem)

    @classmethod
    def open(
        cls,
        *corpus: str | Path,
        cutting: Cutting | None = None,
        stem: Stem = "english",
        at: str | Path | None = None,
        is_fresh: bool = False,
        with_update: bool = True,
        progress: IndexProgress | None = None,
        without: Collection[Path] = frozenset(),
    ) -> Index:
        """Open the index of files in its folder and update it, or build it; `without` as in `find_files`."""
        from pearl.retrieval.index.updating import open_state

        opened = open_state(
            corpus, cutting or Cutting(), stem,
            at=at, is_fresh=is_fresh, with_update=with_update, progress=progress,
            without=without,
        )  # fmt: skip
        return cls(opened.state.contents, stem, opened=opened)

    def columns(self, names: tuple[str, ...]) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
        """The distinct combinations of values of some fields, and for each passage the position of its combination."""
        if names in self._columns:
            return self._columns[names]
        import numpy as np

        contents, known = self.contents, dict[tuple[str, ...], int]()
        by_document = contents.fields is None  # Else passages may differ
        every = (
            ((contents.names[n], contents.document_metadata(n)) for n in range(len(contents.names)))
            if by_document
            else ((p.document, p.fields) for p in self.passages)
        )
        places = [
            known.setdefault(
                tuple(fields.get(n, document if n == DOCUMENT else "") for n in names), len(known)
            )
            for document, fields in every
        ]
        found = np.array(places, np.int64)
        columns = list(known), found[contents.document_of] if by_document else found
        return self._columns.setdefault(names, columns)

    def document(self, name: str = "documents") -> IndexedDocument:
        """All documents joined into one, as `pearl.documents.document.join` does."""
        if not len(self.documents):
            raise DataError("the corpus has no document", path=name)
        documents = self.documents
        parts = (
            Document(d.text, d.name, pages=d.pages, ocr=d.ocr, notes=d.notes) for d in documents
        )
        joined = join(parts, name)
        metadata = tuple(d.metadata for d in documents)
        return IndexedDocument(
            joined.text, name, joined.parts, joined.pages, metadata,
            ocr=joined.ocr, notes=joined.notes, index=self,
        )  # fmt: skip


@dataclass(frozen=True, repr=False)
class IndexedDocument(Document):
    """All documents of a corpus as one, with the index of their passages."""

    kind: DocumentKind = field(default="corpus", repr=False, compare=False)
    index: Index = field(kw_only=True, repr=False, compare=False)

    def place(self, passage: Passage) -> Span:
        """The position in `text` of a passage of the index.

        Example:
            >>> index = Index.build([CorpusDocument("a", "one"), CorpusDocument("b", "two")])
            >>> document = index.document()
            >>> document.place(index.passages[1])
            Span(start=15, end=18)
        """
        return passage.span.moved(self.parts[self.number(passage)][1])

    def number(self, passage: Passage) -> int:
        """The number of the document that contains a passage of the index."""
        return int(self.index.contents.document_of[passage.number])
