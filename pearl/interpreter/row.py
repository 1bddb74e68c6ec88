"""One row of results, as answers and failed tasks write it and all readers read it. This is the only declaration of its fields."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property, partial
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
)

from pearl.documents.evidence import DOUBTS, Evidence, Unverified, short_place
from pearl.documents.evidence.verifying import Match
from pearl.documents.record import Basis, Candidate, FieldResult, FieldState, Record
from pearl.documents.rows import Stated
from pearl.errors import DataError, Span
from pearl.interpreter.parts import AnswerPart, ListEntry, Tally
from pearl.interpreter.results import Checks, Look, StepResult
from pearl.interpreter.row_evidence import CellEvidence, RowEvidence
from pearl.llm import Usage
from pearl.replies.step_replies import State
from pearl.trace import AnswerStatus

VERSION = 1
"""The version of the row format. Rows of the releases before it have no version, but the same format."""

STATUSES: tuple[AnswerStatus, ...] = get_args(AnswerStatus)
"""The statuses of answers."""

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Ordinal = Annotated[int, Field(strict=True, ge=1, lt=2**63)]
Number = Annotated[float, Field(strict=True, gt=-(2.0**63), lt=2.0**63, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]
Scalar = Flag | Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True)] | str

IF_ANY = Field(exclude_if=operator.not_)
"""Marks a field that is left out of a row if it is empty or 0."""
IF_KNOWN = Field(exclude_if=partial(operator.is_, None))
"""Marks a field that is left out of a row if it is None."""


def says(text: str) -> Any:
    """Set the description of a field in the JSON Schema."""
    return Field(description=text)


class _Data(BaseModel):
    """An object in a row. Unknown fields are ignored and every field has a default, because files are untrusted."""

    # Deferred, because a run needs a few of these classes.
    model_config = ConfigDict(
        frozen=True, json_schema_serialization_defaults_required=True, defer_build=True
    )

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data."""
        return self.model_dump()


class Place(_Data):
    """A span of a source, in characters of its text."""

    text: str = ""
    start: Annotated[Count | None, IF_KNOWN] = None
    end: Annotated[Count | None, IF_KNOWN] = None

    @property
    def span(self) -> Span | None:
        """Its span; None if it has no position."""
        start, end = self.start, self.end
        return Span(start, end) if start is not None and end is not None and start <= end else None

    @staticmethod
    def at(span: Span | None) -> dict[str, Any]:
        """The fields of a `Place` for a span; {} for None."""
        return {} if span is None else {"start": span.start, "end": span.end}


class OmittedText(Place):
    """What a quote leaves out of its passage."""


class CitedCell(Place):
    """A cell that steps used."""

    column: str = ""
    page: Annotated[Ordinal | None, IF_KNOWN] = None


class SourceText(Place):
    """A text of a document from which a value derives."""

    source: Annotated[str, says("The name of the document.")] = ""
    page: Annotated[Ordinal | None, IF_KNOWN, says("The page that it begins on; absent if the source has no pages.")] = None  # fmt: skip
    ocr: Annotated[Share | None, IF_KNOWN, says("If it was read by OCR: the mean confidence of the words on its page; of several pages, the lowest.")] = None  # fmt: skip
    ranks: Annotated[dict[str, Ordinal], IF_ANY, says("Its rank in the search of each step that retrieved it.")] = {}  # fmt: skip
    steps: Annotated[list[str], says("The steps that quote it, or whose values are computed from it.")] = []  # fmt: skip

    def short_place(self, *, hides: str = "") -> str:
        """Its position as pages show it; the name of the source is omitted if it is `hides`."""
        source = "" if self.source == hides else self.source
        return short_place(source, self.span, self.page, is_by_ocr=self.ocr is not None)


class Passage(SourceText):
    """A passage that steps quote."""

    match: Annotated[
        Match,
        says(
            "How it is quoted: as it is; in other blanks, quote marks, hyphens of line ends or punctuation at its ends or "
            "between its words, or without a unit or an attribution; with something left out, see omitted."
        ),
    ] = "exact"
    omitted: Annotated[list[OmittedText], IF_ANY, says("What the quote leaves out of the passage.")] = []  # fmt: skip

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
        span = _needed(self.span)
        return Evidence(
            self.text, span, tuple(self.steps), self.match, self.source, span, self.gaps,
            ranks=tuple(self.ranks.items()), page=self.page, ocr=self.ocr,
        )  # fmt: skip


class DocumentRow(SourceText):
    """A row that the answer is computed from."""

    match: Literal["row"] = "row"
    value: Annotated[str | None, says("null: undecided.")] = None
    fields: dict[str, str | None] = {}
    row: Annotated[Ordinal | None, IF_KNOWN, says("Its number in the table.")] = None
    cells: Annotated[list[CitedCell], IF_ANY, says("The cells that steps used.")] = []
    state: Literal["found", "undecided"] = "found"
    decided_by: Annotated[
        list[str],
        IF_ANY,
        says("The escalation models or persons that decided it instead of the main model."),
    ] = []  # fmt: skip
    quote: Annotated[str, IF_ANY, says("The passages that decided its values, one per line; each also has its own entry in evidence.")] = ""  # fmt: skip

    @classmethod
    def of(cls, row: RowEvidence) -> Self:
        """The data of a row."""
        cells = [
            CitedCell(column=c.column, text=c.text, page=c.page, **cls.at(c.span))
            for c in row.cells
        ]
        return cls(
            text=row.text, value=row.value, fields=dict(row.fields), **cls.at(row.span), source=row.source,
            page=row.page, ocr=row.ocr, row=row.number, cells=cells, steps=[*row.steps],
            state="found" if row.is_decided else "undecided", ranks=dict(row.ranks),
            decided_by=[*row.decided_by], quote=row.quote,
        )  # fmt: skip

    def restored(self) -> RowEvidence:
        """Convert the data to a row."""
        cells = (CellEvidence(c.column, c.text, _needed(c.span), c.page) for c in self.cells)
        return RowEvidence(
            self.text, self.value, self.fields, tuple(self.steps), self.source, self.span,
            is_decided=self.state == "found", ranks=tuple(self.ranks.items()), number=self.row,
            cells=tuple(cells), page=self.page, ocr=self.ocr, decided_by=tuple(self.decided_by),
            quote=self.quote,
        )  # fmt: skip


def _needed(span: Span | None) -> Span:
    if span is None:
        raise ValueError("a passage has no position")
    return span


def _kind_of_evidence(data: Any) -> str:
    match = data.get("match") if isinstance(data, Mapping) else getattr(data, "match", "")
    return "a row" if match == "row" else "a passage"


TAGS = ("a passage", "a row")

EvidenceData = Annotated[
    Annotated[Passage, Tag("a passage")] | Annotated[DocumentRow, Tag("a row")],
    Discriminator(_kind_of_evidence),
]


class FieldCandidate(_Data):
    """A value that an undecided field may have."""

    value: Scalar | None = None
    evidence: list[Passage] = []


class FieldData(_Data):
    """The result of one field of an extraction."""

    state: FieldState = "undecided"
    value: Annotated[Scalar | None, says("null unless found; for a list, see entries.")] = None
    why: Annotated[str, IF_ANY, says("Why it is undecided.")] = ""
    basis: Annotated[
        Basis,
        IF_ANY,
        says(
            "What the value rests on: it stands in its passages, also in another notation; a model checked it; no model "
            "did; a person gave it."
        ),
    ] = ""
    checked_by: Annotated[
        str, IF_ANY, says("The model that confirmed that the passages support it.")
    ] = ""
    decided_by: Annotated[str, IF_ANY, says("The person who decided it in pearl review.")] = ""
    decided_at: Annotated[str, IF_ANY, says("Time of the decision, in ISO 8601.")] = ""
    evidence: Annotated[list[Passage], IF_ANY] = []
    candidates: Annotated[list[FieldCandidate], IF_ANY, says("The values that an undecided field may have.")] = []  # fmt: skip
    entries: Annotated[list[dict[str, FieldData]], IF_ANY, says("The entries of a list; plain values are in the field value.")] = []  # fmt: skip
    step: Annotated[str, IF_ANY, says("The step that extracts it; its provenance is that of the value.")] = ""  # fmt: skip
    has_objects: Annotated[Flag, IF_ANY, says("For a list whose entries have a single field named value: they are objects, not plain values.")] = False  # fmt: skip

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


class PartEntry(_Data):
    """An entry of a list, with its passages."""

    text: str = ""
    evidence: list[Ordinal] = []


class PartData(_Data):
    """A result that is a part of the answer."""

    output: Annotated[str, says("The step.")] = ""
    label: Annotated[str, says("What the step does.")] = ""
    value: Annotated[Any, says("Text, number, truth value, list or rows; null if there is none.")] = None  # fmt: skip
    text: str = ""
    state: State = "found"
    why: Annotated[str, IF_ANY, says("Why it is undecided or refused.")] = ""
    of: Annotated[Count | None, IF_KNOWN, says("For a number of rows: the rows that state what is asked.")] = None  # fmt: skip
    not_stated: Annotated[Count | None, IF_KNOWN, says("The rows that do not state it.")] = None
    undecided: Annotated[Count | None, IF_KNOWN, says("The rows that are undecided.")] = None
    evidence: Annotated[list[Ordinal], says("Numbers of its passages in evidence, from 1.")] = []
    entries: Annotated[list[PartEntry], IF_ANY, says("The entries of a list, each with its passages.")] = []  # fmt: skip

    @classmethod
    def of_part(cls, part: AnswerPart) -> Self:
        """The data of a part."""
        counts: dict[str, Any] = {}
        if part.tally is not None:
            stated = part.tally.stated
            counts = {"of": stated.of, "not_stated": stated.not_stated, "undecided": part.tally.undecided}  # fmt: skip
        return cls(
            output=part.output, label=part.label, text=part.text, state=part.state, why=part.why,
            value=str(part.value) if isinstance(part.value, Decimal) else part.value,
            evidence=[*part.evidence], **counts,
            entries=[PartEntry(text=e.text, evidence=[*e.evidence]) for e in part.entries],
        )  # fmt: skip

    def restored(self) -> AnswerPart:
        """Convert the data to a part; its tally has no texts, because these are in the text of the part."""
        n = self.value if isinstance(self.value, int) else 0  # A share has its number in the text
        n_undecided = self.undecided or 0
        tally = None
        if self.of is not None:
            tally = Tally(Stated(n, self.of, self.not_stated or 0), n_undecided, "", None)
        return AnswerPart(
            self.output, self.label, self.value, self.text, self.state, self.why, tuple(self.evidence),
            tuple(ListEntry(each.text, tuple(each.evidence)) for each in self.entries),
            n_undecided=n_undecided, tally=tally,
        )  # fmt: skip


class SourceSpan(_Data):
    """A piece of a document, in characters."""

    start: Count = 0
    end: Count = 0


class SourceData(_Data):
    """A document that a value derives from."""

    document: Annotated[str, says("Its name, or that of a corpus whose documents are all used whole.")] = ""  # fmt: skip
    documents: Annotated[Count, IF_ANY, says("How many documents the corpus has.")] = 0
    characters: Annotated[Count, says("Its length.")] = 0
    spans: Annotated[list[SourceSpan], says("In characters of the document; a whole document is one span.")] = []  # fmt: skip


class ProvenanceData(_Data):
    """The steps and documents from which a value derives, also through earlier steps. Rows of earlier versions have none."""

    steps: Annotated[list[str], says("In the order of the plan.")] = []
    sources: Annotated[list[SourceData], says("All text of documents that the value may contain.")] = []  # fmt: skip
    chosen_from: Annotated[
        list[SourceData],
        IF_ANY,
        says("The documents whose other text may have influenced the value; absent if there is none."),
    ] = []  # fmt: skip


class LookData(_Data):
    """A further search by a step that found nothing in the passages of its first search."""

    by: str = ""
    queries: Annotated[list[str], says("Empty: the queries of the first search.")] = []
    passages: Annotated[Count, says("Passages that were shown.")] = 0
    state: State = "nothing"


class CheckedSentence(_Data):
    """A sentence of a composed answer; contradicted and not stated sentences are left out of the answer, copied ones are sentences of the document."""

    text: str = ""
    verdict: str = ""


class ChecksData(_Data):
    """The verdicts on whether the quotes of each sentence support it."""

    by: Annotated[str, IF_ANY, says("The model that checked it; absent if none did.")] = ""
    why: Annotated[str, IF_ANY, says("Why it did not check all sentences.")] = ""
    sentences: list[CheckedSentence] = []

    @property
    def summary(self) -> str:
        """The number of sentences by verdict, and the checker."""
        counts = Counter(each.verdict for each in self.sentences)
        by = f"checked by {self.by}" if self.by else "meaning was not checked"
        return f"{by}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}"


class StepData(_Data):
    """A step of the plan."""

    output: str = ""
    action: str = ""
    value: Scalar | list[str] | None = None
    state: State = "found"
    why: Annotated[str, IF_ANY, says("Why it is undecided or refused.")] = ""
    truncated: Annotated[str, IF_ANY, says("Why its value may be incomplete.")] = ""
    looks: Annotated[list[LookData], IF_ANY] = []
    verdicts: Annotated[dict[str, Count], IF_ANY, says("For FILTER: number of rows by verdict (yes, no, not stated).")] = {}  # fmt: skip
    checks: Annotated[ChecksData | None, IF_KNOWN] = None
    record: Annotated[dict[str, FieldData] | None, IF_KNOWN] = None
    provenance: Annotated[ProvenanceData | None, IF_KNOWN] = None
    quotes: Annotated[list[str], says("Text that the reply copies from the document, verified or not.")] = []  # fmt: skip
    native: Annotated[Flag, says("Computed in Python, without a model.")] = False
    context: Annotated[str, says("How much of the document it was shown.")] = ""
    coverage: Share | None = None
    calls: Count = 0
    models: Annotated[list[str], IF_ANY, says("The models whose replies it has, as backend:name.")] = []  # fmt: skip

    @classmethod
    def of(cls, step: StepResult) -> Self:
        """The data of a step."""
        checks = None
        if step.checks.verdicts:
            sentences = [CheckedSentence(text=t, verdict=v) for t, v in step.checks.verdicts]
            checks = ChecksData(by=step.checks.by, why=step.checks.why, sentences=sentences)
        return cls(
            output=step.output, action=step.action, value=step.plain, state=step.state, why=step.why,
            truncated=step.truncated, looks=[LookData(**each._asdict()) for each in step.looks],
            verdicts=dict(step.verdicts), checks=checks,
            record=None if step.record is None else fields_data(step.record.fields),
            provenance=None if step.provenance is None else ProvenanceData(**step.provenance),
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


class UsageData(_Data):
    """Tokens of all calls; the last three counts are absent if they are 0."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    implausible_calls: Annotated[Count, IF_ANY, says("Calls for which the server reported impossible token counts.")] = 0  # fmt: skip
    written_tokens: Annotated[Count, IF_ANY, says("Input tokens that the server wrote to its cache.")] = 0  # fmt: skip
    written_long_tokens: Annotated[Count, IF_ANY, says("Of these, tokens that it keeps for an hour or longer.")] = 0  # fmt: skip

    def restored(self) -> Usage:
        """Convert the data to a usage."""
        return Usage(**{f"n_{name}": n for name, n in self})

    @property
    def bounded(self) -> Usage | None:
        """The usage in an untrusted row, with impossible counts reduced; None if input or output tokens are unknown."""
        if not self.model_fields_set >= {"input_tokens", "output_tokens"}:
            return None
        return Usage.bounded(
            self.input_tokens, self.output_tokens, self.cached_tokens, self.written_tokens,
            self.written_long_tokens,
        )  # fmt: skip


class QuoteData(_Data):
    """A quote that is no evidence."""

    step: str = ""
    text: str = ""
    reason: Annotated[
        Literal["", "missing", "given", "short", "apart", "negation"],
        IF_ANY,
        says(
            "missing: not in the document; given: nor that, but in what the step was given beside it; short: under four "
            "words and in several places, or pieces that say too little; apart: pieces that make no passage; negation: "
            "only in rows of earlier versions, a negation is left out. Rows of earlier versions have none."
        ),
    ] = ""

    @property
    def why(self) -> str:
        """Why it is no evidence."""
        return DOUBTS.get(self.reason, "could not be verified")

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


class ErrorData(_Data):
    """Why a task failed."""

    type: str = ""
    message: str = ""
    help: Annotated[str | None, says("What to do.")] = None
    exit_code: Annotated[Count | None, IF_KNOWN, says("Exit code of the command, if this is its only task.")] = None  # fmt: skip


Id = str | Annotated[int, Field(strict=True)] | None


def _status(*names: str) -> Any:
    # Any text, because readers show unknown values, too.
    return WithJsonSchema({"type": "string", "enum": list(names)})


class TaskRow(_Data):
    """The row of a task; fields of the input are passed on unchanged."""

    model_config = ConfigDict(extra="allow")

    v: Annotated[Literal[1], says("The version of this form.")] = 1
    id: Annotated[Id, IF_KNOWN, says("Of the task.")] = None
    status: str = ""
    question: Annotated[str | None, says("As it was asked.")] = None
    parameters: Annotated[dict[str, str], IF_ANY, says("The values of the plan's parameters.")] = {}

    @property
    def name(self) -> str:
        """The id of the task; for an evaluation record: sample, method and seed."""
        return id_of({"id": self.id, "method": getattr(self, "method", ""), **(self.model_extra or {})})  # fmt: skip

    @property
    def given(self) -> str:
        """The values of the parameters in one line."""
        return "; ".join(f"{name} = {value}" for name, value in self.parameters.items())


def id_of(row: Mapping[str, Any]) -> str:
    """The id of the task of a row; for an evaluation record: sample, method and seed."""
    id = row.get("id")
    if id is None:
        parts = (row.get(name) for name in ("sample", "method", "seed"))
        return " ".join(str(part) for part in parts if isinstance(part, str | int) and part != "")
    return id if isinstance(id, str) else str(id)


class FailedRow(TaskRow):
    """The row of a task that failed or is not finished; fields of the input are passed on unchanged."""

    status: Annotated[str, _status("failed", "unfinished")] = ""
    error: ErrorData = ErrorData()
    steps: Annotated[list[StepData], IF_ANY, says("The steps that were finished.")] = []


class ResultRow(TaskRow):
    """The row of an answer; readers read all rows as this. Fields of the input are passed on unchanged."""

    status: Annotated[
        str,
        _status(*STATUSES),
        says(
            "degraded: the answer may lack something or be wrong; undecided: a reply could not surely be read; refused: "
            "the model refused a step."
        ),
    ] = ""
    document: Annotated[str, says("Name of the document that was read.")] = ""
    answer: str = ""
    markdown: Annotated[str, says("The answer as Markdown; the footnote [^3] follows text that the third entry of evidence supports.")] = ""  # fmt: skip
    parts: Annotated[list[PartData], says("The results that are the parts of the answer.")] = []
    record: Annotated[dict[str, FieldData] | None, IF_KNOWN, says("The fields that were extracted, by name; address.city is the city of an address.")] = None  # fmt: skip
    why: Annotated[str, IF_ANY, says("Why it is degraded, undecided or refused.")] = ""
    value: Annotated[
        Any,
        Field(exclude_if=lambda _: False),
        says("A typed answer, and a row of an extraction: the record in the form of the user's schema; null if a required part has no value."),
    ] = None  # fmt: skip
    partial: Annotated[Any, IF_KNOWN, says("If value is null: the values found, in the same form, with null for missing values.")] = None  # fmt: skip
    undecided: Annotated[list[str] | None, IF_KNOWN, says("The paths of undecided values, with the names of the schema: drugs[0].dose; $ for the whole.")] = None  # fmt: skip
    reasons: Annotated[list[str], IF_ANY, says("Why there is no value, or why a part of it is missing.")] = []  # fmt: skip
    method: Annotated[str, says("plan, or direct if there was no valid plan.")] = ""
    model: Annotated[str, says("backend:name; with the models of other roles in parentheses: openai:a (rows: openai:b)")] = ""  # fmt: skip
    plan: str = ""
    evidence: Annotated[list[EvidenceData], says("Passages of the document that steps quote, then the rows that the answer is computed from.")] = []  # fmt: skip
    unverified_quotes: Annotated[list[QuoteData], says("Quotes that are no evidence.")] = []
    notes: Annotated[list[str], IF_ANY, says("Notes on how the answer was computed; absent if there are none.")] = []  # fmt: skip
    provenance: ProvenanceData = ProvenanceData()
    steps: list[StepData] = []
    coverage: Annotated[Share | None, says("The smallest fraction of the document that a reading step was shown; null if none was.")] = None  # fmt: skip
    usage: UsageData = UsageData()
    duration_s: Annotated[Number, says("Seconds.")] = 0
    error: Annotated[ErrorData | None, IF_KNOWN, says("Only of failed tasks.")] = None

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON data; only a typed answer has a `value`."""
        return self.model_dump(exclude=None if "value" in self.model_fields_set else {"value"})

    @cached_property
    def data(self) -> dict[str, Any]:
        """The row as JSON data, cached."""
        return self.to_dict()

    @property
    def passages(self) -> list[Passage]:
        """The passages that steps quote."""
        return [each for each in self.evidence if isinstance(each, Passage)]

    @property
    def document_rows(self) -> list[DocumentRow]:
        """The rows that the answer is computed from."""
        return [each for each in self.evidence if isinstance(each, DocumentRow)]


# --- reading ----------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=BaseModel)

MAX_NAME = 60  # Maximum characters of a name in a problem
MAX_ROUNDS = 50  # Later rounds may find errors in values that earlier ones did not reach


def check_version(data: Mapping[str, Any]) -> None:
    """Raise an error for a row of another version; a row without a version has the format of the first."""
    if (version := data.get("v", VERSION)) != VERSION or isinstance(version, bool):
        raise DataError(
            f"a row of version {str(version)[:MAX_NAME]}; this pearl reads version {VERSION}",
            help="use the pearl that wrote it",
        )


def read_row(data: Mapping[str, Any], problems: list[str] | None = None, at: str = "") -> ResultRow:
    """Read an untrusted row; values of a wrong type are left out and named in `problems`. `DataError` for another version."""
    check_version(data)
    return read_as(ResultRow, data, problems, at)


def read_as(
    kind: type[Kind], data: Mapping[str, Any], problems: list[str] | None = None, at: str = ""
) -> Kind:
    """Read untrusted data; values of a wrong type are left out and named in `problems`, with the prefix `at`."""
    for _ in range(MAX_ROUNDS):
        try:
            return kind.model_validate(data)
        except ValidationError as error:
            data, wrong = _mended(data, error)
        if problems is not None:
            problems += (f"{at}{name} has the wrong type ({why}) and is left out." for name, why in wrong.items())  # fmt: skip
    return kind()


def _mended(
    data: Mapping[str, Any], error: ValidationError
) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Remove the values that an error names; return the rest, and the reason by name. An invalid object in a list becomes an empty one, so that the others keep their positions."""
    mended: dict[str, Any] = dict(data)
    own = {id(mended)}  # The containers that are copies
    gone: set[tuple[int, Any]] = set()
    wrong: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False):
        inside: Any = mended
        name = ""
        places: list[tuple[Any, Any, str]] = []
        for key in each["loc"]:
            if (id(inside), key) in gone:  # Removed for an earlier error
                places.clear()
                break
            is_there = isinstance(inside, dict) and key in inside
            is_there |= isinstance(inside, list) and isinstance(key, int) and key < len(inside)
            if key in TAGS or not is_there:  # A member of a union, not a key
                continue
            name += f" {key + 1}" if isinstance(key, int) else f"{': ' * bool(name)}{key[:MAX_NAME]}"  # fmt: skip
            places.append((inside, key, name))
            if isinstance(inside[key], dict | list) and id(inside[key]) not in own:
                inside[key] = inside[key].copy()
                own.add(id(inside[key]))
            inside = inside[key]
        if not places:
            continue
        inside, key, name = places.pop()
        value = inside[key]
        if isinstance(inside, list) and each["type"] not in ("model_type", "dict_type"):
            inside, key, name = places.pop()  # Without a text or number, it would be another
        if isinstance(inside, list):
            inside[key] = {}
        else:
            del inside[key]
        gone.add((id(inside), key))
        if value is not None:
            why = each["msg"].partition(" or instance of")[0]
            wrong[name] = f"{why[:1].lower()}{why[1:]}"
    return mended, wrong


def restored_record(row: Mapping[str, Any]) -> Record | None:
    """The record in a row given as JSON data; None if it has none, a `ValueError` if it cannot be read."""
    record = row.get("record")
    if not isinstance(record, Mapping):
        return None
    return Record({k: FieldData.model_validate(v).restored() for k, v in record.items()})
