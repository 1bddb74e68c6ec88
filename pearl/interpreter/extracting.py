"""A step that extracts → requests for the values of fields, and a record of those that the document bears out.

A value counts if its quotes stand in the document and agree with it (`evidence.agreeing`). Otherwise the
field is undecided, as it is where the text says different things.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Literal

from pearl.actions.by_row import each_of
from pearl.actions.values import Value
from pearl.documents.document import Document
from pearl.documents.english import UNITS
from pearl.documents.evidence import Evidence, Quote, Unverified, Verifier
from pearl.documents.evidence.agreeing import DisagreementError, agreed, label_of, same_value
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.finding import n_words
from pearl.documents.numbers import quoted
from pearl.documents.record import Basis, Candidate, FieldResult, FieldScalar, Record, told_entry
from pearl.documents.rows import Row, Rows
from pearl.dsl.fields import Field, print_fields
from pearl.dsl.nodes import Step
from pearl.errors import ModelError, Span
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.asking import CUT_SHORT, Asker
from pearl.interpreter.context import Context, ContextOverflowError, off_loop
from pearl.interpreter.provenance import Sources
from pearl.interpreter.results import StepResult, computed
from pearl.interpreter.row_steps import RowRequests
from pearl.llm import ActionTask, Request, Usage
from pearl.llm.concurrency import gather
from pearl.replies.extracted import (
    ROWS,
    Claim,
    Claims,
    Extracted,
    extraction_constraint,
    read_extracted,
    wanted_fields,
)
from pearl.replies.not_stated import says_not_stated

MAX_AROUND = 120
"""Characters around a passage in which a negation, and the ends of its lines, are looked for."""

MAX_NAMED = 6
"""Maximum undecided fields that a reason names."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the replies about a text say, part by part, and how they were got."""

    context: Context
    parts: tuple[tuple[str, Extracted], ...]
    n_calls: int
    usage: Usage

    @property
    def truncated(self) -> str:
        """Why a part of the text is not read to its end."""
        whys = [read.why for _, read in self.parts]
        n = next((i for i, why in enumerate(whys, start=1) if why), 0)
        where = f" about part {n} of {len(whys)}" if len(whys) > 1 else ""
        return f"the reply{where} cannot be used: {whys[n - 1]}" if n else ""


async def extract(
    step: Step, earlier: Mapping[str, Value], rows: RowRequests, asker: Asker, row_asker: Asker
) -> StepResult:
    """Extract the fields of a step from the document, or from each row, which `row_asker` reads."""
    calls = asker.calls
    action = calls.graph.checked.action(step)
    if each_of(action, calls.graph.checked.actions) is not None:
        return await _each_row(step, earlier, rows, row_asker)
    task, shown = calls.task(step, earlier)
    fields = wanted_fields(dict(task.arguments)["FIELDS"], is_all=action.extracts_all)
    read = await _read(step, task, fields, asker)
    record, read = await _decided(step, task, fields, read, asker)
    result = (
        _of_rows(step, record, fields, asker) if action.extracts_all else _of_record(step, record)
    )
    return replace(
        result, action=action.name, is_native=False, n_calls=read.n_calls, usage=read.usage,
        shown=shown, context=read.context.strategy,
        coverage=read.context.coverage if shown is None else None,
        # Quotes are also looked up in text that is not shown.
        sources=Sources(tuple(e.span for f in record.fields.values() for e in f.passages))
        if shown is not None else None,
        truncated=read.truncated if len(read.parts) > 1 or action.extracts_all else "",
    )  # fmt: skip


async def _read(step: Step, task: ActionTask, fields: tuple[Field, ...], asker: Asker) -> _Read:
    """Ask for the fields of a text, in parts if it is long."""
    context, pieces = await asker.calls.pieces(task, task.document or "")
    purpose: Literal["step", "part"] = "step" if len(pieces) == 1 else "part"
    replies = await gather([_ask(step, purpose, piece, fields, asker) for piece in pieces])
    return _Read(
        context,
        tuple(
            (piece.document or "", read)
            for piece, (read, _, _) in zip(pieces, replies, strict=True)
        ),
        sum(n for _, n, _ in replies),
        sum((usage for _, _, usage in replies), Usage()),
    )


async def _ask(
    step: Step,
    purpose: Literal["step", "part"],
    task: ActionTask,
    fields: tuple[Field, ...],
    asker: Asker,
) -> tuple[Extracted, int, Usage]:
    """The claims of the reply about a text; the request is repeated once if it cannot be read to its end."""
    request = asker.calls.request(task)
    text, is_cut, usage = await _reply(step, purpose, request, fields, asker)
    read = read_extracted(text, fields)
    if not read.why:
        return read, 1, usage
    calls = asker.calls
    again = calls.roomier(request) if is_cut else calls.again(request, text, read.why, None)
    if again is None:
        return read, 1, usage
    text, _, more = await _reply(step, "again", again, fields, asker)
    second = read_extracted(text, fields)
    if second.why:  # what one of the two replies says to its end
        second = replace(second, fields={
            name: claims if not claims.why else read.fields[name]
            for name, claims in second.fields.items()
        })  # fmt: skip
    return second, 2, usage + more


async def _reply(
    step: Step,
    purpose: Literal["step", "part", "again"],
    request: Request,
    fields: tuple[Field, ...],
    asker: Asker,
) -> tuple[str, bool, Usage]:
    """The text of a reply, and whether it is cut off."""
    constraint = extraction_constraint(fields, asker.fallback.max_text)

    def flaw(text: str) -> str | None:
        return read_extracted(text, fields).why or None

    try:
        completion = await asker.ask(step, purpose, request, constraint, flaw)
    except ModelError as error:
        if error.kind not in CUT_SHORT or asker.calls.limits.is_strict:
            raise
        return error.reply, True, error.usage or Usage()
    return completion.text, False, completion.usage


# ---------------------------------------------------------------------------------------------
# Claims → results


async def _decided(
    step: Step, task: ActionTask, fields: tuple[Field, ...], read: _Read, asker: Asker, at: int = 0
) -> tuple[Record, _Read]:
    """The record of a text; the escalation model is asked for its undecided fields, and only for these."""
    n_characters = len(task.document or "")
    record = await off_loop(n_characters, partial(_checked, step.output, fields, read, asker, at))
    left = tuple(field for field in fields if record.fields[field.name].state == "undecided")
    other = asker.escalation
    # A token budget holds for all prompts of a step together.
    if other is None or not left or asker.calls.limits.max_prompt_tokens is not None:
        return record, read
    if not task.action.extracts_all:
        said = {**dict(task.arguments), "FIELDS": print_fields(left)}
        task = replace(task, arguments=tuple(said.items()))
    try:
        more = await _read(step, task, left, other)
    except ContextOverflowError:  # of a smaller window
        return record, read
    except ModelError as error:
        if error.kind not in ("refused", "filtered"):
            raise
        return record, read
    new = await off_loop(n_characters, partial(_checked, step.output, left, more, other, at))
    decided = {name: f for name, f in new.fields.items() if f.state != "undecided"}
    is_whole = len(decided) == len(left)
    read = replace(
        read, parts=more.parts if is_whole else read.parts, n_calls=read.n_calls + more.n_calls,
        usage=read.usage + more.usage,
    )  # fmt: skip
    return Record({**record.fields, **decided}), read


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the document that was read, and where quotes of it are looked up."""

    verifier: Verifier
    start: int
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class _Value:
    """A claim that was checked: a value with its passages, nothing, or a reason against it."""

    value: FieldScalar = None
    basis: Basis = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""


def _checked(
    output: str, fields: Sequence[Field], read: _Read, asker: Asker, at: int = 0
) -> Record:
    """The record of a text: what all replies about its parts say, and their quotes bear out."""
    document = asker.calls.document
    checker = _Checker(output, document, asker.calls.verifier)
    parts: list[_Part | None] = []
    for text, _ in read.parts:
        if text == document.text or (start := document.text.find(text, at)) < 0:
            parts.append(None)
            continue
        parts.append(_Part(Verifier(text), start, "\n" not in text.strip()))
        at = start + len(text)
    return Record({
        field.name: checker.result(
            field,
            [(part, claims.fields[field.name]) for part, (_, claims) in zip(parts, read.parts, strict=True)],
        )
        for field in fields
    })  # fmt: skip


class _Checker:
    """Checks the claims of replies about one document."""

    def __init__(self, output: str, document: Document, verifier: Verifier) -> None:
        self._output = output
        self._document = document
        self._whole = _Part(verifier, 0, "\n" not in document.text.strip())

    def result(self, field: Field, said: Sequence[tuple[_Part | None, Claims]]) -> FieldResult:
        """What all parts say of a field."""
        if field.is_list:
            return self._list(field, said)
        values = [self._value(field, claim, part) for part, c in said for claim in c.values]
        unread = next((claims.why for _, claims in said if claims.why and not claims.values), "")
        values += [_Value(why=claims.why) for _, claims in said if claims.why and claims.values]
        return _united(field, values, unread)

    def _list(self, field: Field, said: Sequence[tuple[_Part | None, Claims]]) -> FieldResult:
        """The entries of all parts, in the order of the document."""
        entries: list[tuple[int, Mapping[str, FieldResult]]] = []
        at = 0
        for part, claims in said:
            for entry in claims.entries:
                results = self._entry(field.inner, entry, part)
                found = (f for f in results.values() if f.state == "found")
                places = [e.span.start for f in found for e in f.evidence]
                at = min(places, default=at)
                if any(f.state != "not_stated" for f in results.values()):
                    entries.append((at, results))
        entries.sort(key=lambda entry: entry[0])
        entries = self._own(field, entries)
        different: dict[int, list[Mapping[str, FieldResult]]] = {}
        for at, each in entries:
            if each not in (here := different.setdefault(at, [])):
                here.append(each)
        kept = tuple(each for here in different.values() for each in here)
        why = next((claims.why for _, claims in said if claims.why), "")
        state: Literal["found", "not_stated", "undecided"] = "found" if kept else "not_stated"
        return FieldResult("undecided" if why else state, why=why, entries=kept)

    def _own(
        self, field: Field, entries: Sequence[tuple[int, Mapping[str, FieldResult]]]
    ) -> list[tuple[int, Mapping[str, FieldResult]]]:
        """The entries; undecided is what stands on a line with the first field of others only."""
        first = field.inner[0].name
        starts = sorted(
            (each.span.start, i)
            for i, (_, entry) in enumerate(entries)
            if entry[first].state == "found"
            for each in entry[first].evidence
        )

        def is_of_others(result: FieldResult, i: int) -> bool:
            lines = [self._line(each.span) for each in result.evidence]
            among = [
                starts[bisect_left(starts, (a, 0)) : bisect_left(starts, (b, 0))] for a, b in lines
            ]
            return any(here and i not in {n for _, n in here} for here in among)

        why = f"its quote stands beside the {first} of another entry"
        return [
            (at, {
                name: replace(f, state="undecided", value=None, basis="", why=why)
                if name != first and f.state == "found" and is_of_others(f, i) else f
                for name, f in entry.items()
            })
            for i, (at, entry) in enumerate(entries)
        ]  # fmt: skip

    def _line(self, span: Span) -> tuple[int, int]:
        """The line of a passage, as far as it is looked at."""
        text = self._document.text
        start = max(0, span.start - MAX_AROUND)
        end = text.find("\n", span.end, span.end + MAX_AROUND)
        begin = text.rfind("\n", start, span.start) + 1
        return begin or start, end if end >= 0 else span.end + MAX_AROUND

    def _entry(
        self, fields: Sequence[Field], said: Mapping[str, Claims], part: _Part | None
    ) -> dict[str, FieldResult]:
        """The fields of an entry; a short quote is looked for where the long ones stand."""
        near: list[Span] = []
        results: dict[str, FieldResult] = {}

        def length(field: Field) -> int:
            return -max((len(q) for c in said[field.name].values for q in c.quotes), default=0)

        for field in sorted(fields, key=length):
            claims = said[field.name]
            values = [self._value(field, claim, part, near) for claim in claims.values]
            if claims.why and claims.values:
                values.append(_Value(why=claims.why))
            results[field.name] = _united(field, values, claims.why)
            near += [each.span for each in results[field.name].evidence]
        return {field.name: results[field.name] for field in fields}

    def _value(
        self, field: Field, claim: Claim, part: _Part | None, near: Sequence[Span] = ()
    ) -> _Value:
        if claim.value is None:
            return _Value()
        if not claim.quotes:
            label = label_of(field, claim.value) if isinstance(claim.value, str) else None
            is_null = says_not_stated((label or "").replace("_", " "))
            if label is not None and is_null and label.casefold() != "none":
                return _Value(label)
            return _Value(why=f"the reply gives {_told(claim.value)} without a quote")
        places: list[Quote] = []
        for text in claim.quotes:
            quote = self._place(text, field, part, near)
            if not quote.is_verified:
                doubt = Unverified(self._output, text, quote.result)  # type: ignore[arg-type]
                verb = "" if quote.result == "negation" else "is "
                why = f"its quote {verb}{doubt.why}: {quoted(text)}"
                return _Value(why=f"the reply gives {_told(claim.value)}, but {why}")
            places.append(quote)
        evidence = tuple(passage_at(quote, self._output, self._document) for quote in places)
        try:
            value, basis = self._agreed(field, claim, places)
        except DisagreementError as error:
            return _Value(
                why=f"the reply gives {_told(claim.value)}, but {error}", evidence=evidence
            )
        return _Value(value, basis, evidence)

    def _agreed(
        self, field: Field, claim: Claim, places: Sequence[Quote]
    ) -> tuple[FieldScalar, Basis]:
        """The value, if every passage bears it out; a summary, if all of them together do."""
        assert claim.value is not None
        text = self._document.text
        pieces = [[text[span.start : span.end] for span in quote.spans] for quote in places]
        if field.type == "text":
            return agreed(field, claim.value, [piece for each in pieces for piece in each])
        results = []
        for quote, each in zip(places, pieces, strict=True):
            start = quote.spans[0].start
            before = text[max(start - MAX_AROUND, 0) : start]
            end = quote.spans[-1].end
            results.append(agreed(field, claim.value, each, before, text[end : end + MAX_AROUND]))
        return results[0]

    def _place(self, text: str, field: Field, part: _Part | None, near: Sequence[Span]) -> Quote:
        """The place of a quote: in the part that was read, else in the whole document."""
        quote = Quote(text, (), "missing")
        for where in (part, self._whole):
            if where is None:
                continue
            found = where.verifier.verify(text)
            if found.result == "short" and (span := self._repeated(text, field, where, near)):
                return Quote(text, (span,), "normalised")
            if found.is_verified and where.start:
                spans = [Span(s.start + where.start, s.end + where.start) for s in found.spans]
                return replace(found, spans=tuple(spans))
            if found.is_verified:
                return found
            quote = found if quote.result == "missing" else quote
        return quote

    def _repeated(
        self, quote: str, field: Field, where: _Part, near: Sequence[Span]
    ) -> Span | None:
        """A short quote: on the lines of the other passages of its entry, or where it stands first if that is clear enough."""
        text = self._document.text
        for span in near:
            start, end = self._line(span)
            if place := next(Verifier(text[start:end]).places(quote), None):
                return Span(start + place.start, start + place.end)
        if not (where.is_line or _is_telling(field, quote)):
            return None
        place = next(where.verifier.places(quote), None)
        return place and Span(where.start + place.start, where.start + place.end)


_WORD = lazy_pattern(r"[^\W\d_]{3,}")


def _is_telling(field: Field, quote: str) -> bool:
    """Whether a quote that stands several times names what its value is about: `Age: 54`, not `54`."""
    words = [word for word in _WORD.findall(quote) if word.lower() not in UNITS]
    return bool(words) and (field.type in ("str", "text") or n_words(quote) > 1)


def _united(field: Field, values: Sequence[_Value], unread: str) -> FieldResult:
    """One result from everything that is said of a field."""
    stated: list[_Value] = []
    for each in values:
        if not (each.value is not None and each.evidence):
            continue
        i = next((i for i, s in enumerate(stated) if same_value(field, s.value, each.value)), None)
        if i is None:
            stated.append(each)
        else:
            more = tuple(e for e in each.evidence if e not in stated[i].evidence)
            stated[i] = replace(stated[i], evidence=(*stated[i].evidence, *more))
    label = next((v.value for v in values if v.value is not None and not v.evidence), None)
    doubtful = next((each for each in values if each.why), None)
    candidates = tuple(Candidate(each.value, each.evidence) for each in stated)
    if len(stated) > 1:
        told = " and ".join(
            f"{_told(each.value)} ({each.evidence[0].where.partition(';')[0]})"
            for each in stated[:3]
        )
        return FieldResult("undecided", why=f"the document says {told}", candidates=candidates)
    if doubtful is not None:
        evidence = doubtful.evidence
        return FieldResult("undecided", why=doubtful.why, candidates=candidates, evidence=evidence)
    if stated:
        (one,) = stated
        return FieldResult("found", one.value, basis=one.basis, evidence=one.evidence)
    if unread:
        return FieldResult("undecided", why=unread)
    return FieldResult("not_stated", label)  # a label such as `unknown`


def _told(value: FieldScalar | Decimal) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return quoted(value) if isinstance(value, str) else str(value)


# ---------------------------------------------------------------------------------------------
# Results of steps


def _of_record(step: Step, record: Record) -> StepResult:
    text = "\n".join(line for line, _ in record.lines)
    results = record.fields.values()
    n, n_undecided = record.n_values, len(record.undecided)
    state: Literal["found", "nothing", "undecided"] = "found"
    why = ""
    if n_undecided:
        why = undecided_fields(record)
        state = "undecided" if n_undecided >= n else "found"
    elif all(result.state == "not_stated" for result in results):
        state = "nothing"
    return StepResult(step.output, step.action, text, False, state=state, why=why, record=record)


def undecided_fields(record: Record) -> str:
    """Which fields are undecided, for people; "" for none."""
    names = record.undecided
    if not names:
        return ""
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"{len(names)} of {record.n_values} fields {'are' if len(names) > 1 else 'is'} undecided: {shown}{more}"


def _of_rows(step: Step, record: Record, fields: Sequence[Field], asker: Asker) -> StepResult:
    """The entries of a list as rows, each with the places of its quotes."""
    result = record.fields[ROWS]
    document = asker.calls.document
    action = asker.calls.graph.checked.action(step)
    rows = []
    for entry in result.entries:
        spans = sorted({e.span for f in entry.values() for e in f.passages})
        text = "\n".join(document.text[span.start : span.end] for span in spans)
        rows.append(Row(told_entry(entry), _cells(entry), tuple(spans), text))
    names = tuple(field.name for field in fields[0].inner)
    why = f"the rows may be incomplete: {result.why}" if result.why else ""
    return computed(step, action, Rows(tuple(rows), columns=names), why)


def _cells(fields: Mapping[str, FieldResult]) -> dict[str, str | None]:
    """The cells of a row: None for an undecided value, "" for one that is not stated."""
    return {
        name: None if f.state == "undecided" else "" if f.state == "not_stated" else f.told
        for name, f in fields.items()
    }


async def _each_row(
    step: Step, earlier: Mapping[str, Value], requests: RowRequests, asker: Asker
) -> StepResult:
    """The rows with a column for each field, one call for each different text."""
    row_step = requests.step(step, earlier)
    rows = row_step.rows
    texts = row_step.texts(rows)
    fields = wanted_fields(
        dict(row_step.task.arguments)["FIELDS"], is_all=row_step.reading.extracts_all
    )
    shown = row_step.shown(rows)
    starts = {text: row.spans[0].start for text, row in zip(shown, rows, strict=True) if row.spans}

    async def read_one(text: str) -> tuple[Record, _Read]:
        task = requests.alone(row_step, step, text)
        read = await _read(step, task, fields, asker)
        return await _decided(step, task, fields, read, asker, starts.get(text, 0))

    read = dict(zip(texts, await gather(list(map(read_one, texts))), strict=True))
    unread = dict.fromkeys((field.name for field in fields), None)

    def with_cells(row: Row, shown: str | None) -> Row:
        blank = unread if shown is None else dict.fromkeys(unread, "")
        record, _ = read.get(shown or "", (None, None))
        return row.with_fields(blank if record is None else _cells(record.fields))

    answered = tuple(map(with_cells, rows, shown))
    columns = (*rows.columns, *unread)
    result = computed(step, row_step.task.action, replace(rows, rows=answered, columns=columns))
    return replace(
        result, is_native=False, context="rows", coverage=asker.calls.coverage(rows),
        sources=Sources(is_by_row=True),
        n_calls=sum(each.n_calls for _, each in read.values()),
        usage=sum((each.usage for _, each in read.values()), Usage()),
    )  # fmt: skip
