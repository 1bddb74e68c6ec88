"""Rows → the texts that a model judges. Cells stand beside the names of their columns."""

from __future__ import annotations

from pearl.actions.columns import stem
from pearl.documents.rows import Row
from pearl.dsl.nodes import one_line

_MAX_OTHERS = 600
"""Characters of a row up to which columns are shown that an instruction does not name."""

_GENERIC = frozenset({
    "", "case", "client", "customer", "document", "entry", "item", "line", "nr", "no", "patient", "people", "person",
    "record", "report", "row", "user",
})  # fmt: skip
"""Names of columns that an instruction may contain without naming the column: what a row is."""


def shown_text(row: Row, instruction: str = "") -> str | None:
    r"""What a model is shown of a row: its value; of a record without names beside its cells, `name: value` lines.

    Of these the columns that the instruction names, and others as long as there is room; all
    columns if it names none.

    Example:
        >>> row = Row("7,63,feels dizzy", {"id": "7", "age": "63", "note": "feels dizzy"}, (), "7,63,feels dizzy")
        >>> shown_text(row, "older than 60")
        'id: 7\nage: 63\nnote: feels dizzy'
    """
    if not row.value or row.value != row.text:
        return row.value
    cells = _cells(row)
    if not cells:
        return row.value
    lines = {
        name: f"{one_line(name)}: {' '.join(one_line(cell).split())}"
        for name, cell in cells.items()
    }
    wanted = f" {stem(instruction)} "
    named = [name for name in lines if _is_named(name, wanted)]
    if named:
        room = _MAX_OTHERS - sum(len(lines[name]) for name in named)
        for name, line in lines.items():
            if name not in named and len(line) <= room:
                named.append(name)
                room -= len(line)
    return "\n".join(line for name, line in lines.items() if not named or name in named)


def _is_named(name: str, wanted: str) -> bool:
    """Whether words that a column's name ends with stand in an instruction."""
    words = stem(name).split()
    ends = (" ".join(words[i:]) for i in range(len(words)))
    return any(end not in _GENERIC and f" {end} " in wanted for end in ends)


def _cells(row: Row) -> dict[str, str]:
    """The cells of a row that consists of nothing else, in order; none if the text has their names."""
    text = row.text.replace('""', '"').replace(r"\|", "|")
    cells: dict[str, str] = {}
    at = 0
    for name, cell in row.fields.items():
        start = text.find(cell, at) if cell else -1
        if cell and start >= 0 and not _has_words(text, at, start):
            cells[name] = cell
            at = start + len(cell)
    return {} if _has_words(text, at, len(text)) else cells


def _has_words(text: str, start: int, end: int) -> bool:
    return any(text[i].isalnum() for i in range(start, end))
