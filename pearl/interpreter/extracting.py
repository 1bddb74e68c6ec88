"""A step that extracts → requests for the values of fields, and a record of those that the document bears out.

A value counts if its quotes stand in the document and agree with it (`evidence.agreeing`). Otherwise the
field is undecided, as it is where the text says different things.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter as Counts
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from decimal import Decimal
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Literal

from pearl.actions.by_row import each_of
from pearl.actions.values import Value
from pearl.documents.document import Document
from pearl.documents.english import UNITS
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
    step: Step,
    task: ActionTask,
    fields: tuple[Field, ...],
    read: _Read,
    asker: Asker,
    row_at: int | None = None,
) -> tuple[Record, _Read]:
    """The record of a text; the escalation model is asked for its undecided fields, and only for these."""
    n_characters = len(task.document or "")
    record = await off_loop(
        n_characters, partial(_checked, step.output, fields, read, asker, row_at)
    )
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
    new = await off_loop(n_characters, partial(_checked, step.output, left, more, other, row_at))
    decided = {name: f for name, f in new.fields.items() if f.state != "undecided"}
    is_whole = len(decided) == len(left)
    read = replace(
        read, parts=more.parts if is_whole else read.parts, n_calls=read.n_calls + more.n_calls,
        usage=read.usage + more.usage,
    )  # fmt: skip
    return Record({**record.fields, **decided}), read


_Place = tuple[Span, ...]


@dataclass(slots=True)
class _Entry:
    """An entry of a list in a reply, and where its quotes stand."""

    part: Span | None
    claims: Mapping[str, Claims]
    anchors: Sequence[_Place] = ()
    """The place of its rarest quote; all of its places if it is open which one is meant."""
    others: dict[str, Quote] = dataclass_field(default_factory=dict)
    """The places of other quotes that stand several times."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A claim that was checked: a value with its passages, nothing, or a reason against it."""

    value: FieldScalar = None
    basis: Basis = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""


def _checked(
    output: str, fields: Sequence[Field], read: _Read, asker: Asker, row_at: int | None = None
) -> Record:
    """The record of a text, as its quotes bear it out; those of a row, at `row_at`, are looked up in it alone."""
    document = asker.calls.document
    parts: list[Span | None] = []
    at = row_at or 0
    for text, _ in read.parts:
        start = document.text.find(text, at)
        at = start + len(text) if start >= 0 else at
        parts.append(Span(start, at) if start >= 0 and text != document.text else None)
    checker = _Checker(output, document, asker.calls.verifier)
    first, last = parts[0], parts[-1]
    if row_at is not None and first is not None and last is not None:
        row = Span(first.start, last.end)
        verifier = Verifier(document.text[row.start : row.end])
        checker = _Checker(output, document, verifier, row)
    return Record({
        field.name: checker.result(
            field,
            [(part, claims.fields[field.name]) for part, (_, claims) in zip(parts, read.parts, strict=True)],
        )
        for field in fields
    })  # fmt: skip


class _Checker:
    """Checks the claims of replies about a document or one of its rows, wherever it is cut into parts."""

    def __init__(
        self, output: str, document: Document, verifier: Verifier, row: Span | None = None
    ) -> None:
        self._output = output
        self._document = document
        self._verifier = verifier
        whole = row or Span(0, len(document.text))
        self._start = whole.start
        self._is_line = "\n" not in document.text[whole.start : whole.end].strip()
        self._found: dict[tuple[str, Span | None], Sequence[Quote]] = {}

    def result(self, field: Field, said: Sequence[tuple[Span | None, Claims]]) -> FieldResult:
        """What all parts say of a field."""
        if field.is_list:
            return self._list(field, said)
        values = [self._value(field, claim, None) for _, c in said for claim in c.values]
        unread = next((claims.why for _, claims in said if claims.why and not claims.values), "")
        values += [_Value(why=claims.why) for _, claims in said if claims.why and claims.values]
        return _united(field, values, unread)

    def _list(self, field: Field, said: Sequence[tuple[Span | None, Claims]]) -> FieldResult:
        """The entries of all parts, in the order of the document; equal ones at places of their own."""
        entries, whys, candidates = self._placed(
            field, [_Entry(part, claims) for part, c in said for claims in c.entries]
        )
        self._pair(entries)
        results: list[tuple[int, _Entry, Mapping[str, FieldResult]]] = []
        open_ones: dict[object, Mapping[str, FieldResult]] = {}  # equal ones at all of their places
        at = 0
        for entry in entries:
            said_of = entry.part, *entry.claims.values()
            if said_of not in open_ones or len(entry.anchors) == 1 or entry.others:
                open_ones[said_of] = self._entry(field.inner, entry)
            results_of = open_ones[said_of]
            found = [f for f in results_of.values() if f.state == "found"]
            at = min((e.span.start for f in found[:1] for e in f.evidence), default=at)
            if any(f.state != "not_stated" for f in results_of.values()):
                results.append((at, entry, results_of))
        results.sort(key=lambda each: each[0])
        own = self._own(field, [fields for *_, fields in results])
        kept: list[Mapping[str, FieldResult]] = []
        n_kept: Counts[object] = Counts()
        n_here: Counts[object] = Counts()
        for (_, entry, _), fields in zip(results, own, strict=True):
            key = tuple(fields.values())
            n_here[entry.part, key] += 1
            # Of two parts that overlap, the same entry; without a place, one that is repeated in vain.
            has_place = any(f.evidence for f in key)
            if n_here[entry.part, key] > n_kept[key] and (has_place or not n_kept[key]):
                n_kept[key] += 1
                kept.append(fields)
        whys += [claims.why for _, claims in said if claims.why]
        why = whys[0] if whys else ""
        state: Literal["found", "not_stated", "undecided"] = "found" if kept else "not_stated"
        return FieldResult(
            "undecided" if why else state, why=why, entries=tuple(kept), candidates=candidates
        )

    def _placed(
        self, field: Field, entries: Sequence[_Entry]
    ) -> tuple[list[_Entry], list[str], tuple[Candidate, ...]]:
        """The entries, equal ones at one place each; why some may be missing or too many, and these.

        The k-th of equal entries stands at the k-th place. With fewer places than entries, those that have
        none are left out. With more, which of them are meant is open.
        """
        equal: dict[object, list[_Entry]] = {}
        for entry in entries:
            said = tuple(
                (name, tuple(_key(claim.value) for claim in claims.values))
                for name, claims in entry.claims.items()
            )
            equal.setdefault(said, []).append(entry)
        n_users = Counts(
            text for same in equal.values()
            for text in {t for claims in same[0].claims.values() for c in claims.values for t in c.quotes}
        )  # fmt: skip
        whys: list[str] = []
        left_out: set[int] = set()
        candidates: list[Candidate] = []

        def note(quote: str, group: Sequence[_Entry], places: Sequence[_Place]) -> None:
            n, m = len(group), len(places)
            said = [c.value for claims in group[0].claims.values() for c in claims.values]
            told = ", ".join(_told(value) for value in said if value is not None)
            times = f"the reply lists {told} ({_times(n)}), the document has it {_times(m)}"
            whys.append(f"{times}: {quoted(quote)}")
            quotes = [Quote(quote, place, "normalised") for place in dict.fromkeys(places)]
            shown = quotes[:MAX_PLACES]
            evidence = tuple(passage_at(q, self._output, self._document) for q in shown)
            candidates.extend([Candidate(told, evidence)] * min(abs(n - m), MAX_PLACES))

        for same in equal.values():
            for quote, group, places in self._groups(field.inner, same, len(same)):
                is_plain = field.inner[0].type in ("str", "text") and n_users[quote] == 1
                if len(group) < len(places) and self._is_repeated(group, places, is_plain):
                    note(quote, group, places)
            for part in {entry.part for entry in same}:
                of_part = [entry for entry in same if entry.part == part]
                for quote, group, places in self._groups(field.inner, of_part, len(same), part):
                    different = list(dict.fromkeys(places))
                    is_open = len(group) < len(places)
                    for entry, place in zip(group, places, strict=False):
                        entry.anchors = different if is_open else [place]
                    if len(group) > len(places):
                        note(quote, group, places)
                        left_out |= set(map(id, group[len(places) :]))
        kept = [entry for entry in entries if id(entry) not in left_out]
        return kept, whys, tuple(candidates)

    def _groups(
        self,
        fields: Sequence[Field],
        equal: Sequence[_Entry],
        n_equal: int,
        part: Span | None = None,
    ) -> list[tuple[str, list[_Entry], list[_Place]]]:
        """Equal entries whose quotes stand on the same lines: a quote, the entries and their places."""
        by_quote: dict[str, tuple[list[_Entry], list[_Place]]] = {}
        known_as: dict[object, tuple[str, list[_Place]]] = {}
        for entry in equal:
            said = tuple(entry.claims.values())
            if said not in known_as:
                known_as[said] = self._places_of_entry(fields, entry, part, n_equal)
            quote, places = known_as[said]
            if places:
                by_quote.setdefault(quote, ([], places))[0].append(entry)
        groups: list[tuple[str, list[_Entry], list[_Place]]] = []
        at_line: dict[int, int] = {}
        for quote, (group, places) in by_quote.items():
            lines = [self._line(spans[0])[0] for spans in places]
            number = next((at_line[line] for line in lines if line in at_line), len(groups))
            at_line |= dict.fromkeys(lines, number)
            if number == len(groups):
                groups.append((quote, group, places))
                continue
            groups[number][1].extend(group)
            known = groups[number][2]
            known += [
                place for place in places
                if not any(place[0].start < k[-1].end and k[0].start < place[-1].end for k in known)
            ]  # fmt: skip
            known.sort()
        return groups

    def _places_of_entry(
        self, fields: Sequence[Field], entry: _Entry, part: Span | None, n_equal: int
    ) -> tuple[str, list[_Place]]:
        """The rarest quote of an entry and its places; one that is too short to tell if `n_equal` entries have it."""
        by_text: dict[str, list[_Place]] = {}
        for field in fields:
            for claim in entry.claims[field.name].values:
                for text in claim.quotes if claim.value is not None else ():
                    by_text[text] = [q.spans for q in self._places(text, part) if q.spans]
        by_text = {text: places for text, places in by_text.items() if places}
        if not by_text:
            return "", []
        every = {text: self._places(text, None) for text in by_text}
        clear = {
            text for text, quotes in every.items()
            if self._is_line or quotes[0].is_verified or any(_is_telling(f, text) for f in fields)
        }  # fmt: skip
        rarest = min(clear or every, key=lambda text: (len(every[text]), -len(text)))
        if not clear and len(every[rarest]) != n_equal:
            return "", []
        places = by_text[rarest]
        lines = [self._line(spans[0]) for spans in places]
        complete = [
            spans for spans, (start, end) in zip(places, lines, strict=True)
            if all(_stands_in(others, start, end) for others in by_text.values())
        ]  # fmt: skip
        places = complete or places
        passage = self._document.text[places[0][0].start : places[0][-1].end]
        n_stated = [
            n_standing(field, claim.value, passage)
            for field in fields
            for claim in entry.claims[field.name].values
            if claim.value is not None and rarest in claim.quotes
        ]
        return rarest, [spans for spans in places for _ in range(max(1, min(n_stated)))]

    def _is_repeated(
        self, group: Sequence[_Entry], places: Sequence[_Place], is_plain: bool
    ) -> bool:
        """Whether a text has a record, a whole line, or a value in a quote that lists some more often than a reply."""
        n_fields = sum(any(c.quotes for c in claims.values) for claims in group[0].claims.values())
        text = self._document.text
        lines = {self._line(spans[0]) for spans in places}
        n_equal = Counts(_MARK.sub("", text[start:end]).strip() for start, end in lines)
        is_list = len(set(places)) == 1 and not is_plain
        return n_fields > 1 or is_list or max(n_equal.values()) > len(group)

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

    def _own(
        self, field: Field, entries: Sequence[Mapping[str, FieldResult]]
    ) -> list[Mapping[str, FieldResult]]:
        """Mark a field undecided if its quote stands with the first field of another entry."""
        first = field.inner[0].name
        of: dict[int, set[int]] = {}
        for i, entry in enumerate(entries):
            for each in entry[first].evidence if entry[first].state == "found" else ():
                of.setdefault(each.span.start, set()).add(i)
        starts = sorted(of)

        def is_of_others(result: FieldResult, i: int) -> bool:
            lines = [self._line(each.span) for each in result.evidence]
            among = [starts[bisect_left(starts, a) : bisect_left(starts, b)] for a, b in lines]
            return any(here and not any(i in of[start] for start in here) for here in among)

        own: list[Mapping[str, FieldResult]] = []
        apart = {name: self._apart(first, name, entries) for name in entries[0]} if entries else {}
        for i, entry in enumerate(entries):
            why = {
                name: f"its quote stands {where} the {first} of another entry"
                for name, f in entry.items()
                if name != first and f.state == "found"
                for where, holds in (("beside", is_of_others(f, i)), ("with", i in apart[name]))
                if holds
            }
            own.append({
                name: replace(f, state="undecided", value=None, basis="", why=why[name])
                if name in why else f
                for name, f in entry.items()
            })  # fmt: skip
        return own

    def _apart(
        self, first: str, name: str, entries: Sequence[Mapping[str, FieldResult]]
    ) -> set[int]:
        """The entries whose field, on another line, stands out of order or alone between first fields of others."""
        text = self._document.text
        keys = {
            i: each.evidence[0].span
            for i, entry in enumerate(entries)
            if (each := entry[first]).state == "found" and len(each.evidence) == 1
        }
        lines = sorted({self._line(span)[0] for span in keys.values()})
        gaps: dict[int, int] = {}
        stands: list[tuple[int, int, int]] = []
        for i, span in keys.items():
            each = entries[i][name]
            if each.state != "found" or len(each.evidence) != 1:
                continue
            start, end = self._line(each.evidence[0].span)
            gaps[i] = bisect_right(lines, start)
            named = n_standing(Field(first), str(entries[i][first].value), text[start:end])
            if self._line(span)[0] != start and not named:
                stands.append((self._line(span)[0], start, i))
        stands.sort()
        alone = {gap for gap, n in Counts(gaps.values()).items() if n == 1}
        apart = {
            i for key, _, i in stands
            if gaps[i] in alone and bisect_left(lines, key) not in (gaps[i] - 1, gaps[i])
        }  # fmt: skip
        for order in (stands, [(-key, -at, i) for key, at, i in reversed(stands)]):
            latest = -inf
            for _, at, i in order:
                apart |= {i} if at < latest else set()
                latest = max(latest, at)
        return apart

    def _line(self, span: Span) -> tuple[int, int]:
        """The line of a passage, as far as it is looked at."""
        text = self._document.text
        start = max(0, span.start - MAX_AROUND)
        end = text.find("\n", span.end, span.end + MAX_AROUND)
        begin = text.rfind("\n", start, span.start) + 1
        return begin or start, end if end >= 0 else span.end + MAX_AROUND

    def _entry(self, fields: Sequence[Field], entry: _Entry) -> dict[str, FieldResult]:
        """Check the fields of an entry: long quotes first, then short ones near them."""
        near = [tuple(Span(place[0].start, place[-1].end) for place in entry.anchors)]
        results: dict[str, FieldResult] = {}

        def length(field: Field) -> int:
            values = entry.claims[field.name].values
            return -max((len(q) for c in values for q in c.quotes), default=0)

        for field in sorted(fields, key=length):
            claims = entry.claims[field.name]
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
            label = label_of(field, claim.value) if isinstance(claim.value, str) else None
            is_null = says_not_stated((label or "").replace("_", " "))
            if label is not None and is_null and label.casefold() != "none":
                return _Value(label)
            return _Value(why=f"the reply gives {_told(claim.value)} without a quote")
        ways: list[Sequence[Quote]] = []
        for text in claim.quotes:
            quotes = self._places(text, part)
            if not (chosen := self._chosen(quotes, field, near, given.get(text))):
                doubt = Unverified(self._output, text, quotes[0].result)  # type: ignore[arg-type]
                verb = "" if doubt.reason == "negation" else "is "
                why = f"its quote {verb}{doubt.why}: {quoted(text)}"
                return _Value(why=f"the reply gives {_told(claim.value)}, but {why}")
            ways.append(chosen)
        evidence = tuple(
            passage_at(q, self._output, self._document) for way in ways for q in way[:MAX_PLACES]
        )
        try:
            value, basis = self._agreed(field, claim, ways)
        except DisagreementError as error:
            return _Value(
                why=f"the reply gives {_told(claim.value)}, but {error}", evidence=evidence
            )
        return _Value(value, basis, evidence)

    def _agreed(
        self, field: Field, claim: Claim, ways: Sequence[Sequence[Quote]]
    ) -> tuple[FieldScalar, Basis]:
        """The value, if every passage bears it out; a summary, if all of them together do."""
        assert claim.value is not None
        text = self._document.text
        if field.type == "text":
            spans = [span for way in ways for span in way[0].spans]
            return agreed(field, claim.value, [text[span.start : span.end] for span in spans])
        results = []
        for quote in (quote for way in ways for quote in way):
            start, end = quote.spans[0].start, quote.spans[-1].end
            pieces = [text[span.start : span.end] for span in quote.spans]
            before = text[max(start - MAX_AROUND, 0) : start]
            results.append(agreed(field, claim.value, pieces, before, text[end : end + MAX_AROUND]))
        return results[0]

    def _places(self, text: str, part: Span | None) -> Sequence[Quote]:
        """The places of a quote in a part, else in all of the text; a quote without spans for none."""
        if (found := self._found.get((text, part))) is not None:
            return found
        if part is not None:
            every = self._places(text, None)
            found = [q for q in every if q.spans and part.start <= q.spans[-1].start < part.end]
            found = found or every
        else:
            found = []
            for quote in self._verifier.every(text):
                spans = quote.spans if quote.result != "negation" else ()
                moved = (Span(s.start + self._start, s.end + self._start) for s in spans)
                found.append(replace(quote, spans=tuple(moved)))
        self._found[text, part] = found
        return found

    def _chosen(
        self, quotes: Sequence[Quote], field: Field, near: Sequence[_Place], given: Quote | None
    ) -> Sequence[Quote]:  # fmt: skip
        """The places of a quote: beside other passages of its entry, else where its line names the field best."""
        if not quotes[0].spans:
            return ()
        if len(quotes) == 1 and quotes[0].is_verified:
            return quotes
        for spans in near:
            beside = [self._beside(quotes, span) for span in spans]
            if beside and all(beside):
                return list(dict.fromkeys(quote for each in beside for quote in each))
        is_clear = quotes[0].is_verified or self._is_line
        if not (is_clear or _is_telling(field, quotes[0].text)):
            return ()
        if given is not None:
            return [given]
        words = _words_of(field)
        n_named = [self._n_named(words, quote.spans) for quote in quotes]
        most = max(n_named)
        return [quotes[n_named.index(most)]] if n_named.count(most) == 1 else quotes

    def _beside(self, quotes: Sequence[Quote], span: Span) -> Sequence[Quote]:
        """The first of some places of a quote that stands within a passage, else on its lines."""
        for start, end in ((span.start, span.end), self._line(span)):
            i = bisect_left(quotes, start, key=lambda quote: quote.spans[0].start)
            if i < len(quotes) and quotes[i].spans[-1].end <= end:
                return quotes[i : i + 1]
        return ()

    def _n_named(self, words: Sequence[str], spans: Sequence[Span]) -> int:
        """How many words of a field's name stand on the line of a passage, before or behind it."""
        start, end = self._line(spans[0])
        text = self._document.text
        around = f"{text[start : spans[0].start]} {text[spans[-1].end : end]}".casefold()
        beside = _WORD.findall(around)
        return sum(any(each.startswith(word) for each in beside) for word in words)


MAX_PLACES = 20
"""Maximum places that are shown of a quote that stands several times."""
_MARK = lazy_pattern(r"\A\s*(?:[-*•–]|\d{1,3}[.)])\s+")
"""The mark of an item of a list, which is no part of an entry."""


def _key(value: Stated | None) -> object:
    """A value of a reply, to tell equal entries."""
    return tuple(value.casefold().split()) if isinstance(value, str) else value


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _stands_in(places: Sequence[_Place], start: int, end: int) -> bool:
    """Whether one of some places, which are in order, is within a range."""
    i = bisect_left(places, start, key=lambda spans: spans[0].start)
    return i < len(places) and places[i][-1].end <= end


def _words_of(field: Field) -> list[str]:
    return [word.casefold() for word in _WORD.findall(field.name.replace("_", " "))]


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
    if label is not None:  # such as `unknown`, which needs no quote
        return FieldResult("found", label, basis="judged")
    return FieldResult("not_stated")


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
