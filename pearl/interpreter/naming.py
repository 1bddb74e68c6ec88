"""Rows as a reader finds them: by what they are called, with their value or the passage that decided them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pearl.actions.by_row import cells_of
from pearl.documents.document import Document, part_spans
from pearl.documents.evidence import Evidence, shown_page
from pearl.documents.rows import DOCUMENT, Row, Rows, shortened
from pearl.errors import Span

MAX_NAME, MAX_KEYS = 60, 3
"""Maximum characters of a field in the name of a row, and maximum fields."""

MAX_PASSAGE = 300
"""Maximum characters of a deciding passage beside the name of its row."""

Deciding = Mapping[object, Sequence[Evidence]]
"""The passages that decided rows, by `Row.key`."""


class Named(NamedTuple):
    """A row or an entry of a list: the name by which a reader finds it, and its text."""

    name: str
    text: str
    passages: tuple[Evidence, ...] = ()

    @property
    def line(self) -> str:
        """Both on one line of a list."""
        return f"- {': '.join(filter(None, [self.name, self.text]))}"


def named_rows(
    rows: Rows, document: Document, deciding: Deciding, *, is_brief: bool
) -> list[Named]:
    """Each row by its name: its file, or the first fields that tell it from others.

    What a brief row says beside its name is its value or its deciding passage, never a whole file or record.
    """
    if rows.columns or rows.shows_possible or not all(row.spans for row in rows):
        return [Named("", line) for line in rows.lines()[2 * bool(rows.columns) :]]
    wholes = _wholes(document)
    calls = [_call(row, wholes) for row in rows]
    found = []
    for row, name, call in zip(rows, _told_apart(calls), calls, strict=True):
        passages = tuple(deciding.get(row.key, ()))
        text = "undecided" if row.value is None else " ".join(row.value.split())
        if not (call.file or call.is_known):  # the number of a paragraph says nothing
            name = ""
        if rows.is_answered:
            text = text if call.is_known else f"{shortened(row.text)}: {text}"
        elif row.value != row.text:
            name = "" if is_brief or text == name else name
        elif passages:
            text = _quoted(passages)
        elif is_brief and call.is_known:
            text = ""
        found.append(Named(name, text, passages))
    return found


def _quoted(passages: Iterable[Evidence]) -> str:
    """Passages with their pages."""
    said = []
    for passage in passages:
        page = f" ({shown_page('', passage.page)})" if passage.page else ""
        said.append(f'"{shortened(passage.marked, MAX_PASSAGE)}"{page}')
    return " ".join(dict.fromkeys(said))


class _Call(NamedTuple):
    """What a row can be called by: its file and its fields; `is_known` if these are all that it is called."""

    file: str
    fields: tuple[str, ...]
    is_known: bool


def _wholes(document: Document) -> dict[int, tuple[int, str]]:
    """Where files begin, without the blanks around them, where they end, and their names."""
    text = document.text
    parts = part_spans(text, document.parts)
    if not parts and len(text) > MAX_PASSAGE:
        parts = [(document.name, Span(0, len(text)))]
    wholes = {}
    for name, span in parts:
        whole = text[span.start : span.end]
        start = span.start + len(whole) - len(whole.lstrip())
        wholes[start] = span.start + len(whole.rstrip()), name
    return wholes


def _call(row: Row, wholes: Mapping[int, tuple[int, str]]) -> _Call:
    start, end = row.spans[0].start, row.spans[-1].end
    head = row.text[: len(row.text) - len(row.text.lstrip())]
    last, name = wholes.get(start + len(head), (-1, ""))
    file = row.fields.get(DOCUMENT) or ""
    if last == end - len(row.text) + len(row.text.rstrip()) and (file or name):
        return _Call(file or name, (), is_known=True)
    cells = cells_of(row) if row.text else {}
    fields = tuple(shortened(cell, MAX_NAME) for name, cell in cells.items() if name != DOCUMENT)
    return _Call(file, fields[:MAX_KEYS], is_known=bool(fields))


def _told_apart(calls: Sequence[_Call]) -> list[str]:
    """The shortest names that tell rows apart; rows that nothing tells apart are numbered."""
    has_files = len({call.file for call in calls}) > 1
    names: list[str] = []
    for n in range(max([1, *(len(call.fields) for call in calls)]), 0, -1):
        files = (call.file if has_files or not call.fields else "" for call in calls)
        shorter = [
            ", ".join(filter(None, [file, *call.fields[:n]]))
            for file, call in zip(files, calls, strict=True)
        ]
        if names and len(set(shorter)) < len(set(names)):
            break
        names = shorter
    n_same = Counter(names)
    return [
        f"{name}, row {i}".removeprefix(", ") if n_same[name] > 1 or not name else name
        for i, name in enumerate(names, start=1)
    ]
