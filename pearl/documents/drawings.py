"""Charts and SmartArt of Office files → their text, from the parts that hold their data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pearl.documents.table import markdown

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_POINTS = 10_000  # Maximum rows of a chart's table; a part may number its points as it likes


def chart_text(root: _Element) -> str:
    """The title of a chart, and the figures that it shows as a table in Markdown."""
    title = " ".join(map(str, root.xpath("//*[local-name()='chart']/*[local-name()='title']//*[local-name()='t']/text()")))  # fmt: skip
    header, columns = ["category"], list[dict[int, str]]()
    categories: dict[int, str] = {}
    for n, series in enumerate(root.xpath("//*[local-name()='ser']"), 1):
        names = series.xpath("./*[local-name()='tx']//*[local-name()='v']/text()")
        header.append(" ".join(map(str, names)) or f"series {n}")
        categories |= _points(series, "cat") or _points(series, "xVal")
        columns.append(_points(series, "val") or _points(series, "yVal"))
    places = sorted(categories.keys() | {at for column in columns for at in column})[:MAX_POINTS]
    rows = [[each.get(at, "") for each in (categories, *columns)] for at in places]
    return "\n\n".join(filter(None, [title.strip(), markdown(header, rows) if rows else ""]))


def _points(series: _Element, name: str) -> dict[int, str]:
    points = series.xpath(f"./*[local-name()='{name}']//*[local-name()='pt']")
    return {
        int(point.get("idx", "0")): " ".join(point.xpath("./*[local-name()='v']/text()"))
        for point in points
    }


def diagram_text(root: _Element) -> str:
    """The texts of the boxes of SmartArt, one line each."""
    boxes = root.xpath("//*[local-name()='pt']/*[local-name()='t']")
    texts = (" ".join("".join(box.itertext()).split()) for box in boxes)
    return "\n".join(filter(None, texts))


def drawings_of(element: _Element) -> Iterator[tuple[str, str]]:
    """For each chart and SmartArt in an element: its kind and the id of the part with its data."""
    for found in element.xpath(".//*[local-name()='chart' or local-name()='relIds']"):
        for name, value in found.attrib.items():
            kind, key = found.tag.rpartition("}")[2], str(name).rpartition("}")[2]
            if (kind, key) in {("chart", "id"), ("relIds", "dm")}:
                yield kind, str(value)
