"""PowerPoint files → a page for each slide: its title, its texts, its tables in Markdown, its notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from pearl.documents.document import check_archive
from pearl.documents.table import markdown
from pearl.errors import DataError

SUFFIXES = (".pptx", ".pptm")

HAS_PAGES = True

EXTRA = "office"


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a presentation in it."""
    return data.startswith(b"PK") and b"ppt/presentation.xml" in data


def read(data: bytes, path: str) -> str:
    """The text of a presentation."""
    import pptx

    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        parts = (name for name in archive.namelist() if name.endswith(".xml"))
        if any(b"<!DOCTYPE" in archive.read(name) for name in parts):
            raise DataError("the file declares XML entities, which no PowerPoint file may", path=path, help="save it again as .pptx")  # fmt: skip
    slides = pptx.Presentation(BytesIO(data)).slides
    return "\n\f".join("\n\n".join(_slide(slide)) for slide in slides)


def _slide(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        hidden = " (hidden)" if slide._element.get("show") == "0" else ""
        yield f"# {' '.join(title.text_frame.text.split())}{hidden}"
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            yield _table(shape.table)
        elif shape.has_text_frame and (text := _text(shape)):
            yield text
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and frame.text.strip():
        yield f"Notes: {frame.text.strip()}"


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """The shapes, also those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _text(shape: Any) -> str:
    """The paragraphs; those of a body are points, indented by their levels."""
    lines = [(each.level, " ".join(each.text.split())) for each in shape.text_frame.paragraphs]
    lines = [(level, line) for level, line in lines if line]
    if not shape.is_placeholder or len(lines) < 2:
        return "\n".join(line for _, line in lines)
    return "\n".join(f"{'  ' * level}- {line}" for level, line in lines)


def _table(table: Any) -> str:
    """A table; the text of merged cells is repeated."""
    rows: list[list[str]] = [[cell.text for cell in row.cells] for row in table.rows]
    for i, row in enumerate(table.rows):
        for j, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for k in range(i, i + cell.span_height):
                    rows[k][j : j + cell.span_width] = [cell.text] * cell.span_width
    return markdown(rows[0], rows[1:])
