"""Step results → `Answer`: the text, its steps, and verified quotes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal

from msgspec import UNSET, convert
from msgspec.structs import replace

from pearl.actions.values import AMONG, Fetched
from pearl.documents.document import Document
from pearl.documents.evidence import (
    Evidence,
    StepReply,
    Unverified,
    collect,
    full_place,
)
from pearl.documents.evidence.collecting import add_passage
from pearl.documents.record import PLAIN, FieldResult, Reading, Record
from pearl.documents.rows import Row, Rows, shortened
from pearl.documents.table import cell_span
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import String, items_of
from pearl.errors import DataError, Span
from pearl.errors.callers import ShownInNotebooks, for_caller
from pearl.errors.escaping import to_json
from pearl.interpreter.parts import (
    AnswerPart,
    PartValue,
    Piece,
    answer_parts,
    labelled_markdown,
    labelled_text,
    marked,
)
from pearl.interpreter.provenance import Provenance, leaves, provenance_of
from pearl.interpreter.results import Cited, StepResult
from pearl.interpreter.row import (
    STATUSES,
    Cell,
    CitedCell,
    DocumentRow,
    Passage,
    Place,
    ProvenanceData,
    QuoteData,
    ResultRow,
    StepData,
    UsageData,
    fields_data,
    of_version,
    read_exactly,
    restored_fields,
)
from pearl.llm import Usage
from pearl.trace import AnswerStatus, Trace

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from pearl.data.schemas import Schema

    T = TypeVar("T", default=PartValue | dict[str, PartValue])
else:
    from typing import TypeVar

    T = TypeVar("T")

MAX_TOLD = 80  # Maximum characters of a quote in the reason for a status

UNSURE = frozenset({"undecided", "degraded", "refused"})
"""Statuses of answers that are missing, incomplete or possibly wrong."""


@dataclass(frozen=True, eq=False)
class Answer(ShownInNotebooks, Generic[T]):
    """An answer with its evidence; `Answer[Model]` if a model is given.

    Attributes:
        question: The question as the user wrote it.
        text: The answer: composed by the model, or its parts, each with its label if there are several.
        parts: The results that the answer consists of.
        evidence: Passages of the document, in the order in which the steps quote them.
        unverified: Quotes that could not be verified, with their step and the reason.
        row_evidence: The rows that the answer is computed from, in the order of the document.
        steps: Every step with its value, in plan order.
        outputs: The steps whose results are the parts: no other step uses them, except one that composes
            the answer.
        method: `plan`, or `direct` if the question was asked in one step, because no plan was valid or the model is too small.
        record: The fields that the steps of the plan extract; None for other plans.
        provenance: The steps and document texts from which the answer derives, as JSON data.
        schema: The schema of a typed answer.
        parameters: The values of the plan's parameters.
    """

    question: str
    text: str
    plan: str
    outputs: tuple[str, ...]
    method: Literal["plan", "direct"]
    document: str
    steps: tuple[StepResult, ...]
    evidence: tuple[Evidence, ...]
    unverified: tuple[Unverified, ...]
    model: str
    usage: Usage
    duration_s: float
    trace: Trace = field(repr=False, compare=False)
    parts: tuple[AnswerPart, ...] = ()
    composed: tuple[Piece, ...] = field(default=(), repr=False)
    row_evidence: tuple[DocumentRow, ...] = field(default=(), repr=False)
    document_notes: tuple[str, ...] = ()
    record: Record | None = None
    provenance: Provenance = field(default_factory=dict, repr=False)
    schema: Schema | None = field(default=None, repr=False, compare=False)
    parameters: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def markdown(self) -> str:
        """The answer as Markdown; the footnote `[^3]` follows the text that `evidence[2]` supports."""
        if self.composed:
            return marked(self.composed)
        is_labelled = self.parts and labelled_text(self.parts) == self.text
        return labelled_markdown(self.parts, self.evidence) if is_labelled else self.text

    @property
    def value(self) -> T | None:
        """The value of the only part, or the values of several by output; None for no value.

        For a typed answer, the instance of the model, or None if a required part has no value: then `reasons` says
        why, and `partial` has the values that were found.
        """
        if self.schema is not None or "value" in self.typed:
            value: T | None = self._built.value
            return value
        values: Any = {part.output: part.value for part in self.parts}
        return values if len(values) > 1 else next(iter(values.values()), None)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a typed answer, or a part of it, has no value."""
        return tuple(map(for_caller, self._built.reasons))

    @property
    def partial(self) -> Any:
        """The values found for a typed answer, nested as in its schema; None for each missing value."""
        return self._built.data

    @property
    def undecided(self) -> tuple[str, ...]:
        """The paths of undecided values in a typed answer, with the names of its schema: `drugs[0].dose`."""
        return self._built.undecided

    @property
    def fields(self) -> dict[str, FieldResult]:
        """The fields of a typed answer by path, including fields of list entries: `drugs[0].dose_mg`."""
        return {} if self.record is None else self.record.paths

    @property
    def rows(self) -> list[dict[str, Cell]]:
        """Flat rows for a data frame: the fields of `record`, or the rows from which the answer is computed.

        The fields form one row, or one for each entry of their lists (inner lists included). Each field
        has the columns `NAME`, `NAME_state` and `NAME_source`, the place of its evidence.
        """
        if self.record is None:
            return [row.flat() for row in self.row_evidence]
        return _rows("", self.record.fields)

    @cached_property
    def _built(self) -> Reading:
        if self.schema is None or self.record is None:
            return Reading(None, None)
        return self.schema.read(self.record)

    @cached_property
    def typed(self) -> dict[str, Any]:
        """The value of a typed answer as JSON data, with the reasons why it is missing; {} for other answers."""
        return {} if self.schema is None else replace(self._built, reasons=self.reasons).to_dict()

    @property
    def unlabelled(self) -> str:
        """The text without the labels of its parts."""
        is_labelled = not self.composed and labelled_text(self.parts) == self.text
        return "\n\n".join(part.text for part in self.parts) if is_labelled else self.text

    @property
    def status(self) -> AnswerStatus:
        """`refused` if the model refused a step.

        `undecided` if a step of the answer is undecided, if any step has no value, or if different
        answers of several plans are equally frequent. `nothing_found` if no step of the answer found
        anything. `degraded` if the answer may be incomplete or wrong: a reply was cut off, a quote is
        not in the document, or a part found nothing. A typed answer without a value is `undecided`; if only a part is missing, it is `degraded`.
        """
        return self._judged[0]

    @property
    def why(self) -> str:
        """Why the answer is refused, undecided or degraded, naming the first such step; "" for other answers."""
        return for_caller(self._judged[1])

    @property
    def has_answer(self) -> bool:
        """Whether the text answers the question; "nothing found" counts as an answer."""
        return self.status not in ("undecided", "refused")

    @property
    def is_unsure(self) -> bool:
        """Whether the answer is missing, incomplete or possibly wrong."""
        return self.status in UNSURE

    @cached_property
    def _judged(self) -> tuple[AnswerStatus, str]:
        refused = [step for step in self.steps if step.state == "refused" and step.is_used]
        if refused:
            return "refused", _describe_step(refused[0], refused[0].why)
        shown = [step for step in self.steps if step.output in self.outputs]
        # Groups of the fields of one record
        has_fields = any(step.record is not None and step.state == "found" for step in self.steps)
        unsure = [
            step for step in self.steps
            if step.state == "undecided" and step.is_used and not (has_fields and step.record is not None)
        ]  # fmt: skip
        if any(step.is_void or step in shown for step in unsure):
            first = next((step for step in unsure if not step.is_native), unsure[0])
            return "undecided", _describe_step(first, first.why)
        cut = next((step for step in self.steps if step.truncated), None)
        if cut is None and all(step.state == "nothing" for step in shown):
            return "nothing_found", ""
        flaw = self._flaw() if cut is None else _describe_step(cut, cut.truncated)
        if self.reasons:
            return "undecided" if self.value is None else "degraded", flaw or self.reasons[0]
        return ("degraded", flaw) if flaw else ("answered", "")

    def _flaw(self) -> str:
        """Why an answer that has a value is degraded; "" if nothing is wrong with it."""
        whys = [step.why for step in self.steps if step.record is not None]
        if any(whys):
            told = self.record.why_undecided if self.record and len(whys) > 1 else ""
            return told or next(filter(None, whys))
        for quote in self.unverified:
            if quote.reason in ("missing", "apart"):
                return f"step '{quote.step}': {quote.why}: '{shortened(quote.text, MAX_TOLD)}'"
        for step in self.steps:
            is_part = isinstance(step.value, str) and step.value in self.text
            if step.state == "nothing" and step.record is None and is_part:
                return _describe_step(step, "nothing was found for this part of the answer")
        return ""

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Notes on how the document was read and the answer computed: date formats, searches, omissions."""
        every = (each for step in self.steps for each in (step.rows, step.fetched))
        found = (note for each in every if each is not None for note in each.notes)
        of_steps = (note for step in self.steps for note in step.notes)
        notes = dict.fromkeys((*self.document_notes, *found, *of_steps))
        return tuple(for_caller(note) for note in notes if not note.startswith(AMONG))

    @cached_property
    def coverage(self) -> float | None:
        """The smallest fraction of the document that the prompts of a reading step contained; None if no step read it.

        Steps carried out row by row count as one, because later ones read the rows that earlier ones kept.
        """
        read = [(s.context == "rows", s.coverage) for s in self.steps if s.coverage is not None]
        by_row = [coverage for is_by_row, coverage in read if is_by_row]
        whole = [coverage for is_by_row, coverage in read if not is_by_row]
        return min([*whole, *([max(by_row)] if by_row else [])], default=None)

    def to_json(self, *, indent: int | None = None) -> str:
        """The answer as the text of a JSON object: one row of a results file."""
        return to_json(self.to_dict(), indent=indent)

    @classmethod
    def from_json(cls, text: str, *, schema: Any = None) -> Answer[Any]:
        """Read an answer from the text of `to_json` or a row of results. Its trace is missing, and its steps have the displayed values.

        Args:
            text: Untrusted.
            schema: The schema of a typed answer, whose value is then an instance instead of a dictionary.

        Raises:
            DataError: The text is no answer.
        """
        try:
            data = json.loads(text)
            row = read_exactly(ResultRow, of_version(data))
            if missing := {"answer", "question", "plan"} - row.raw.keys():
                raise ValueError(f"it has no {' and no '.join(sorted(missing))}")
            from pearl.data.schemas import load_schema  # late: only for typed answers

            return cls._of(row, None if schema is None else load_schema(schema))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(f"not an answer: {' '.join(str(error).split()):.200}") from None

    @classmethod
    def _of(cls, row: ResultRow, schema: Schema | None) -> Answer[Any]:
        method: Any = row.method
        if row.status not in STATUSES:
            raise ValueError(f"'{row.status}' is no status of an answer")
        if any(cell.span is None for each in row.document_rows for cell in each.cells):
            raise ValueError("a cell has no position")
        answer: Answer[Any] = cls(
            question=row.question or "", text=row.answer, plan=row.plan, document=row.document,
            model=row.model, outputs=tuple(part.output for part in row.parts), method=method,
            steps=tuple(step.restored() for step in row.steps),
            evidence=tuple(each.restored() for each in row.passages),
            row_evidence=tuple(row.document_rows),
            unverified=tuple(each.restored() for each in row.unverified_quotes),
            usage=row.usage.restored(), duration_s=row.duration_s, trace=Trace(),
            parts=tuple(map(AnswerPart.of, row.parts)),
            provenance=row.provenance.to_dict(), parameters=row.parameters, schema=schema,
            record=None if row.record is None else Record(restored_fields(row.record)),
        )  # fmt: skip
        # These are computed from the values of steps, which a row contains only as displayed text.
        kept: dict[str, Any] = {
            "markdown": row.markdown, "notes": tuple(row.notes), "coverage": row.coverage,
            "_judged": (row.status, row.why),
        }  # fmt: skip
        if schema is None:
            is_typed = row.value is not UNSET
            value = row.value if is_typed else None
            data = value if row.partial is None else row.partial
            built = Reading(value, data, tuple(row.undecided or ()), tuple(row.reasons), plain=value)  # fmt: skip
            kept |= {"_built": built, "typed": built.to_dict() if is_typed else {}}
        vars(answer).update(kept)
        return answer

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON data: one row of a results file."""
        return self.row.to_dict()

    @property
    def row(self) -> ResultRow:
        """The answer as a row of results."""
        return ResultRow(
            status=self.status, question=self.question, parameters=dict(self.parameters),
            document=self.document, answer=self.text, markdown=self.markdown,
            parts=[part.row for part in self.parts],
            record=None if self.record is None else fields_data(self.record.fields),
            why=self.why, **self.typed, method=self.method, model=self.model, plan=self.plan,
            evidence=[*map(Passage.of, self.evidence), *self.row_evidence],
            unverified_quotes=[*map(QuoteData.of, self.unverified)],
            notes=[*self.notes], provenance=convert(self.provenance, ProvenanceData),
            steps=[*map(StepData.of, self.steps)], coverage=self.coverage,
            usage=UsageData(**self.usage.to_dict()), duration_s=round(self.duration_s, 3),
        )  # fmt: skip


def _rows(path: str, fields: Mapping[str, FieldResult]) -> list[dict[str, Cell]]:
    """The fields of an object as rows: one for each entry of its lists, or a single one without lists."""
    cells: dict[str, Cell] = {}
    rows: list[dict[str, Cell]] = []
    for name, each in fields.items():
        name = path[:-1] if path and fields.keys() == {PLAIN} else f"{path}{name}"
        if each.entries:
            rows += (row for entry in each.entries for row in _rows(f"{name}.", entry))
            continue
        where = (full_place(e.source, e.source_span, e.page) for e in each.evidence)
        cells |= {name: each.value, f"{name}_state": each.state, f"{name}_source": "; ".join(where)}
    return [cells | row for row in rows] or [cells]


def _describe_step(step: StepResult, why: str) -> str:
    return f"step '{step.output}' ({step.action}): {why}"


def compose(
    graph: PlanGraph,
    results: Sequence[StepResult],
    document: Document,
    *,
    method: Literal["plan", "direct"],
    model: str,
    usage: Usage,
    duration_s: float,
    trace: Trace,
) -> Answer:
    """Compose the answer and verify every quote of every model step."""
    by_output = {result.output: result for result in results}
    names = graph.parts
    sources = {each.output: each.sources for each in results if each.sources is not None}
    took = {each.output: each.took for each in results}
    provenance = provenance_of(graph, sources, took, document)
    used = {*provenance[""]["steps"]}
    unsure = [result.output for result in results if result.is_void and result.output in used]
    if unsure and not any(by_output[name].state in ("undecided", "refused") for name in names):
        names = (unsure[0], *names)  # A later step used the undecided value
    evidence, unverified = step_evidence(graph, results, document)
    fetched = [(each.output, each.fetched) for each in results if each.fetched is not None]
    if fetched:
        evidence = tuple(
            replace(each, ranks=_ranks_at(fetched, each.span.start)) for each in evidence
        )
    known = {part.output: part for result in results for part in result.parts}
    if known.keys() >= {*names}:
        parts = tuple(known[name] for name in names)
    else:
        parts = answer_parts(graph, by_output, names, evidence, document)
    numbers = {(each.span, each.omitted): number for number, each in enumerate(evidence, start=1)}
    composed = tuple(
        (text, tuple(numbers[each.span, each.omitted] for each in cites))
        for result in results
        for text, cites in result.composed
    )
    if composed and graph.composer is not None:
        given = {reference.name for reference in graph.composer.references()}
        others = [part for part in parts if part.output not in given]
        composed += tuple((f"\n\n{part.line}", part.evidence) for part in others)
    results = [
        replace(each, provenance=provenance.get(each.output), is_used=each.output in used)
        for each in results
    ]
    outputs = [(name, rows) for name in graph.parts if (rows := by_output[name].rows) is not None]
    return Answer(
        question=graph.checked.question,
        text="".join(text for text, _ in composed) or labelled_text(parts),
        plan=graph.text,
        outputs=graph.parts,
        method=method,
        document=document.name,
        steps=tuple(results),
        evidence=evidence,
        unverified=unverified,
        model=model,
        usage=usage,
        duration_s=duration_s,
        trace=trace,
        parts=parts,
        composed=composed,
        record=_united_record(results),
        provenance=provenance[""],
        row_evidence=_row_evidence(
            outputs,
            document,
            fetched,
            [each.cited for each in results if each.cited is not None],
            [each.decided_by for each in results if each.decided_by],
            [each.deciding for each in results if each.deciding],
        ),
        document_notes=document.notes,
        parameters=graph.checked.given,
    )


def _united_record(results: Sequence[StepResult]) -> Record | None:
    """The fields of all extracting steps; if two steps have a field of one name, the later one is called `STEP.NAME`."""
    fields: dict[str, FieldResult] = {}
    records = [(r.output, r.record) for r in results if r.record is not None and not r.took]
    for output, record in records:
        for name, result in record.fields.items():
            unused = f"{output}.{name}" if name in fields else name
            fields[unused] = replace(result, step=output)
    return Record(fields) if records else None


def step_evidence(
    graph: PlanGraph, results: Sequence[StepResult], document: Document
) -> tuple[tuple[Evidence, ...], tuple[Unverified, ...]]:
    """The passages that steps quote or take values from, and the quotes that could not be verified."""
    by_output = {result.output: result for result in results}
    replies: list[StepReply] = []
    composed: list[StepReply] = []
    for step in graph.steps:
        result = by_output.get(step.output)
        if result is None or result.is_native:
            continue  # Quotes in native steps come from their input steps
        # The inputs besides the document: texts in the plan, and earlier outputs
        items = [item for argument in step.arguments for item in items_of(argument)]
        texts = [item.value for item in items if isinstance(item, String)]
        inputs = (by_output[each.name] for each in step.references() if not each.is_context)
        given = (*texts, *(each.reply or each.text for each in inputs))
        reply = StepReply(step.output, result.reply, given, graph.read_by[step.output])
        (composed if step is graph.composer else replies).append(reply)
    evidence, unverified = collect(replies, document)
    passages = {(each.span, each.omitted): each for each in evidence}
    for result in results:
        unverified = (*unverified, *result.misquoted)
        for passage in result.deciding.values():
            add_passage(passages, passage)
        for value in result.record.fields.values() if result.record is not None else ():
            for passage in value.passages:
                add_passage(passages, passage)
    if composed:
        # Passages of the composer come last: the parts already refer to the other passages by
        # number.
        evidence, more = collect(composed, document)
        unverified = (*unverified, *more)
        for passage in evidence:
            add_passage(passages, passage)
    return tuple(passages.values()), unverified


def _ranks_at(fetched: Iterable[tuple[str, Fetched]], start: int) -> tuple[tuple[str, int], ...]:
    """The ranks, by step, of the retrieved passages that contain a position of the document."""
    found: dict[str, int] = {}
    for output, each in fetched:
        for hit in each.hits:
            if hit.span.start <= start < hit.span.end:
                found.setdefault(output, hit.rank)
    return tuple(found.items())


def _row_evidence(
    outputs: Sequence[tuple[str, Rows]],
    document: Document,
    fetched: Sequence[tuple[str, Fetched]],
    cited: Sequence[Cited],
    decided_by: Sequence[Mapping[object, str]],
    deciding: Sequence[Mapping[object, Evidence]],
) -> tuple[DocumentRow, ...]:
    """The rows that outputs are computed from, in the order of the document, without repeats."""
    found: dict[object, Row] = {}
    steps: dict[object, list[str]] = {}
    is_decided: dict[object, bool] = {}
    for output, rows in outputs:
        decided: dict[object, bool] = {}
        for row, is_sure in leaves(rows):
            found.setdefault(row.key, row)
            # A row that is decided in one group counts as decided even if it is undecided in
            # others.
            decided[row.key] = decided.get(row.key, False) or is_sure
        for key, is_sure in decided.items():
            steps.setdefault(key, []).append(output)
            is_decided[key] = is_decided.get(key, True) and is_sure
    return tuple(
        _row_of(
            row, document, fetched, cited,
            steps=steps[key], state="found" if is_decided[key] else "undecided",
            decided_by=[*dict.fromkeys(each[key] for each in decided_by if key in each)],
            quote="\n".join(dict.fromkeys(each[key].marked for each in deciding if key in each)),
        )
        for key, row in sorted(found.items(), key=lambda item: item[1].spans[:1])
    )  # fmt: skip


def _row_of(
    row: Row, document: Document, fetched: Sequence[tuple[str, Fetched]], cited: Sequence[Cited], **known: Any
) -> DocumentRow:  # fmt: skip
    """The evidence of a row: its position in the document, its ranks and the cells that steps cite."""
    evidence = DocumentRow(text=row.text, value=row.value, fields={**row.fields}, **known)
    if not row.spans:
        return evidence
    start, end = row.spans[0].start, row.spans[-1].end
    source, at = document.locate(start)
    moved = at - start  # From the joined documents to the source
    those = [each for each in cited if start in each.numbers]
    cells = []
    for name in dict.fromkeys(name for each in those for name in each.columns):
        if text := row.fields.get(name):
            span = cell_span(row, name) or row.spans[0]
            place = Place.at(span.moved(moved))
            cells.append(
                CitedCell(column=name, text=text, page=document.page_at(span.start), **place)
            )
    return replace(
        evidence, source=source, **Place.at(Span(at, end + moved)), ranks=dict(_ranks_at(fetched, start)),
        row=those[0].numbers[start] if those else None, cells=cells, page=document.page_at(start),
        ocr=document.ocr_at(Span(start, end)),
    )  # fmt: skip
