"""Steps of a run → the spans of the document that their values derive from; sources unite over dependencies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pearl.documents.document import Document, part_spans
from pearl.documents.rows import DOCUMENT, Row, Rows
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, Reference, Step
from pearl.dsl.signatures import Action
from pearl.errors import Span

MAX_SPANS = 1_000
"""Maximum spans of a value; the nearest of more are joined, with the text between them."""

MAX_HEAD = 2_200
"""Maximum characters above a table that belong to each of its rows: the header and the caption."""

MAX_BLANKS = 64
"""Maximum blanks between two spans that become one."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The text of the document that a value derives from.

    `spans` has all text that the value may contain. `among` also has the text that only decided which text
    is used. If `is_by_row`, the content of each row is from its own spans and from the last of `heads`
    before them.
    """

    spans: tuple[Span, ...] = ()
    among: tuple[Span, ...] = ()
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
    spans = merged(text, [*own.spans, *(span for each in given for span in each.spans)])
    among = merged(text, [*spans, *own.among, *(span for each in given for span in each.among)])
    taken = _selected_from(step, action, before)
    of_rows = own
    if taken is not None:
        of_rows = before[taken][0]
        names.remove(taken)
    is_by_row = (
        own.is_by_row and of_rows.is_by_row and rows is not None
        and (taken is not None or _is_document(step.arguments[0]))
        # What another argument says may stand in any of the rows.
        and not (own.spans and taken is not None) and not any(before[n][0].spans for n in names)
    )  # fmt: skip
    places = [row.spans for row, _ in leaves(rows)] if is_by_row and rows is not None else []
    if not is_by_row or not all(places):
        return Sources(spans, among)
    starts = [head.start for head in of_rows.heads]
    above = {bisect_right(starts, place[0].start) - 1 for place in places} - {-1}
    kept = [*(span for place in places for span in place), *(of_rows.heads[i] for i in above)]
    return Sources(merged(text, kept), among, of_rows.heads, is_by_row=True)


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


# ---------------------------------------------------------------------------------------------
# Sources → the provenance of an answer


@dataclass(frozen=True, slots=True)
class Source:
    """The spans of a document that a value derives from.

    Attributes:
        document: Its name; if all documents of a corpus are whole, the name of the corpus.
        n_characters: Its length.
        spans: In order, in its own text; one span if it is whole.
        n_documents: Documents that it stands for.
    """

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
            "spans": [[span.start, span.end] for span in self.spans],
        }


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a value derives from.

    Attributes:
        steps: The steps, in the order of the plan.
        sources: The text that the value may contain, by document.
        chosen_from: The text that also decided which of it is used; empty if that is no other.
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


def provenance_by_step(
    graph: PlanGraph, sources: Mapping[str, Sources], document: Document
) -> tuple[dict[str, Provenance], Provenance]:
    """The provenance of every step, and that of the answer."""
    whole = [(document.name, Span(0, len(document.text)))]
    files = part_spans(document.text, document.parts) or whole
    before: dict[str, dict[str, None]] = {}
    for step, needs in zip(graph.steps, graph.dependencies, strict=True):
        names = [graph.steps[i].output for i in sorted(needs)]
        before[step.output] = dict.fromkeys(n for name in names for n in (*before[name], name))
    order = {step.output: i for i, step in enumerate(graph.steps)}

    def made(spans: Sequence[Span], among: Sequence[Span], steps: Iterable[str]) -> Provenance:
        sources, chosen = (_by_file(each, files, document) for each in (spans, among))
        ordered = tuple(sorted(steps, key=order.__getitem__))
        return Provenance(ordered, sources, () if chosen == sources else chosen)

    by_step = {name: made(each.spans, each.among, before[name]) for name, each in sources.items()}
    last = graph.checked.outputs
    shown = [sources[name] for name in last]
    spans = merged(document.text, (span for each in shown for span in each.spans))
    among = merged(document.text, (span for each in shown for span in each.among))
    return by_step, made(spans, among, {n for name in last for n in (name, *before[name])})


def _by_file(
    spans: Sequence[Span], files: Sequence[tuple[str, Span]], document: Document
) -> tuple[Source, ...]:
    """Spans of joined documents as spans of each; the heading with its name belongs to none."""
    starts = [file.start for _, file in files]
    inside: dict[int, list[Span]] = {}
    for span in spans:
        for i in range(max(0, bisect_right(starts, span.start) - 1), len(files)):
            file = files[i][1]
            if file.start >= span.end:
                break
            start, end = max(span.start, file.start), min(span.end, file.end)
            if start < end:
                inside.setdefault(i, []).append(Span(start - file.start, end - file.start))
    sources: list[Source] = []
    for i, those in inside.items():
        name, file = files[i]
        n = file.end - file.start
        first, last = those[0].start, those[-1].end
        around = (
            document.text[file.start : file.start + first],
            document.text[file.start + last : file.end],
        )
        if len(those) == 1 and not any(blank.strip() for blank in around):
            those = [Span(0, n)]
        sources.append(Source(name, n, tuple(those)))
    if len(files) > 1 and all(s.is_whole for s in sources) and len(sources) == len(files):
        n = len(document.text)
        return (Source(document.name, n, (Span(0, n),), len(files)),)
    return tuple(sources)
