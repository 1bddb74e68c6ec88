"""Values of steps: texts, numbers, lists (compared without case or blanks), rows, and scalars from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.comparisons import key_of
from pearl.documents.numbers import Quantity, UnclearNumberError, quoted, read_number
from pearl.documents.rows import Row, Rows, Stated, shortened, without_duplicates
from pearl.dsl.signatures import NOTHING, Parameter, ValueType
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

MAY_CHANGE = "what rows do not state may change"  # the beginning of notes that degrade an answer

AMONG = "among the"  # the beginning of notes on further matches, which are shown with the result


def among_best(k: int, queries: Sequence[str]) -> str:
    """The note of a search that found more matches than it returned."""
    what = shortened(", ".join(queries), 60)
    return f"{AMONG} {k:,} that match '{what}' best; more match"


FLOAT_DIGITS = 15  # significant digits that a float keeps, and that its text has


class Scalar(Struct, frozen=True):
    """A text, a number or a truth value that is computed from rows."""

    value: str | int | float | bool
    rows: Rows
    is_marked: bool = False
    low: int | float | None = None
    high: int | float | None = None
    exact: Quantity | None = None
    stated: Stated | None = None
    """How many rows state the fact in question, if a condition or value selected the rows that this was computed from."""


Value = str | int | float | bool | list[str] | Rows | Scalar


class EmptyListError(ValueError):
    """The list to select from is empty."""


_BULLET = lazy_pattern(  # "- ", "> 3. ", "(b) "
    r"\A\s*+(?:>\s*+)*+(?:[-*•–](?:\s++|\Z)|(?:\(?\d{1,4}[.)]|\(?[a-zA-Z]\))\s++)?"
)


def as_rows(value: Value) -> Rows:
    """A value as rows; rows made from a list or a text have no place in the document."""
    match value:
        case Rows():
            return value
        case Scalar(rows=rows):
            found = tuple(Row(item, text=item) for item in items_of(value))
            if rows.undecided:
                return Rows((), doubtful=found, notes=rows.notes)
            return Rows(found, notes=rows.notes)
        case _:
            return Rows(tuple(Row(item, text=item) for item in items_of(value)))


def behind(values: Iterable[object]) -> Rows | None:
    """The rows from which values are computed, without repeats; None if there are no such rows."""
    given = [v.rows if isinstance(v, Scalar) else v for v in values if isinstance(v, Rows | Scalar)]
    if not given:
        return None
    first, *others = given
    if not others:
        return first
    return replace(
        first,
        rows=without_duplicates(row for each in given for row in each),
        doubtful=without_duplicates(row for each in given for row in each.undecided),
        notes=tuple(dict.fromkeys(note for each in given for note in each.notes)),
        n_unread=sum(each.n_unread for each in given),
        stated=None,
    )


def coerce(value: Value, wanted: ValueType) -> Value:
    """Convert a value to a type, parsing text."""
    match wanted:
        case ValueType.LIST:
            return items_of(value)
        case ValueType.NUMBER:
            return number_of(value)
        case ValueType.BOOL:
            return _truth(value)
        case _:
            return as_text(value)


def items_of(value: Value) -> list[str]:
    """The entries of a list, the values of rows, or the lines of a text."""
    if isinstance(value, list):
        return value
    if isinstance(value, Rows):
        return value.values
    if isinstance(value, Scalar):
        value = value.value
    text = as_text(value).strip()
    rows = text.split("\n") if "\n" in text else text.split(";")
    return [item for row in rows if (item := _BULLET.sub("", row).strip()) and item != NOTHING]


def without_repeats(items: Iterable[str]) -> list[str]:
    """Remove duplicates, keeping the first occurrence."""
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(key_of(item), item)
    return list(first.values())


def number_of(value: Value) -> int | float:
    """The value if it is a number, else the only number in its text."""
    if isinstance(value, Scalar):
        value = value.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return read_number(as_text(value))


def written_out(number: Decimal) -> int | float | str:
    """A number with all its digits: as a text if a float would lose some."""
    if number == number.to_integral_value():
        return int(number)
    digits = number.normalize().as_tuple().digits
    return float(number) if len(digits) <= FLOAT_DIGITS else format(number, "f")


def _truth(value: Value) -> bool:
    if isinstance(value, Scalar):
        value = value.value
    if isinstance(value, bool):
        return value
    from pearl.replies.step_replies import read_reply  # on use: fast commands read no replies

    verdict = read_reply(as_text(value), ValueType.BOOL).value
    if isinstance(verdict, bool):
        return verdict
    raise ValueError(f"neither yes nor no: {quoted(as_text(value))}")


def as_text(value: Value, max_rows: int | None = None) -> str:
    """A value as text, for prompts and traces."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # 0.3 for 0.1 + 0.2, and no exponent
        return format(Decimal(f"{value:.{FLOAT_DIGITS}g}"), "f")
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value) or NOTHING
    if isinstance(value, Rows):
        bullet = "" if value.columns else "- "
        return rows_text(value, [f"{bullet}{line}" for line in value.lines(max_rows)])
    if isinstance(value, Scalar):
        return " ".join([as_text(value.value), *([] if value.is_marked else marks(value.rows))])
    return str(value)


def rows_text(rows: Rows, lines: Sequence[str]) -> str:
    """Join the lines of rows, and add how many rows are undecided."""
    none = [] if rows.undecided else [NOTHING]
    return "\n".join([*(lines if len(rows) else none), *marks(rows)])


def marks(rows: Rows) -> list[str]:
    """The notes on uncertainty that are shown with a result."""
    n = len(rows.undecided)
    estimates = (f"({note})" for note in rows.notes if note.startswith(AMONG))
    return [*([f"({n:,} undecided)"] if n else []), *estimates]


def argument(value: Value, parameter: Parameter) -> Any:
    """Convert a value for a native action."""
    match parameter.reads:
        case "rows":
            return as_rows(value)
        case "number":
            if isinstance(value, Scalar) and value.rows.undecided:
                raise UnclearNumberError(f"the number is undecided: {as_text(value)}")
            return number_of(value)
        case "value" | "figure" | "date" | "results":
            return value
        case _:
            return coerce(value, parameter.type)


class FetchedPassage(NamedTuple):
    """A passage that was found."""

    text: str
    span: Span
    document: str
    rank: int = 0
    score: float = 0.0
    fields: Mapping[str, str] = {}


class Fetched(Struct, frozen=True):
    """The result of a search of the document."""

    queries: tuple[str, ...]
    method: str
    k: int
    hits: tuple[FetchedPassage, ...]
    notes: tuple[str, ...] = ()
    duration_s: float = 0.0


class FoundRows(NamedTuple):
    """The rows that a search found, and its record for the trace."""

    rows: Rows
    fetched: Fetched
