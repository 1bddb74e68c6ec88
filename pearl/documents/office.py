"""Office files: the kind of an archive, its parts in the form that libraries read, text of charts and SmartArt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pearl.documents.document import check_archive
from pearl.documents.table import markdown
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from lxml.etree import _Element

_END_OF_DIRECTORY = b"PK\x05\x06"
# http://purl.oclc.org/ooxml/wordprocessingml/main
_STRICT = lazy_pattern(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_DOCUMENT_TYPES = (b"<!DOCTYPE", "<!DOCTYP".encode("utf-16-le"))  # also in big-endian UTF-16


def has_part(data: bytes, name: str) -> bool:
    """Whether the directory of an archive names a part; for a truncated archive, its bytes are searched."""
    if not data.startswith(b"PK"):
        return False
    end = data.rfind(_END_OF_DIRECTORY)
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    return name.encode() in data[max(0, end - size) : end] if end >= 0 else name.encode() in data


def office_parts(data: bytes, path: str, suffix: str) -> bytes:
    """An Office file in Transitional Open XML, which the libraries read; a file in Strict Open XML is converted."""
    from zipfile import ZipFile

    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        parts = {name: archive.read(name) for name in names}
        if any(sign in part for part in parts.values() for sign in _DOCUMENT_TYPES):
            raise DataError("the file declares XML entities, which no Office file may", path=path, help=f"save it again as {suffix}")  # fmt: skip
        if not any(map(_STRICT.search, parts.values())):
            return data
        made = BytesIO()
        with ZipFile(made, "w") as transitional:
            for name in archive.namelist():
                part = parts[name] if name in parts else archive.read(name)
                transitional.writestr(name, _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", part))  # fmt: skip
    return made.getvalue()


def parse_xml(data: bytes) -> _Element:
    """The root of an XML part; entities are not resolved, and nothing outside of the archive is read."""
    from lxml.etree import XMLParser, fromstring

    return fromstring(data, XMLParser(resolve_entities=False, no_network=True, load_dtd=False))


def part_xml(part: Any) -> _Element:
    """The XML of a part of a Word or PowerPoint file, parsed here if their libraries have not parsed it."""
    root: _Element = part._element if hasattr(part, "_element") else parse_xml(part.blob)
    return root


def drawing_texts(element: _Element, part: Any, left_out: Counter[str]) -> Iterator[str]:
    """Yield the text of each chart and SmartArt in an element; add those without data in the file to `left_out`."""
    for drawing in element.xpath(".//*[local-name()='chart' or local-name()='relIds']"):
        for name, value in drawing.attrib.items():
            kind, key = drawing.tag.rpartition("}")[2], str(name).rpartition("}")[2]
            if (kind, key) not in {("chart", "id"), ("relIds", "dm")}:
                continue
            relation = part.rels.get(str(value))
            if relation is None or relation.is_external:
                left_out["chart" if kind == "chart" else "diagram"] += 1
            elif kind == "chart":
                yield _chart(part_xml(relation.target_part))
            else:  # the texts of the boxes of SmartArt, one line each
                boxes = part_xml(relation.target_part).xpath(
                    "//*[local-name()='pt']/*[local-name()='t']"
                )
                texts = (" ".join("".join(box.itertext()).split()) for box in boxes)
                yield "\n".join(filter(None, texts))


_MAX_POINTS = 10_000  # maximum rows of a chart's table: a part may number its points as it likes


def _chart(root: _Element) -> str:
    """The title of a chart, and its figures as a table in Markdown."""
    title = " ".join(map(str, root.xpath("//*[local-name()='chart']/*[local-name()='title']//*[local-name()='t']/text()")))  # fmt: skip
    header, columns = ["category"], list[dict[int, str]]()
    categories: dict[int, str] = {}
    for n, series in enumerate(root.xpath("//*[local-name()='ser']"), 1):
        names = series.xpath("./*[local-name()='tx']//*[local-name()='v']/text()")
        header.append(" ".join(map(str, names)) or f"series {n}")
        categories |= _points(series, "cat") or _points(series, "xVal")
        columns.append(_points(series, "val") or _points(series, "yVal"))
    places = sorted(categories.keys() | {at for column in columns for at in column})[:_MAX_POINTS]
    rows = [[each.get(at, "") for each in (categories, *columns)] for at in places]
    return "\n\n".join(filter(None, [title.strip(), markdown(header, rows) if rows else ""]))


def _points(series: _Element, name: str) -> dict[int, str]:
    points = series.xpath(f"./*[local-name()='{name}']//*[local-name()='pt']")
    return {
        int(point.get("idx", "0")): " ".join(point.xpath("./*[local-name()='v']/text()"))
        for point in points
    }
