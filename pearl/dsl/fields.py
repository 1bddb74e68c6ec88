"""The fields of a record: what `EXTRACT(CTX, FIELDS)` takes from a document, and their short form.

The short form separates fields by commas: `patient: str, age: int? (in years), smoker: yes|no|unknown`. The
rules for a value follow its type, in the keywords of JSON Schema: `age: int {"minimum": 0}?`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal, NoReturn, get_args

from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl.literals import UNTYPED, short
from pearl.errors import Diagnostic, Fix, PlanError, Span, did_you_mean
from pearl.errors.patterns import lazy_pattern

MAX_PATTERN = 1_000  # Maximum characters of a pattern: compiling one takes time and room


@lru_cache(maxsize=1_000)
def validator(rules: str) -> Any:
    """Make a validator of rules; `ValueError` says why they cannot be checked."""
    import jsonschema_rs  # late: few schemas have rules

    said = json.loads(rules, parse_float=Decimal)
    if len(str(said.get("pattern", ""))) > MAX_PATTERN:
        raise ValueError(f"a pattern has more than {MAX_PATTERN:,} characters")

    def refuse(uri: str) -> NoReturn:
        raise ValueError(f"not looked up: {uri}")

    try:
        return jsonschema_rs.Draft202012Validator(
            said, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions(), retriever=refuse
        )  # fmt: skip
    except jsonschema_rs.ValidationError as error:
        raise ValueError(error.message) from None


def broken_rule(rules: str, value: object) -> str:
    """The rule that a value breaks, and how: `the value 140 breaks "maximum": 120`; "" for none.

    Example:
        >>> broken_rule('{"multipleOf": 0.01}', Decimal("0.105"))
        'the value 0.105 breaks "multipleOf": 0.01'
    """
    if not rules or isinstance(value, bool):
        return ""
    given = Decimal(str(value)) if isinstance(value, int | float) else value
    error = next(iter(validator(rules).iter_errors(given)), None)
    if error is None:
        return ""
    (keyword, *_) = error.schema_path
    wanted = json.loads(rules, parse_float=Decimal)[keyword]
    wanted = json.dumps(wanted, ensure_ascii=False) if isinstance(wanted, str) else str(wanted)
    shown = f"'{short(given)}'" if isinstance(given, str) else value
    return f'the value {shown} breaks "{keyword}": {short(wanted)}'


FieldType = Literal["str", "text", "int", "number", "decimal", "bool", "date", "label"]
"""`str` is copied from the document, `text` may be a summary, a `decimal` is a number that keeps its digits, `label` is
one of `Field.labels`."""

TYPES: tuple[FieldType, ...] = get_args(FieldType)[:-1]
"""The types that have a name; labels are written themselves."""

BAD_FIELDS = "bad-fields"  # The code of every error in the short form

MAX_FIELDS = 5_000
MAX_DEPTH = 16
ENTRY = ""  # The name of the one field of a list of lists: the entry itself


class Field(Struct, frozen=True):
    """One field of a record.

    Attributes:
        name: Its name; in a nested object with the names of the outer objects: `address.city`.
        type: The type of its value, or of each value of a list.
        is_optional: Whether a document need not state it.
        labels: The possible values of a `label`.
        description: What it means, in words.
        is_list: Whether it has several values.
        fields: The fields of each entry, for a list of objects; those of nested objects have dots in their names.
            For a list of lists, one list called `ENTRY`.
        rules: The rules for its value, or for each value of a list: keywords of JSON Schema and their values, as
            JSON text; "" for nothing.
    """

    name: str
    type: FieldType = "str"
    is_optional: bool = False
    labels: tuple[str, ...] = ()
    description: str = ""
    is_list: bool = False
    fields: tuple[Field, ...] = ()
    rules: str = ""

    @property
    def inner(self) -> tuple[Field, ...]:
        """The fields of each entry of a list; an entry that is a plain value or a list has one, called `value`."""
        if self.fields and self.fields[0].name == ENTRY:
            return (replace(self.fields[0], name="value"),)
        return self.fields or (replace(self, name="value", is_list=False),)

    @property
    def n_leaves(self) -> int:
        """The number of values of the field; for a list, of one entry."""
        return sum(field.n_leaves for field in self.fields) or 1


def print_fields(fields: Iterable[Field]) -> str:
    """The short form of fields; those of nested objects have dots in their names."""
    printed = []
    for field in fields:
        name = ".".join(map(_printed, field.name.split(".")))
        if "]." in field.name:
            name = _quoted(field.name)  # the path of a value in a list is one word: `drugs[0].dose`
        about = field.description
        is_plain = " ".join(about.split()) == about and _balanced(f"({about})", 0) == len(about) + 2
        if not is_plain or _QUOTED_ABOUT.fullmatch(f"({about})"):
            about = _quoted(about)
        about = f" ({about})" if field.description else ""
        printed.append(f"{name}: {_print_type(field)}{'?' * field.is_optional}{about}")
    return ", ".join(printed)


def _print_type(field: Field) -> str:
    if field.is_list and field.fields:
        is_nested = field.fields[0].name == ENTRY
        entry = _print_type(field.fields[0]) if is_nested else f"{{{print_fields(field.fields)}}}"
        return f"[{entry}]"
    reserved = _NO_LABELS if len(field.labels) > 1 else field.labels
    printed = "|".join(_printed(label, reserved) for label in field.labels) or field.type
    printed += f" {field.rules}" if field.rules else ""
    return f"[{printed}]" if field.is_list else printed


def _printed(word: str, reserved: Container[str] = ()) -> str:
    is_free = word not in reserved and word.casefold() not in reserved
    return word if _is_plain(word) and is_free else _quoted(word)


def _is_plain(word: str) -> bool:
    """Whether a word may be written without quotes."""
    return word.replace("_", "a").isalnum()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_WORD = lazy_pattern(  # 'it''s a name' or age
    r"'(?P<quoted>(?:[^']|'')*+)'|(?P<bare>[^\s,:?|.()\[\]{}']++)"
)
_QUOTED_ABOUT = lazy_pattern(r"\(\s*+'((?:[^']|'')*+)'\s*+\)")
_JSON = json.JSONDecoder()
RULES = frozenset({
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format",
})  # fmt: skip
"""The keywords of JSON Schema that a single value can break."""
_BLANKS = dict.fromkeys(map(ord, "\t\n\r"), " ")
_RULES = 'write keywords of JSON Schema after the type: int {"minimum": 0}; or leave them out'
_NO_LABELS = frozenset({*TYPES, "null", "none"})


def _balanced(text: str, start: int) -> int:
    """The offset after the parentheses that open at `start`; -1 if they do not close."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at + 1
    return -1


def name_flaw(name: str) -> str:
    """Why a field cannot have this name; "" if it can."""
    if not name.strip():
        return "a field has no name"
    if "." in name:
        return (
            f"the name '{short(name)}' has a dot, which stands between the names of nested fields"
        )
    return "a name has a control character" if UNTYPED.search(name) else ""


def labels_flaw(labels: Iterable[str]) -> str:
    """Why these cannot be the labels of a field; "" if they can."""
    keys = [" ".join(label.split()).casefold() for label in labels]
    if not all(keys):
        return "a label is empty"
    twice = next((key for i, key in enumerate(keys) if key in keys[:i]), None)
    return f"label '{short(twice)}' is repeated" if twice else ""


@lru_cache(maxsize=128)  # The fields of a plan are read for each document
def parse_fields(text: str) -> tuple[Field, ...]:
    """Read the short form of fields; a `PlanError` has one diagnostic, at the place of the first error."""
    return _Reader(text).read()


class _Reader:
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> tuple[Field, ...]:
        fields = tuple(self.fields("", 0))
        if self.next() or not fields:
            self.fail(f"'{self.next()}' closes nothing" if fields else "there are no fields")
        if sum(field.n_leaves for field in fields) > MAX_FIELDS:
            self.fail(f"more than {MAX_FIELDS:,} fields", 0, "split them into several extractions")
        return fields

    def fields(self, path: str, depth: int) -> Iterator[Field]:
        """Read the fields up to a bracket or the end; those of nested objects have dots in their names."""
        leaves: set[str] = set()
        names: set[str] = set()
        while self.next() and self.next() not in "}]":
            start = self.at
            for field in self.field(path, depth):
                parts = field.name.split(".")
                around = {".".join(parts[:i]) for i in range(1, len(parts))}
                if field.name in names or around & leaves:
                    self.fail(f"field '{short(path + field.name)}' is repeated", start)
                leaves.add(field.name)
                names |= {field.name, *around}
                yield field
            if not self.took(",") and self.next() and self.next() not in "}]":
                self.fail(f"a comma is missing before '{self.next()}'")

    def field(self, path: str, depth: int) -> Iterator[Field]:
        """Read one field; for an object, its fields."""
        start = self.at
        parts = [self.name(path)]
        while self.took("."):
            parts.append(self.name(path))
        name = ".".join(parts)
        path, depth = f"{path}{name}", depth + name.count(".") + 1
        if depth > MAX_DEPTH + 1:
            self.fail(f"'{short(path)}' is nested more than {MAX_DEPTH} deep", start)
        inner: tuple[Field, ...] = ()
        field = Field(name)
        if self.took(":"):
            if self.next() == "{":
                inner = self.object(path, depth)
            elif self.next() == "[":
                field = self.list(field, path, depth)
            else:
                field = self.scalar(field, path)
        is_optional = self.took("?")
        about = self.description()
        for leaf in inner:
            yield replace(
                leaf,
                name=f"{name}.{leaf.name}",
                is_optional=leaf.is_optional or is_optional,
                description=leaf.description or about,
            )
        if not inner:
            yield replace(field, is_optional=is_optional, description=about)

    def object(self, path: str, depth: int) -> tuple[Field, ...]:
        opening = self.at
        self.at += 1
        fields = tuple(self.fields(f"{path}.", depth))
        if not (self.took("}") and fields):
            flaw = "'{' is not closed" if fields else f"object '{short(path)}' has no fields"
            self.fail(flaw, opening)
        return fields

    def list(self, field: Field, path: str, depth: int) -> Field:
        opening = self.at
        self.at += 1
        if depth > MAX_DEPTH:
            self.fail(f"'{short(path)}' is nested more than {MAX_DEPTH} deep", opening)
        if self.next() == "[":
            inner = self.list(Field(ENTRY), path, depth + 1)
            field = replace(field, fields=(inner,))
        elif self.next() == "{":
            field = replace(field, fields=self.object(path, depth))
        else:
            field = self.scalar(field, path)
        if not self.took("]"):
            advice = "write one type in the brackets, and ? after them: [str]?"
            self.fail("']' is missing", None if self.next() else opening, advice)
        return replace(field, is_list=True)

    def scalar(self, field: Field, path: str) -> Field:
        """Read a type, by its name or as labels, and the rules for its value."""
        field = self.type(field, path)
        return replace(field, rules=self.rules(path)) if self.next() == "{" else field

    def rules(self, path: str) -> str:
        start = self.at
        try:
            rules, self.at = _JSON.raw_decode(self.text, start)
        except (ValueError, RecursionError) as error:
            self.fail(f"the rules of '{short(path)}' are not JSON: {error}", start, _RULES)
        if unknown := sorted(rules.keys() - RULES):
            self.fail(
                f"the rules of '{short(path)}' have the unknown keyword '{short(unknown[0])}'",
                start,
                _RULES,
            )
        # as it is written, with all digits; a line break cannot stand in a text of JSON
        text = self.text[start : self.at].translate(_BLANKS)
        try:
            validator(text)
        except ValueError as error:
            self.fail(f"the rules of '{short(path)}' cannot be checked: {error}", start, _RULES)
        return text

    def type(self, field: Field, path: str) -> Field:
        self.next()
        start = self.at
        words = [self.word(f"'{short(path)}' has no type")]
        while self.took("|"):
            words.append(self.word(f"a label of '{short(path)}' is empty"))
        labels = tuple(text for text, _ in words)
        if len(words) == 1 and not words[0][1]:
            if known_type := next((name for name in TYPES if name == labels[0]), None):
                return replace(field, type=known_type)
            close = did_you_mean(labels[0], TYPES)
            known = f"types: {', '.join(TYPES)}; labels: yes|no"
            advice = f"did you mean {close}? {known}" if close else known
            self.fail(f"'{short(path)}' has the unknown type '{short(labels[0])}'", start, advice)
        for text, is_quoted in words:
            if not is_quoted and text.casefold() in _NO_LABELS:
                advice = (
                    "write ? after a type that may be missing, and such a label in single quotes"
                )
                self.fail(f"'{text}' cannot be a label between '|'", start, advice)
        if flaw := labels_flaw(labels):
            self.fail(f"'{short(path)}': {flaw}", start, "write each label once: yes|no")
        return replace(field, type="label", labels=labels)

    def description(self) -> str:
        if self.next() != "(":
            return ""
        if quoted := _QUOTED_ABOUT.match(self.text, self.at):
            self.at = quoted.end()
            return quoted[1].replace("''", "'")
        start, end = self.at + 1, _balanced(self.text, self.at)
        if end < 0:
            self.fail("'(' is not closed", help="close the description with ')'")
        self.at = end
        return " ".join(self.text[start : end - 1].split())

    def name(self, path: str) -> str:
        self.next()
        start = self.at
        inside = f" in '{short(path[:-1])}'" if path else ""
        text, _ = self.word(f"a field{inside} has no name")
        parts = text.split(".") if "]." in text else [text]
        if flaw := next(filter(None, map(name_flaw, parts)), ""):
            self.fail(f"{flaw}{inside}", start)
        return text

    def word(self, missing: str) -> tuple[str, bool]:
        """Read the next word; return it, and whether it was in quotes."""
        is_open = self.next() == "'"
        match = _WORD.match(self.text, self.at)
        if match is None:
            self.fail("a single quote is not closed" if is_open else missing)
        if not (is_open or _is_plain(match[0])):
            message = f"'{short(match[0])}' has characters other than letters, digits and '_'"
            fix = Fix(Span(*match.span()), _quoted(match[0]))
            self.fail(message, help="write it in single quotes", fix=fix)
        self.at = match.end()
        return match["quoted"].replace("''", "'") if is_open else match[0], is_open

    def next(self) -> str:
        """The next character that is not blank; "" at the end."""
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def took(self, mark: str) -> bool:
        """Read the next character if it is `mark`; return whether it was."""
        is_next = self.next() == mark
        self.at += is_next
        return is_next

    def fail(
        self,
        message: str,
        at: int | None = None,
        help: str = "a field reads: name: type? (what it means)",
        fix: Fix | None = None,
    ) -> NoReturn:
        start = self.at if at is None else at
        word = _WORD.match(self.text, start)
        span = Span(start, word.end() if word else start + 1)
        diagnostic = Diagnostic(BAD_FIELDS, message, span, help=help, fix=fix)
        raise PlanError(self.text, [diagnostic], "fields")
