"""`ResultRecord` → `Result`: the checked data of a result; what has a wrong type is left out and reported."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pearl import trace
from pearl.documents.evidence import DOUBTS, shown_span, with_omissions
from pearl.documents.rows import TEXT_COLUMN
from pearl.errors import Span
from pearl.llm import Usage
from pearl.view.sources import ResultRecord, row_of_trace

STATUSES = (
    "answered", "degraded", "nothing_found", "undecided", "refused", "failed", "unfinished", "planned",
)  # fmt: skip

MAX_SOURCES = 6  # Maximum documents that a line names


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of evidence: a quoted passage, or a row behind a computed answer with its cited cells."""

    number: int
    text: str
    shown: str
    source: str
    span: Span | None
    steps: tuple[str, ...]
    note: str = ""
    where: str = ""
    is_row: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[tuple[str, Span | None], ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a list, with the numbers of its evidence."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer: the output of a step under its label."""

    output: str
    label: str
    text: str
    state: str
    why: str
    evidence: tuple[int, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class ShownChecks:
    """The sentences of a composed answer with the verdicts of the model `by`, or why it gave none."""

    by: str
    why: str
    sentences: tuple[tuple[str, str], ...]

    @property
    def summary(self) -> str:
        """How many sentences have which verdict, and whose it is."""
        counts = Counter(verdict for _, verdict in self.sentences)
        by = f"checked by {self.by}" if self.by else "meaning was not checked"
        return f"{by}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step with its calls."""

    output: str
    action: str
    value: str = ""
    state: str = ""
    why: str = ""
    truncated: str = ""
    is_native: bool = False
    context: str = ""
    coverage: float | None = None
    n_calls: int = 0
    origin: tuple[Sequence[str], str] = ((), "")
    checks: ShownChecks | None = None
    finished: trace.StepFinished | None = None
    error: str = ""
    calls: tuple[trace.ModelCalled | trace.CallFailed, ...] = ()
    searches: tuple[trace.Retrieved | trace.LookedUp, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """The fields of a row of results with the events of its trace."""

    id: str
    status: str
    why: str
    question: str
    parameters: str
    understood: str
    answer: str
    markdown: str
    parts: tuple[Part, ...]
    error: str
    error_help: str
    method: str
    model: str
    document: str
    plan: str
    places: tuple[Place, ...]
    has_evidence: bool
    rows_left: int
    unverified: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    steps: tuple[ShownStep, ...]
    coverage: float | None
    usage: Usage | None
    seconds: float | None
    origin: tuple[Sequence[str], str] = ((), "")
    events: tuple[trace.Event, ...] = ()
    started: trace.RunStarted | None = None
    problems: tuple[str, ...] = ()

    def of(self, kind: str) -> list[trace.Event]:
        """The events of a kind, in order."""
        return [event for event in self.events if event.event == kind]


class Untrusted:
    """Typed access to the fields of an untrusted object; wrong types become problems."""

    def __init__(self, data: Mapping[str, Any], problems: list[str], at: str = "") -> None:
        self._data = data
        self._problems = problems
        self._at = at

    def __contains__(self, name: str) -> bool:
        return self._data.get(name) is not None

    @property
    def has_nothing(self) -> bool:
        """Whether a key has no value."""
        return None in self._data.values()

    @property
    def pairs(self) -> str:
        """All keys with their texts, in one line."""
        return "; ".join(f"{name} = {self.text(name)}" for name in self._data)

    def text(self, name: str) -> str:
        """A text; "" if missing."""
        value = self._data.get(name)
        if isinstance(value, str) or value is None:
            return value or ""
        return self._wrong(name, "text")

    def number(self, name: str) -> float | None:
        """A finite number."""
        value = self._data.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or (is_number and abs(value) < 2**63 and math.isfinite(value)):
            return value
        self._wrong(name, "number")
        return None

    def whole(self, name: str) -> int | None:
        """A number of things."""
        value = self.number(name)
        return value if isinstance(value, int) and value >= 0 else None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return self._list(name, str, "list of texts")

    def objects(self, name: str) -> Iterator[Untrusted]:
        """The objects of a list."""
        return (each for _, each in self.numbered(name))

    def numbered(self, name: str) -> Iterator[tuple[int, Untrusted]]:
        """The objects of a list with their places in it, from 1."""
        value = self._data.get(name)
        if not isinstance(value, list | None):
            self._wrong(name, "list")
            return
        for i, each in enumerate(value or (), start=1):
            if isinstance(each, Mapping):
                yield i, Untrusted(each, self._problems, f"{self._at}{name} {i}: ")
            else:
                self._wrong(f"{name} {i}", "object")

    def numbers(self, name: str) -> tuple[int, ...]:
        """Numbers of evidence."""
        return self._list(name, int, "list of numbers")

    def _list(self, name: str, kind: type, wanted: str) -> tuple[Any, ...]:
        value = self._data.get(name)
        if value is None or (isinstance(value, list) and all(type(v) is kind for v in value)):
            return tuple(value or ())
        self._wrong(name, wanted)
        return ()

    def cells(self, name: str) -> dict[str, str]:
        """Names of columns with texts; a cell without a value is undecided."""
        inner = self.inner(name)
        return {
            key: "undecided" if value is None else inner.any(key)
            for key, value in inner._data.items()
        }

    def inner(self, name: str) -> Untrusted:
        """An object; an empty one if missing."""
        value = self._data.get(name)
        if not isinstance(value, Mapping | None):
            self._wrong(name, "object")
        inner = value if isinstance(value, Mapping) else {}
        return Untrusted(inner, self._problems, f"{self._at}{name}: ")

    def span(self) -> Span | None:
        """Its `start` and `end`."""
        start, end = self.whole("start"), self.whole("end")
        return Span(start, end) if start is not None and end is not None and start <= end else None

    def any(self, name: str) -> str:
        """A value of any simple type as text; a list becomes lines."""
        value = self._data.get(name)
        match value:
            case None:
                return ""
            case bool():
                return "yes" if value else "no"
            case str() | int() | float():
                return str(value)
            case list() if all(isinstance(each, str) for each in value):
                return "\n".join(value)
            case _:
                return self._wrong(name, "text, number or list of texts")

    def _wrong(self, name: str, wanted: str) -> str:
        self._problems.append(
            f"{self._at}{name} has the wrong type (expected: {wanted}) and is left out."
        )
        return ""


def read_result(record: ResultRecord, *, max_rows: int) -> Result:
    """Read and check a record."""
    problems = list(record.problems)
    row = Untrusted(record.row, problems)
    status = row.text("status")
    if status not in STATUSES:
        problems.append("Its status is unknown.")
        status = "unknown"
    events = record.events
    started = next((event for event in events if isinstance(event, trace.RunStarted)), None)
    plan = row.text("plan") or (started.plan if started else "")
    first = plan.partition("\n")[0]  # a failed run has no other record of its question
    question = first.removeprefix("Question: ") if first.startswith("Question: ") else ""
    if "steps" not in record.row:
        row = Untrusted({**record.row, "steps": row_of_trace("", events).get("steps")}, problems)
    places = list(_places(row))
    of_rows = [place.number for place in places if place.is_row]
    left_out = frozenset(of_rows[max_rows:])
    ends = [event.n_rows for event in events if isinstance(event, trace.RunFinished)]
    n_rows = ends[-1] if ends else 0
    understood, error = row.inner("understood"), row.inner("error")
    message, _, help = error.text("message").partition("\n  help: ")
    steps = tuple(_steps(row, events))
    why = row.text("why") or _why(status, steps)
    return Result(
        id=record.id,
        status=status,
        why=why,
        question=row.text("question") or question,
        parameters=row.inner("parameters").pairs,
        understood=understood.text("question"),
        answer=row.text("answer"),
        markdown=row.text("markdown"),
        parts=tuple(map(_part, row.objects("parts"))),
        error=message or error.text("type"),
        error_help=error.text("help") or help,
        method=row.text("method"),
        model=row.text("model") or (started.model if started else ""),
        document=row.text("document"),
        plan=plan,
        places=tuple(place for place in places if place.number not in left_out),
        has_evidence="evidence" in record.row,
        rows_left=max(len(left_out), n_rows - len(of_rows)),
        unverified=tuple(_unverified(row)),
        notes=(
            *understood.texts("notes"),
            *(note for note in row.texts("notes") if note not in why),
        ),
        steps=steps,
        coverage=row.number("coverage"),
        usage=read_usage(row.inner("usage")),
        seconds=row.number("duration_s"),
        origin=_origin(row.inner("provenance")),
        events=events,
        started=started,
        problems=tuple(dict.fromkeys(problems)),
    )


def _checks(checks: Untrusted) -> ShownChecks | None:
    sentences = tuple(
        (each.text("text"), each.text("verdict")) for each in checks.objects("sentences")
    )
    return ShownChecks(checks.text("by"), checks.text("why"), sentences) if sentences else None


def read_usage(usage: Untrusted) -> Usage | None:
    """Tokens of a row; None if those in or out are unknown."""
    n_input, n_output = usage.whole("input_tokens"), usage.whole("output_tokens")
    if n_input is None or n_output is None:
        return None
    names = ("cached_tokens", "written_tokens", "written_long_tokens")
    return Usage.bounded(n_input, n_output, *(usage.whole(name) or 0 for name in names))


def _why(status: str, steps: tuple[ShownStep, ...]) -> str:
    """The reason of a status that is not `answered`, from the first step with a reason."""
    if status not in ("undecided", "degraded", "refused"):
        return ""
    reasons = ((step, step.truncated or step.why) for step in steps)
    return next((f"step '{s.output}' ({s.action}): {why}" for s, why in reasons if why), "")


def _places(row: Untrusted) -> Iterator[Place]:
    """The evidence in its order: quoted passages, and rows that the answer is computed from."""
    for number, each in row.numbered("evidence"):
        source, span, steps = each.text("source"), each.span(), each.texts("steps")
        text = each.text("text")
        if each.text("match") != "row":
            elided = "elided" if each.text("match") == "elided" else ""
            shown = _marked(text, span, list(each.objects("omitted")))
            where = "; ".join(filter(None, [shown_place(each), ", ".join(steps), elided]))
            yield Place(number, text, shown, source, span, steps, elided, where)
            continue
        is_open = each.text("state") == "undecided" or each.inner("fields").has_nothing
        note = "undecided" if is_open else ", ".join(f"by {by}" for by in each.texts("decided_by"))
        cells = [(cell.text("column"), cell.span()) for cell in each.objects("cells")]
        # Where the document is a text, its whole is no column beside the others.
        fields = {k: v for k, v in each.cells("fields").items() if k != TEXT_COLUMN or v != text}
        if quote := each.text("quote"):
            fields["quote"] = quote
        text = text or each.any("value")
        page = each.whole("page")
        yield Place(number, text, "", source, span, steps, note, "", True, fields, tuple(cells), page)  # fmt: skip


def _origin(provenance: Untrusted) -> tuple[Sequence[str], str]:
    """The steps that a value derives from, and the text of documents, for people."""
    told = []
    for name, before in (("sources", ""), ("chosen_from", "chosen from ")):
        sources = list(map(_told_source, provenance.objects(name)))
        left = len(sources) - MAX_SOURCES
        more = [f"{left:,} more document{'s' * (left > 1)}"] if left > 0 else []
        if sources:
            told.append(before + ", ".join([*sources[:MAX_SOURCES], *more]))
    return provenance.texts("steps"), "; ".join(told)


def _told_source(source: Untrusted) -> str:
    """A document, and how much of it."""
    spans = [span for each in source.objects("spans") if (span := each.span())]
    if n_documents := source.whole("documents"):
        return f"all {n_documents:,} documents"
    n_read, n = sum(span.end - span.start for span in spans), source.whole("characters") or 0
    places = "1 passage" if len(spans) == 1 else f"{len(spans):,} passages"
    how_much = "whole" if n_read >= n else f"{places}, {100 * n_read / n:.2g} %"
    return f"{source.text('document')} ({how_much})"


def _part(part: Untrusted) -> Part:
    entries = (
        Entry(each.text("text"), each.numbers("evidence")) for each in part.objects("entries")
    )
    return Part(
        part.text("output"), part.text("label"), part.text("text"), part.text("state"), part.text("why"),
        part.numbers("evidence"), tuple(entries),
    )  # fmt: skip


def _marked(text: str, span: Span | None, omitted: Sequence[Untrusted]) -> str:
    """A passage on one line; parts that its quote omits are marked."""
    spans = [each.span() for each in omitted if span is not None]
    first = span.start if span is not None else 0
    return with_omissions(text, [Span(s.start - first, s.end - first) for s in spans if s])


def shown_place(each: Untrusted, *, hides: str = "") -> str:
    """The file of a passage, and its page or else its characters, for people; one file may go without saying."""
    source, span, page = each.text("source"), each.span(), each.whole("page")
    at = "" if span is None else shown_span(span)
    place = ["" if source == hides else source, at if page is None else f"page {page:,}"]
    return ", ".join(filter(None, [*place, "by OCR" if "ocr" in each else ""]))


def _unverified(row: Untrusted) -> Iterator[tuple[str, str, str]]:
    """Step, text and reason of each unverified quote."""
    for each in row.objects("unverified_quotes"):
        reason = DOUBTS.get(each.text("reason"), "could not be verified")
        yield each.text("step"), each.text("text"), reason


def _steps(row: Untrusted, events: Sequence[trace.Event]) -> Iterator[ShownStep]:
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
    steps = [
        ShownStep(
            output=each.text("output"),
            action=each.text("action"),
            value=each.any("value"),
            state=each.text("state").replace("_", " "),
            why=each.text("why"),
            truncated=each.text("truncated"),
            is_native=each.any("native") == "yes",
            context=each.text("context"),
            coverage=each.number("coverage"),
            n_calls=each.whole("calls") or 0,
            origin=_origin(each.inner("provenance")),
            checks=_checks(each.inner("checks")),
        )
        for each in row.objects("steps")
    ]
    known = {step.output for step in steps}
    steps += [
        ShownStep(
            output, action, state="failed" if output in failed else "not finished",
            n_calls=len(calls.get(output, ())), error=failed.get(output, ""),
        )
        for output, action in begun.items()
        if output not in known
    ]  # fmt: skip
    for step in steps:
        of_trace = {
            "finished": finished.get(step.output),
            "calls": tuple(calls.get(step.output, ())),
            "searches": tuple(searches.get(step.output, ())),
        }
        yield replace(step, **of_trace)  # type: ignore[arg-type]
