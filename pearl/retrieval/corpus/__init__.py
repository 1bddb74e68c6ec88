"""Files, folders and rows → the documents that are searched, each with its metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pearl import plugins
from pearl.documents.units import Piece, window
from pearl.errors import UsageError


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document of a corpus."""

    name: str
    text: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    pages: tuple[tuple[str, int], ...] = ()
    is_row: bool = False
    ocr: tuple[tuple[int, int, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cutting:
    """How documents are cut into passages."""

    unit: str = ""
    size: int = window.SIZE
    overlap: int = window.OVERLAP

    def __post_init__(self) -> None:
        if self.unit:
            plugins.load("pearl.documents.units", self.unit, "unit")
        if self.unit != "window" and (self.size, self.overlap) != (window.SIZE, window.OVERLAP):
            raise UsageError(
                f"size and overlap do not apply to passages by {self.unit or 'paragraph'}",
                help="they apply to the unit 'window'",
            )
        if not 0 <= self.overlap < self.size:
            raise UsageError(
                f"windows of {self.size} characters cannot share {self.overlap}",
                help="give an overlap below the size",
            )

    @property
    def name(self) -> str:
        """A name that differs for each way of cutting and can be part of a file name."""
        if self.unit == "window":
            return f"window-{self.size}-{self.overlap}"
        return self.unit or "default"


def cut(document: CorpusDocument, cutting: Cutting) -> Sequence[Piece]:
    """The passages of a document, in order; the whole text if the unit does not occur in it."""
    unit = cutting.unit or ("document" if document.is_row else "paragraph")
    try:
        if unit == "window":
            return window.split(document.text, (), cutting.size, cutting.overlap)
        parts = document.pages if unit == "page" else ()
        pieces: list[Piece] = plugins.load("pearl.documents.units", unit).split(
            document.text, parts
        )
    except ValueError:
        return [Piece(0, len(document.text), {})]
    if unit == "record":  # for the filter `unit=record`: tables only
        return [piece._replace(fields={"unit": unit, **piece.fields}) for piece in pieces]
    return pieces
