"""Steps of a run → the spans of the document that their values derive from; sources unite over dependencies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

from pearl.documents.document import Document, part_spans
from pearl.documents.rows import DOCUMENT, Row, Rows
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, Reference, Step
from pearl.dsl.signatures import Action
from pearl.errors import Span

MAX_SPANS = 1_000
"""Maximum spans of a value; the nearest of more are joined, with the text between them."""

MAX_HEAD = 2_200
"""Maximum characters of the header and the caption above a table."""

MAX_BLANKS = 64
"""Maximum blanks between two spans that become one."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The spans of the document with all text that a value may contain.

    If it `uses_document`, the other text of the document may have decided which text that is. If it
    `is_by_row`, the text of each row is from the row's own spans and from the last of `heads` before them.
    """

    spans: tuple[Span, ...] = ()
    uses_document: bool = False
    heads: tuple[Span, ...] = ()
    is_by_row: bool = False


def merged(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, without overlaps; those with only blanks between them are one."""
    joined: list[Span] = []
    for span in sorted(spans):
        end = joined[-1].end if joined else -1
        is_near = span.start - end <= MAX_BLANKS and not text[max(end, 0) : span.start].strip()
        if joined and (span.start <= end or is_near):
            joined[-1] = Span(joined[-1].start, max(end, span.end))
        else:
            joined.append(span)
    if len(joined) <= MAX_SPANS:
        return tuple(joined)
    gaps = sorted(range(1, len(joined)), key=lambda i: joined[i - 1].end - joined[i].start)
    starts = [0, *sorted(gaps[: MAX_SPANS - 1]), len(joined)]
    return tuple(Span(joined[i].start, joined[j - 1].end) for i, j in pairwise(starts))


def heads_of(document: Document, rows: Iterable[Row]) -> tuple[Span, ...]:
    """The text above each table whose columns are named there, within its file."""
    text = document.text
    starts = [0, *(start for _, start in document.parts)]
    heads: list[Span] = []
    end = 0
    last: tuple[str, ...] = ()
    for row in rows:
        start, names = row.spans[0].start if row.spans else end, tuple(row.fields)
        is_apart = start > end and bool(text[end:start].strip())
        elsewhere = [name for name in names if name != DOCUMENT and name not in row.text]
        if elsewhere and (is_apart or names != last):
            first = max(starts[bisect_right(starts, start) - 1], start - MAX_HEAD)
            if is_apart:
                first = max(first, end)
            else:  # the header is a row, too
                first = max(first, min(text.rfind(name, first, start) for name in elsewhere))
            heads += [Span(first, start)] if first < start else []
        end, last = max(end, row.spans[-1].end) if row.spans else end, names
    return tuple(heads)


def leaves(rows: Rows) -> Iterator[tuple[Row, bool]]:
    """The document rows in a collection, including members of groups, and whether each is decided."""
    for row in rows:
        yield from _parts(row, is_decided=row.value is not None, shows_possible=rows.shows_possible)
    for row in rows.doubtful:
        yield from _parts(row, is_decided=False, shows_possible=True)


def _parts(row: Row, *, is_decided: bool, shows_possible: bool) -> Iterator[tuple[Row, bool]]:
    if row.spans or not (row.members or row.possible):
        yield row, is_decided
        return
    for member in row.members:
        yield from _parts(member, is_decided=is_decided, shows_possible=shows_possible)
    for member in row.possible if shows_possible else ():
        yield from _parts(member, is_decided=False, shows_possible=True)


def sources_of(
    step: Step,
    action: Action,
    rows: Rows | None,
    own: Sources,
    before: Mapping[str, tuple[Sources, Rows | None]],
    text: str,
) -> Sources:
    """The sources of a step's value: what the step itself reads of a text, and those of the steps before it.

    `rows` are the rows behind its value; `before` also has those of earlier values.
    """
    names = [each.name for each in step.references() if not each.is_context]
    given = [before[name][0] for name in names]
    uses = any(each.uses_document for each in (own, *given))
    taken = _selected_from(step, action, before)
    of_rows = own if taken is None else before[taken][0]
    if taken is not None:
        names.remove(taken)
    # What another argument says may stand in any of the rows.
    is_alone = not any(before[name][0].spans for name in names)
    is_alone &= _is_document(step.arguments[0]) if taken is None else not own.spans
    if is_alone and own.is_by_row and of_rows.is_by_row and rows is not None:
        places = [row.spans for row, _ in leaves(rows)]
        if all(places):
            starts = [head.start for head in of_rows.heads]
            above = {bisect_right(starts, place[0].start) - 1 for place in places} - {-1}
            kept = chain(chain.from_iterable(places), (of_rows.heads[i] for i in above))
            return Sources(merged(text, kept), uses, of_rows.heads, is_by_row=True)
    return Sources(merged(text, chain(own.spans, *(each.spans for each in given))), uses)


def _is_document(argument: Argument) -> bool:
    return isinstance(argument, Reference) and argument.is_context


def _selected_from(
    step: Step, action: Action, before: Mapping[str, tuple[Sources, Rows | None]]
) -> str | None:
    """The step whose rows a step selects from, divides or counts; None if there are several, or none."""
    is_computed = action.is_native and not action.searches
    taken = [
        argument.name
        for i, argument in enumerate(step.arguments if is_computed else step.arguments[:1])
        if isinstance(argument, Reference) and not argument.is_context
        and before[argument.name][1] is not None
        and action.parameter(i).reads not in ("value", "number", "figure")
    ]  # fmt: skip
    return taken[0] if len(taken) == 1 else None


class Source(NamedTuple):
    """The spans of a document, in its own text, or of all documents of a corpus, that a value derives from."""

    document: str
    n_characters: int
    spans: tuple[Span, ...]
    n_documents: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether all of its text is a source."""
        return self.spans == (Span(0, self.n_characters),)

    def to_dict(self) -> dict[str, Any]:
        """The source as JSON data."""
        return {
            "document": self.document,
            **({"documents": self.n_documents} if self.n_documents > 1 else {}),
            "characters": self.n_characters,
            "spans": [{"start": span.start, "end": span.end} for span in self.spans],
        }


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a value derives from.

    Attributes:
        steps: The steps, in the order of the plan.
        sources: The text that the value may contain, by document.
        chosen_from: The documents whose other text may have decided which text that is.
    """

    steps: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    chosen_from: tuple[Source, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The provenance as JSON data."""
        chosen = [source.to_dict() for source in self.chosen_from]
        return {
            "steps": list(self.steps),
            "sources": [source.to_dict() for source in self.sources],
            **({"chosen_from": chosen} if chosen else {}),
        }


def provenance_of(
    graph: PlanGraph, sources: Mapping[str, Sources], document: Document
) -> dict[str, Provenance]:
    """The provenance of every step, and under "" that of the answer."""
    files = part_spans(document.text, document.parts)
    whole = _by_file([Span(0, len(document.text))], files, document)
    steps: dict[str, set[str]] = {}
    needed = [*(frozenset(graph.steps[i].output for i in needs) for needs in graph.dependencies)]
    every = [
        *zip((step.output for step in graph.steps), needed, strict=True),
        ("", graph.checked.outputs),
    ]
    made: dict[str, Provenance] = {}
    for output, needs in every:
        steps[output] = set(needs).union(*(steps[name] for name in needs))
        derived = [sources[output]] if output else [sources[name] for name in needs]
        spans = merged(document.text, chain.from_iterable(each.spans for each in derived))
        texts = _by_file(spans, files, document)
        is_chosen = texts != whole and any(each.uses_document for each in derived)
        ordered = tuple(step.output for step in graph.steps if step.output in steps[output])
        made[output] = Provenance(ordered, texts, whole if is_chosen else ())
    return made


def _by_file(
    spans: Sequence[Span], files: Sequence[tuple[str, Span]], document: Document
) -> tuple[Source, ...]:
    """Spans of joined documents as spans of each; the heading with its name belongs to none."""
    n, text = len(document.text), document.text
    files = files or [(document.name, Span(0, n))]
    starts = [file.start for _, file in files]
    inside: dict[int, list[Span]] = {}
    for span in spans:
        first, last = bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1)
        for i in range(max(0, first), last):
            at, end = files[i][1].start, files[i][1].end
            if max(at, span.start) < min(end, span.end):
                inside.setdefault(i, []).append(
                    Span(max(at, span.start) - at, min(end, span.end) - at)
                )
    sources = []
    for i, those in inside.items():
        name, (at, end) = files[i][0], (files[i][1].start, files[i][1].end)
        around = text[at : at + those[0].start], text[at + those[-1].end : end]
        is_whole = len(those) == 1 and not "".join(around).strip()
        sources.append(Source(name, end - at, (Span(0, end - at),) if is_whole else tuple(those)))
    if len(sources) == len(files) > 1 and all(source.is_whole for source in sources):
        return (Source(document.name, n, (Span(0, n),), len(files)),)
    return tuple(sources)
