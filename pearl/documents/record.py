"""Extracted fields: value, state, and the passages that support it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from pearl.documents.evidence.collecting import Evidence

FieldState = Literal["found", "not_stated", "undecided"]
"""Whether a field has a value, the document does not state it, or no value could be supported."""

Basis = Literal["", "copied", "normalised", "checked", "judged", "person"]
"""Why a value is accepted: its quotes contain it literally or in another notation, and a checker agrees; a checker alone
says that they state it (`checked`); nobody checked what they mean (`judged`); or a person gave it."""

PLAIN = "value"  # The name of the one field of an entry in a list of plain values

MAX_NAMED = 6  # Maximum undecided fields that a reason names

FieldScalar = str | int | float | bool | None  # A value of a field; a date is a text, YYYY-MM-DD


class Candidate(Struct, frozen=True):
    """A value that a field may have."""

    value: FieldScalar
    evidence: tuple[Evidence, ...] = ()


class FieldResult(Struct, frozen=True):
    """The result of extracting one field."""

    state: FieldState
    value: FieldScalar = None  # None unless it is found; None for a list, which has `entries`
    why: str = ""  # Why it is undecided
    basis: Basis = ""  # What supports the value
    evidence: tuple[Evidence, ...] = ()  # The passages that support the value
    candidates: tuple[Candidate, ...] = ()  # The values that are possible, if it is undecided
    entries: tuple[Mapping[str, FieldResult], ...] = ()
    """The entries of a list, each with its fields; a list of plain values has the one field `value`."""
    step: str = ""  # The step that extracts it; "" in an entry
    checked_by: str = ""  # The model that judged whether the evidence supports the value
    has_objects: bool = False  # Entries with the one field `value` are objects, no plain values

    @property
    def is_plain(self) -> bool:
        """Whether this is a list of plain values or of lists, not of objects."""
        return not self.has_objects and all(entry.keys() == {PLAIN} for entry in self.entries)

    @property
    def plain(self) -> Any:
        """The value; for a list, its values or objects. None if it is undecided or not stated."""
        if not self.entries:
            return self.value
        if self.is_plain:
            return [entry[PLAIN].plain for entry in self.entries]
        return [{name: f.plain for name, f in entry.items()} for entry in self.entries]

    @property
    def told(self) -> str:
        """The value as text, or the reason why it is missing; a list is on one line."""
        match self.state:
            case "undecided" if not self.entries:
                return f"undecided, because {self.why}"
            case "not_stated":
                return "not stated"
        if self.entries:
            shown = "; ".join(told_entry(entry, self.is_plain) for entry in self.entries)
            return f"{shown}; undecided, because {self.why}" if self.why else shown
        if isinstance(self.value, bool):
            return "yes" if self.value else "no"
        return str(self.value)

    @property
    def passages(self) -> tuple[Evidence, ...]:
        """The passages of the value, of its candidates and of its entries."""
        own = [*self.evidence, *(e for candidate in self.candidates for e in candidate.evidence)]
        inner = (e for entry in self.entries for f in entry.values() for e in f.passages)
        return (*own, *inner)


def told_entry(entry: Mapping[str, FieldResult], is_plain: bool = True) -> str:
    """An entry of a list as text on one line; a list inside it is in brackets."""
    told = [(name, f"[{f.told}]" if f.entries else f.told) for name, f in entry.items()]
    if is_plain and entry.keys() == {PLAIN}:
        return told[0][1]
    return ", ".join(f"{name}: {text}" for name, text in told)


class Record(Struct, frozen=True, dict=True):
    """The fields of one document, or of a part of it, in the order of the schema."""

    fields: Mapping[str, FieldResult] = {}

    @cached_property
    def lines(self) -> list[tuple[str, tuple[Evidence, ...]]]:
        """One line of text per field, with its passages; a list of objects or lists has a line per entry."""
        lines: list[tuple[str, tuple[Evidence, ...]]] = []
        for name, result in self.fields.items():
            is_flat = not any(f.entries for entry in result.entries for f in entry.values())
            is_plain = result.is_plain
            if not result.entries or (is_plain and is_flat):
                lines.append((f"{name}: {result.told}", result.passages))
                continue
            for i, entry in enumerate(result.entries, start=1):
                passages = tuple(e for f in entry.values() for e in f.passages)
                lines.append((f"{name} {i}: {told_entry(entry, is_plain)}", passages))
            if result.why:
                lines.append((f"{name}: undecided, because {result.why}", ()))
        return lines

    @property
    def n_values(self) -> int:
        """The number of fields, those of each entry of a list included."""
        return _n_values(self.fields)

    @property
    def paths(self) -> dict[str, FieldResult]:
        """Every field by its path, those of the entries of lists included: `age`, `drugs[0].doses[1].mg`."""
        return dict(_paths(self.fields, ""))

    @cached_property
    def undecided(self) -> tuple[str, ...]:
        """The paths of the undecided fields."""
        return tuple(path for path, f in self.paths.items() if f.state == "undecided")

    @property
    def why_undecided(self) -> str:
        """A text that names the undecided fields; "" if there are none."""
        if not (names := self.undecided):
            return ""
        shown = ", ".join(names[:MAX_NAMED])
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        are = "are" if len(names) > 1 else "is"
        return f"{len(names)} of {self.n_values} fields {are} undecided: {shown}{more}"


def _n_values(fields: Mapping[str, FieldResult]) -> int:
    return sum(sum(map(_n_values, f.entries)) or 1 for f in fields.values())


def _paths(fields: Mapping[str, FieldResult], start: str) -> Iterator[tuple[str, FieldResult]]:
    for name, result in fields.items():
        yield f"{start}{name}", result
        for i, entry in enumerate(result.entries):
            yield from _paths(entry, f"{start}{name}[{i}].")


class Reading(Struct, frozen=True):
    """A record in the form of a schema: its value (None if a required part is missing), and all `data` found."""

    value: Any
    data: Any
    undecided: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    plain: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The reading as JSON data; if there is no value, `partial` has the parts that were found."""
        return {
            "value": self.plain,
            **({"partial": self.data} if self.plain is None else {}),
            "undecided": list(self.undecided),
            **({"reasons": list(self.reasons)} if self.reasons else {}),
        }
