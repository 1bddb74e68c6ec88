"""Names of rows in answers, with the value of each row or the passage that decided it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from pearl.actions.by_row import cells_of
from pearl.documents.document import Document, part_spans
from pearl.documents.evidence import Evidence
from pearl.documents.evidence.wording import page_place
from pearl.documents.rows import DOCUMENT, Row, Rows, shortened
from pearl.errors import Span
from pearl.interpreter.provenance import leaves

MAX_NAME, MAX_KEYS = 60, 3  # Maximum characters of a field in the name of a row, and maximum fields

MAX_PASSAGE = 300  # Maximum characters of a passage shown beside the name of its row

Deciding = Mapping[object, Sequence[Evidence]]  # By `Row.key`, the passages that decided a row


class Named(NamedTuple):
    """A row or an entry of a list: its name in the answer, and its text."""

    name: str
    text: str
    passages: tuple[Evidence, ...] = ()

    @property
    def line(self) -> str:
        """Name and text as a line of a list."""
        return f"- {': '.join(filter(None, [self.name, self.text]))}"


def named_rows(
    rows: Rows, document: Document, deciding: Deciding, *, is_brief: bool
) -> list[Named]:
    """Name each row by its file, or by the first fields that distinguish it from other rows."""
    if rows.columns or rows.shows_possible or not all(row.spans for row in rows):
        own: Iterable[tuple[Evidence, ...]] = repeat(())
        if rows.is_answered and not rows.columns and deciding:
            # Groups have the passages of their rows
            keys = ([each.key for each, _ in leaves(Rows((row,)))] for row in rows)
            own = (tuple(p for key in those for p in deciding.get(key, ())) for those in keys)
        lines = rows.lines()[2 * bool(rows.columns) :]
        return [Named("", line, passages) for line, passages in zip(lines, own, strict=False)]
    files = part_spans(document.text, document.parts)
    if not files and len(document.text) > MAX_PASSAGE:
        files = [(document.name, Span(0, len(document.text)))]
    calls = [_call(row, files, document.text) for row in rows]
    names = []
    for row, name, call in zip(rows, _told_apart(calls), calls, strict=True):
        passages = tuple(deciding.get(row.key, ()))
        text = "undecided" if row.value is None else " ".join(row.value.split())
        if not (call.file or call.is_known):  # The number of a paragraph is no useful name
            name = ""
        if rows.is_answered:
            text = text if call.is_known else f"{shortened(row.text)}: {text}"
        elif row.value != row.text:
            name = "" if is_brief or text == name else name
        elif passages:
            # Passages are named with their pages
            quotes = []
            for passage in passages:
                page = f" ({page_place(passage.page)})" if passage.page else ""
                quotes.append(f'"{shortened(passage.marked, MAX_PASSAGE)}"{page}')
            text = " ".join(dict.fromkeys(quotes))
        elif is_brief and call.is_known:
            text = ""
        names.append(Named(name, text, passages))
    return names


class _Call(NamedTuple):
    """The possible names of a row: its file and fields; `is_known` if it has fields or is a whole file."""

    file: str
    fields: tuple[str, ...]
    is_known: bool


MAX_BLANKS = 1_000  # Maximum blanks around a row that still counts as its whole file


def _call(row: Row, files: Sequence[tuple[str, Span]], text: str) -> _Call:
    file = row.fields.get(DOCUMENT) or ""
    start, end = row.spans[0].start, row.spans[-1].end
    at = bisect_right(files, start, key=lambda file: file[1].start) - 1
    name, span = files[at] if at >= 0 else ("", Span(start, start))
    is_near = end <= span.end and start - span.start + span.end - end <= MAX_BLANKS
    if is_near and not (text[span.start : start] + text[end : span.end]).strip() and name:
        return _Call(file or name, (), is_known=True)
    cells = cells_of(row) if row.text else {}
    fields = tuple(shortened(cell, MAX_NAME) for name, cell in cells.items() if name != DOCUMENT)
    return _Call(file, fields[:MAX_KEYS], is_known=bool(fields))


def _told_apart(calls: Sequence[_Call]) -> list[str]:
    """The shortest names that distinguish the rows; rows with equal names are numbered."""
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
