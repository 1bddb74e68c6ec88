"""Run → the spans of the document from which each value derives, also through earlier steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import inf
from typing import Any

from msgspec import Struct

from pearl.documents.document import Document, Source, part_spans
from pearl.documents.rows import Row, Rows
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step
from pearl.dsl.signatures import Action
from pearl.errors import Span

MAX_SPANS = 1_000
"""Maximum spans of a value; beyond that, the nearest spans are joined, with the text between them."""

MAX_HEAD = 2_200  # Maximum characters of the header and caption above a table

MAX_BLANKS = 64  # Maximum blanks between two spans that are joined


class Sources(Struct, frozen=True):
    """The spans of all text that a value may contain. `uses_document`: other text may have influenced it; `heads`: headers of its rows."""

    spans: tuple[Span, ...] = ()
    uses_document: bool = False
    heads: tuple[Span, ...] = ()
    is_by_row: bool = False


def joined(text: str, spans: Iterable[Span], max_blanks: float = inf) -> list[Span]:
    """Sort spans, merge overlapping ones and those with only blanks between them."""
    found: list[Span] = []
    for span in sorted(spans):
        end = found[-1].end if found else -1
        is_near = span.start - end <= max_blanks and not text[max(end, 0) : span.start].strip()
        if found and (span.start <= end or is_near):
            found[-1] = Span(found[-1].start, max(end, span.end))
        else:
            found.append(span)
    return found


def merged(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join spans that are near, and the nearest of those left if they are too many."""
    near = joined(text, spans, MAX_BLANKS)
    if len(near) <= MAX_SPANS:
        return tuple(near)
    gaps = sorted(range(1, len(near)), key=lambda i: near[i - 1].end - near[i].start)
    starts = [0, *sorted(gaps[: MAX_SPANS - 1]), len(near)]
    return tuple(Span(near[i].start, near[j - 1].end) for i, j in pairwise(starts))


def heads_of(document: Document, rows: Iterable[Row]) -> tuple[Span, ...]:
    """The spans of the headers above the tables that contain rows, within their files."""
    starts = [0, *(start for _, start in document.parts)]
    heads: list[Span] = []
    end = 0
    last: tuple[str, ...] = ()
    for row in rows:
        start, names = row.spans[0].start if row.spans else end, tuple(row.fields)
        is_apart = start > end and bool(document.text[end:start].strip())
        # Without this, the header may be another row.
        if is_apart or names != last:
            file = starts[bisect_right(starts, start) - 1]
            first = max(file, start - MAX_HEAD, end if is_apart else 0)
            if first < start and not all(name in row.text for name in names):
                heads.append(Span(first, start))
        end, last = max(end, row.spans[-1].end) if row.spans else end, names
    return tuple(heads)


def leaves(rows: Rows) -> Iterator[tuple[Row, bool]]:
    """The document rows of a collection, including members of groups, and whether each one is decided."""
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
    """The sources of a step's value: text that the step itself reads, and those of earlier steps and rows."""
    names = [each.name for each in step.references() if not each.is_context]
    given = [before[name][0] for name in names]
    uses = any(each.uses_document for each in (own, *given))
    taken = _selected_from(step, action, before)
    if taken is not None:
        of_rows, is_alone = before[taken][0], not own.spans
        names.remove(taken)
    else:
        first = step.arguments[0] if step.arguments else None
        of_rows, is_alone = own, isinstance(first, Reference) and first.is_context
    # The text of another argument may occur in any row.
    is_alone &= not any(before[name][0].spans for name in names)
    if is_alone and own.is_by_row and of_rows.is_by_row and rows is not None:
        places = [row.spans for row, _ in leaves(rows)]
        if all(places):
            starts = [head.start for head in of_rows.heads]
            above = {bisect_right(starts, place[0].start) - 1 for place in places} - {-1}
            kept = chain(chain.from_iterable(places), (of_rows.heads[i] for i in above))
            return Sources(merged(text, kept), uses, of_rows.heads, is_by_row=True)
    return Sources(merged(text, chain(own.spans, *(each.spans for each in given))), uses)


def _selected_from(
    step: Step, action: Action, before: Mapping[str, tuple[Sources, Rows | None]]
) -> str | None:
    """The step whose rows this step selects from, divides or counts; None for other steps."""
    is_computed = action.cost == "computed"
    for i, argument in enumerate(step.arguments if is_computed else step.arguments[:1]):
        if isinstance(argument, Reference) and not argument.is_context:
            is_value = action.parameter(i).reads in ("value", "number", "figure")
            if before[argument.name][1] is not None and not is_value:
                return argument.name
    return None


Provenance = Mapping[str, Any]
"""The steps and documents from which a value derives, as JSON data: `provenance` in docs/results.schema.json."""


def provenance_of(
    graph: PlanGraph,
    sources: Mapping[str, Sources],
    took: Mapping[str, Sequence[str]],
    document: Document,
) -> dict[str, Provenance]:
    """The provenance of every step, and of the answer under ""; `took` lists the tried results that each step used."""
    all_of_it = Span(0, len(document.text))
    files = part_spans(document.text, document.parts) or [(document.name, all_of_it)]
    sources_of_it = []
    for each in document.sources or [Source("", document)]:
        end = each.start + len(each.document.text)
        sources_of_it.append((each, [f for f in files if each.start <= f[1].start < end]))

    def by_file(spans: Sequence[Span], names: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        read = [each for each in sources_of_it if each[0].name in names] or sources_of_it
        return [place for source, own in read for place in _by_file(spans, own, source, document)]

    wholes: dict[frozenset[str], list[dict[str, Any]]] = {}
    every = []
    for step in graph.steps:
        if step.output in sources:  # A step that was not needed has no sources
            needed = took[step.output] or [each.name for each in step.references()]
            every.append((step.output, frozenset(needed) & sources.keys()))
    steps: dict[str, set[str]] = {}
    made: dict[str, Provenance] = {}
    for output, needs in (*every, ("", frozenset(graph.checked.outputs))):
        steps[output] = set(needs).union(*(steps[name] for name in needs))
        derived = [sources[name] for name in ([output] if output else needs)]
        spans = merged(document.text, chain.from_iterable(each.spans for each in derived))
        texts = by_file(spans)
        read = [graph.read_by[name] for name in ([output] if output else needs)]
        whole: list[dict[str, Any]] = []
        if any(each.uses_document for each in derived):
            if (names := frozenset().union(*read)) not in wholes:
                wholes[names] = by_file((all_of_it,), names)
            whole = wholes[names]
        is_chosen = bool(whole) and texts != whole
        made[output] = {
            "steps": [step.output for step in graph.steps if step.output in steps[output]],
            "sources": texts,
            **({"chosen_from": whole} if is_chosen else {}),
        }
    return made


def _by_file(
    spans: Sequence[Span], files: Sequence[tuple[str, Span]], source: Source, document: Document
) -> list[dict[str, Any]]:
    """Convert spans of joined documents to spans of each document; the heading with its name is left out."""
    starts = [file.start for _, file in files]
    inside: dict[int, list[Span]] = {}
    for span in spans:
        first, last = bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1)
        for i in range(max(0, first), last):
            start, end = max(files[i][1].start, span.start), min(files[i][1].end, span.end)
            if start < end:
                inside.setdefault(i, []).append(Span(start, end))
    sources = []
    n_whole = 0
    for i, those in inside.items():
        name, file = files[i]
        around = document.text[file.start : those[0].start], document.text[those[-1].end : file.end]
        is_whole = len(those) == 1 and not "".join(around).strip()
        n_whole += is_whole
        places = [{"start": each.start - file.start, "end": each.end - file.start}
                  for each in ([file] if is_whole else those)]  # fmt: skip
        sources.append({"document": name, "characters": file.end - file.start, "spans": places})
    if n_whole == len(files) > 1:
        n, name = len(source.document.text), source.document.name
        return [{"document": name, "documents": n_whole, "characters": n, "spans": [{"start": 0, "end": n}]}]  # fmt: skip
    return sources
