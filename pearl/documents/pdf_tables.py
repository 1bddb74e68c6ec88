"""Ruled tables of PDFs: pdfplumber finds the grids, PDFium the text; no text may stand between cells."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate, chain, pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.documents.lexicon import is_year
from pearl.documents.numbers import read_quantity
from pearl.documents.pdf_text import Marked, PageText

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

MIN_PATHS = 4  # minimum paths of a page with a ruled table
MAX_PATHS = 5_000  # more are a drawing
_MAX_CELLS = 4_000  # of a page; the time of pdfplumber is quadratic in them
_MAX_CELL = 500  # maximum mean characters; longer cells are frames around prose


class Grid(NamedTuple):
    """A ruled table: the edges of its columns and of its rows from the top; for each slot, its merged cell."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    slots: tuple[tuple[int, ...], ...]  # row by row, the number of the cell that covers the slot


def has_rules(page: PdfPage) -> bool:
    """Whether a page may have a ruled table: a quick test."""
    from pypdfium2 import raw

    if page.get_rotation() != 0:
        return False
    n_paths = 0
    for i in range(min(MAX_PATHS, raw.FPDFPage_CountObjects(page))):
        kind = raw.FPDFPageObj_GetType(raw.FPDFPage_GetObject(page, i))
        n_paths += kind == raw.FPDF_PAGEOBJ_PATH
        if n_paths >= MIN_PATHS or kind == raw.FPDF_PAGEOBJ_FORM:
            return True
    return False


def find_grids(data: bytes, numbers: Sequence[int]) -> Iterator[tuple[int, list[Grid]]]:
    """Yield the ruled tables of pages (numbered from 0), each page from the top."""
    if not numbers:
        return
    import pdfplumber

    try:
        with pdfplumber.open(BytesIO(data), pages=[number + 1 for number in numbers]) as pdf:
            for number, page in zip(numbers, pdf.pages, strict=True):
                xs = {round(edge["x0"]) for edge in page.edges if edge["orientation"] == "v"}
                ys = {round(edge["top"]) for edge in page.edges if edge["orientation"] == "h"}
                if len(xs) * len(ys) <= _MAX_CELLS:
                    sides = {f"explicit_{way}_lines": [*_missing(page.edges, way)] for way in _WAYS}
                    tables = page.find_tables({name: each for name, each in sides.items() if each})
                    grids = [_grid(table.cells, page.height) for table in tables]
                    yield number, [grid for grid in grids if grid is not None]
                page.close()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - pdfminer fails in many ways on files that PDFium repairs
        return


_WAYS = {"horizontal": ("top", "bottom", "x0", "x1"), "vertical": ("x0", "x1", "top", "bottom")}
_TOUCH = 3.0  # points between rules that meet, as in pdfplumber
_LEAST_ROW = 6.0  # minimum height of a row in points; a smaller gap is a rule that juts out


def _missing(edges: Sequence[dict[str, Any]], way: str) -> Iterator[dict[str, Any]]:
    """Yield missing outer rules: two or more crossing rules extend to the same place without a rule there."""
    near, far, begin, end = _WAYS[way]
    along = [edge for edge in edges if edge["orientation"] == way[0]]
    across = [edge for edge in edges if edge["orientation"] != way[0]]
    for side in (near, far):
        groups: dict[int, list[dict[str, Any]]] = {}
        for edge in across:
            groups.setdefault(round(edge[side]), []).append(edge)
        for group in groups.values():
            place, spots = group[0][side], sorted({edge[begin] for edge in group})
            low, high = min(edge[near] for edge in group), max(edge[far] for edge in group)
            met = [
                edge for edge in along
                if low - _TOUCH <= edge[near] <= high + _TOUCH
                and edge[begin] - _TOUCH <= spots[-1] and spots[0] <= edge[end] + _TOUCH
            ]  # fmt: skip
            if len(spots) > 1 and met and min(abs(edge[near] - place) for edge in met) > _LEAST_ROW:
                first = min(spots[0], *(edge[begin] for edge in met))
                last = max(spots[-1], *(edge[end] for edge in met))
                yield {"object_type": "line", near: place, far: place, begin: first, end: last,
                       "width": 0 if near == "x0" else last - first,
                       "height": 0 if near == "top" else last - first}  # fmt: skip


def _grid(cells: Sequence[tuple[float, float, float, float]], height: float) -> Grid | None:
    """The grid of cells, if they fill it: at least two rows and two columns."""
    boxes = [(x0, height - top, x1, height - bottom) for x0, top, x1, bottom in cells]
    xs = sorted({x for x0, _, x1, _ in boxes for x in (x0, x1)})
    ys = sorted({y for _, top, _, bottom in boxes for y in (top, bottom)}, reverse=True)
    slots = [[-1] * (len(xs) - 1) for _ in ys[1:]]
    for number, (x0, top, x1, bottom) in enumerate(boxes):
        for row in slots[ys.index(top) : ys.index(bottom)]:
            n = xs.index(x1) - xs.index(x0)
            row[xs.index(x0) : xs.index(x1)] = [number] * n
    if len(slots) < 2 or len(xs) < 3 or any(-1 in row for row in slots):
        return None
    return Grid(tuple(xs), tuple(ys), tuple(map(tuple, slots)))


class Block(NamedTuple):
    """Lines of a page: the rows of a table in Markdown, or other text."""

    grid: Grid | None
    lines: list[Marked]


def page_blocks(page: PageText, layer: PdfTextPage, grids: Sequence[Grid]) -> list[Block]:
    """The text of a page, with each table in place of its lines."""
    marked = list(zip(page.text, page.indices, strict=True))
    boxes = [page.box(layer, index) for index in page.indices]
    grids = [_with_header(page.text, boxes, grid) for grid in grids]
    cells: list[dict[int, Marked]] = [{} for _ in grids]
    tables: list[int | None] = [None] * len(page.text)
    last = dict[tuple[int, int], int]()  # cell → the place of its last character
    for at, (character, index) in enumerate(marked):
        for i, grid in enumerate(grids):
            if (number := _cell_at(grid, boxes[at])) is not None:
                cell = cells[i].setdefault(number, [])
                if cell and last[i, number] < at - 1:
                    cell.append((" ", -1))
                cell += [("\\", -1)] * (character == "|") + [(character, index)]
                tables[at], last[i, number] = i, at
                break
    good = [_is_table(grid, found) for grid, found in zip(grids, cells, strict=True)]
    blocks: list[Block] = []
    start = 0
    for line in page.text.split("\n"):
        own = range(start, start + len(line))
        start += len(line) + 1
        named = [i for i in dict.fromkeys(tables[at] for at in own) if i is not None and good[i]]
        rest = [marked[at] for at in own if tables[at] not in named]
        is_blank = all(index == -1 for _, index in rest)  # or the name of a field in the table
        if not is_blank and (not blocks or blocks[-1].grid):
            blocks.append(Block(None, []))
        if not is_blank or (blocks and not blocks[-1].grid and not named):
            blocks[-1].lines.append(rest)
        for i in named:
            if all(block.grid is not grids[i] for block in blocks):
                blocks.append(Block(grids[i], _markdown(grids[i], cells[i])))
    return blocks


def _with_header(text: str, boxes: Sequence[Sequence[float]], grid: Grid) -> Grid:
    """Add the line above a table as its header if the table starts with figures and the line has one separate word for each column."""
    pairs = zip(text, boxes, strict=True)
    placed = [(c, box, (box[1] + box[3]) / 2) for c, box in pairs if box[0] == box[0]]
    top, height = grid.ys[0], grid.ys[0] - grid.ys[1]
    first_row = [p for p in placed if top - height < p[2] <= top]
    if not any(map(_is_figure, _by_column(grid, first_row))):
        return grid
    above = [p for p in placed if top < p[2] <= top + 1.5 * height]
    names = _by_column(grid, above)
    gap = max((box[3] - box[1] for _, box, _ in above), default=0.0)  # the height of a letter
    edges = sorted((box[0], box[2]) for _, box, _ in above)
    reach = [*accumulate((right for _, right in edges), max)]
    n_apart = sum(left - right > gap for (left, _), right in zip(edges[1:], reach, strict=False))
    is_header = n_apart == len(names) - 1 and all(names) and not any(map(_is_figure, names))
    if not is_header or edges[0][0] < grid.xs[0] or reach[-1] > grid.xs[-1]:
        return grid
    first = max(map(max, grid.slots)) + 1
    slots = (tuple(range(first, first + len(names))), *grid.slots)
    return Grid(grid.xs, (top + 1.5 * height, *grid.ys), slots)


def _by_column(grid: Grid, placed: Sequence[tuple[str, Sequence[float], float]]) -> list[str]:
    columns = [""] * (len(grid.xs) - 1)
    for character, box, _ in placed:
        at = bisect_right(grid.xs, (box[0] + box[2]) / 2) - 1
        if 0 <= at < len(columns):
            columns[at] += character
    return columns


def _is_figure(cell: str) -> bool:
    return bool(read_quantity(cell)) and not is_year(cell)


def _cell_at(grid: Grid, box: tuple[float, ...]) -> int | None:
    """The cell that contains the centre of a character."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    if not (grid.xs[0] <= x < grid.xs[-1] and grid.ys[-1] < y <= grid.ys[0]):
        return None
    row = bisect_right(grid.ys, -y, key=lambda edge: -edge) - 1
    return grid.slots[row][bisect_right(grid.xs, x) - 1]


def _is_table(grid: Grid, cells: dict[int, Marked]) -> bool:
    """Whether two rows have two filled cells, a third of all cells is filled, and the cells are not prose."""
    n_wide = sum(len({n for n in row if n in cells}) > 1 for row in grid.slots)
    n_cells = len({n for row in grid.slots for n in row})
    n_characters = sum(map(len, cells.values()))
    return n_wide > 1 and 3 * len(cells) >= n_cells and n_characters <= _MAX_CELL * len(cells)


def _markdown(grid: Grid, cells: dict[int, Marked]) -> list[Marked]:
    """Format header, rule and rows; a merged heading is repeated in its columns, a merged value in its rows."""
    rows = [[cells.get(number, []) for number in row] for row in grid.slots]
    for row, numbers in zip(rows[1:], grid.slots[1:], strict=True):
        for j, (left, number) in enumerate(pairwise(numbers), 1):
            row[j] = [] if left == number else row[j]
    head = ["".join(character for character, _ in cell) for cell in rows[0]]
    if any(map(_is_figure, head)):
        rows.insert(0, [[] for _ in head])  # a table without a header
    rows.insert(1, [_made("---") for _ in head])
    return [
        _made("| ") + [*chain.from_iterable(cell + _made(" | ") for cell in row)][:-1]
        for row in rows
    ]


def _made(text: str) -> Marked:
    return [(character, -1) for character in text]


class Place(NamedTuple):
    """Whether the first table of a page continues one of the page before, and the last goes on after it."""

    is_continued: bool = False
    is_repeated: bool = False
    goes_on: bool = False


def places(pages: Sequence[list[Block]]) -> list[Place]:
    """Find tables that continue over page breaks."""
    made = [Place() for _ in pages]
    header = ""
    for i, (above, below) in enumerate(pairwise(pages)):
        tables = [block for block in above if block.grid]
        is_inner = made[i].is_continued and len(tables) == 1
        if tables and not is_inner:
            header = _text(tables[-1].lines[:1])
        is_plain = not is_inner or _running(above) <= _running(pages[i - 1])
        if is_plain and (first := _next_part(above, below)):
            made[i] = made[i]._replace(goes_on=True)
            made[i + 1] = Place(is_continued=True, is_repeated=_text(first.lines[:1]) == header)
    return made


_MAX_LINES = 2  # of a header or footer between two parts of a table
_SAME_X = 3.0  # points
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


def _running(blocks: Sequence[Block]) -> set[str]:
    """The lines beside tables without their numbers, to recognise headers and footers of pages."""
    return {_text([line]).translate(_NO_DIGITS) for b in blocks if not b.grid for line in b.lines}


def _next_part(above: Sequence[Block], below: Sequence[Block]) -> Block | None:
    """Return the first table of a page if it has the columns of the last table before and no text is in between."""
    last = next((block for block in reversed(above) if _is_large(block)), None)
    first = next((block for block in below if _is_large(block)), None)
    if not (last and last.grid and first and first.grid):
        return None
    pairs = zip_longest(last.grid.xs, first.grid.xs, fillvalue=-math.inf)
    return first if all(abs(a - b) <= _SAME_X for a, b in pairs) else None


def _is_large(block: Block) -> bool:
    return block.grid is not None or len(block.lines) > _MAX_LINES


def rendered(blocks: Sequence[Block], place: Place) -> tuple[str, list[int]]:
    """The text of a page."""
    tables = [block for block in blocks if block.grid]
    is_inner = place.is_continued and place.goes_on and len(tables) == 1
    blocks = list(tables if is_inner else blocks)
    if place.goes_on:
        blocks.remove(tables[-1])
        blocks.append(tables[-1])
    if place.is_continued:
        head = tables[0].lines[:1]
        head = [] if place.is_repeated or not _text(head).strip("| ") else head
        blocks.remove(tables[0])
        blocks.insert(0, Block(tables[0].grid, head + tables[0].lines[2:]))
    marked: Marked = []
    for block in blocks:
        marked += _made("\n\n" if marked else "")
        for n, line in enumerate(block.lines):
            marked += _made("\n" if n else "") + line
    return "".join(character for character, _ in marked), [index for _, index in marked]


def _text(lines: Sequence[Marked]) -> str:
    return "\n".join("".join(character for character, _ in line) for line in lines)
