"""PowerPoint files: a page per slide, with tables, charts, SmartArt, notes and comments; a note counts the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pearl.documents.marks import END, LOWER, RAISE, written
from pearl.documents.office import drawing_texts, has_part, office_parts, part_xml
from pearl.documents.readers import OPTIONS, ReaderText, not_read
from pearl.documents.table import markdown
from pearl.errors import DataError

if TYPE_CHECKING:
    from lxml.etree import _Element

SUFFIXES = (".pptx", ".pptm")
BEGINS = (b"PK",)

HAS_PAGES = True

EXTRA = "office"


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a presentation in it."""
    return has_part(data, "ppt/presentation.xml")


def read(data: bytes, path: str) -> ReaderText:
    """The text of a presentation."""
    import pptx

    slides = pptx.Presentation(BytesIO(office_parts(data, path, ".pptx"))).slides
    left_out = Counter[str]()
    text = "\n\f".join("\n\n".join(_slide(slide, left_out)) for slide in slides)
    if left_out["hidden slide"] and not text.strip():
        raise DataError(
            "the presentation has only hidden slides", path=path, help="--hidden reads them"
        )
    return ReaderText(text, notes=not_read(left_out))


def _slide(slide: Any, left_out: Counter[str]) -> Iterator[str]:
    is_hidden = slide._element.get("show") == "0"
    if is_hidden and not OPTIONS.get().hidden:
        left_out["hidden slide"] += 1
        return
    title = slide.shapes.title
    if title is not None and title.text_frame.text.strip():
        yield f"# {' '.join(_line(title.text_frame._txBody, left_out).split())}{' (hidden)' * is_hidden}"
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            yield _table(shape.table, left_out)
        elif shape.has_text_frame:
            yield from filter(None, [_text(shape, left_out)])
        else:
            yield from filter(None, drawing_texts(shape._element, slide.part, left_out))
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and frame.text.strip():
        yield f"Notes: {frame.text.strip()}"
    for relation in slide.part.rels.values():
        if relation.reltype.endswith("/comments") and not relation.is_external:
            root = part_xml(relation.target_part)
            for comment in root.iter("{*}cm"):
                texts = comment.xpath(".//*[local-name()='text' or local-name()='t']/text()")
                yield f"Comment: {' '.join(' '.join(texts).split())}"
        left_out["embedded file"] += relation.reltype.endswith(("/package", "/oleObject"))


def _shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    """The shapes, also those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _line(element: _Element, left_out: Counter[str]) -> str:
    """The text of a paragraph or of several, with raised and lowered text, without struck text."""
    paragraphs = element.xpath("self::a:p | .//a:p")
    return written("\n".join("".join(_pieces(each, left_out)) for each in paragraphs))


def _pieces(paragraph: _Element, left_out: Counter[str]) -> Iterator[str]:
    for each in paragraph.iterchildren("*"):
        kind = str(each.tag).rpartition("}")[2]
        left_out["formula"] += kind in {"AlternateContent", "m"}
        text = "\n" if kind == "br" else "".join(t.text or "" for t in each.iterchildren("{*}t"))
        properties = next((dict(p.attrib) for p in each.iterchildren("{*}rPr")), {})
        height = float(properties.get("baseline", "0").rstrip("%"))
        if properties.get("strike", "noStrike") != "noStrike":
            left_out["struck text"] += bool(text.strip())
        elif height and text.strip():
            yield f"{RAISE if height > 0 else LOWER}{text}{END}"
        else:
            yield text


def _text(shape: Any, left_out: Counter[str]) -> str:
    """The paragraphs; those of a body are points, indented by their levels."""
    lines = [
        (each.level, " ".join(_line(each._p, left_out).split()))
        for each in shape.text_frame.paragraphs
    ]
    lines = [(level, line) for level, line in lines if line]
    if not shape.is_placeholder or len(lines) < 2:
        return "\n".join(line for _, line in lines)
    return "\n".join(f"{'  ' * level}- {line}" for level, line in lines)


def _table(table: Any, left_out: Counter[str]) -> str:
    """A table; the text of merged cells is repeated."""
    rows = [[_line(cell._tc, left_out).strip() for cell in row.cells] for row in table.rows]
    for i, row in enumerate(table.rows):
        for j, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for k in range(i, i + cell.span_height):
                    rows[k][j : j + cell.span_width] = [rows[i][j]] * cell.span_width
    return markdown(rows[0], rows[1:])
