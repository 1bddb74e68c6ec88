"""Compare the values of a reply with their quotes: each value gets its passages, or the reason why it is undecided."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, Quote, Unverified, Verifier
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.standing import clause_around, is_telling, places_of
from pearl.documents.evidence.value_checks import (
    DisagreementError,
    Stated,
    agreed,
    label_of,
    n_standing,
    same_value,
)
from pearl.documents.numbers import quoted
from pearl.documents.record import Basis, Candidate, FieldResult, FieldScalar
from pearl.dsl.fields import Field, broken_rule
from pearl.errors import Span
from pearl.replies.extracted import Claim, is_null
from pearl.replies.raw import says_not_stated

MAX_AROUND = 120
"""Characters around a passage that are searched for a unit, a longer number and the ends of its line."""

MAX_CAPTION = 4_000
"""Characters before a passage that are searched for a caption with the scale of its numbers ("in thousands")."""

MAX_LOOKED = 60  # Maximum places that are tried for a value without a quote

MAX_SHOWN = 3  # Maximum places of a quote that are shown to the checker

SEVERAL = "it occurs in several places, and no quote says which is meant"

MAX_PLACES = 20  # Maximum places of a quote that occurs several times

Place = tuple[Span, ...]


class Value(Struct, frozen=True):
    """The result of comparing a claim with its quotes: a value with its passages, or none; `why` is the reason for doubt."""

    value: FieldScalar = None
    basis: Basis = ""
    evidence: tuple[Evidence, ...] = ()
    why: str = ""
    is_broken: bool = False
    """Whether to ask again: the value breaks a rule of its field, or it occurs in several places."""


class Quotes:
    """Finds quotes in a document, or in a single row, and compares values with them."""

    def __init__(self, output: str, document: Document, verifier: Verifier, start: int = 0) -> None:
        self.output = output
        self.document = document
        self._verifier = verifier
        self._start = start
        self._found: dict[tuple[str, Span | None], Sequence[Quote]] = {}
        self._alone: dict[object, Value] = {}
        """Results of values without quotes, which are looked up once."""

    def line(self, span: Span) -> tuple[int, int]:
        """The line around a passage, at most `MAX_AROUND` characters on each side."""
        text = self.document.text
        start = max(0, span.start - MAX_AROUND)
        end = text.find("\n", span.end, span.end + MAX_AROUND)
        begin = text.rfind("\n", start, span.start) + 1
        return begin or start, end if end >= 0 else span.end + MAX_AROUND

    def value(
        self, field: Field, claim: Claim, part: Span | None, near: Sequence[Place] = ()
    ) -> Value:
        """Compare a claim with its quotes; `near` has passages of the same list entry."""
        if claim.value is None:
            return Value()
        if not claim.quotes:
            key = field, type(claim.value), claim.value, part
            if key not in self._alone:
                self._alone[key] = self._without_quote(field, claim, part)
            return self._alone[key]
        ways: list[Sequence[Quote]] = []
        for text in claim.quotes:
            quotes = self.places(text, part)
            if not quotes[0].spans:
                doubt = Unverified(self.output, text, quotes[0].result)  # type: ignore[arg-type]
                why = f", but its quote is {doubt.why}: {quoted(text)}"
                return doubtful(field, claim.value, why)
            ways.append(self._chosen(quotes, near)[:MAX_PLACES])
        evidence = tuple(passage_at(q, self.output, self.document) for way in ways for q in way)
        try:
            value, basis = self._agreed(field, claim, ways)
        except DisagreementError as error:
            return doubtful(field, claim.value, f", but {error}", evidence)
        return _with_rules(field, Value(value, basis, evidence))

    def _without_quote(self, field: Field, claim: Claim, part: Span | None) -> Value:
        """Find the place of a value without a quote; a text may occur a few times, a number or date only once."""
        assert claim.value is not None
        # A phrase such as "not stated" is no value, unless the document has it as one.
        if field.type == "str" and is_null(claim.value):
            part_text = self.document.text[part.start : part.end] if part else self.document.text
            if not n_standing(claim.value, part_text):
                return Value()
            return replace(doubtful(field, claim.value, " without a quote"), is_broken=True)
        label = label_of(field, claim.value) if isinstance(claim.value, str) else None
        is_unknown = says_not_stated((label or "").replace("_", " "))
        if label is not None and is_unknown and label.casefold() != "none":
            return Value(label)
        doubt = replace(doubtful(field, claim.value, " without a quote"), is_broken=True)
        if not is_telling(field, claim.value):
            return doubt

        def because(why: str) -> Value:
            return replace(doubtful(field, claim.value or "", f", but {why}"), is_broken=True)

        text = self.document.text
        within = part or Span(self._start, self._start + self._verifier.length)
        found = places_of(field, claim.value, text, within)
        if len(found) > MAX_LOOKED:
            return because(SEVERAL)
        refusals = ["the text does not contain it in this form"]
        stated: list[tuple[Quote, FieldScalar, Basis]] = []
        for around in (clause_around(text, span) for span in found):
            quote = Quote(text[around.start : around.end], (around,), "exact")
            try:
                stated.append((quote, *self._agreed(field, claim, [[quote]])))
            except DisagreementError as error:
                refusals.append(str(error).replace("the quote", "the text"))
        if field.type == "str":
            stated = list(dict.fromkeys(stated))
        # The checker sees all places of a text; equal numbers or dates may belong to different
        # things.
        if not stated:
            return because(refusals[-1])
        if len(stated) > (MAX_SHOWN if field.type == "str" else 1):
            return because(SEVERAL)
        evidence = tuple(passage_at(quote, self.output, self.document) for quote, _, _ in stated)
        return _with_rules(field, Value(*stated[0][1:], evidence))

    def _agreed(
        self, field: Field, claim: Claim, ways: Sequence[Sequence[Quote]]
    ) -> tuple[FieldScalar, Basis]:
        """The value if every passage supports it; a summary must be supported by all passages together."""
        assert claim.value is not None
        text = self.document.text
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

    def places(self, text: str, part: Span | None) -> Sequence[Quote]:
        """The places of a quote in a part, else in the whole text; if there are none, a quote without spans."""
        if (found := self._found.get((text, part))) is not None:
            return found
        if part is not None:
            every = self.places(text, None)
            first = bisect_left(every, part.start, key=_last_start)
            last = bisect_left(every, part.end, lo=first, key=_last_start)
            found = every[first:last] or every
        else:
            found = []
            for quote in self._verifier.every(text):
                moved = [Span(s.start + self._start, s.end + self._start) for s in quote.spans]
                inked = (
                    # The blanks before a list mark belong to the quote.
                    Span(s.end - len(self.document.text[s.start : s.end].lstrip()), s.end)
                    for s in moved
                )
                found.append(replace(quote, spans=tuple(inked)))
        self._found[text, part] = found
        return found

    def _chosen(self, quotes: Sequence[Quote], near: Sequence[Place]) -> Sequence[Quote]:
        """Prefer the places of a quote that are near other passages of its entry; all places if none is near."""
        if len(quotes) == 1:
            return quotes

        def beside(span: Span) -> Quote | None:
            """The first place of a quote within a passage, else on the passage's lines."""
            for start, end in ((span.start, span.end), self.line(span)):
                i = bisect_left(quotes, start, key=lambda quote: quote.spans[0].start)
                if i < len(quotes) and quotes[i].spans[-1].end <= end:
                    return quotes[i]
            return None

        for spans in near:
            found = [quote for span in spans if (quote := beside(span)) is not None]
            if found and len(found) == len(spans):
                return list(dict.fromkeys(found))
        return quotes


def _last_start(quote: Quote) -> int:
    """The start of the last piece of a quote; -1 if the quote was not found."""
    return quote.spans[-1].start if quote.spans else -1


def united(field: Field, values: Sequence[Value], unread: str) -> FieldResult:
    """Combine all values found for a field into one result."""
    stated: list[Value] = []
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
            f"{value_text(each.value)} ({each.evidence[0].where.partition(';')[0]})"
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
    if label is not None:  # Such as `unknown`, a label that needs no quote
        return FieldResult("found", label, basis="judged")
    return FieldResult("not_stated")


def _with_rules(field: Field, value: Value) -> Value:
    """Mark a value that breaks a rule of its field."""
    exact = Decimal(str(value.value)) if field.type == "decimal" else value.value
    broken = broken_rule(field.rules, exact)
    return replace(value, why=broken, is_broken=bool(broken))


def doubtful(field: Field, value: Stated, why: str, evidence: tuple[Evidence, ...] = ()) -> Value:
    """A value that its passages do not support, kept as a candidate that a person may accept."""
    plain: FieldScalar = (
        value if not isinstance(value, Decimal)
        else f"{value:f}" if field.type == "decimal"
        else int(value) if value == value.to_integral_value()
        else float(value)
    )  # fmt: skip
    return Value(plain, evidence=evidence, why=f"the reply gives {value_text(value)}{why}")


def value_text(value: FieldScalar | Decimal) -> str:
    """A value as text for messages."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return quoted(value) if isinstance(value, str) else str(value)
