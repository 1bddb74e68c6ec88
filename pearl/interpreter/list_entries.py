"""Join lists from replies about the parts of a text: one list, each entry with its own place in the document."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.evidence import Quote
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.evidence.value_checks import Stated, n_standing, same_value
from pearl.documents.numbers import quoted
from pearl.documents.passages import without_list_mark
from pearl.documents.record import PLAIN, Candidate, FieldResult, FieldScalar
from pearl.dsl.fields import ENTRY, Field
from pearl.dsl.literals import short
from pearl.errors import Span
from pearl.interpreter.field_values import (
    MAX_PLACES,
    MAX_SHOWN,
    Place,
    Quotes,
    Value,
    united,
    value_text,
)
from pearl.replies.extracted import Claim, Claims


class _Entry(Struct):
    """A list entry of a reply, the part in which its quotes are looked up, and their places."""

    part: Span | None
    claims: Mapping[str, Claims]
    reply: int
    rest: Span | None = None
    """The last part that its lists go on in."""
    anchors: Sequence[Place] = ()
    """The place of the entry's rarest quote; all of its places if they cannot be told apart."""

    @property
    def whole(self) -> Span | None:
        """Its parts."""
        return Span(self.part.start, self.rest.end) if self.part and self.rest else self.part


class FieldReader:
    """Reads the fields of a record from the replies about the parts of a text."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes

    def result(self, field: Field, said: Sequence[tuple[Span | None, Claims]]) -> FieldResult:
        """The result of a field from the claims in all parts."""
        if field.is_list:
            return self._list(field, said)
        values = [
            self._quotes.value(field, claim, None if claim.quotes else part)
            for part, c in said for claim in c.values
        ]  # fmt: skip
        unread = next((claims.why for _, claims in said if claims.why and not claims.values), "")
        values += [Value(why=claims.why) for _, claims in said if claims.why and claims.values]
        return united(field, values, unread)

    def broken(
        self, fields: Sequence[Field], said: Mapping[str, Claims], part: Span | None, path: str = "", of: str = ""
    ) -> Iterator[Field]:  # fmt: skip
        """Yield a field for each value to ask for again, named by its path; its description has the reason."""
        for field in fields:
            claims, name = said[field.name], f"{path}{field.name}"
            for i, entry in enumerate(claims.entries):
                named = (c.value for f in field.inner[:-1] for c in entry[f.name].values)
                first = next((value_text(value) for value in named if value is not None), "")
                inner_of = " ".join(filter(None, (first and f"of {first}", of)))
                yield from self.broken(field.inner, entry, part, f"{name}[{i}].", inner_of)
            values = (
                self._quotes.value(field, claim, part)
                for claim in claims.values if field.rules or not claim.quotes
            )  # fmt: skip
            if why := next((value.why for value in values if value.is_broken), ""):
                about = "; ".join(filter(None, (short(of), field.description, why)))
                yield replace(field, name=name, is_list=False, is_optional=True, description=about)

    def _list(
        self, field: Field, said: Sequence[tuple[Span | None, Claims]], within: Span | None = None
    ) -> FieldResult:
        """Join the entries of all parts in document order. Equal entries get different places; an inner list ends where the next entry begins."""
        inner = field.inner
        joined, why_cut = self._joined(inner, said)
        entries, whys, candidates = self._placed(inner, joined, within)
        has_lists = any(each.is_list for each in inner)
        regions = self._regions(entries, within) if has_lists else {}
        results: list[tuple[int, int, Mapping[str, FieldResult]]] = []
        # Equal entries at all of their places are compared once
        open_ones: dict[object, Mapping[str, FieldResult]] = {}
        at = 0
        is_plain, has_gaps = not field.fields, False
        for entry in entries:
            said_of = () if has_lists else (entry.part, *entry.claims.values())
            is_alone = has_lists or len(entry.anchors) == 1
            if is_alone or said_of not in open_ones:
                open_ones[said_of] = self._entry(inner, entry, regions.get(id(entry)))
            results_of = open_ones[said_of]
            # An entry without a single place keeps its position after the previous entry of the
            # reply.
            sole = (f.evidence[0].span.start for f in results_of.values() if len(f.evidence) == 1)
            inner_at = (start for f in results_of.values() if f.entries for start in _starts(f))
            at = next(sole, min(inner_at, default=at))
            if any(f.state != "not_stated" for f in results_of.values()) or is_plain:
                results.append((at, entry.reply, results_of))
                has_gaps |= all(f.state == "not_stated" for f in results_of.values())
        # A blank entry has no place in the document, so the order of the reply is kept
        if not (has_gaps and len(said) == 1):
            results.sort(key=lambda each: each[0])
        kept = self._once(field, results)
        if field.fields and field.fields[0].name == ENTRY:
            kept = self._without_strays(kept)
        whys += filter(None, [*(claims.why for _, claims in said), why_cut])
        why = whys[0] if whys else ""
        state: Literal["found", "not_stated", "undecided"] = "found" if kept else "not_stated"
        return FieldResult(
            "undecided" if why else state, why=why, entries=tuple(kept), candidates=candidates,
            has_objects=bool(field.fields) and [f.name for f in field.fields] == [PLAIN],
        )  # fmt: skip

    def _without_strays(
        self, rows: Sequence[Mapping[str, FieldResult]]
    ) -> list[Mapping[str, FieldResult]]:
        """Mark a value undecided if its quote is on a line of another entry's inner list."""
        at_line: dict[int, list[tuple[int, Span]]] = {}
        for i, row in enumerate(rows):
            for cell in row[PLAIN].entries:
                for passage in cell[PLAIN].evidence:
                    at_line.setdefault(self._quotes.line(passage.span)[0], []).append(
                        (i, passage.span)
                    )

        def is_stray(i: int, cell: FieldResult) -> bool:
            spans = [passage.span for passage in cell.evidence]
            near = [each for span in spans for each in at_line[self._quotes.line(span)[0]]]
            is_alone = sum(j == i for j, _ in near) <= len(spans)
            return is_alone and any(j != i and _overlap(span, s) for j, s in near for span in spans)

        def settled(i: int, cell: Mapping[str, FieldResult]) -> Mapping[str, FieldResult]:
            result = cell[PLAIN]
            if result.entries or not is_stray(i, result):
                return cell
            why = f"the reply gives {value_text(result.value)}, but with the quote of another entry"
            candidates = (Candidate(result.value, result.evidence),)
            return {PLAIN: FieldResult("undecided", why=why, candidates=candidates)}

        return [
            {PLAIN: replace(row[PLAIN], entries=tuple(settled(i, c) for c in row[PLAIN].entries))}
            for i, row in enumerate(rows)
        ]

    def _joined(
        self, fields: Sequence[Field], said: Sequence[tuple[Span | None, Claims]]
    ) -> tuple[list[_Entry], str]:
        """The entries of all parts, and why one of them may be half of another. If a border of parts cuts an entry, its rest in the next part is joined to it; a single value stays undecided, as it may belong to another entry."""
        scalars = [field for field in fields if not field.is_list]
        needed = {each.name for each in scalars if not each.is_optional}
        needed = needed or {each.name for each in scalars[:1]}
        entries: list[_Entry] = []
        why = ""
        for reply, (part, claims) in enumerate(said):
            more = [_Entry(part, each, reply) for each in claims.entries]
            last = entries[-1] if entries and more else None
            if last and (own := last.whole) and part and own.end <= part.start:
                rest = more[0].claims
                before, behind = (
                    {each.name for each in scalars if _is_stated(entry[each.name])}
                    for entry in (last.claims, rest)
                )
                has_lists = any(each.entries for each in rest.values())
                is_sure = bool(before) and not behind and has_lists and own.end == part.start
                lacks = needed - behind
                if is_sure or (lacks and len(fields) > 1 and behind.isdisjoint(before)):
                    last.claims = {
                        field.name: self._both(field, (own, last.claims[field.name]), (part, rest[field.name]), is_sure=is_sure)
                        for field in fields
                    }  # fmt: skip
                    last.rest = part
                    del more[0]
                elif lacks and lacks == needed:
                    why = f"an entry has no {min(lacks)}: it may continue an entry of another part"
            entries += more
        return entries, why

    def _both(
        self, field: Field, one: tuple[Span, Claims], other: tuple[Span, Claims], *, is_sure: bool
    ) -> Claims:
        """The claims on a field of an entry, joined with those of its rest in the next part."""
        own, rest = one[1], other[1]
        why = "" if is_sure else "it may be of another entry: a border of parts is before it"
        if own.entries or rest.entries:
            joined, why_cut = self._joined(field.inner, [one, other])
            why = own.why or rest.why or why_cut or why * bool(rest.entries)
            return Claims(entries=tuple(each.claims for each in joined), why=why)
        return replace(rest, why=rest.why or why) if _is_stated(rest) else own

    def _regions(self, entries: Sequence[_Entry], within: Span | None) -> dict[int, Span]:
        """The text of each entry by its id(): from its first passage to the first passage of the next entry."""
        starts: list[tuple[int, _Entry]] = []
        for entry in entries:
            places = [self._quotes.places(text, entry.part) for _, text in _stated(entry.claims)]
            single = [
                found[0].spans[0].start for found in places if len(found) == 1 and found[0].spans
            ]
            single += [place[0].start for place in entry.anchors if len(entry.anchors) == 1]
            if single:
                starts.append((min(single), entry))
        starts.sort(key=lambda each: each[0])
        end = within.end if within else len(self._quotes.document.text)
        regions: dict[int, Span] = {}
        following = end
        for i in range(len(starts) - 1, -1, -1):
            start, entry = starts[i]
            if i + 1 < len(starts) and starts[i + 1][0] > start:
                following = starts[i + 1][0]
            whole = entry.whole
            most = whole.end if whole and start < whole.end else end
            regions[id(entry)] = Span(start, max(min(following, most), start + 1))
        return regions

    def _once(
        self, field: Field, results: Sequence[tuple[int, int, Mapping[str, FieldResult]]]
    ) -> list[Mapping[str, FieldResult]]:
        """Merge entries that occur in several replies."""
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
                any(map(has_place, entry.values()))
                or _frozen(entry) not in placeless
                or (is_one and not field.fields and entry[PLAIN].state == "not_stated")
            ):
                # An entry without a place is dropped if it only repeats others
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
        """Each value of an entry with the lines of its first passages, those of inner lists included."""
        for name, result in entry.items():
            for inner in result.entries[:MAX_SHOWN]:
                yield from self._lines_of(inner)
            for passage in result.evidence[:MAX_SHOWN]:
                yield name, result.value, self._quotes.line(passage.span)[0]

    def _merged(
        self, field: Field, one: Mapping[str, FieldResult], other: Mapping[str, FieldResult]
    ) -> Mapping[str, FieldResult] | None:
        """Merge an entry from two replies; None if they are different entries."""
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
            elif a.plain != b.plain:  # Equal lists alone do not show that the entries are the same
                return None
            else:
                is_same = True
        return merged if is_same else None

    def _placed(
        self, fields: Sequence[Field], entries: Sequence[_Entry], within: Span | None
    ) -> tuple[list[_Entry], list[str], tuple[Candidate, ...]]:
        """Assign the k-th of equal entries to their k-th place; also return why entries may be missing or too many, and the doubtful ones as candidates."""
        equal: dict[object, list[_Entry]] = {}
        for entry in entries:
            equal.setdefault(_said(entry.claims), []).append(entry)
        whys: list[str] = []
        left_out: set[int] = set()
        candidates: list[Candidate] = []

        def note(group: Sequence[_Entry], places: Sequence[Place]) -> None:
            n, m = len(group), len(places)
            values = [c.value for c, _ in _stated(group[0].claims)] or [
                c.value for each in group[0].claims.values() for c in each.values
            ]
            told = ", ".join(value_text(value) for value in values if value is not None)
            shown = [Quote("", place, "normalised") for place in dict.fromkeys(places)][:MAX_PLACES]
            evidence = tuple(
                passage_at(q, self._quotes.output, self._quotes.document) for q in shown
            )
            times = f"the reply lists {told} ({_times(n)}), the document has it {_times(m)}"
            whys.append(f"{times}: {quoted(evidence[0].text)}")
            candidates.extend([Candidate(told, evidence)] * min(abs(n - m), MAX_PLACES))

        for same in equal.values():
            every = self._places_of(same, within)
            # Of several replies about one part, take the one with the most equal entries.
            n_said = Counts((entry.part, entry.reply) for entry in same)
            n_most = {part: n for (part, _), n in sorted(n_said.items(), key=lambda each: each[1])}
            told = same[: sum(n_most.values())]
            if len(told) < len(every) and self._is_repeated(told, every):
                note(told, every)
            for reply in {entry.reply for entry in same}:
                group = [entry for entry in same if entry.reply == reply]
                part = group[0].part
                is_all = len(group) == len(same) and part == within
                places = every if is_all else self._places_of(group, part)
                twins: dict[object, list[_Entry]] = {}
                for entry in group:
                    twins.setdefault(_said(entry.claims, is_deep=True), []).append(entry)
                # Entries that differ only in their lists may share a place.
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

    def _places_of(self, equal: Sequence[_Entry], part: Span | None) -> list[Place]:
        """The places of equal entries: those of the rarest quote, on lines with all quotes, once for each occurrence of the values."""
        at_line: dict[int, list[Place]] = {}
        for stated in dict.fromkeys(tuple(_stated(entry.claims)) for entry in equal):
            by_text = {
                text: [q.spans for q in self._quotes.places(text, part) if q.spans]
                for _, text in stated
            }
            by_text = {text: places for text, places in by_text.items() if places}
            if not by_text:
                continue
            rarest = min(
                by_text, key=lambda text: (len(self._quotes.places(text, None)), -len(text))
            )
            places = by_text[rarest]
            complete = [
                spans for spans in places
                if all(_stands_in(others, *self._quotes.line(spans[0])) for others in by_text.values())
            ]  # fmt: skip
            places = complete or places
            passage = self._quotes.document.text[places[0][0].start : places[0][-1].end]
            n = _times_in(passage, [claim.value for claim, text in stated if text == rarest])
            for spans in places:
                here = at_line.setdefault(self._quotes.line(spans[0])[0], [spans] * n)
                # A value without a quote may occur several times on a line.
                if len(stated) == 1 and here[-1][-1].end <= spans[0].start:
                    here.append(spans)
        return sorted(spans for places in at_line.values() for spans in places)

    def _places_alone(self, fields: Sequence[Field], entry: _Entry) -> list[Place]:
        """The places of an entry without quotes: the places of its rarest value."""
        rarest: list[Place] = []
        for field in fields:
            for claim in entry.claims[field.name].values:
                result = self._quotes.value(field, claim, entry.part)
                if claim.value is None or result.why:
                    continue
                end = 0
                places: list[Place] = []
                for span in sorted((e.span for e in result.evidence), key=lambda s: s.start):
                    text = self._quotes.document.text[max(span.start, end) : span.end]
                    n = n_standing(claim.value, text) or (field.type == "str" and not places)
                    places.extend([(span,)] * n)
                    end = max(end, span.end)
                if places and not 0 < len(rarest) <= len(places):
                    rarest = places
        return rarest

    def _is_repeated(self, group: Sequence[_Entry], places: Sequence[Place]) -> bool:
        """Whether the text repeats a record or a whole line more often than the reply."""
        stated = group[0].claims.values()
        n_fields = sum(any(c.quotes for c in claims.values) for claims in stated)
        lines = {self._quotes.line(spans[0]) for spans in places}
        text = self._quotes.document.text
        n_equal = Counts(without_list_mark(text[start:end]).strip() for start, end in lines)
        return len(lines) > len(group) and (n_fields > 1 or max(n_equal.values()) > len(group))

    def _entry(
        self, fields: Sequence[Field], entry: _Entry, region: Span | None
    ) -> dict[str, FieldResult]:
        """Compare the fields of an entry: long quotes first, then short ones near them, and lists within its region."""
        near = [tuple(Span(place[0].start, place[-1].end) for place in entry.anchors)]
        results: dict[str, FieldResult] = {}

        def length(field: Field) -> int:
            values = entry.claims[field.name].values
            return -max((len(q) for c in values for q in c.quotes), default=0)

        for field in sorted(fields, key=length):
            claims = entry.claims[field.name]
            if field.is_list:
                within = region or entry.whole
                results[field.name] = self._list(field, [(within, claims)], within)
                continue
            values = [self._quotes.value(field, claim, entry.part, near) for claim in claims.values]
            if claims.why and claims.values:
                values.append(Value(why=claims.why))
            results[field.name] = united(field, values, claims.why)
            near += [tuple(each.span for each in results[field.name].evidence)]
        return {field.name: results[field.name] for field in fields}


def _stated(claims: Mapping[str, Claims]) -> list[tuple[Claim, str]]:
    """Each value of an entry with each of its quotes; for an entry of lists only, those of their entries."""
    own = [
        (claim, text)
        for each in claims.values() for claim in each.values if claim.value is not None
        for text in claim.quotes
    ]  # fmt: skip
    return own or [s for each in claims.values() for e in each.entries for s in _stated(e)]


def _is_stated(claims: Claims) -> bool:
    return any(claim.value is not None for claim in claims.values)


def _said(claims: Mapping[str, Claims], *, is_deep: bool = False) -> tuple[object, ...]:
    """The values of an entry as a key that ignores case and spacing; lists are included only if there are no other values, or if `is_deep`."""

    def key(value: Stated | None) -> object:
        return tuple(value.casefold().split()) if isinstance(value, str) else value

    own = [(name, tuple(key(c.value) for c in each.values)) for name, each in claims.items()]
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


def has_place(result: FieldResult) -> bool:
    """Whether a value, or one of its entries, has a passage."""
    return bool(result.evidence) or any(
        has_place(f) for entry in result.entries for f in entry.values()
    )


def _starts(result: FieldResult) -> Iterator[int]:
    """Where the values stand that have one place only."""
    if len(result.evidence) == 1:
        yield result.evidence[0].span.start
    for entry in result.entries:
        for inner in entry.values():
            yield from _starts(inner)


def _times_in(passage: str, values: Iterable[Stated | None]) -> int:
    """How often a passage has all of the values, at least 1."""
    n = 0
    for value in values:
        if value is not None:
            found = n_standing(value, passage)
            n = min(n or found, found)
            if n < 2:  # The others do not matter
                break
    return max(n, 1)


def _times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")


def _stands_in(places: Sequence[Place], start: int, end: int) -> bool:
    """Whether one of the sorted places starts within a range."""
    i = bisect_left(places, start, key=lambda spans: spans[0].start)
    return i < len(places) and places[i][-1].end <= end
