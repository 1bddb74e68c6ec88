"""A step that extracts → requests for fields, and a record of the values whose quotes stand in the document and agree with them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from decimal import Decimal
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Literal

from pearl.actions.by_row import each_of
from pearl.actions.operators import EXTRACT
from pearl.actions.values import Value
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, Quote, Unverified, Verifier
from pearl.documents.evidence.agreeing import (
    DisagreementError,
    Stated,
    agreed,
    label_of,
    n_standing,
    same_value,
)
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.standing import clause_around, is_telling, places_of, swapped_of
from pearl.documents.numbers import (
    quoted,
)
from pearl.documents.record import (
    PLAIN,
    Basis,
    Candidate,
    FieldResult,
    FieldScalar,
    Record,
    told_entry,
)
from pearl.documents.rows import Row, Rows
from pearl.dsl.fields import ENTRY, Field, broken_rule, print_fields
from pearl.dsl.literals import short
from pearl.dsl.nodes import Step
from pearl.errors import ModelError, Span
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter import checking
from pearl.interpreter.asking import CUT_SHORT, Asker
from pearl.interpreter.checking import MAX_AROUND as CONTEXT
from pearl.interpreter.checking import Claim as PassageClaim
from pearl.interpreter.context import Context, ContextLimits, ContextOverflowError, off_loop
from pearl.interpreter.naming import named_rows
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
    is_null,
    read_extracted,
    wanted_fields,
)
from pearl.replies.not_stated import says_not_stated

MAX_AROUND = 120
"""Characters around a passage in which a unit or a longer number, and the ends of its line, are looked for."""

MAX_CAPTION = 4_000
"""Characters before a passage in which a caption that names the scale of its numbers is looked for."""

AGAIN_TOKENS = 2_000
"""Maximum tokens of the fields, with reasons or known entries, of one more request about a text."""

BORDER = 1_000  # Maximum characters between the halves of an entry: a page has some 3,000

MAX_NAMED = 6  # Maximum undecided fields that a reason names


@dataclass(frozen=True, slots=True)
class _Read:
    """What the replies about a text say, part by part, and how they were got."""

    context: Context
    tasks: tuple[ActionTask, ...]
    parts: tuple[tuple[str, Extracted], ...]
    n_calls: int
    usage: Usage
    alone: dict[object, _Value] = dataclass_field(default_factory=dict, compare=False)
    """What values without quotes became, which are looked up once."""

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
    read_by = calls.read_by(step) if calls.document.sources else []
    row_at = read_by[0].start if read_by else None  # a source is looked up in as a row is
    record, read = await _decided(step, task, fields, read, asker, row_at)
    (record,), checked, note = await _with_meaning(step, fields, [record], read.usage, asker)
    is_all = action.extracts_all
    result = _of_rows(step, record, fields, asker) if is_all else _of_record(step, record)
    result = replace(
        result, action=action.name, is_native=False, n_calls=read.n_calls, usage=read.usage,
        shown=shown, context=read.context.strategy,
        coverage=read.context.coverage if shown is None else None,
        # Quotes are also looked up in text that is not shown.
        sources=Sources(tuple(e.span for f in record.fields.values() for e in f.passages))
        if shown is not None else None,
        truncated=read.truncated if len(read.parts) > 1 or action.extracts_all else "",
    )  # fmt: skip
    return checking.with_checks(result, checked, note)


async def _read(step: Step, task: ActionTask, fields: tuple[Field, ...], asker: Asker) -> _Read:
    """Ask for the fields of a text, in parts if it is long."""
    context, pieces = await asker.calls.pieces(task, task.document or "")
    purpose: Literal["step", "part"] = "step" if len(pieces) == 1 else "part"
    replies = await gather([_ask(step, purpose, piece, fields, asker) for piece in pieces])
    texts, usage = (piece.document or "" for piece in pieces), Usage()
    parts = tuple((text, read) for text, (read, _, _) in zip(texts, replies, strict=True))
    usage = sum((usage for _, _, usage in replies), usage)
    return _Read(context, pieces, parts, sum(n for _, n, _ in replies), usage)


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
    is_quoted = isinstance(request.task, ActionTask) and request.task.is_quoted
    constraint = extraction_constraint(fields, asker.fallback.max_text, is_quoted=is_quoted)

    def flaw(text: str) -> str | None:
        return read_extracted(text, fields).why or None

    try:
        completion = await asker.ask(step, purpose, request, constraint, flaw)
    except ModelError as error:
        if error.kind not in CUT_SHORT or asker.calls.limits.is_strict:
            raise
        return error.reply, True, error.usage or Usage()
    return completion.text, False, completion.usage


async def _ask_of(
    step: Step, piece: ActionTask, fields: Sequence[Field], asker: Asker, *, is_quoted: bool = False
) -> tuple[Extracted | None, Usage]:
    """What one more reply about a text says of these fields; None if they do not fit."""
    said = {**dict(piece.arguments), "FIELDS": print_fields(fields)}
    task = replace(piece, action=EXTRACT, arguments=tuple(said.items()), is_quoted=is_quoted)
    if not fields or not asker.calls.fits(task):
        return None, Usage()
    request, wanted = asker.calls.request(task), wanted_fields(said["FIELDS"], is_all=False)
    text, _, usage = await _reply(step, "again", request, wanted, asker)
    return read_extracted(text, wanted), usage


# ---------------------------------------------------------------------------------------------
# Claims → results


async def _decided(
    step: Step,
    task: ActionTask,
    fields: tuple[Field, ...],
    read: _Read,
    asker: Asker,
    row_at: int | None = None,
) -> tuple[Record, _Read]:
    """The record of a text; the escalation model is asked for its undecided fields, and only for these."""
    n_characters = len(task.document or "")
    read = await _mended(step, fields, read, asker, row_at)
    compared = partial(_compared, step.output, fields, read, asker, row_at)
    record = await off_loop(n_characters, compared)
    # A token budget holds for all prompts of a step together.
    has_budget = asker.calls.limits.max_prompt_tokens is not None
    if asker.calls.limits.passes > 1 and not has_budget:
        record, read = await _further(step, fields, record, read, asker, row_at)
    left = tuple(field for field in fields if record.fields[field.name].state == "undecided")
    other = asker.escalation
    if other is None or not left or has_budget:
        return record, read
    if not task.action.extracts_all:
        said = {**dict(task.arguments), "FIELDS": print_fields(left)}
        task = replace(task, arguments=tuple(said.items()))
    try:
        more = await _read(step, task, left, other)
    except (ContextOverflowError, ModelError) as error:  # the former of a smaller window
        if isinstance(error, ModelError) and error.kind not in ("refused", "filtered"):
            raise
        return record, read
    new = await off_loop(n_characters, partial(_compared, step.output, left, more, other, row_at))
    decided = {name: f for name, f in new.fields.items() if f.state != "undecided"}
    is_whole = len(decided) == len(left)
    read = replace(
        read, parts=more.parts if is_whole else read.parts, n_calls=read.n_calls + more.n_calls,
        usage=read.usage + more.usage,
    )  # fmt: skip
    return Record({**record.fields, **decided}), read


async def _mended(
    step: Step, fields: Sequence[Field], read: _Read, asker: Asker, row_at: int | None
) -> _Read:
    """The replies with other values in place of those that break a rule or have no certain place, asked for once."""
    if asker.calls.limits.max_prompt_tokens is not None:
        return read
    count = asker.calls.limits.counter.count

    def broken() -> list[list[Field]]:
        quotes, parts = _quotes_of(step.output, read, asker, row_at)
        wanted = []
        for part, (_, said) in zip(parts, read.parts, strict=True):
            room = AGAIN_TOKENS
            wanted.append([
                each for each in quotes.broken(fields, said.fields, part)
                if (room := room - count(print_fields([each]))) >= 0
            ])  # fmt: skip
        return wanted

    wanted = await off_loop(sum(len(text) for text, _ in read.parts), broken)
    replies = await gather([
        _ask_of(step, piece, again, asker, is_quoted=True)
        for piece, again in zip(read.tasks, wanted, strict=True)
    ])  # fmt: skip
    parts = []
    for (text, said), (new, _) in zip(read.parts, replies, strict=True):
        claims = new.fields if new else {}
        given = {
            name: c for name, c in claims.items() if any(v.value is not None for v in c.values)
        }
        parts.append((text, replace(said, fields=_replaced(fields, said.fields, given))))
    return replace(
        read, parts=tuple(parts), n_calls=read.n_calls + sum(new is not None for new, _ in replies),
        usage=sum((usage for _, usage in replies), read.usage),
    )  # fmt: skip


def _replaced(
    fields: Sequence[Field], said: Mapping[str, Claims], new: Mapping[str, Claims], path: str = ""
) -> Mapping[str, Claims]:
    """Claims with new ones at their paths."""
    if not new:
        return said
    claims = {}
    for field in fields:
        name, old = f"{path}{field.name}", said[field.name]
        entries = tuple(
            _replaced(field.inner, entry, new, f"{name}[{i}].") for i, entry in enumerate(old.entries)
        )  # fmt: skip
        claims[field.name] = replace(new.get(name, old), entries=entries)
    return claims


async def _further(
    step: Step, fields: Sequence[Field], record: Record, read: _Read, asker: Asker, row_at: int | None
) -> tuple[Record, _Read]:  # fmt: skip
    """The record with what further passes over the text find of what is missing, and further entries of lists."""
    first, every = read, read.parts
    for _ in range(asker.calls.limits.passes - 1):
        wanted = list(_missing(fields, record, asker))
        replies = await gather([_ask_of(step, piece, wanted, asker) for piece in first.tasks])
        more = []
        for (text, _), (said, _) in zip(first.parts, replies, strict=True):
            claims = said.fields if said else {}
            more.append((text, Extracted({
                # what this reply does not say to its end, no other one has said wrongly
                f.name: replace(claims.get(f.name, Claims()), why="") for f in fields
            })))  # fmt: skip
        n_asked = sum(said is not None for said, _ in replies)
        usage = sum((usage for _, usage in replies), read.usage)
        read = replace(read, n_calls=read.n_calls + n_asked, usage=usage)
        if not n_asked:
            break
        every += tuple(more)
        names = {field.name for field in wanted}
        scalars = [f for f in fields if f.name in names and not f.is_list]
        lists = [f for f in fields if f.name in names and f.is_list]

        def found(
            scalars: Sequence[Field] = scalars, lists: Sequence[Field] = lists,
            parts: _Parts = tuple(more), every: _Parts = every, record: Record = record,
        ) -> dict[str, FieldResult]:  # fmt: skip
            alone = _compared(step.output, scalars, replace(first, parts=parts), asker, row_at)
            joined = _compared(step.output, lists, replace(first, parts=every), asker, row_at)
            new = {name: f for name, f in alone.fields.items() if f.state == "found"}
            for name, result in joined.fields.items():
                known = record.fields[name].entries
                kept = (e for e in result.entries if any(map(_has_place, e.values())) or e in known)
                if entries := tuple(kept):
                    new[name] = replace(result, entries=entries)
            return new

        new = await off_loop(sum(len(text) for text, _ in every), found)
        if all(record.fields[name] == result for name, result in new.items()):
            break
        record = Record({**record.fields, **new})
    return record, read


_Parts = tuple[tuple[str, Extracted], ...]


def _missing(fields: Sequence[Field], record: Record, asker: Asker) -> Iterator[Field]:
    """The fields without a value that no passage speaks against, and lists with the entries that are known."""
    count, room = asker.calls.limits.counter.count, AGAIN_TOKENS
    for field in fields:
        result = record.fields[field.name]
        known = [short(told_entry(entry, result.is_plain)) for entry in result.entries]
        shown: list[str] = []
        for text in known:
            room -= count(text) + 1
            if room < 0:
                break
            shown.append(text)
        if field.is_list:
            told = f"known already: {'; '.join(shown)}; give only further entries" if shown else ""
            about = "; ".join(filter(None, (field.description, told)))
            yield replace(field, description=about)
        elif result.state != "found" and not any(c.evidence for c in result.candidates):
            # another request than the first one, whose reply may be stored
            about = "; ".join(filter(None, (field.description, "not found by a first reading")))
            yield replace(field, description=about)


_Place = tuple[Span, ...]

MAX_LOOKED = 60  # Maximum places at which a value without a quote is looked for

SEVERAL = "it is open which of its places is meant, and it has no quote"

MAX_PLACES = 20  # Maximum places of a quote that stands several times


@dataclass(slots=True)
class _Entry:
    """An entry of a list in a reply, where its quotes are looked up, and where they stand."""

    part: Span | None
    claims: Mapping[str, Claims]
    reply: int
    anchors: Sequence[_Place] = ()
    """The place of its rarest quote; all of its places if it is open which one is meant."""
    others: dict[str, Quote] = dataclass_field(default_factory=dict)
    """The places of other quotes that stand several times."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A claim that was compared with its quotes: a value with its passages, or nothing; `why` is the reason against it."""

    value: FieldScalar = None
    basis: Basis = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    is_broken: bool = False
    """Whether the document has the value, which breaks a rule of its field, or may have it, but it is open where."""


def _compared(
    output: str, fields: Sequence[Field], read: _Read, asker: Asker, row_at: int | None = None
) -> Record:
    """The record of a text, as far as its quotes agree; those of a row, at `row_at`, are looked up in it alone."""
    quotes, parts = _quotes_of(output, read, asker, row_at)
    return Record({
        field.name: quotes.result(
            field,
            [(part, claims.fields[field.name]) for part, (_, claims) in zip(parts, read.parts, strict=True)],
        )
        for field in fields
    })  # fmt: skip


def _quotes_of(
    output: str, read: _Read, asker: Asker, row_at: int | None
) -> tuple[_Quotes, list[Span | None]]:
    """What looks up the quotes of replies, and where the texts of the replies stand; several may be about one text."""
    document = asker.calls.document
    parts: list[Span | None] = []
    at = row_at or 0
    for i, (text, _) in enumerate(read.parts):
        at = at if i % len(read.tasks) else row_at or 0
        start = document.text.find(text, at)
        at = start + len(text) if start >= 0 else at
        parts.append(Span(start, at) if start >= 0 and text != document.text else None)
    quotes = _Quotes(output, document, asker.calls.verifier, alone=read.alone)
    first, last = parts[0], parts[-1]
    if row_at is not None and first is not None and last is not None:
        row = Span(first.start, last.end)
        verifier = Verifier(document.text[row.start : row.end])
        quotes = _Quotes(output, document, verifier, row.start, read.alone)
    return quotes, parts


class _Quotes:
    """Compares the claims of replies with their quotes in a document or one of its rows, wherever it is cut into parts."""

    def __init__(
        self, output: str, document: Document, verifier: Verifier, start: int = 0,
        alone: dict[object, _Value] | None = None,
    ) -> None:  # fmt: skip
        self._alone = {} if alone is None else alone
        self._output = output
        self._document = document
        self._verifier = verifier
        self._start = start
        self._found: dict[tuple[str, Span | None], Sequence[Quote]] = {}

    def result(self, field: Field, said: Sequence[tuple[Span | None, Claims]]) -> FieldResult:
        """What all parts say of a field."""
        if field.is_list:
            return self._list(field, said)
        values = [
            self._value(field, claim, None if claim.quotes else part)
            for part, c in said for claim in c.values
        ]  # fmt: skip
        unread = next((claims.why for _, claims in said if claims.why and not claims.values), "")
        values += [_Value(why=claims.why) for _, claims in said if claims.why and claims.values]
        return _united(field, values, unread)

    def broken(
        self, fields: Sequence[Field], said: Mapping[str, Claims], part: Span | None, path: str = "", of: str = ""
    ) -> Iterator[Field]:  # fmt: skip
        """A field for each value of a reply to be asked for again, by its path and with the reason as description."""
        for field in fields:
            claims, name = said[field.name], f"{path}{field.name}"
            for i, entry in enumerate(claims.entries):
                named = (c.value for f in field.inner[:-1] for c in entry[f.name].values)
                first = next((_told(value) for value in named if value is not None), "")
                inner_of = " ".join(filter(None, (first and f"of {first}", of)))
                yield from self.broken(field.inner, entry, part, f"{name}[{i}].", inner_of)
            values = (
                self._value(field, claim, part)
                for claim in claims.values if field.rules or not claim.quotes
            )  # fmt: skip
            if why := next((value.why for value in values if value.is_broken), ""):
                about = "; ".join(filter(None, (short(of), field.description, why)))
                yield replace(field, name=name, is_list=False, is_optional=True, description=about)

    def _list(
        self, field: Field, said: Sequence[tuple[Span | None, Claims]], within: Span | None = None
    ) -> FieldResult:
        """The entries of all parts, in document order, equal ones at places of their own; inner lists up to the next entry."""
        inner = field.inner
        entries, whys, candidates = self._placed(inner, self._joined(inner, said), within)
        self._pair(entries)
        has_lists = any(each.is_list for each in inner)
        regions = self._regions(entries, within) if has_lists else {}
        results: list[tuple[int, int, Mapping[str, FieldResult]]] = []
        open_ones: dict[object, Mapping[str, FieldResult]] = {}  # equal ones at all of their places
        at = 0
        is_plain, has_gaps = not field.fields, False
        for entry in entries:
            said_of = () if has_lists else (entry.part, *entry.claims.values())
            is_alone = has_lists or len(entry.anchors) == 1 or entry.others
            if is_alone or said_of not in open_ones:
                open_ones[said_of] = self._entry(inner, entry, regions.get(id(entry)))
            results_of = open_ones[said_of]
            # one whose passages stand at several places stays behind its neighbour in the reply
            sole = (f.evidence[0].span.start for f in results_of.values() if len(f.evidence) == 1)
            inner_at = (e.span.start for f in results_of.values() if f.entries for e in f.passages)
            at = next(sole, min(inner_at, default=at))
            if any(f.state != "not_stated" for f in results_of.values()) or is_plain:
                results.append((at, entry.reply, results_of))
                has_gaps |= all(f.state == "not_stated" for f in results_of.values())
        if not (has_gaps and len(said) == 1):  # a gap has no place but the one in the reply
            results.sort(key=lambda each: each[0])
        kept = self._once(field, results)
        if field.fields and field.fields[0].name == ENTRY:
            kept = self._without_strays(kept)
        whys += [claims.why for _, claims in said if claims.why]
        needed = [each.name for each in inner if not (each.is_optional or each.is_list)]
        if len(said) > 1 and has_lists and needed:
            is_rest = (all(one[name].state == "not_stated" for name in needed) for one in kept)
            rest = f"an entry has no {needed[0]}: it may be the rest of one in another part"
            whys += [rest] * any(is_rest)
        why = whys[0] if whys else ""
        state: Literal["found", "not_stated", "undecided"] = "found" if kept else "not_stated"
        return FieldResult(
            "undecided" if why else state, why=why, entries=tuple(kept), candidates=candidates,
            has_objects=bool(field.fields) and [f.name for f in field.fields] == [PLAIN],
        )  # fmt: skip

    def _without_strays(
        self, rows: Sequence[Mapping[str, FieldResult]]
    ) -> list[Mapping[str, FieldResult]]:
        """Lists in a list; a value that is quoted from another one of them, far from its own, is undecided."""
        at_line: dict[int, list[tuple[int, Span]]] = {}
        for i, row in enumerate(rows):
            for cell in row[PLAIN].entries:
                for passage in cell[PLAIN].evidence:
                    at_line.setdefault(self._line(passage.span)[0], []).append((i, passage.span))

        def is_stray(i: int, cell: FieldResult) -> bool:
            spans = [passage.span for passage in cell.evidence]
            near = [each for span in spans for each in at_line[self._line(span)[0]]]
            is_alone = sum(j == i for j, _ in near) <= len(spans)
            return is_alone and any(j != i and _overlap(span, s) for j, s in near for span in spans)

        def settled(i: int, cell: Mapping[str, FieldResult]) -> Mapping[str, FieldResult]:
            result = cell[PLAIN]
            if result.entries or not is_stray(i, result):
                return cell
            why = f"the reply gives {_told(result.value)}, but with the quote of another entry"
            candidates = (Candidate(result.value, result.evidence),)
            return {PLAIN: FieldResult("undecided", why=why, candidates=candidates)}

        return [
            {PLAIN: replace(row[PLAIN], entries=tuple(settled(i, c) for c in row[PLAIN].entries))}
            for i, row in enumerate(rows)
        ]

    def _joined(
        self, fields: Sequence[Field], said: Sequence[tuple[Span | None, Claims]]
    ) -> list[_Entry]:
        """The entries of all parts; one that the border of two parts cuts is one entry."""
        entries: list[_Entry] = []
        for reply, (part, claims) in enumerate(said):
            more = [_Entry(part, each, reply) for each in claims.entries]
            last = entries[-1] if entries and more else None
            if last and last.part and part and last.part.end == part.start and len(fields) > 1:
                span = Span(last.part.start, part.end)
                if self._is_cut(fields, last.claims, more[0].claims, span):
                    halves = (last.part, last.claims), (part, more[0].claims)
                    entries[-1] = _Entry(
                        span, {f.name: self._both(f, *halves) for f in fields}, reply
                    )
                    del more[0]
            entries += more
        return entries

    def _both(
        self, field: Field, one: tuple[Span, Mapping[str, Claims]], other: tuple[Span, Mapping[str, Claims]]
    ) -> Claims:  # fmt: skip
        """The claims of the two halves of an entry for a field; of a list, an entry in it may be cut, too."""
        first, second = one[1][field.name], other[1][field.name]
        if first.entries or second.entries:
            every = self._joined(field.inner, [(one[0], first), (other[0], second)])
            return Claims(entries=tuple(e.claims for e in every), why=first.why or second.why)
        return first if any(claim.value is not None for claim in first.values) else second

    def _is_cut(
        self, fields: Sequence[Field], one: Mapping[str, Claims], other: Mapping[str, Claims], span: Span
    ) -> bool:  # fmt: skip
        """Whether the last entry of a part and the first of the next are its halves: no value in both, the second close by or incomplete."""
        halves = [
            {f.name for f in fields if any(c.value is not None for c in half[f.name].values)}
            for half in (one, other)
        ]
        scalars = [f for f in fields if not f.is_list]
        needed = [f for f in scalars if not f.is_optional] or scalars[:1]
        lacks = {f.name for f in needed} & halves[0]
        has_more = halves[1] or any(other[f.name].entries for f in fields)
        if halves[0] & halves[1] or not (lacks and has_more):
            return False
        if not halves[1]:
            return True
        first, second = (
            [q.spans for _, text in _stated(half) for q in self._places(text, span) if q.spans]
            for half in (one, other)
        )
        ends = [s[-1].end for s in first]
        return bool(ends) and any(0 <= s[0].start - end <= BORDER for s in second for end in ends)

    def _regions(self, entries: Sequence[_Entry], within: Span | None) -> dict[int, Span]:
        """The text of each entry, by its identity: from its first passage to that of the next one."""
        starts: list[tuple[int, _Entry]] = []
        for entry in entries:
            places = [self._places(text, entry.part) for _, text in _stated(entry.claims)]
            single = [
                found[0].spans[0].start for found in places if len(found) == 1 and found[0].spans
            ]
            single += [place[0].start for place in entry.anchors if len(entry.anchors) == 1]
            if single:
                starts.append((min(single), entry))
        starts.sort(key=lambda each: each[0])
        end = within.end if within else len(self._document.text)
        regions: dict[int, Span] = {}
        following = end
        for i in range(len(starts) - 1, -1, -1):
            start, entry = starts[i]
            if i + 1 < len(starts) and starts[i + 1][0] > start:
                following = starts[i + 1][0]
            most = entry.part.end if entry.part and start < entry.part.end else end
            regions[id(entry)] = Span(start, max(min(following, most), start + 1))
        return regions

    def _once(
        self, field: Field, results: Sequence[tuple[int, int, Mapping[str, FieldResult]]]
    ) -> list[Mapping[str, FieldResult]]:
        """The entries of some replies, in order; one that several replies have is one entry."""
        kept: list[Mapping[str, FieldResult]] = []
        replies: list[set[int]] = []
        at_line: dict[object, list[int]] = {}
        placeless: set[object] = set()
        is_one = len({reply for _, reply, _ in results}) < 2
        for _, reply, entry in results:
            lines = [] if is_one else list(self._lines_of(entry))
            near = (i for line in lines for i in at_line.get(line, ()) if reply not in replies[i])
            both = ((i, self._merged(field, kept[i], entry)) for i in near)
            if same := next(((i, one) for i, one in both if one is not None), None):
                i, kept[i] = same
                replies[i].add(reply)
            elif (
                any(map(_has_place, entry.values()))
                or _frozen(entry) not in placeless
                or (is_one and not field.fields and entry[PLAIN].state == "not_stated")
            ):
                # without a place, one that is repeated in vain
                placeless.add(_frozen(entry))
                i = len(kept)
                kept.append(entry)
                replies.append({reply})
            else:
                continue
            for line in lines:
                at_line.setdefault(line, []).append(i)
        return kept

    def _lines_of(self, entry: Mapping[str, FieldResult]) -> Iterator[tuple[str, FieldScalar, int]]:
        """The values of an entry, and of its first entries, with the lines of their passages."""
        for name, result in entry.items():
            for inner in result.entries[:MAX_SHOWN]:
                yield from self._lines_of(inner)
            for passage in result.evidence[:MAX_SHOWN]:
                yield name, result.value, self._line(passage.span)[0]

    def _merged(
        self, field: Field, one: Mapping[str, FieldResult], other: Mapping[str, FieldResult]
    ) -> Mapping[str, FieldResult] | None:
        """What two replies say of one entry; None if they are two entries."""
        merged = dict(one)
        is_same = False
        for inner in sorted(field.inner, key=lambda each: each.is_list):
            a, b = one[inner.name], other[inner.name]
            if "not_stated" in (a.state, b.state):
                merged[inner.name] = b if a.state == "not_stated" else a
            elif not inner.is_list and a.state == b.state == "found":
                if not same_value(inner, a.value, b.value):
                    return None
                is_same |= any(_overlap(e.span, o.span) for e in a.evidence for o in b.evidence)
            elif not inner.is_list:
                merged[inner.name] = max(
                    a, b, key=lambda f: (len(f.candidates), f.state == "found")
                )
            elif is_same:
                every = [(0, i, entry) for i, each in enumerate((a, b)) for entry in each.entries]
                merged[inner.name] = replace(a, entries=tuple(self._once(inner, every)))
            elif a.plain != b.plain:  # lists alone do not tell which entry is meant
                return None
            else:
                is_same = True
        return merged if is_same else None

    def _placed(
        self, fields: Sequence[Field], entries: Sequence[_Entry], within: Span | None
    ) -> tuple[list[_Entry], list[str], tuple[Candidate, ...]]:
        """The entries, the k-th of equal ones at their k-th place; why some may be missing or too many, and these."""
        equal: dict[object, list[_Entry]] = {}
        for entry in entries:
            equal.setdefault(_said(entry.claims), []).append(entry)
        whys: list[str] = []
        left_out: set[int] = set()
        candidates: list[Candidate] = []

        def note(group: Sequence[_Entry], places: Sequence[_Place]) -> None:
            n, m = len(group), len(places)
            values = [c.value for c, _ in _stated(group[0].claims)] or [
                c.value for each in group[0].claims.values() for c in each.values
            ]
            told = ", ".join(_told(value) for value in values if value is not None)
            shown = [Quote("", place, "normalised") for place in dict.fromkeys(places)][:MAX_PLACES]
            evidence = tuple(passage_at(q, self._output, self._document) for q in shown)
            times = f"the reply lists {told} ({_times(n)}), the document has it {_times(m)}"
            whys.append(f"{times}: {quoted(evidence[0].text)}")
            candidates.extend([Candidate(told, evidence)] * min(abs(n - m), MAX_PLACES))

        for same in equal.values():
            places = self._places_of(same, within)
            # of several replies about one part, the one that has most of them
            n_said = Counts((entry.part, entry.reply) for entry in same)
            n_most = {part: n for (part, _), n in sorted(n_said.items(), key=lambda each: each[1])}
            told = same[: sum(n_most.values())]
            if len(told) < len(places) and self._is_repeated(told, places):
                note(told, places)
            for reply in {entry.reply for entry in same}:
                group = [entry for entry in same if entry.reply == reply]
                places = self._places_of(group, group[0].part)
                twins: dict[object, list[_Entry]] = {}
                for entry in group:
                    twins.setdefault(_said(entry.claims, is_deep=True), []).append(entry)
                # entries that differ in their lists alone may share a place
                is_open = len(group) < len(places) or (len(group) > len(places) and len(twins) > 1)
                for entry, place in zip(group, places, strict=False):
                    entry.anchors = list(dict.fromkeys(places)) if is_open else [place]
                for alike in twins.values():
                    here = places
                    if not here and len(alike) > 1:
                        here = self._places_alone(fields, alike[0])
                    if here and len(alike) > len(here):
                        note(alike, here)
                        left_out |= set(map(id, alike[len(here) :]))
        kept = [entry for entry in entries if id(entry) not in left_out]
        return kept, whys, tuple(candidates)

    def _places_of(self, equal: Sequence[_Entry], part: Span | None) -> list[_Place]:
        """The places of equal entries: of the rarest quote of each, on lines with all of its quotes, as often as the line has the values."""
        at_line: dict[int, list[_Place]] = {}
        for stated in dict.fromkeys(tuple(_stated(entry.claims)) for entry in equal):
            by_text = {
                text: [q.spans for q in self._places(text, part) if q.spans] for _, text in stated
            }
            by_text = {text: places for text, places in by_text.items() if places}
            if not by_text:
                continue
            rarest = min(by_text, key=lambda text: (len(self._places(text, None)), -len(text)))
            places = by_text[rarest]
            complete = [
                spans for spans in places
                if all(_stands_in(others, *self._line(spans[0])) for others in by_text.values())
            ]  # fmt: skip
            places = complete or places
            passage = self._document.text[places[0][0].start : places[0][-1].end]
            n = min(
                n_standing(c.value, passage)
                for c, text in stated
                if text == rarest and c.value is not None
            )
            for spans in places:
                here = at_line.setdefault(self._line(spans[0])[0], [spans] * max(1, n))
                # a value alone may stand on a line several times
                if len(stated) == 1 and here[-1][-1].end <= spans[0].start:
                    here.append(spans)
        return sorted(spans for places in at_line.values() for spans in places)

    def _places_alone(self, fields: Sequence[Field], entry: _Entry) -> list[_Place]:
        """The places of an entry without quotes: of the rarest value in the passages that bear it out."""
        rarest: list[_Place] = []
        for field in fields:
            for claim in entry.claims[field.name].values:
                result = self._value(field, claim, entry.part)
                if claim.value is None or result.why:
                    continue
                end = 0
                places: list[_Place] = []
                for span in sorted((e.span for e in result.evidence), key=lambda s: s.start):
                    text = self._document.text[max(span.start, end) : span.end]
                    n = n_standing(claim.value, text) or (field.type == "str" and not places)
                    places.extend([(span,)] * n)
                    end = max(end, span.end)
                if places and not 0 < len(rarest) <= len(places):
                    rarest = places
        return rarest

    def _is_repeated(self, group: Sequence[_Entry], places: Sequence[_Place]) -> bool:
        """Whether a text has a record of several fields, or a whole line, more often than a reply."""
        stated = group[0].claims.values()
        n_fields = sum(any(c.quotes for c in claims.values) for claims in stated)
        lines = {self._line(spans[0]) for spans in places}
        text = self._document.text
        n_equal = Counts(_MARK.sub("", text[start:end]).strip() for start, end in lines)
        return len(lines) > len(group) and (n_fields > 1 or max(n_equal.values()) > len(group))

    def _pair(self, entries: Sequence[_Entry]) -> None:
        """Give quotes that as many entries have as there are places to these entries, in order."""
        uses: dict[str, dict[tuple[_Place, ...], list[_Entry]]] = {}
        for entry in entries:
            for claims in entry.claims.values():
                for text in {text for claim in claims.values for text in claim.quotes}:
                    uses.setdefault(text, {}).setdefault(tuple(entry.anchors), []).append(entry)
        for text, by_place in uses.items():
            every = self._places(text, None)
            if len(every) == len(by_place) > 1 and all(len(place) == 1 for place in by_place):
                for place, quote in zip(sorted(by_place), every, strict=True):
                    for entry in by_place[place]:
                        entry.others[text] = quote

    def _line(self, span: Span) -> tuple[int, int]:
        """The line of a passage, as far as it is looked at."""
        text = self._document.text
        start = max(0, span.start - MAX_AROUND)
        end = text.find("\n", span.end, span.end + MAX_AROUND)
        begin = text.rfind("\n", start, span.start) + 1
        return begin or start, end if end >= 0 else span.end + MAX_AROUND

    def _entry(
        self, fields: Sequence[Field], entry: _Entry, region: Span | None
    ) -> dict[str, FieldResult]:
        """Compare the fields of an entry: long quotes first, then short ones near them, lists in its region."""
        near = [tuple(Span(place[0].start, place[-1].end) for place in entry.anchors)]
        results: dict[str, FieldResult] = {}

        def length(field: Field) -> int:
            values = entry.claims[field.name].values
            return -max((len(q) for c in values for q in c.quotes), default=0)

        for field in sorted(fields, key=length):
            claims = entry.claims[field.name]
            if field.is_list:
                within = region or entry.part
                results[field.name] = self._list(field, [(within, claims)], within)
                continue
            values = [
                self._value(field, claim, entry.part, near, entry.others) for claim in claims.values
            ]
            if claims.why and claims.values:
                values.append(_Value(why=claims.why))
            results[field.name] = _united(field, values, claims.why)
            near += [tuple(each.span for each in results[field.name].evidence)]
        return {field.name: results[field.name] for field in fields}

    def _value(
        self, field: Field, claim: Claim, part: Span | None, near: Sequence[_Place] = (),
        given: Mapping[str, Quote] = MappingProxyType({}),
    ) -> _Value:  # fmt: skip
        if claim.value is None:
            return _Value()
        if not claim.quotes:
            if claim.around:
                whole = replace(claim, quotes=claim.around, around=())
                inherited = self._value(field, whole, part, near, given)
                if not inherited.why or inherited.is_broken:
                    return inherited
            key = field, type(claim.value), claim.value, part
            if key not in self._alone:
                self._alone[key] = self._without_quote(field, claim, part)
            return self._alone[key]
        ways: list[Sequence[Quote]] = []
        for text in claim.quotes:
            quotes = self._places(text, part)
            if not quotes[0].spans:
                doubt = Unverified(self._output, text, quotes[0].result)  # type: ignore[arg-type]
                why = f", but its quote is {doubt.why}: {quoted(text)}"
                return _doubtful(field, claim.value, why)
            ways.append(self._chosen(quotes, near, given.get(text))[:MAX_PLACES])
        evidence = tuple(passage_at(q, self._output, self._document) for way in ways for q in way)
        try:
            value, basis = self._agreed(field, claim, ways)
        except DisagreementError as error:
            return _doubtful(field, claim.value, f", but {error}", evidence)
        return _with_rules(field, _Value(value, basis, evidence))

    def _without_quote(self, field: Field, claim: Claim, part: Span | None) -> _Value:
        """A value with its place; of a text, with a few of them."""
        assert claim.value is not None
        if field.type == "str" and is_null(
            claim.value
        ):  # a word for "not stated", unless the text has it as a value
            part_text = self._document.text[part.start : part.end] if part else self._document.text
            if not n_standing(claim.value, part_text):
                return _Value()
            return replace(_doubtful(field, claim.value, " without a quote"), is_broken=True)
        label = label_of(field, claim.value) if isinstance(claim.value, str) else None
        is_unknown = says_not_stated((label or "").replace("_", " "))
        if label is not None and is_unknown and label.casefold() != "none":
            return _Value(label)
        doubt = replace(_doubtful(field, claim.value, " without a quote"), is_broken=True)
        if not is_telling(field, claim.value):
            return doubt

        def because(why: str) -> _Value:
            return replace(_doubtful(field, claim.value or "", f", but {why}"), is_broken=True)

        text = self._document.text
        within = part or Span(self._start, self._start + self._verifier.length)
        found = places_of(field, claim.value, text, within)
        if len(found) > MAX_LOOKED:
            return because(SEVERAL)
        refusals = ["it stands nowhere in the text as such"]
        if not found and (shown := swapped_of(str(claim.value), text, within)):
            refusals = [f"the day and the month of {quoted(shown)} may be swapped"]
        stated: list[tuple[Quote, FieldScalar, Basis]] = []
        for around in (clause_around(text, span) for span in found):
            quote = Quote(text[around.start : around.end], (around,), "exact")
            try:
                stated.append((quote, *self._agreed(field, claim, [[quote]])))
            except DisagreementError as error:
                refusals.append(str(error).replace("the quote", "the text"))
        if field.type == "str":
            stated = list(dict.fromkeys(stated))
        # The checker is shown all places of a text; equal numbers and dates may be of different things.
        if not stated:
            return because(refusals[-1])
        if len(stated) > (MAX_SHOWN if field.type == "str" else 1):
            return because(SEVERAL)
        evidence = tuple(passage_at(quote, self._output, self._document) for quote, _, _ in stated)
        return _with_rules(field, _Value(*stated[0][1:], evidence))

    def _agreed(
        self, field: Field, claim: Claim, ways: Sequence[Sequence[Quote]]
    ) -> tuple[FieldScalar, Basis]:
        """The value, if every passage agrees with it; a summary, if all of them together do."""
        assert claim.value is not None
        text = self._document.text
        if field.type == "text":
            spans = [span for way in ways for span in way[0].spans]
            return agreed(field, claim.value, [text[span.start : span.end] for span in spans])
        results = []
        for quote in (quote for way in ways for quote in way):
            start, end = quote.spans[0].start, quote.spans[-1].end
            pieces = [text[span.start : span.end] for span in quote.spans]
            before = text[max(start - MAX_CAPTION, 0) : start]
            results.append(agreed(field, claim.value, pieces, before, text[end : end + MAX_AROUND]))
        return results[0]

    def _places(self, text: str, part: Span | None) -> Sequence[Quote]:
        """The places of a quote in a part, else in all of the text; a quote without spans for none."""
        if (found := self._found.get((text, part))) is not None:
            return found
        if part is not None:
            every = self._places(text, None)
            first = bisect_left(every, part.start, key=_last_start)
            last = bisect_left(every, part.end, lo=first, key=_last_start)
            found = every[first:last] or every
        else:
            found = []
            for quote in self._verifier.every(text):
                moved = [Span(s.start + self._start, s.end + self._start) for s in quote.spans]
                inked = (
                    # The blanks before a list mark count as a part of the quote.
                    Span(s.end - len(self._document.text[s.start : s.end].lstrip()), s.end)
                    for s in moved
                )
                found.append(replace(quote, spans=tuple(inked)))
        self._found[text, part] = found
        return found

    def _chosen(
        self, quotes: Sequence[Quote], near: Sequence[_Place], given: Quote | None
    ) -> Sequence[Quote]:
        """The places of a quote: beside other passages of its entry, else all of them."""
        if len(quotes) == 1:
            return quotes
        for spans in near:
            beside = [self._beside(quotes, span) for span in spans]
            if beside and all(beside):
                return list(dict.fromkeys(quote for each in beside for quote in each))
        return quotes if given is None else [given]

    def _beside(self, quotes: Sequence[Quote], span: Span) -> Sequence[Quote]:
        """The first of some places of a quote that stands within a passage, else on its lines."""
        for start, end in ((span.start, span.end), self._line(span)):
            i = bisect_left(quotes, start, key=lambda quote: quote.spans[0].start)
            if i < len(quotes) and quotes[i].spans[-1].end <= end:
                return quotes[i : i + 1]
        return ()


def _last_start(quote: Quote) -> int:
    """Where the last piece of a quote begins; of one that does not stand in the text, -1."""
    return quote.spans[-1].start if quote.spans else -1


_MARK = lazy_pattern(r"\A\s*(?:[-*•–]|\d{1,3}[.)])\s+")
"""The mark of an item of a list, which is no part of an entry."""


def _key(value: Stated | None) -> object:
    """A value of a reply, to tell equal entries."""
    return tuple(value.casefold().split()) if isinstance(value, str) else value


def _stated(claims: Mapping[str, Claims]) -> list[tuple[Claim, str]]:
    """The values of an entry with each of their quotes; of one that has lists alone, theirs."""
    own = [
        (claim, text)
        for each in claims.values() for claim in each.values if claim.value is not None
        for text in claim.quotes
    ]  # fmt: skip
    return own or [s for each in claims.values() for e in each.entries for s in _stated(e)]


def _said(claims: Mapping[str, Claims], *, is_deep: bool = False) -> tuple[object, ...]:
    """What an entry says, without its quotes; of its lists only if nothing else, or `is_deep`."""
    own = [(name, tuple(_key(c.value) for c in each.values)) for name, each in claims.items()]
    if is_deep or not any(each.values for each in claims.values()):
        return *own, *(_said(e, is_deep=True) for each in claims.values() for e in each.entries)
    return tuple(own)


def _frozen(entry: Mapping[str, FieldResult]) -> tuple[object, ...]:
    """The results of an entry as a key."""
    return tuple(
        (replace(f, entries=()), *map(_frozen, f.entries)) if f.entries else f
        for f in entry.values()
    )


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def _has_place(result: FieldResult) -> bool:
    return bool(result.evidence) or any(
        _has_place(f) for entry in result.entries for f in entry.values()
    )


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _stands_in(places: Sequence[_Place], start: int, end: int) -> bool:
    """Whether one of some places, which are in order, is within a range."""
    i = bisect_left(places, start, key=lambda spans: spans[0].start)
    return i < len(places) and places[i][-1].end <= end


# ---------------------------------------------------------------------------------------------
# Meaning: a value is certain only as far as its quote has it; whose it is, a checker says


@dataclass(frozen=True, slots=True)
class _Told:
    """What records say of a field or of an entry of a list, as a claim."""

    record: int
    path: _Path
    claim: PassageClaim

    @property
    def of_list(self) -> tuple[object, ...] | None:
        """The list that has the entry, in whichever entry that list is; None for a field."""
        if isinstance(self.path[-1], str):
            return None
        return self.record, *(name for name in self.path if isinstance(name, str))


_Path = tuple[str | int, ...]
"""The names of fields and the numbers of entries on the way to a value."""


async def _with_meaning(
    step: Step, fields: Sequence[Field], records: Sequence[Record], spent: Usage, asker: Asker,
    names: Sequence[str] = ("",),
) -> tuple[list[Record], checking.Checked, str]:  # fmt: skip
    """The records without values that the checker does not find in their passages, and a note; `names` has what each is called."""
    document = asker.calls.document
    if asker.checker is None:
        # One claim tells that meaning was not checked; no more passages are made.
        said = list(islice(_all_said(fields, records, names, document, (0, 0)), 1))
    else:
        make = partial(_within_share, fields, records, names, document)
        said = await off_loop(100 * sum(record.n_values for record in records), make)
    first, rest = _sample(said)
    verdicts: dict[_Told, checking.Verdict] = {}
    checked = checking.Checked([])
    while first:
        n_spent = (spent + checked.usage).n_input_tokens
        claims = [each.claim for each in first]
        more = await checking.check_claims(asker, claims, step=step, n_spent=n_spent)
        verdicts |= zip(first, more.verdicts, strict=True)
        checked = replace(
            more, verdicts=[], n_calls=checked.n_calls + more.n_calls, usage=checked.usage + more.usage,
            why=checked.why or more.why,
        )  # fmt: skip
        refused = {s.of_list for s in first if verdicts[s] in checking.REFUSED}
        first = [s for s in rest if s.of_list in refused and s not in verdicts]
    at: dict[tuple[int, _Path], checking.Verdict] = {
        (s.record, s.path): v for s, v in verdicts.items()
    }

    def settled(
        i: int, at_fields: _Path, fields: Mapping[str, FieldResult]
    ) -> dict[str, FieldResult]:
        """The fields of a record or of an entry; the latter has one verdict, its lists have their own."""
        results = {}
        for name, result in fields.items():
            path = (*at_fields, name)
            if result.entries:
                entries = (settled(i, (*path, n), entry) for n, entry in enumerate(result.entries))
                result = replace(result, entries=tuple(entries))
            verdict = at.get((i, at_fields or path), "not checked")
            results[name] = _settled(result, verdict, checked.by)
        return results

    meant = [Record(settled(i, (), record.fields)) for i, record in enumerate(records)]
    n_left = sum(each.of_list is not None and each not in verdicts for each in said)
    n_entries = sum(each.of_list is not None for each in said)
    note = ""
    n_judged = sum(
        f.basis == "judged" and bool(f.evidence) for record in meant for f in record.paths.values()
    )
    if n_left and checked.by:
        note = f"{n_entries - n_left:,} of {n_entries:,} entries were checked, a sample"
    elif n_judged:  # of rows, nothing else shows it
        note = f"judged, not checked: {counted(n_judged, 'value')}"
    return meant, checked, note


def _settled(result: FieldResult, verdict: checking.Verdict, by: str) -> FieldResult:
    """A value with what the checker says of it."""
    if result.state != "found" or not result.basis:
        return result
    if why := checking.REFUSED.get(verdict):
        candidate = Candidate(result.value, result.evidence)
        return FieldResult("undecided", why=why, candidates=(candidate,), checked_by=by)
    if verdict == "not checked":
        return replace(result, basis="judged")
    basis: Basis = "checked" if result.basis == "judged" else result.basis
    return replace(result, basis=basis, checked_by=by)


def _sample(said: Sequence[_Told]) -> tuple[list[_Told], list[_Told]]:
    """What is asked first, of a long list some entries, and what is asked if one of these fails."""
    lists: dict[object, list[_Told]] = {}
    for each in said:
        if each.of_list is not None:
            lists.setdefault(each.of_list, []).append(each)
    later = {
        each for entries in lists.values() if len(entries) > checking.MAX_CLAIMS
        for i, each in enumerate(entries)
        # evenly over the list
        if i * checking.MAX_CLAIMS // len(entries) == (i - 1) * checking.MAX_CLAIMS // len(entries)
    }  # fmt: skip
    return [s for s in said if s not in later], [s for s in said if s in later]


MAX_SHOWN = 3  # Maximum places of a quote that the checker is shown


def _within_share(
    fields: Sequence[Field], records: Sequence[Record], names: Sequence[str], document: Document
) -> list[_Told]:
    """The claims of records; if they are many, with fewer sentences around their quotes."""
    room = checking.room_of(len(document.text))
    said: list[_Told] = []
    for beside in ((1, 1), (1, 0), (0, 0)):
        said = list(_all_said(fields, records, names, document, beside))
        if checking.length_of(s.claim for s in said) <= room:
            break
    return said


def _all_said(
    fields: Sequence[Field],
    records: Sequence[Record],
    names: Sequence[str],
    document: Document,
    beside: tuple[int, int],
) -> Iterator[_Told]:
    """Every value of records that stands on a quote, and every entry of their lists, as a claim."""

    def claim(text: str, results: Sequence[FieldResult]) -> PassageClaim:
        shown = [passage for result in results for passage in result.evidence[:MAX_SHOWN]]
        return PassageClaim(" ".join(text.split()), checking.passage_of(document, shown, beside))

    for i, (record, name) in enumerate(zip(records, names, strict=True)):
        of = f" of {name}" if name else ""
        for field in fields:
            result = record.fields[field.name]
            if not field.is_list and _is_stated(result):
                text = f"{_named(field)}{of} is {result.told}"
                yield _Told(i, (field.name,), claim(text, [result]))
                if field == fields[0] and field.type == "str" and not of:
                    of = f" of {result.told}"
            # the one list of `EXTRACT_ALL` has a name that is no user's
            is_all = field.name == ROWS and len(fields) == 1 and field.fields
            whole = "" if is_all else f" of {_named(field)}{of}"
            for path, text, results in _told_entries(field, result, (field.name,), whole):
                yield _Told(i, path, claim(text, results))


def _told_entries(
    field: Field, result: FieldResult, path: _Path, whole: str, around: Sequence[FieldResult] = ()
) -> Iterator[tuple[_Path, str, Sequence[FieldResult]]]:
    """Each entry of a list, and of the lists in it, in words that tell where it belongs, and its values."""
    for n, entry in enumerate(result.entries):
        here = (*path, n)
        stated = [f for f in field.inner if _is_stated(entry[f.name])]
        if stated:
            values = [*around, *(entry[f.name] for f in stated)]
            yield here, _told_whole(entry, stated, whole, bool(field.fields)), values
        for inner in field.inner:
            if entry[inner.name].entries:
                first = stated[:1]
                of = "".join(f" of {_named(f)} {short(entry[f.name].told)}" for f in first)
                of = of or f" of entry {n + 1}"
                if field.fields[0].name != ENTRY:
                    of = f" of {_named(inner)}{of}"
                # all that the words name is shown
                own = [replace(entry[f.name], evidence=entry[f.name].evidence[:1]) for f in first]
                there, of = (*here, inner.name), f"{of}{whole}"
                yield from _told_entries(inner, entry[inner.name], there, of, [*around, *own])


def _told_whole(
    entry: Mapping[str, FieldResult], stated: Sequence[Field], whole: str, is_object: bool
) -> str:
    """An entry of a list in words, by its first field: "`name` Aspirin of `drugs` of Anna has `dose_mg` 500"."""
    first, *others = (
        entry[f.name].told
        if f.name == PLAIN and not is_object
        else f"{_named(f)} {entry[f.name].told}"
        for f in stated
    )
    said = f"has {', '.join(others)}" if others else f"is one{whole}" if whole else "is stated"
    return f"{first}{whole if others else ''} {said}"


def check_costs(
    fields: Sequence[Field], n_replies: int, reply_tokens: int, limits: ContextLimits
) -> tuple[int, int, int]:
    """Maximum requests about the claims of replies, and the tokens of their prompts and of their replies."""
    counter = limits.counter
    n = n_replies * sum(not field.is_list for field in fields)
    if any(field.is_list for field in fields):
        n += n_replies * reply_tokens // ENTRY_TOKENS
    around = counter.at_most("é" * 2 * CONTEXT * MAX_SHOWN) + checking.CLAIM_TOKENS
    if any(leaf.is_list for field in fields if field.is_list for leaf in field.fields):
        # what is around an entry of a list in a list
        around += counter.at_most("é" * (2 * CONTEXT + AROUND_ENTRY))
    # a list of more than MAX_CLAIMS entries takes a second round
    n_requests = -(-n // checking.MAX_CLAIMS) + 1 if n > checking.MAX_CLAIMS else min(n, 1)
    # every value is shown, and every quote at its places
    shown = (1 + MAX_SHOWN) * n_replies * counter.most(reply_tokens)
    frame, replied = checking.frame_costs(limits)
    return n_requests, n * around + shown + n_requests * frame, n_requests * replied


AROUND_ENTRY = 1_000
"""Characters of the entries around an entry, in words, and of the first quote of the nearest one."""
ENTRY_TOKENS = 12  # Minimum tokens of an entry of a list in a reply


def _is_stated(result: FieldResult) -> bool:
    return result.state == "found" and bool(result.evidence)


def _named(field: Field) -> str:
    return f"`{field.name}` ({field.description})" if field.description else f"`{field.name}`"


# ---------------------------------------------------------------------------------------------


def _united(field: Field, values: Sequence[_Value], unread: str) -> FieldResult:
    """One result from everything that is said of a field."""
    stated: list[_Value] = []
    for each in values:
        if each.value is None or each.why or not each.evidence:
            continue
        i = next((i for i, s in enumerate(stated) if same_value(field, s.value, each.value)), None)
        if i is None:
            stated.append(each)
        else:
            more = tuple(e for e in each.evidence if e not in stated[i].evidence)
            stated[i] = replace(stated[i], evidence=(*stated[i].evidence, *more))
    label = next(
        (v.value for v in values if v.value is not None and not v.evidence and not v.why), None
    )
    doubts = [each for each in values if each.why]
    proposed = {str(each.value): each for each in doubts if each.value is not None}
    candidates = tuple(Candidate(v.value, v.evidence) for v in (*stated, *proposed.values()))
    if len(stated) > 1:
        told = " and ".join(
            f"{_told(each.value)} ({each.evidence[0].where.partition(';')[0]})"
            for each in stated[:3]
        )
        return FieldResult("undecided", why=f"the document says {told}", candidates=candidates)
    if doubts:
        return FieldResult("undecided", why=doubts[0].why, candidates=candidates)
    if stated:
        (one,) = stated
        return FieldResult("found", one.value, basis=one.basis, evidence=one.evidence)
    if unread:
        return FieldResult("undecided", why=unread)
    if label is not None:  # such as `unknown`, which needs no quote
        return FieldResult("found", label, basis="judged")
    return FieldResult("not_stated")


def _with_rules(field: Field, value: _Value) -> _Value:
    """A value with the rule that it breaks."""
    exact = Decimal(str(value.value)) if field.type == "decimal" else value.value
    broken = broken_rule(field.rules, exact)
    return replace(value, why=broken, is_broken=bool(broken))


def _doubtful(field: Field, value: Stated, why: str, evidence: tuple[Evidence, ...] = ()) -> _Value:
    """A value that its passages do not bear out: a person may accept it."""
    plain: FieldScalar = (
        value if not isinstance(value, Decimal)
        else f"{value:f}" if field.type == "decimal"
        else int(value) if value == value.to_integral_value()
        else float(value)
    )  # fmt: skip
    return _Value(plain, evidence=evidence, why=f"the reply gives {_told(value)}{why}")


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
    # An entry that may be missing or one too many: later steps count with it and without it.
    doubtful = tuple(
        Row(str(each.value), dict.fromkeys(names), tuple(e.span for e in each.evidence[:1]))
        for each in result.candidates
    )
    why = f"the rows may be incomplete: {result.why}" if result.why else ""
    return computed(step, action, Rows(tuple(rows), columns=names, doubtful=doubtful), why)


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
    named = named_rows(rows, asker.calls.document, {}, is_brief=False)
    names = {text: each.name for text, each in reversed([*zip(shown, named, strict=True)])}
    starts = {text: row.spans[0].start for text, row in zip(shown, rows, strict=True) if row.spans}

    async def read_one(text: str) -> tuple[Record, _Read]:
        task = requests.alone(row_step, step, text)
        read = await _read(step, task, fields, asker)
        return await _decided(step, task, fields, read, asker, starts.get(text, 0))

    replies = await gather(list(map(read_one, texts)))
    usage = sum((each.usage for _, each in replies), Usage())
    records, checked, note = await _with_meaning(
        step,
        fields,
        [record for record, _ in replies],
        usage,
        asker,
        [names[text] for text in texts],
    )
    read = dict(zip(texts, records, strict=True))
    unread = dict.fromkeys((field.name for field in fields), None)

    def with_cells(row: Row, shown: str | None) -> Row:
        blank = unread if shown is None else dict.fromkeys(unread, "")
        record = read.get(shown or "")
        return row.with_fields(blank if record is None else _cells(record.fields))

    answered = tuple(map(with_cells, rows, shown))
    columns = (*rows.columns, *unread)
    result = computed(step, row_step.task.action, replace(rows, rows=answered, columns=columns))
    result = replace(
        result, is_native=False, context="rows", coverage=asker.calls.coverage(rows),
        sources=Sources(is_by_row=True), n_calls=sum(each.n_calls for _, each in replies), usage=usage,
    )  # fmt: skip
    return checking.with_checks(result, checked, note)
