"""One row of results, as answers and failed tasks write it and all readers read it. This is the only declaration of its fields."""

from __future__ import annotations

import json
from abc import ABC
from collections import Counter
from collections.abc import Mapping
from copy import copy
from functools import cache, cached_property, partial
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET, Meta, Struct, convert, structs

from pearl.documents.evidence import DOUBTS, Evidence, Unverified, full_place, short_place
from pearl.documents.evidence.verifying import Match
from pearl.documents.record import Basis, Candidate, FieldResult, FieldState, Record
from pearl.documents.rows import shortened
from pearl.errors import DataError, Span
from pearl.interpreter.results import Checks, Look, StepResult
from pearl.llm import Usage
from pearl.replies.step_replies import State
from pearl.trace import AnswerStatus

VERSION = 1
"""The version of the row format. Rows of the releases before it have no version, but the same format."""

STATUSES: tuple[AnswerStatus, ...] = get_args(AnswerStatus)
"""The statuses of answers."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Ordinal = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[float, Meta(gt=-(2.0**63), lt=2.0**63)]
Share = Annotated[float, Meta(ge=0, le=1)]
Scalar = bool | int | float | str
Cell = Scalar | None  # The value of a field in a flat row

MAX_COLUMNS = 4  # Maximum columns named in the displayed position of a row


def says(text: str) -> Meta:
    """Set the description of a field in the JSON Schema."""
    return Meta(description=text)


def written(default: Any) -> Any:
    """The default of a field that every row has; a field with a plain default is left out of a row where it has that."""
    return msgspec.field(default_factory=partial(copy, default))


class _Data(Struct, frozen=True, omit_defaults=True):
    """An object in a row. Unknown fields are ignored and every field has a default, because files are untrusted."""

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data."""
        # msgspec itself encodes no subclasses, such as the floats of numpy.
        data: dict[str, Any] = msgspec.to_builtins(self, enc_hook=lambda v: json.loads(json.dumps(v)))  # fmt: skip
        return data


class Place(_Data, frozen=True):
    """A span of a source, in characters of its text."""

    text: str = written("")
    start: Count | None = None
    end: Count | None = None

    @property
    def span(self) -> Span | None:
        """Its span; None if it has no position."""
        start, end = self.start, self.end
        return Span(start, end) if start is not None and end is not None and start <= end else None

    @staticmethod
    def at(span: Span | None) -> dict[str, Any]:
        """The fields of a `Place` for a span; {} for None."""
        return {} if span is None else {"start": span.start, "end": span.end}


class OmittedText(Place, frozen=True):
    """What a quote leaves out of its passage."""


class CitedCell(Place, frozen=True):
    """A cell that steps used."""

    column: str = written("")
    page: Ordinal | None = None


class SourceText(Place, frozen=True):
    """A text of a document from which a value derives."""

    source: Annotated[str, says("The name of the document.")] = written("")
    page: Annotated[Ordinal | None, says("The page that it begins on; absent if the source has no pages.")] = None  # fmt: skip
    ocr: Annotated[Share | None, says("If it was read by OCR: the mean confidence of the words on its page; of several pages, the lowest.")] = None  # fmt: skip
    ranks: Annotated[dict[str, Ordinal], says("Its rank in the search of each step that retrieved it.")] = {}  # fmt: skip
    steps: Annotated[list[str], says("The steps that quote it, or whose values are computed from it.")] = written([])  # fmt: skip

    def short_place(self, *, hides: str = "") -> str:
        """Its position as pages show it; without the name of the source if `hides` is that name."""
        source = "" if self.source == hides else self.source
        return short_place(source, self.span, self.page, is_by_ocr=self.ocr is not None)


class Passage(SourceText, frozen=True):
    """A passage that steps quote."""

    match: Annotated[
        Match,
        says(
            "How it is quoted: as it is; in other blanks, quote marks, hyphens of line ends or punctuation at its ends or "
            "between its words, or without a unit or an attribution; with something left out, see omitted."
        ),
    ] = written("exact")
    omitted: Annotated[list[OmittedText], says("What the quote leaves out of the passage.")] = []  # fmt: skip

    @classmethod
    def of(cls, passage: Evidence) -> Self:
        """The data of a passage; positions are in the text of its source."""
        begin = passage.source_span.start
        omitted = [
            OmittedText(text=passage.text[s.start : s.end], **cls.at(s.moved(begin)))
            for s in passage.omitted
        ]
        return cls(
            text=passage.text, **cls.at(passage.source_span), source=passage.source, page=passage.page,
            ocr=passage.ocr, match=passage.match, steps=[*passage.steps], ranks=dict(passage.ranks),
            omitted=omitted,
        )  # fmt: skip

    @property
    def gaps(self) -> tuple[Span, ...]:
        """The spans of omitted text, in the text of the source."""
        if self.span is None:
            return ()
        spans = [each.span for each in self.omitted if each.span is not None]
        return tuple(span.moved(-self.span.start) for span in spans)

    def restored(self) -> Evidence:
        """Convert the data to a passage; a row lacks its position in joined files."""
        if (span := self.span) is None:
            raise ValueError("a passage has no position")
        return Evidence(
            self.text, span, tuple(self.steps), self.match, self.source, span, self.gaps,
            ranks=tuple(self.ranks.items()), page=self.page, ocr=self.ocr,
        )  # fmt: skip


class DocumentRow(SourceText, frozen=True):
    """A row that the answer is computed from."""

    match: Literal["row"] = written("row")
    value: Annotated[str | None, says("null: undecided.")] = written(None)
    fields: dict[str, str | None] = written({})
    row: Annotated[Ordinal | None, says("Its number in the table.")] = None
    cells: Annotated[list[CitedCell], says("The cells that steps used.")] = []
    state: Literal["found", "undecided"] = written("found")
    decided_by: Annotated[list[str], says("The escalation models or persons that decided it instead of the main model.")] = []  # fmt: skip
    quote: Annotated[str, says("The passages that decided its values, one per line; each also has its own entry in evidence.")] = ""  # fmt: skip

    @property
    def is_decided(self) -> bool:
        """Whether it has a value."""
        return self.state == "found"

    @property
    def number(self) -> int | None:
        """Its number in the table."""
        return self.row

    @property
    def line(self) -> str:
        """The row as text on one line."""
        shown = shortened(self.text or self.value or "")
        return shown if self.is_decided else f"undecided: {shown}"

    @property
    def where(self) -> str:
        """The position of the row and the steps that use it, for display."""
        place = ""
        if self.span:
            table = [] if self.row is None else [f"row {self.row:,}"]
            table += [shortened(cell.column, 40) for cell in self.cells[:MAX_COLUMNS]]
            table += ["..."] if len(self.cells) > MAX_COLUMNS else []
            cells = ", ".join(table)
            place = full_place(
                self.source, self.span, self.page, self.ocr, self.ranks.items(), cells
            )
            place += "; "
        by = f"; by {', '.join(self.decided_by)}" if self.decided_by else ""
        return f"{place}{', '.join(self.steps)}{by}"

    def flat(self) -> dict[str, Cell]:
        """The row for a data frame: its fields, then its value, text and position."""
        start, end = (None, None) if self.span is None else (self.span.start, self.span.end)
        own: dict[str, Cell] = {
            "value": self.value if self.is_decided else None, "text": self.text, "state": self.state,
            "source": self.source, "page": self.page, "start": start, "end": end, "quote": self.quote,
        }  # fmt: skip
        # A table may have a column named `text`.
        return {
            f"{name} (field)" if name in own else name: v for name, v in self.fields.items()
        } | own


if TYPE_CHECKING:
    EvidenceData = Passage | DocumentRow
else:

    class EvidenceData(ABC):  # noqa: B024
        """A `Passage` or a `DocumentRow`, for msgspec, which needs one `match` for each class of a union."""

    EvidenceData.register(SourceText)


class FieldCandidate(_Data, frozen=True):
    """A value that an undecided field may have."""

    value: Scalar | None = written(None)
    evidence: list[Passage] = written([])


class FieldData(_Data, frozen=True):
    """The result of one field of an extraction."""

    state: FieldState = written("undecided")
    value: Annotated[Scalar | None, says("null unless found; for a list, see entries.")] = written(None)  # fmt: skip
    why: Annotated[str, says("Why it is undecided.")] = ""
    basis: Annotated[
        Basis,
        says(
            "What the value rests on: it stands in its passages, also in another notation; a model checked it; no model "
            "did; a person gave it."
        ),
    ] = ""
    checked_by: Annotated[str, says("The model that confirmed that the passages support it.")] = ""
    decided_by: Annotated[str, says("The person who decided it in pearl review.")] = ""
    decided_at: Annotated[str, says("Time of the decision, in ISO 8601.")] = ""
    evidence: list[Passage] = []
    candidates: Annotated[list[FieldCandidate], says("The values that an undecided field may have.")] = []  # fmt: skip
    entries: Annotated[list[dict[str, FieldData]], says("The entries of a list; plain values are in the field value.")] = []  # fmt: skip
    step: Annotated[str, says("The step that extracts it; its provenance is that of the value.")] = ""  # fmt: skip
    has_objects: Annotated[bool, says("For a list whose entries have a single field named value: they are objects, not plain values.")] = False  # fmt: skip

    @classmethod
    def of(cls, field: FieldResult) -> Self:
        """The data of a field."""
        return cls(
            state=field.state, value=field.value, why=field.why, basis=field.basis,
            checked_by=field.checked_by, evidence=[*map(Passage.of, field.evidence)],
            candidates=[
                FieldCandidate(value=c.value, evidence=[*map(Passage.of, c.evidence)])
                for c in field.candidates
            ],
            entries=[fields_data(entry) for entry in field.entries],
            step=field.step, has_objects=field.has_objects,
        )  # fmt: skip

    def restored(self) -> FieldResult:
        """Convert the data to a field."""
        return FieldResult(
            self.state, self.value, self.why, self.basis,
            evidence=tuple(each.restored() for each in self.evidence),
            candidates=tuple(
                Candidate(c.value, tuple(each.restored() for each in c.evidence))
                for c in self.candidates
            ),
            entries=tuple(restored_fields(entry) for entry in self.entries),
            step=self.step, checked_by=self.checked_by, has_objects=self.has_objects,
        )  # fmt: skip


def fields_data(fields: Mapping[str, FieldResult]) -> dict[str, Any]:
    """The data of fields, by name."""
    return {name: FieldData.of(field) for name, field in fields.items()}


def restored_fields(fields: Mapping[str, FieldData]) -> dict[str, FieldResult]:
    """Convert the data to fields, by name."""
    return {name: field.restored() for name, field in fields.items()}


class ListEntry(_Data, frozen=True):
    """An entry of a list, and the numbers of its evidence."""

    text: str = written("")
    evidence: tuple[Ordinal, ...] = written(())


class PartData(_Data, frozen=True):
    """A result that is a part of the answer."""

    output: Annotated[str, says("The step.")] = written("")
    label: Annotated[str, says("What the step does.")] = written("")
    value: Annotated[Any, says("Text, number, truth value, list or rows; null if there is none.")] = written(None)  # fmt: skip
    text: str = written("")
    state: State = written("found")
    why: Annotated[str, says("Why it is undecided or refused.")] = ""
    of: Annotated[Count | None, says("For a number of rows: the rows that state what is asked.")] = None  # fmt: skip
    not_stated: Annotated[Count | None, says("The rows that do not state it.")] = None
    undecided: Annotated[Count | None, says("The rows that are undecided.")] = None
    evidence: Annotated[list[Ordinal], says("Numbers of its passages in evidence, from 1.")] = written([])  # fmt: skip
    entries: Annotated[list[ListEntry], says("The entries of a list, each with its passages.")] = []  # fmt: skip


class SourceSpan(_Data, frozen=True):
    """A piece of a document, in characters."""

    start: Count = written(0)
    end: Count = written(0)


class SourceData(_Data, frozen=True):
    """A document that a value derives from."""

    document: Annotated[str, says("Its name, or that of a corpus whose documents are all used whole.")] = written("")  # fmt: skip
    documents: Annotated[Count, says("How many documents the corpus has.")] = 0
    characters: Annotated[Count, says("Its length.")] = written(0)
    spans: Annotated[list[SourceSpan], says("In characters of the document; a whole document is one span.")] = written([])  # fmt: skip


class ProvenanceData(_Data, frozen=True):
    """The steps and documents from which a value derives, also through earlier steps. Rows of earlier versions have none."""

    steps: Annotated[list[str], says("In the order of the plan.")] = written([])
    sources: Annotated[list[SourceData], says("All text of documents that the value may contain.")] = written([])  # fmt: skip
    chosen_from: Annotated[list[SourceData], says("The documents whose other text may have influenced the value; absent if there is none.")] = []  # fmt: skip


class LookData(_Data, frozen=True):
    """A further search by a step that found nothing in the passages of its first search."""

    by: str = written("")
    queries: Annotated[list[str], says("Empty: the queries of the first search.")] = written([])
    passages: Annotated[Count, says("Passages that were shown.")] = written(0)
    state: State = written("nothing")


class CheckedSentence(_Data, frozen=True):
    """A sentence of a composed answer; contradicted and not stated sentences are left out of the answer, copied ones are sentences of the document."""

    text: str = written("")
    verdict: str = written("")


class ChecksData(_Data, frozen=True):
    """The verdicts on whether the quotes of each sentence support it."""

    by: Annotated[str, says("The model that checked it; absent if none did.")] = ""
    why: Annotated[str, says("Why it did not check all sentences.")] = ""
    sentences: list[CheckedSentence] = written([])

    @property
    def summary(self) -> str:
        """The number of sentences by verdict, and the checker."""
        counts = Counter(each.verdict for each in self.sentences)
        by = f"checked by {self.by}" if self.by else "meaning was not checked"
        return f"{by}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"


class StepData(_Data, frozen=True):
    """A step of the plan."""

    output: str = written("")
    action: str = written("")
    value: Scalar | list[str] | None = written(None)
    state: State = written("found")
    why: Annotated[str, says("Why it is undecided or refused.")] = ""
    truncated: Annotated[str, says("Why its value may be incomplete.")] = ""
    looks: list[LookData] = []
    verdicts: Annotated[dict[str, Count], says("For FILTER: number of rows by verdict (yes, no, not stated).")] = {}  # fmt: skip
    checks: ChecksData | None = None
    record: dict[str, FieldData] | None = None
    provenance: ProvenanceData | None = None
    quotes: Annotated[list[str], says("Text that the reply copies from the document, verified or not.")] = written([])  # fmt: skip
    native: Annotated[bool, says("Computed in Python, without a model.")] = written(False)
    context: Annotated[str, says("How much of the document it was shown.")] = written("")
    coverage: Share | None = written(None)
    calls: Count = written(0)
    models: Annotated[list[str], says("The models whose replies it has, as backend:name.")] = []  # fmt: skip

    @classmethod
    def of(cls, step: StepResult) -> Self:
        """The data of a step."""
        checks = None
        if step.checks.verdicts:
            sentences = [CheckedSentence(text=t, verdict=v) for t, v in step.checks.verdicts]
            checks = ChecksData(by=step.checks.by, why=step.checks.why, sentences=sentences)
        return cls(
            output=step.output, action=step.action, value=step.plain, state=step.state, why=step.why,
            truncated=step.truncated, looks=[LookData(each.by, [*each.queries], each.passages, each.state) for each in step.looks],
            verdicts=dict(step.verdicts), checks=checks,
            record=None if step.record is None else fields_data(step.record.fields),
            provenance=None if step.provenance is None else convert(step.provenance, ProvenanceData),
            quotes=[*step.quotes], native=step.is_native, context=step.context,
            coverage=step.coverage, calls=step.n_calls, models=[*step.models],
        )  # fmt: skip

    def restored(self) -> StepResult:
        """Convert the data to a step result, whose value is the displayed text."""
        checks = Checks()
        if self.checks is not None:
            verdicts = tuple((each.text, each.verdict) for each in self.checks.sentences)
            checks = Checks(self.checks.by, verdicts, self.checks.why)
        context: Any = self.context
        value: Any = self.value
        return StepResult(
            self.output, self.action, value, self.native, context, self.coverage, self.calls,
            state=self.state, why=self.why, truncated=self.truncated, quotes=tuple(self.quotes),
            verdicts=self.verdicts, checks=checks, models=tuple(self.models),
            looks=tuple(Look(each.by, each.queries, each.passages, each.state) for each in self.looks),
            record=None if self.record is None else Record(restored_fields(self.record)),
            provenance=None if self.provenance is None else self.provenance.to_dict(),
        )  # fmt: skip


class UsageData(_Data, frozen=True):
    """Tokens of all calls; the last three counts are absent if they are 0."""

    input_tokens: Count = written(0)
    output_tokens: Count = written(0)
    cached_tokens: Count = written(0)
    implausible_calls: Annotated[Count, says("Calls for which the server reported impossible token counts.")] = 0  # fmt: skip
    written_tokens: Annotated[Count, says("Input tokens that the server wrote to its cache.")] = 0  # fmt: skip
    written_long_tokens: Annotated[Count, says("Of these, tokens that it keeps for an hour or longer.")] = 0  # fmt: skip

    def restored(self) -> Usage:
        """Convert the data to a usage."""
        return Usage(**{f"n_{name}": n for name, n in structs.asdict(self).items()})


class QuoteData(_Data, frozen=True):
    """A quote that is no evidence."""

    step: str = written("")
    text: str = written("")
    reason: Annotated[
        Literal["", "missing", "given", "short", "apart", "negation"],
        says(
            "missing: not in the document; given: nor that, but in what the step was given beside it; short: under four "
            "words and in several places, or pieces that say too little; apart: pieces that make no passage; negation: "
            "only in rows of earlier versions, a negation is left out. Rows of earlier versions have none."
        ),
    ] = ""

    @property
    def why(self) -> str:
        """Why it is no evidence."""
        return DOUBTS[self.reason]

    @classmethod
    def of(cls, quote: Unverified) -> Self:
        """The data of a quote."""
        return cls(step=quote.step, text=quote.text, reason=quote.reason)

    def restored(self) -> Unverified:
        """Convert the data to a quote."""
        reason = self.reason
        if reason == "" or reason == "negation":  # Of earlier versions
            reason = "missing"
        return Unverified(self.step, self.text, reason)


class ErrorData(_Data, frozen=True):
    """Why a task failed."""

    type: str = written("")
    message: str = written("")
    help: Annotated[str | None, says("What to do.")] = written(None)
    exit_code: Annotated[Count | None, says("Exit code of the command, if this is its only task.")] = None  # fmt: skip


def _status(*names: str) -> Meta:
    # Any text, because readers show unknown values, too.
    return Meta(extra_json_schema={"enum": [*names]})


class TaskRow(_Data, frozen=True):
    """The row of a task; fields of the input are passed on unchanged."""

    v: Annotated[Literal[1], says("The version of this form.")] = written(1)
    id: Annotated[str | int | None, says("Of the task.")] = None
    status: str = written("")
    question: Annotated[str | None, says("As it was asked.")] = written(None)
    parameters: Annotated[dict[str, str], says("The values of the plan's parameters.")] = {}


def id_of(row: Mapping[str, Any]) -> str:
    """The id of the task of a row; for an evaluation record: sample, method and seed."""
    id = row.get("id")
    if id is None:
        parts = (row.get(name) for name in ("sample", "method", "seed"))
        return " ".join(str(part) for part in parts if isinstance(part, str | int) and part != "")
    return id if isinstance(id, str) else str(id)


class FailedRow(TaskRow, frozen=True):
    """The row of a task that failed or is not finished; fields of the input are passed on unchanged."""

    status: Annotated[str, _status("failed", "unfinished")] = written("")
    error: ErrorData = written(ErrorData())
    steps: Annotated[list[StepData], says("The steps that were finished.")] = []


class ResultRow(TaskRow, frozen=True, dict=True):
    """The row of an answer; readers read all rows as this. Fields of the input are passed on unchanged."""

    raw: ClassVar[Mapping[str, Any]] = {}
    """What it is read from, without the values of a wrong type; an attribute of the object."""

    status: Annotated[
        str,
        _status(*STATUSES),
        says(
            "degraded: the answer may lack something or be wrong; undecided: a reply could not be read with certainty; refused: "
            "the model refused a step."
        ),
    ] = written("")
    document: Annotated[str, says("Name of the document that was read.")] = written("")
    answer: str = written("")
    markdown: Annotated[str, says("The answer as Markdown; the footnote [^3] follows text that the third entry of evidence supports.")] = written("")  # fmt: skip
    parts: Annotated[list[PartData], says("The results that are the parts of the answer.")] = written([])  # fmt: skip
    record: Annotated[dict[str, FieldData] | None, says("The fields that were extracted, by name; address.city is the city of an address.")] = None  # fmt: skip
    why: Annotated[str, says("Why it is degraded, undecided or refused.")] = ""
    value: Annotated[Any, says("A typed answer, and a row of an extraction: the record in the form of the user's schema; null if a required part has no value.")] = UNSET  # fmt: skip
    partial: Annotated[Any, says("If value is null: the values found, in the same form, with null for missing values.")] = None  # fmt: skip
    undecided: Annotated[list[str] | None, says("The paths of undecided values, with the names of the schema: drugs[0].dose; $ for the whole.")] = None  # fmt: skip
    reasons: Annotated[list[str], says("Why there is no value, or why a part of it is missing.")] = []  # fmt: skip
    method: Annotated[str, says("plan, or direct if there was no valid plan.")] = written("")
    model: Annotated[str, says("backend:name; with the models of other roles in parentheses: openai:a (rows: openai:b)")] = written("")  # fmt: skip
    plan: str = written("")
    evidence: Annotated[list[EvidenceData], says("Passages of the document that steps quote, then the rows that the answer is computed from.")] = written([])  # fmt: skip
    unverified_quotes: Annotated[list[QuoteData], says("Quotes that are no evidence.")] = written([])  # fmt: skip
    notes: Annotated[list[str], says("Notes on how the answer was computed; absent if there are none.")] = []  # fmt: skip
    provenance: ProvenanceData = written(ProvenanceData())
    steps: list[StepData] = written([])
    coverage: Annotated[Share | None, says("The smallest fraction of the document that a reading step was shown; null if none was.")] = written(None)  # fmt: skip
    usage: UsageData = written(UsageData())
    duration_s: Annotated[Number, says("Seconds.")] = written(0)
    error: Annotated[ErrorData | None, says("Only of failed tasks.")] = None

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (read_row, (self.raw,)) if "raw" in vars(self) else super().__reduce__()

    def __copy__(self) -> ResultRow:  # that of Struct leaves out `raw`
        return self

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON data; only a typed answer has a `value`."""
        return super().to_dict() | self.extra

    @cached_property
    def data(self) -> dict[str, Any]:
        """The row as JSON data, cached."""
        return self.to_dict()

    @property
    def extra(self) -> dict[str, Any]:
        """The fields of the input in a row that is read."""
        return {k: v for k, v in self.raw.items() if k not in self.__struct_fields__}

    @property
    def name(self) -> str:
        """The id of the task; for an evaluation record: sample, method and seed."""
        return id_of({"id": self.id, "method": self.method, **self.extra})

    @property
    def given(self) -> str:
        """The values of the parameters in one line."""
        return "; ".join(f"{name} = {value}" for name, value in self.parameters.items())

    @property
    def known_usage(self) -> Usage | None:
        """The usage in an untrusted row, with impossible counts reduced; None if input or output tokens are unknown."""
        if not self.raw.get("usage", {}).keys() >= {"input_tokens", "output_tokens"}:
            return None
        usage = self.usage
        return Usage.bounded(
            usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.written_tokens,
            usage.written_long_tokens,
        )  # fmt: skip

    @property
    def passages(self) -> list[Passage]:
        """The passages that steps quote."""
        return [each for each in self.evidence if isinstance(each, Passage)]

    @property
    def document_rows(self) -> list[DocumentRow]:
        """The rows that the answer is computed from."""
        return [each for each in self.evidence if isinstance(each, DocumentRow)]


# --- reading ----------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=Struct)

MAX_NAME = 60  # Maximum characters of a name in a problem
MAX_DEPTH = 60  # A value inside so many others is left out with that which it is in


def of_version(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of this version; an error for another one. A row without a version has the format of the first."""
    if (version := data.get("v", VERSION)) != VERSION or isinstance(version, bool):
        raise DataError(
            f"a row of version {str(version)[:MAX_NAME]}; this pearl reads version {VERSION}",
            help="use the pearl that wrote it",
        )
    return {**data, "v": VERSION}


def read_row(data: Mapping[str, Any], problems: list[str] | None = None, at: str = "") -> ResultRow:
    """Read an untrusted row; values of a wrong type are left out and named in `problems`. `DataError` for another version."""
    return read_as(ResultRow, of_version(data), problems, at)


def read_as(
    kind: type[Kind], data: Mapping[str, Any], problems: list[str] | None = None, at: str = ""
) -> Kind:
    """Read untrusted data; values of a wrong type are left out and named in `problems`, with the prefix `at`."""
    read, wrong = _read(kind, data)
    if problems is not None:
        problems += (
            f"{at}{name} has the wrong type ({why}) and is left out."
            for name, value, why in wrong if value is not None
        )  # fmt: skip
    return read


def read_exactly(kind: type[Kind], data: Mapping[str, Any]) -> Kind:
    """Read untrusted data; a `ValueError` names the first value of a wrong type."""
    read, wrong = _read(kind, data)
    for name, _, why in wrong:
        raise ValueError(f"{name}: {why}" if name else why)
    return read


_Wrong = list[tuple[str, Any, str]]
"""Values of a wrong type: where each stands, the value, and why it is wrong."""


def _read(kind: type[Kind], data: Mapping[str, Any]) -> tuple[Kind, _Wrong]:
    wrong: _Wrong = []
    known = _mended(kind, data, "", wrong)
    known = {} if known is UNSET else known
    read: Kind = _converted(known, kind)
    if isinstance(read, ResultRow):
        extra = {k: v for k, v in data.items() if k not in kind.__struct_fields__}
        vars(read)["raw"] = {**known, **extra}
    return read, wrong


def _converted(data: Any, kind: Any) -> Any:
    return convert(data, kind, dec_hook=lambda _, each: _converted(each, _evidence(each)))


def _evidence(data: Any) -> type[Passage | DocumentRow]:
    is_row = isinstance(data, Mapping) and data.get("match") == "row"
    return DocumentRow if is_row else Passage


def _mended(kind: Any, value: Any, name: str, wrong: _Wrong, depth: int = 0) -> Any:
    """The data without the values of a wrong type; UNSET if it is one. An invalid object in a list becomes an empty one, so that the others keep their positions."""
    try:
        _converted(value, kind)
        return value
    except (msgspec.ValidationError, RecursionError) as error:
        why = str(error).partition(" - at ")[0]
    except UnicodeError:  # Of a name or a choice; other texts may have them
        why = "got a lone surrogate"
    kind = _shape(kind)
    kinds = _kinds(_evidence(value) if kind is EvidenceData else kind, value)
    if kinds is None or depth == MAX_DEPTH:
        if get_origin(kind) is Literal:
            why = f"expected {' or '.join(map(repr, get_args(kind)))}"
        wrong.append((name.removeprefix(": "), value, f"{why[:1].lower()}{why[1:]}"))
        return UNSET
    mended: dict[Any, Any] = {}
    for key, inner in kinds.items():
        place = f"{name} {key + 1}" if isinstance(key, int) else f"{name}: {key[:MAX_NAME]}"
        each = _mended(inner, value[key], place, wrong, depth + 1)
        if each is not UNSET:
            mended[key] = each
        elif isinstance(value, list):
            mended[key] = {}
    return [*mended.values()] if isinstance(value, list) else mended


def _shape(kind: Any) -> Any:
    """A declared type without its constraints and `| None`."""
    inner = get_args(kind)
    is_marked = get_origin(kind) is Annotated or inner[1:] == (NoneType,)
    return _shape(inner[0]) if is_marked else kind


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The types of the fields of a class, which take a while to find."""
    return {each.name: each.type for each in structs.fields(kind)}


def _kinds(kind: Any, value: Any) -> dict[Any, Any] | None:
    """The types of the values in an object or in a list of objects; None for other data."""
    origin, inner = get_origin(kind), get_args(kind)
    match value:
        case Mapping() if origin is dict:
            return {name: inner[1] for name in value if isinstance(name, str)}
        case Mapping() if isinstance(kind, type(Struct)):
            return {name: each for name, each in _fields(kind).items() if name in value}
        case list() if origin is list and inner[0] not in (str, Ordinal):
            return dict.fromkeys(range(len(value)), inner[0])
    return None


def restored_record(row: Mapping[str, Any]) -> Record | None:
    """The record in a row given as JSON data; None if it has none, a `ValueError` if it cannot be read."""
    record = row.get("record")
    if not isinstance(record, Mapping):
        return None
    return Record({k: read_exactly(FieldData, v).restored() for k, v in record.items()})
