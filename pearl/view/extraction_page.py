"""Rows of an extraction → one HTML file: a grid of documents and fields, beside the passages of a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct

from pearl.documents.document import Document
from pearl.documents.record import PLAIN
from pearl.documents.rows import shortened
from pearl.dsl.fields import Field
from pearl.errors import Span
from pearl.errors.escaping import counted
from pearl.interpreter.row import FieldCandidate, FieldData, Passage, ResultRow, read_row
from pearl.runs.extraction import field_told
from pearl.view.page import render_page
from pearl.view.panel import Gap, Mark, Piece, Sheet, highlighted, sheets_of
from pearl.view.result import value_text
from pearl.view.sources import pdf_files

MAX_ROWS = 3_000  # Maximum documents in the grid; other formats have all of them

MAX_TEXTS = 6_000_000
"""Maximum characters of passages on a page; further passages are shown without surrounding text."""

MAX_SHEETS = 40  # Maximum PDF pages shown as pictures

AROUND = 300  # Characters shown before and after a passage

MAX_QUOTE = 2_000  # Maximum characters of a value or a passage

MAX_CELLS = 36_000  # Maximum cells of the grid; with many fields, it has fewer documents

MAX_ENTRIES = 200  # Maximum list entries and field candidates shown

MAX_INNER, FEW = 2_000, 5
"""Maximum entries shown of all inner lists together, and minimum entries for each of them."""

WORDS = {
    "undecided": ("?", "undecided"), "not_stated": ("–", "not stated"), "person": ("✎", "by a person"),
    "judged": ("≈", "judged"), "checked": ("✓", "checked"),
}  # fmt: skip
"""The sign and word for a state or a basis; a value that is in its quote needs none."""


class CitedPassage(Struct, frozen=True):
    """A passage that supports a value; its number is 0 if the document's text does not contain it."""

    number: int
    text: str
    where: str


class Value(Struct, frozen=True):
    """A value with its sign, word and passages; a list has a table."""

    text: str
    sign: str = ""
    word: str = ""
    why: str = ""
    passages: tuple[CitedPassage, ...] = ()
    candidates: tuple[Value, ...] = ()
    columns: tuple[Field, ...] = ()
    entries: tuple[tuple[Value, ...], ...] = ()
    n_left: int = 0

    @property
    def inner(self) -> Iterator[Value]:
        """The values of its entries, and of the lists within them."""
        for entry in self.entries:
            for value in entry:
                yield value
                yield from value.inner

    @property
    def n_undecided(self) -> int:
        """Number of undecided values: the value itself and those in its entries."""
        return sum(value.word == "undecided" for value in (self, *self.inner))

    @property
    def is_plain(self) -> bool:
        """Whether its entries are single values."""
        return [each.name for each in self.columns] == [PLAIN]

    @property
    def is_grid(self) -> bool:
        """Whether its entries are lists of single values."""
        return self.is_plain and all(each.is_plain for (each,) in self.entries if each.columns)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all its passages in the document, in order."""
        every = (each for value in (self, *self.inner) for each in (value, *value.candidates))
        passages = (passage for value in every for passage in value.passages)
        return tuple(dict.fromkeys(passage.number for passage in passages if passage.number))


class _Source(Struct):
    """A document with the numbers of its passages, by position."""

    document: Document | None
    marks: dict[Span, int] = {}

    @property
    def text(self) -> str | None:
        """The text of the document; None if it could not be read."""
        return None if self.document is None else self.document.text


class Line(Struct, frozen=True):
    """The line of a document: its values, and its text around their passages."""

    name: str
    values: tuple[Value, ...]
    texts: tuple[tuple[str, list[Piece | Gap], list[Sheet]], ...]
    owners: Mapping[int, int]
    is_undecided: bool
    error: str = ""


def extraction_page(
    rows: Iterable[Mapping[str, Any]],
    fields: Sequence[Field],
    read: Callable[[str], Document | None],
) -> str:
    """The page of an extraction: a grid of documents and fields, next to the passages; `read` returns a document by name."""
    n_left, n_sheets = MAX_TEXTS, MAX_SHEETS
    lines: list[Line] = []
    counts: Counter[str] = Counter()
    problems: list[str] = []
    words: set[str] = set()
    rows = iter(rows)
    for row in islice(rows, min(MAX_ROWS, max(1, MAX_CELLS // (len(fields) or 1)))):
        line = _line(
            read_row(row, problems, f"Row {len(lines) + 1}: "), fields, read, AROUND * (n_left > 0),
            n_sheets, problems,
        )  # fmt: skip
        texts = (text for _, text, _ in line.texts)
        n_left -= sum(len(p.text) for text in texts for p in text if isinstance(p, Piece))
        n_sheets -= sum(len(sheets) for _, _, sheets in line.texts)
        counts.update(value.word or "stated" for value in line.values)
        inner = [each for value in line.values for each in value.inner]
        words.update(each.word for each in (*line.values, *inner))
        counts["in lists"] += sum(not each.entries for each in inner)
        counts["undecided in lists"] += sum(each.word == "undecided" for each in inner)
        counts["failed"] += bool(line.error)
        lines.append(line)
    # The contents of the grid on one line; the states of the fields add up to their number
    n_fields = len(fields)
    n = (len(lines) - counts["failed"]) * n_fields
    apart = {name: counts[name] for name in ("not stated", "undecided")}
    states = {"with a value": n - sum(apart.values()), **apart}
    shown = ", ".join(f"{k:,} {name}" for name, k in states.items() if k)
    in_lists = counted(counts["in lists"], "value") + " in lists"
    facts = {
        counted(len(lines), "document"): True,
        f"{counts['failed']:,} failed": counts["failed"],
        f"{counted(n, 'field')}: {shown}": n,
        in_lists: counts["in lists"],
        f"{counts['undecided in lists']:,} of them undecided": counts["undecided in lists"],
    }
    return render_page(
        "extraction",
        "Extraction",
        lines=lines,
        fields=fields,
        told=field_told,
        n_rows_left=sum(1 for _ in rows),
        facts=" · ".join(fact for fact, n in facts.items() if n),
        signs=[each for each in WORDS.values() if each[1] in words],
        n_undecided=sum(line.is_undecided for line in lines),
        has_sheets=n_sheets < MAX_SHEETS,
        problems=[*dict.fromkeys(problems)][:20],
    )


def _line(
    row: ResultRow, fields: Sequence[Field], read: Callable[[str], Document | None], around: int,
    n_sheets: int, problems: list[str],
) -> Line:  # fmt: skip
    name = row.document or row.name or "(no name)"
    told = (row.error and (row.error.message or row.error.type)) or row.why
    if row.record is None or row.status == "failed":
        told = told.partition("\n  help: ")[0] or "there is no record"
        return Line(name, (), (), {}, is_undecided=False, error=shortened(told, MAX_QUOTE))
    sources: dict[str, _Source] = {}
    record = row.record

    def passages(of: FieldData | FieldCandidate) -> tuple[CitedPassage, ...]:
        return tuple(_passage(each, name, sources, read) for each in of.evidence)

    values = tuple(
        _value(record.get(each.name, EMPTY), each, passages, MAX_INNER) for each in fields
    )
    owners: dict[int, int] = {}
    for at, value in enumerate(values):
        for number in value.numbers:
            owners.setdefault(number, at)
    texts = []
    for source_name, source in sources.items():
        if not source.marks:
            continue
        places = [(n, span) for span, n in source.marks.items()]
        pieces = highlighted(source.text or "", places, most=0, around=around)
        marks, files = [Mark(*place) for place in places], pdf_files(source.document)
        found = sheets_of(source.document, files, marks, problems, n_sheets)
        sheets = [sheet for of in found.values() for sheet in of]
        n_sheets -= len(sheets)
        texts.append((source_name, pieces, sheets))
    return Line(name, values, tuple(texts), owners, any(value.n_undecided for value in values))


EMPTY = FieldData()


def _value(
    result: FieldData, of: Field,
    passages: Callable[[FieldData | FieldCandidate], tuple[CitedPassage, ...]], most: int,
) -> Value:  # fmt: skip
    """A field as a value with its passages and at most `most` entries."""
    state = result.state
    sign, word = WORDS.get(result.basis if state == "found" else state, ("", ""))
    text = shortened(value_text(result.value), MAX_QUOTE)
    columns: tuple[Field, ...] = ()
    entries: tuple[tuple[Value, ...], ...] = ()
    n_entries = 0
    objects = result.entries if of.is_list else []
    if objects or (of.is_list and state == "found"):
        columns, n_entries = of.inner, len(objects)
        shown = objects[: min(most, MAX_ENTRIES)]
        inner = max(FEW, most // (len(shown) or 1))
        entries = tuple(
            tuple(_value(entry.get(each.name, EMPTY), each, passages, inner) for each in columns)
            for entry in shown
        )
        text = f"{n_entries:,} entr{'y' if n_entries == 1 else 'ies'}"
    candidates = tuple(
        Value(shortened(value_text(each.value), MAX_QUOTE), passages=passages(each))
        for each in result.candidates[:MAX_ENTRIES]
    )
    by = {"checked by": result.checked_by, "decided by": result.decided_by}
    who = ", ".join(f"{what} {name}" for what, name in by.items() if name)
    why = shortened(result.why or who, MAX_QUOTE)
    n_left = n_entries - len(entries)
    return Value(text, sign, word, why, passages(result), candidates, columns, entries, n_left)


def _passage(
    each: Passage,
    document: str,
    sources: dict[str, _Source],
    read: Callable[[str], Document | None],
) -> CitedPassage:
    """A passage, with a number if the document's text has it at this position."""
    text, span = each.text, each.span
    name = each.source or document
    if name not in sources:
        sources[name] = _Source(read(name))
    source = sources[name]
    number = 0
    if source.text is not None and span and text and source.text[span.start : span.end] == text:
        known = sum(len(other.marks) for other in sources.values())
        lit = Span(span.start, min(span.end, span.start + MAX_QUOTE))
        number = source.marks.setdefault(lit, known + 1)
    places = [each.short_place(hides=document)]
    if not number:
        places.append("not in the text at this place" if source.text else "without its document")
    return CitedPassage(number, shortened(text, MAX_QUOTE), ", ".join(filter(None, places)))
