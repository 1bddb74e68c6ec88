"""`ResultRecord` → `Result`: the row and trace of a result for its page; values of a wrong type are left out and reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl import trace
from pearl.documents.evidence import with_omissions
from pearl.documents.rows import TEXT_COLUMN
from pearl.interpreter.row import (
    STATUSES,
    CitedCell,
    DocumentRow,
    Passage,
    ProvenanceData,
    ResultRow,
    SourceData,
    StepData,
    read_row,
)
from pearl.view.sources import ResultRecord, row_of_trace

KNOWN_STATUSES = (*STATUSES, "failed", "unfinished", "planned")

MAX_SOURCES = 6  # Maximum documents named in a line


class Place(Struct, frozen=True):
    """A numbered piece of evidence: a quoted passage, or a row behind a computed answer with its fields."""

    number: int
    data: Passage | DocumentRow
    text: str
    note: str = ""
    where: str = ""
    fields: Mapping[str, str] = {}

    @property
    def is_row(self) -> bool:
        """Whether it is a row."""
        return isinstance(self.data, DocumentRow)

    @property
    def cells(self) -> list[CitedCell]:
        """The cells of a row that steps used."""
        return self.data.cells if isinstance(self.data, DocumentRow) else []

    @property
    def marked(self) -> str:
        """A passage on one line, with its omissions marked."""
        return with_omissions(self.text, self.data.gaps) if isinstance(self.data, Passage) else ""


class ShownStep(Struct, frozen=True):
    """A step of the row or, in an unfinished run, of the trace, with its calls."""

    data: StepData
    state: str
    finished: trace.StepFinished | None = None
    error: str = ""
    calls: tuple[trace.ModelCalled | trace.CallFailed, ...] = ()
    searches: tuple[trace.Retrieved | trace.LookedUp, ...] = ()

    @property
    def value(self) -> str:
        """The value as text."""
        return value_text(self.data.value)

    @property
    def why(self) -> str:
        """Why the value is missing or may be incomplete; "" if it is complete."""
        return self.data.truncated or self.data.why


class Result(Struct, frozen=True):
    """A row of results with the events of its trace, which supply what the row lacks."""

    id: str
    row: ResultRow
    status: str
    why: str
    question: str
    plan: str
    model: str
    places: tuple[Place, ...]
    rows_left: int
    steps: tuple[ShownStep, ...]
    events: tuple[trace.Event, ...] = ()
    started: trace.RunStarted | None = None
    problems: tuple[str, ...] = ()

    def of(self, kind: str) -> list[trace.Event]:
        """The events of one kind, in order."""
        return [event for event in self.events if event.event == kind]

    @property
    def notes(self) -> list[str]:
        """Notes on how the answer was computed that are not in `why`."""
        return [note for note in self.row.notes if note not in self.why]

    @property
    def error(self) -> tuple[str, str]:
        """The message of a failure and the advice; "" for no failure."""
        if self.row.error is None:
            return "", ""
        message, _, help = self.row.error.message.partition("\n  help: ")
        return message or self.row.error.type, self.row.error.help or help

    def has(self, name: str) -> bool:
        """Whether the row has a field."""
        return name in self.row.raw


def read_result(record: ResultRecord, *, max_rows: int) -> Result:
    """Read and validate a record."""
    problems = list(record.problems)
    events = record.events
    data = record.row
    if "steps" not in data:
        data = {**data, "steps": row_of_trace("", events).get("steps")}
    row = read_row(data, problems)
    status = row.status
    if status not in KNOWN_STATUSES:
        problems.append("Its status is unknown.")
        status = "unknown"
    started = next((event for event in events if isinstance(event, trace.RunStarted)), None)
    plan = row.plan or (started.plan if started else "")
    first = plan.partition("\n")[0]  # A failed run records its question only here
    question = first.removeprefix("Question: ") if first.startswith("Question: ") else ""
    places = list(_places(row))
    of_rows = [place.number for place in places if place.is_row]
    left_out = frozenset(of_rows[max_rows:])
    ends = [event.n_rows for event in events if isinstance(event, trace.RunFinished)]
    n_rows = ends[-1] if ends else 0
    steps = tuple(_steps(row, events))
    why = row.why
    if not why and status in ("undecided", "degraded", "refused"):  # the first step with a reason
        reasons = (
            f"step '{each.data.output}' ({each.data.action}): {each.why}"
            for each in steps
            if each.why
        )
        why = next(reasons, "")
    return Result(
        id=record.id,
        row=row,
        status=status,
        why=why,
        question=row.question or question,
        plan=plan,
        model=row.model or (started.model if started else ""),
        places=tuple(place for place in places if place.number not in left_out),
        rows_left=max(len(left_out), n_rows - len(of_rows)),
        steps=steps,
        events=events,
        started=started,
        problems=tuple(dict.fromkeys(problems)),
    )


def _places(row: ResultRow) -> Iterator[Place]:
    """The evidence in order: quoted passages, and the rows behind the answer."""
    for number, each in enumerate(row.evidence, start=1):
        if each == Passage():  # Its data could not be read
            continue
        if isinstance(each, Passage):
            elided = "elided" if each.match == "elided" else ""
            where = "; ".join(filter(None, [each.short_place(), ", ".join(each.steps), elided]))
            yield Place(number, each, each.text, elided, where)
            continue
        is_open = each.state == "undecided" or None in each.fields.values()
        note = "undecided" if is_open else ", ".join(f"by {by}" for by in each.decided_by)
        # If the document is text, the row's whole text is not another column.
        fields = {
            name: "undecided" if cell is None else cell
            for name, cell in each.fields.items()
            if name != TEXT_COLUMN or cell != each.text
        }
        if each.quote:
            fields["quote"] = each.quote
        yield Place(number, each, each.text or each.value or "", note, fields=fields)


def origin(provenance: ProvenanceData | None) -> str:
    """The texts of documents that a value derives from, in words."""
    parts = []
    for sources, before in (
        (provenance.sources if provenance else [], ""),
        (provenance.chosen_from if provenance else [], "chosen from "),
    ):
        left = len(sources) - MAX_SOURCES
        more = [f"{left:,} more document{'s' * (left > 1)}"] if left > 0 else []
        if sources:
            parts.append(before + ", ".join([*map(_source, sources[:MAX_SOURCES]), *more]))
    return "; ".join(parts)


def _source(source: SourceData) -> str:
    """A document, and how much of it is used."""
    if source.documents:
        return f"all {source.documents:,} documents"
    n_read, n = sum(each.end - each.start for each in source.spans), source.characters
    n_spans = len(source.spans)
    places = "1 passage" if n_spans == 1 else f"{n_spans:,} passages"
    how_much = "whole" if n_read >= n else f"{places}, {100 * n_read / n:.2g} %"
    return f"{source.document} ({how_much})"


def value_text(value: Any) -> str:
    """A value as text: "" for None, yes or no, one line per list entry."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return "\n".join(value)
        case _:
            return str(value)


def _steps(row: ResultRow, events: Sequence[trace.Event]) -> Iterator[ShownStep]:
    """The steps of the row, then steps that only the trace of an unfinished run has."""
    calls: dict[str, list[trace.ModelCalled | trace.CallFailed]] = {}
    searches: dict[str, list[trace.Retrieved | trace.LookedUp]] = {}
    finished: dict[str, trace.StepFinished] = {}
    failed: dict[str, str] = {}
    begun: dict[str, str] = {}
    for event in events:
        match event:
            case trace.ModelCalled() | trace.CallFailed():
                calls.setdefault(event.step, []).append(event)
            case trace.Retrieved() | trace.LookedUp():
                searches.setdefault(event.step, []).append(event)
            case trace.StepFinished():
                finished[event.step] = event
            case trace.StepFailed():
                failed[event.step] = event.error
            case trace.StepStarted():
                begun[event.step] = event.action
    steps = [ShownStep(each, each.state.replace("_", " ")) for each in row.steps]
    known = {step.data.output for step in steps}
    for output, action in begun.items():
        if output not in known:
            data = StepData(output=output, action=action, calls=len(calls.get(output, ())))
            state = "failed" if output in failed else "not finished"
            steps.append(ShownStep(data, state, error=failed.get(output, "")))
    for step in steps:
        of_trace = {
            "finished": finished.get(step.data.output),
            "calls": tuple(calls.get(step.data.output, ())),
            "searches": tuple(searches.get(step.data.output, ())),
        }
        yield replace(step, **of_trace)
