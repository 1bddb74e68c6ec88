"""Let a checker compare the values of records with their passages; verdicts become the basis of the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document
from pearl.documents.record import PLAIN, Basis, Candidate, FieldResult, Record
from pearl.dsl.fields import ENTRY, Field
from pearl.dsl.literals import short
from pearl.dsl.nodes import Step
from pearl.errors.escaping import counted
from pearl.interpreter import checking
from pearl.interpreter.context import off_loop
from pearl.interpreter.field_values import MAX_SHOWN
from pearl.interpreter.model_calls import Asker
from pearl.llm import Usage
from pearl.replies.extracted import ROWS


class _RecordClaim(Struct, frozen=True):
    """A claim about a field or list entry of a record."""

    record: int
    path: _Path
    claim: checking.Claim

    @property
    def of_list(self) -> tuple[object, ...] | None:
        """A key of the entry's list, the same in whatever outer entry the list is; None for a field."""
        if isinstance(self.path[-1], str):
            return None
        return self.record, *(name for name in self.path if isinstance(name, str))


_Path = tuple[str | int, ...]
"""The field names and entry numbers that lead to a value."""


async def check_records(
    step: Step, fields: Sequence[Field], records: Sequence[Record], asker: Asker,
    names: Sequence[str] = ("",),
) -> tuple[list[Record], checking.Checked, str]:  # fmt: skip
    """Mark values undecided that the checker does not find in their passages; also return a note. `names` are the records' names."""
    document = asker.calls.document
    if asker.checker is None:
        # Without a checker, one claim suffices to report that meaning was not checked.
        said = list(islice(_claims_of(fields, records, names, document, (0, 0)), 1))
    else:
        make = partial(_claims_within, fields, records, names, document)
        said = await off_loop(100 * sum(record.n_values for record in records), make)
    first, rest = _sample(said)
    verdicts: dict[_RecordClaim, checking.Verdict] = {}
    checked = checking.Checked([])
    while first:
        _, spent = asker.spent.get(step.output, (0, Usage()))
        claims = [each.claim for each in first]
        more = await checking.check_claims(asker, claims, step=step, n_spent=spent.n_input_tokens)
        verdicts |= zip(first, more.verdicts, strict=True)
        checked = replace(more, verdicts=[], why=checked.why or more.why)
        refused = {s.of_list for s in first if verdicts[s] in checking.REFUSED}
        first = [s for s in rest if s.of_list in refused and s not in verdicts]
    at: dict[tuple[int, _Path], checking.Verdict] = {
        (s.record, s.path): v for s, v in verdicts.items()
    }

    def settled(
        i: int, at_fields: _Path, fields: Mapping[str, FieldResult]
    ) -> dict[str, FieldResult]:
        """Apply the verdicts to the fields of a record or an entry; an entry has one verdict, its lists have their own."""
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
    elif n_judged:  # For rows, nothing else would show it
        note = f"judged, not checked: {counted(n_judged, 'value')}"
    return meant, checked, note


def _settled(result: FieldResult, verdict: checking.Verdict, by: str) -> FieldResult:
    """Apply the verdict of the checker to a value."""
    if result.state != "found" or not result.basis:
        return result
    if why := checking.REFUSED.get(verdict):
        candidate = Candidate(result.value, result.evidence)
        return FieldResult("undecided", why=why, candidates=(candidate,), checked_by=by)
    if verdict == "not checked":
        return replace(result, basis="judged")
    basis: Basis = "checked" if result.basis == "judged" else result.basis
    return replace(result, basis=basis, checked_by=by)


def _sample(said: Sequence[_RecordClaim]) -> tuple[list[_RecordClaim], list[_RecordClaim]]:
    """Split claims into those asked first (a sample of each long list) and those asked only if one of the sample fails."""
    lists: dict[object, list[_RecordClaim]] = {}
    for each in said:
        if each.of_list is not None:
            lists.setdefault(each.of_list, []).append(each)
    later = {
        each for entries in lists.values() if len(entries) > checking.MAX_CLAIMS
        for i, each in enumerate(entries)
        # Spread evenly over the list
        if i * checking.MAX_CLAIMS // len(entries) == (i - 1) * checking.MAX_CLAIMS // len(entries)
    }  # fmt: skip
    return [s for s in said if s not in later], [s for s in said if s in later]


def _claims_within(
    fields: Sequence[Field], records: Sequence[Record], names: Sequence[str], document: Document
) -> list[_RecordClaim]:
    """The claims of records; if they are many, fewer sentences are shown around their quotes."""
    room = checking.room_of(len(document.text))
    said: list[_RecordClaim] = []
    for beside in ((1, 1), (1, 0), (0, 0)):
        said = list(_claims_of(fields, records, names, document, beside))
        if checking.length_of(s.claim for s in said) <= room:
            break
    return said


def _claims_of(
    fields: Sequence[Field],
    records: Sequence[Record],
    names: Sequence[str],
    document: Document,
    beside: tuple[int, int],
) -> Iterator[_RecordClaim]:
    """A claim for every quoted value of the records, and for every entry of their lists."""

    def claim(text: str, results: Sequence[FieldResult]) -> checking.Claim:
        shown = [passage for result in results for passage in result.evidence[:MAX_SHOWN]]
        return checking.Claim(" ".join(text.split()), checking.passage_of(document, shown, beside))

    for i, (record, name) in enumerate(zip(records, names, strict=True)):
        of = f" of {name}" if name else ""
        for field in fields:
            result = record.fields[field.name]
            if not field.is_list and _is_stated(result):
                text = f"{_named(field)}{of} is {result.told}"
                yield _RecordClaim(i, (field.name,), claim(text, [result]))
                if field == fields[0] and field.type == "str" and not of:
                    of = f" of {result.told}"
            # The single list of `EXTRACT_ALL` has an internal name
            is_all = field.name == ROWS and len(fields) == 1 and field.fields
            whole = "" if is_all else f" of {_named(field)}{of}"
            for path, text, results in _entry_claims(field, result, (field.name,), whole):
                yield _RecordClaim(i, path, claim(text, results))


def _entry_claims(
    field: Field, result: FieldResult, path: _Path, whole: str, around: Sequence[FieldResult] = ()
) -> Iterator[tuple[_Path, str, Sequence[FieldResult]]]:
    """Yield each entry of a list and of its inner lists: path, words that locate it, values."""
    for n, entry in enumerate(result.entries):
        here = (*path, n)
        stated = [f for f in field.inner if _is_stated(entry[f.name])]
        if stated:
            values = [*around, *(entry[f.name] for f in stated)]
            yield here, _entry_in_words(entry, stated, whole, bool(field.fields)), values
        for inner in field.inner:
            if entry[inner.name].entries:
                first = stated[:1]
                of = "".join(f" of {_named(f)} {short(entry[f.name].told)}" for f in first)
                of = of or f" of entry {n + 1}"
                if field.fields[0].name != ENTRY:
                    of = f" of {_named(inner)}{of}"
                # Passages of everything that the words name are shown
                own = [replace(entry[f.name], evidence=entry[f.name].evidence[:1]) for f in first]
                there, of = (*here, inner.name), f"{of}{whole}"
                yield from _entry_claims(inner, entry[inner.name], there, of, [*around, *own])


def _entry_in_words(
    entry: Mapping[str, FieldResult], stated: Sequence[Field], whole: str, is_object: bool
) -> str:
    """Describe a list entry by its first field: "`name` Aspirin of `drugs` of Anna has `dose_mg` 500"."""
    first, *others = (
        entry[f.name].told
        if f.name == PLAIN and not is_object
        else f"{_named(f)} {entry[f.name].told}"
        for f in stated
    )
    said = f"has {', '.join(others)}" if others else f"is one{whole}" if whole else "is stated"
    return f"{first}{whole if others else ''} {said}"


AROUND_ENTRY = 1_000
"""Maximum characters that describe the enclosing entries, and of the first quote of the nearest one."""
ENTRY_TOKENS = 12  # Minimum tokens of a list entry in a reply


def _is_stated(result: FieldResult) -> bool:
    return result.state == "found" and bool(result.evidence)


def _named(field: Field) -> str:
    return f"`{field.name}` ({field.description})" if field.description else f"`{field.name}`"
