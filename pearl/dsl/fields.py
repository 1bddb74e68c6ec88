"""The fields of a record: what `EXTRACT(CTX, FIELDS)` takes from a document, and their short form.

The short form separates fields by commas: `patient: str, age: int? (in years), smoker: yes|no|unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, get_args

from pearl.dsl.literals import UNTYPED, short
from pearl.errors import Diagnostic, Fix, PlanError, Span, did_you_mean
from pearl.errors.patterns import lazy_pattern

FieldType = Literal["str", "text", "int", "number", "bool", "date", "label"]
"""`str` is copied from the document, `text` may be a summary, `label` is one of `Field.labels`."""

TYPES: tuple[FieldType, ...] = get_args(FieldType)[:-1]
"""The types that have a name; labels are written themselves."""

BAD_FIELDS = "bad-fields"
"""The code of every error in the short form."""

MAX_FIELDS = 200
MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record.

    Attributes:
        name: Its name; of a field of a nested object, with the names around it: `address.city`.
        type: The type of its value, or of each value of a list.
        is_optional: Whether a document need not state it.
        labels: The possible values of a `label`.
        description: What it means, in words.
        is_list: Whether it has several values.
        fields: The fields of each entry, for a list of objects; none of them is a list, and those of
            nested objects have dots in their names.
    """

    name: str
    type: FieldType = "str"
    is_optional: bool = False
    labels: tuple[str, ...] = ()
    description: str = ""
    is_list: bool = False
    fields: tuple[Field, ...] = ()


def print_fields(fields: Iterable[Field]) -> str:
    """The short form of fields; those of nested objects have dots in their names.

    Example:
        >>> print_fields(parse_fields("address: {city, 'zip code': int?}, smoker: yes|no (today)"))
        "address.city: str, address.'zip code': int?, smoker: yes|no (today)"
    """
    return ", ".join(map(_print_field, fields))


def _print_field(field: Field) -> str:
    name = ".".join(
        part if _PLAIN.fullmatch(part) else _quoted(part) for part in field.name.split(".")
    )
    type = "|".join(map(_print_label, field.labels)) or field.type
    if field.is_list:
        type = f"[{{{print_fields(field.fields)}}}]" if field.fields else f"[{type}]"
    about = field.description
    is_plain = " ".join(about.split()) == about and _balanced(f"({about})", 0) == len(about) + 2
    if not is_plain or _QUOTED_ABOUT.fullmatch(f"({about})"):
        about = _quoted(about)
    return f"{name}: {type}{'?' * field.is_optional}{f' ({about})' if field.description else ''}"


def _print_label(label: str) -> str:
    is_plain = _PLAIN.fullmatch(label) and label.casefold() not in _NO_LABELS
    return label if is_plain else _quoted(label)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_PLAIN = lazy_pattern(r"\w++")
_BLANKS = lazy_pattern(r"\s*+")
_WORD = lazy_pattern(r"'(?P<quoted>(?:[^']|'')*+)'|(?P<bare>[^\s,:?|.()\[\]{}']++)")
_QUOTED_ABOUT = lazy_pattern(r"\(\s*+'((?:[^']|'')*+)'\s*+\)")
_BRACKET = lazy_pattern(r"[()]")
_NO_LABELS = frozenset({*TYPES, "null", "none"})


def _balanced(text: str, start: int) -> int:
    """The end of the parentheses that open at `start`; -1 if they do not close."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            return bracket.end()
    return -1


def name_flaw(name: str) -> str:
    """Why a field cannot have this name; "" if it can."""
    if not name.strip():
        return "a field has no name"
    if "." in name:
        return (
            f"the name '{short(name)}' has a dot, which stands between the names of nested fields"
        )
    return f"the name {short(name)!r} has a control character" if UNTYPED.search(name) else ""


def labels_flaw(labels: Iterable[str]) -> str:
    """Why these cannot be the labels of a field; "" if they can."""
    keys = [" ".join(label.split()).casefold() for label in labels]
    if not all(keys):
        return "a label is empty"
    twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
    return f"label '{short(twice)}' is repeated" if twice else ""


def parse_fields(text: str) -> tuple[Field, ...]:
    """Read the short form of fields.

    Example:
        >>> [field.name for field in parse_fields("patient, drugs: [{name: str, dose_mg: number?}]")]
        ['patient', 'drugs']

    Raises:
        PlanError: With one diagnostic, at the place of the first error.
    """
    return _Reader(text).read()


class _Reader:
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.n_leaves = 0

    def read(self) -> tuple[Field, ...]:
        fields = tuple(self.fields("", 0, is_entry=False))
        if self.next():
            self.fail(f"'{self.next()}' closes nothing")
        if not fields:
            self.fail("there are no fields", help='write fields: "patient: str, age: int?"')
        return fields

    def fields(self, prefix: str, depth: int, *, is_entry: bool) -> Iterator[Field]:
        """The fields up to a bracket or the end."""
        if depth > MAX_DEPTH:
            self.fail(f"'{short(prefix[:-1])}' is nested more than {MAX_DEPTH} deep")
        names: set[str] = set()
        outer: set[str] = set()  # names of objects
        while self.next() not in ("", "}", "]"):
            start = self.at
            for field in self.field(prefix, depth, is_entry=is_entry):
                around = _around(field.name)
                if field.name in names or field.name in outer or not names.isdisjoint(around):
                    path = short(f"{prefix}{field.name}")
                    self.fail(f"field '{path}' is repeated", start, help="name each field once")
                names.add(field.name)
                outer.update(around)
                yield field
            if not self.took(","):
                if self.next() not in ("", "}", "]"):
                    self.fail(f"a comma is missing before '{self.next()}'", help=_HELP)
                break

    def field(self, prefix: str, depth: int, *, is_entry: bool) -> Iterator[Field]:
        """One field; an object gives those in it. Names are those within the record or entry."""
        start = self.at
        parts = [self.name(prefix)]
        while self.took("."):
            parts.append(self.name(f"{prefix}{'.'.join(parts)}."))
        name = ".".join(parts)
        path = f"{prefix}{name}"
        if depth + len(parts) - 1 > MAX_DEPTH:
            self.fail(f"'{short(path)}' is nested more than {MAX_DEPTH} deep", start)
        inner: tuple[Field, ...] = ()
        field = Field(name)
        if self.took(":"):
            self.next()
            opening = self.at
            if self.took("{"):
                inner = self.object(f"{path}.", depth + len(parts), is_entry=is_entry)
            elif self.took("["):
                if is_entry:
                    self.fail(f"'{short(path)}' is a list in a list", opening, help=_NO_LISTS)
                field = self.list(field, path, depth + len(parts))
            else:
                field = self.scalar(field, path)
        is_optional = self.took("?")
        description = self.description()
        if is_optional and self.next() == ":":
            self.fail("'?' stands after the type", start, help=f"write {name}: TYPE?")
        if inner:
            for leaf in inner:
                yield replace(
                    leaf,
                    name=f"{name}.{leaf.name}",
                    is_optional=leaf.is_optional or is_optional,
                    description=leaf.description or description,
                )
            return
        self.n_leaves += 0 if field.fields else 1
        if self.n_leaves > MAX_FIELDS:
            self.fail(f"more than {MAX_FIELDS} fields, at '{short(path)}'", start, help=_FEWER)
        yield replace(field, is_optional=is_optional, description=description)

    def object(self, prefix: str, depth: int, *, is_entry: bool) -> tuple[Field, ...]:
        opening = self.at - 1
        fields = tuple(self.fields(prefix, depth, is_entry=is_entry))
        if not self.took("}"):
            self.fail("'{' is not closed", opening, help="close it with '}'")
        if not fields:
            self.fail(f"object '{short(prefix[:-1])}' has no fields", opening, help=_HELP)
        return fields

    def list(self, field: Field, path: str, depth: int) -> Field:
        opening = self.at - 1
        if self.next() == "[":
            self.fail(f"'{short(path)}' is a list in a list", help=_NO_LISTS)
        if self.next() == "]":
            self.fail(f"list '{short(path)}' has no type", help="write [str] or [{name: str}]")
        if self.took("{"):
            field = replace(field, fields=self.object(f"{path}.", depth, is_entry=True))
        else:
            field = self.scalar(field, path)
        if self.next() == "?":
            self.fail(
                "an entry of a list is not optional", help="write ? after the bracket: [str]?"
            )
        if not self.took("]"):
            self.fail("'[' is not closed", opening, help="close it with ']' after one type")
        return replace(field, is_list=True)

    def scalar(self, field: Field, path: str) -> Field:
        """A type by its name, or labels."""
        self.next()
        start = self.at
        words = [self.word(f"'{short(path)}' has no type")]
        while self.took("|"):
            words.append(self.word(f"a label of '{short(path)}' is empty"))
        labels = tuple(text for text, _ in words)
        if len(words) == 1 and not words[0][1]:
            for type in TYPES:
                if type == labels[0]:
                    return replace(field, type=type)
            close = did_you_mean(labels[0], TYPES)
            known = f"types: {', '.join(TYPES)}; labels: yes|no"
            self.fail(
                f"'{short(path)}' has the unknown type '{short(labels[0])}'",
                start,
                help=f"did you mean {close}? {known}" if close else known,
            )
        for text, is_quoted in words:
            if not is_quoted and text.casefold() in _NO_LABELS:
                advice = (
                    "write ? after a type that may be missing, and such a label in single quotes"
                )
                self.fail(f"'{text}' beside '|' is no label", start, help=advice)
        if flaw := labels_flaw(labels):
            self.fail(f"'{short(path)}': {flaw}", start, help="write each label once: yes|no")
        return replace(field, type="label", labels=labels)

    def description(self) -> str:
        if self.next() != "(":
            return ""
        if quoted := _QUOTED_ABOUT.match(self.text, self.at):
            self.at = quoted.end()
            return quoted[1].replace("''", "'")
        end = _balanced(self.text, self.at)
        if end < 0:
            self.fail("'(' is not closed", help="close the description with ')'")
        start, self.at = self.at + 1, end
        return " ".join(self.text[start : end - 1].split())

    def name(self, prefix: str) -> str:
        self.next()
        start = self.at
        inside = f" in '{short(prefix[:-1])}'" if prefix else ""
        text, _ = self.word(f"a field{inside} has no name")
        if flaw := name_flaw(text):
            self.fail(f"{flaw}{inside}", start, help=_HELP)
        return text

    def word(self, missing: str) -> tuple[str, bool]:
        """The next word, and whether it is in quotes."""
        self.next()
        match = _WORD.match(self.text, self.at)
        if match is None:
            is_open = self.text.startswith("'", self.at)
            self.fail("a single quote is not closed" if is_open else missing, help=_HELP)
        if match["quoted"] is None and not _PLAIN.fullmatch(match[0]):
            self.fail(
                f"'{short(match[0])}' has characters other than letters, digits and '_'",
                help="write it in single quotes",
                fix=Fix(Span(*match.span()), _quoted(match[0])),
            )
        self.at = match.end()
        quoted = match["quoted"]
        return (match[0], False) if quoted is None else (quoted.replace("''", "'"), True)

    def next(self) -> str:
        """The next character that is not blank; "" at the end."""
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def took(self, mark: str) -> bool:
        """Whether the next character is this one, which is then read."""
        is_next = self.next() == mark
        self.at += is_next
        return is_next

    def fail(
        self, message: str, at: int | None = None, help: str | None = None, fix: Fix | None = None
    ) -> NoReturn:
        start = min(self.at if at is None else at, len(self.text))
        word = _WORD.match(self.text, start)
        span = Span(start, word.end() if word else start + 1)
        raise PlanError(
            self.text, [Diagnostic(BAD_FIELDS, message, span, help=help, fix=fix)], "fields"
        )


def _around(name: str) -> list[str]:
    """The names of the objects around a field."""
    parts = name.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


_HELP = "a field reads: name: type? (what it means)"
_NO_LISTS = "the entries of a list have plain fields: [{name: str, dose: number}]"
_FEWER = "split them into several extractions"
