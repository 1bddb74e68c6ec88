"""A query of a table as data: columns, conditions, groups, sort keys; and its JSON schema for decoders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from pearl.dsl.decoding import constraint
from pearl.errors.patterns import lazy_pattern

Operator = Literal[
    "is", "is not", "in", "not in", "contains", "does not contain", "before", "after", "at least",
    "at most", "is empty", "is not empty",
]  # fmt: skip
"""The operators of `WHERE` in plans, and tests for empty cells."""

OPERATORS: tuple[Operator, ...] = Operator.__args__  # type: ignore[attr-defined]

Function = Literal["count", "count different", "sum", "mean", "min", "max"]

Operation = Literal["add", "subtract", "multiply", "divide"]
"""Arithmetic with columns and numbers, as in `pearl.actions.arithmetic`."""

SIGNS: dict[Operation, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}

MAX_CONDITIONS = 60  # Maximum conditions of a query
MAX_DEPTH = 8  # Maximum levels of `all`, `any` and `not`
MAX_LIMIT = 1_000_000_000  # Maximum `limit` of a query
_MAX_TEXT = 500  # Maximum characters of a name or a value
_MAX_VALUES = 500  # Maximum values of a condition, and selected columns
_MAX_OPERANDS = 8  # Maximum operands of an operation
_LARGEST = 1_000_000_000_000_000  # Largest absolute value of a number in a formula

_SYMBOLS = {
    "=": "is", "==": "is", "!=": "is not", "<>": "is not", "<": "before", ">": "after",
    ">=": "at least", "<=": "at most", "equals": "is", "less than": "before", "more than": "after",
    "greater than": "after", "like": "contains", "not contains": "does not contain",
}  # fmt: skip


def _operator(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    name = " ".join(said.replace("_", " ").split()).lower()
    return _SYMBOLS.get(name, name)


def _values(said: Any) -> Any:
    """Convert one value or several to texts, as in cells."""
    if said is None:
        return ()
    return tuple(
        str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one
        for one in (said if isinstance(said, list | tuple) else [said])
    )


Text = Annotated[str, Field(max_length=_MAX_TEXT)]


class QueryError(ValueError):
    """A query is malformed or does not fit its table; the message is for its author."""

    def __init__(self, message: str, column: str = "") -> None:
        super().__init__(message)
        self.column = column


class UndecidableError(ValueError):
    """No query over these columns can answer the question; the message is the reason."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _kind(said: Any) -> str:
    """The tag of a column or operand, so that errors refer to the intended kind."""
    if isinstance(said, dict | BaseModel):
        return "<arithmetic>"
    return "<number>" if isinstance(said, int | float) and not isinstance(said, bool) else "<name>"


class Arithmetic(_Model):
    """A column computed from columns and numbers, from left to right, with a single operation."""

    add: Operands | None = None
    subtract: Operands | None = None
    multiply: Operands | None = None
    divide: Operands | None = None

    @model_validator(mode="after")
    def _has_one_operation(self) -> Arithmetic:
        if sum(getattr(self, name) is not None for name in SIGNS) != 1:
            raise ValueError(f"arithmetic is one of {', '.join(SIGNS)}")
        if not any(columns_in(self)):
            raise ValueError("arithmetic is of columns, not of numbers alone")
        return self

    @property
    def operation(self) -> Operation:
        """The given operation."""
        return next(name for name in SIGNS if getattr(self, name) is not None)

    @property
    def operands(self) -> Operands:
        """The columns, numbers and computed columns."""
        operands: Operands = getattr(self, self.operation)
        return operands

    def __str__(self) -> str:
        """The formula, `Units * (Price + 1)`, which is also the name of the column."""
        shown = (f"({one})" if isinstance(one, Arithmetic) else str(one) for one in self.operands)
        return f" {SIGNS[self.operation]} ".join(shown)


_Name = Annotated[Text, Tag("<name>")]
_Formula = Annotated[Arithmetic, Tag("<arithmetic>")]
_Number = Annotated[
    int | float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False), Tag("<number>")
]
Column = Annotated[_Name | _Formula, Discriminator(_kind)]
Operands = Annotated[
    tuple[Annotated[_Name | _Formula | _Number, Discriminator(_kind)], ...],
    Field(min_length=2, max_length=_MAX_OPERANDS),
]


def columns_in(column: Column | None) -> Iterator[str]:
    """The table columns that a column is, or is computed from."""
    if isinstance(column, Arithmetic):
        for one in column.operands:
            if isinstance(one, str | Arithmetic):
                yield from columns_in(one)
    elif column is not None:
        yield column


class Condition(_Model):
    """A condition on a cell."""

    column: Column
    op: Annotated[Operator, BeforeValidator(_operator)]
    value: Annotated[tuple[Text, ...], BeforeValidator(_values), Field(max_length=_MAX_VALUES)] = ()

    @model_validator(mode="after")
    def _has_its_values(self) -> Condition:
        if self.op in ("is empty", "is not empty"):
            if any(self.value):
                raise ValueError(f"'{self.op}' takes no value")
        elif self.op in ("in", "not in"):
            if not self.value:
                raise ValueError(f"'{self.op}' takes a list of values")
        elif len(self.value) != 1:
            raise ValueError(f"'{self.op}' takes one value; for several use 'in' or 'any'")
        elif self.op in ("contains", "does not contain") and not self.value[0].strip():
            raise ValueError(f"'{self.op}' needs a text; for empty cells use 'is empty'")
        return self


class AllOf(_Model):
    """True if all of its conditions are true."""

    all: Annotated[tuple[Where, ...], Field(min_length=1)]


class AnyOf(_Model):
    """True if at least one of its conditions is true."""

    any: Annotated[tuple[Where, ...], Field(min_length=1)]


class Not(_Model):
    """The opposite of a condition."""

    no: Where


Where = Condition | AllOf | AnyOf | Not


_SIGNS = {"before": "<", "after": ">", "at least": "≥", "at most": "≤"}


def describe(where: Where) -> str:
    """A condition in words: `(Age ≥ '65' and City is 'Lod')`."""
    match where:
        case AllOf(all=conditions) | AnyOf(any=conditions):
            word = " and " if isinstance(where, AllOf) else " or "
            told = word.join(map(describe, conditions))
            return told if len(conditions) == 1 else f"({told})"
        case Not():
            return f"not ({describe(where.no)})"
        case Condition():
            values = ", ".join(f"'{value}'" for value in where.value)
            return f"{where.column} {_SIGNS.get(where.op, where.op)} {values}".rstrip()


class Aggregate(_Model):
    """A figure over all rows, or over the rows of each group."""

    function: Function
    column: Column | None = None

    @model_validator(mode="after")
    def _has_its_column(self) -> Aggregate:
        if self.column is None and self.function != "count":
            raise ValueError(f"'{self.function}' needs a column")
        return self

    @property
    def name(self) -> str:
        """The name of the figure in a result and in `Sort.by`."""
        return f"{self.function} of {self.column}" if self.column else self.function


class Sort(_Model):
    """One sort key of the result."""

    by: Column
    descending: bool = False


class Query(_Model):
    """A query of one table."""

    select: Annotated[tuple[Column, ...], Field(max_length=_MAX_VALUES)] = ()
    where: Where | None = None
    group: Annotated[tuple[Text, ...], Field(max_length=8)] = ()
    aggregate: Annotated[tuple[Aggregate, ...], Field(max_length=16)] = ()
    sort: Annotated[tuple[Sort, ...], Field(max_length=8)] = ()
    limit: Annotated[int, Field(ge=0, le=MAX_LIMIT)] | None = None

    @property
    def words(self) -> str:
        """The query on one line, for people."""
        wanted = [one.name for one in self.aggregate] or list(map(str, self.select)) or ["rows"]
        parts = [", ".join(wanted)]
        if self.where is not None:
            parts.append(f"where {describe(self.where)}")
        if self.group:
            parts.append(f"by {', '.join(self.group)}")
        if self.sort:
            keys = (f"{one.by}{' descending' * one.descending}" for one in self.sort)
            parts.append(f"sorted by {', '.join(keys)}")
        if self.limit is not None:
            parts.append(f"the first {self.limit:,}")
        return " ".join(parts)

    @model_validator(mode="before")
    @classmethod
    def _is_tolerant(cls, said: Any) -> Any:
        """Accept a list of conditions as `all`, a single item for a list, and null for a missing field."""
        if not isinstance(said, dict):
            return said
        said = {key: value for key, value in said.items() if value is not None}
        where = said.get("where")
        if isinstance(where, list):
            said["where"] = {"all": where} if where else None
        elif where == {}:
            said["where"] = None
        for key in ("group", "select", "aggregate", "sort"):
            if isinstance(said.get(key), str | dict):
                said[key] = [said[key]]
        return said

    @model_validator(mode="after")
    def _is_bounded(self) -> Query:
        n = sum(1 for _ in conditions(self.where))
        if n > MAX_CONDITIONS:
            raise ValueError(f"{n} conditions are more than {MAX_CONDITIONS}")
        return self


def conditions(where: Where | None) -> Iterator[Condition]:
    """Every condition, in order."""
    match where:
        case None:
            return
        case Condition():
            yield where
        case Not():
            yield from conditions(where.no)
        case AllOf(all=those) | AnyOf(any=those):
            for one in those:
                yield from conditions(one)


def read_query(said: Any) -> Query:
    """Validate data from a model or a person as a query; `cannot` with a reason declines to write one."""
    if isinstance(said, dict) and "cannot" in said:
        said = dict(said)
        if reason := " ".join(str(said.pop("cannot") or "").split()):
            raise UndecidableError(reason[:_MAX_TEXT])
    if _depth(said) > 3 * MAX_DEPTH:
        raise QueryError(f"the query is nested more than {MAX_DEPTH} levels deep")
    try:
        return Query.model_validate(said)
    except ValidationError as error:
        raise QueryError(_flaw(error)) from None


def _depth(said: Any) -> int:
    """Levels of nesting; counted without recursion, because hostile JSON may be nested deeply."""
    depth, level = 0, [said]
    while level and depth <= 3 * MAX_DEPTH:
        depth += 1
        level = [
            inner
            for one in level
            if isinstance(one, dict | list | tuple)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return depth


_KINDS = lazy_pattern(r"(?:.*\b)?(?:Condition|AllOf|AnyOf|Not)\b.*|<\w+>|int|float")
"""Parts of pydantic's error paths that name an alternative instead of a field."""


def _flaw(error: ValidationError) -> str:
    """The most specific of pydantic's errors, which probably concerns the intended alternative."""
    found = error.errors(include_url=False, include_context=False)
    said = [one for one in found if one["type"] not in ("missing", "extra_forbidden")]
    one = max(said or found, key=lambda each: len(each["loc"]))
    path = ".".join(str(key) for key in one["loc"] if not _KINDS.fullmatch(str(key)))
    message = one["msg"].removeprefix("Value error, ")
    if one["loc"] and one["loc"][-1] == "op":
        message = f"unknown operator {one['input']!r:.60}; operators are {', '.join(OPERATORS)}"
    elif one["type"] == "extra_forbidden":
        message = "a query has no such field; see its form"
    elif one["type"] == "model_type" or one["type"].endswith("_type"):
        message = f"{message}, not {one['input']!r:.60}"
    return f"{path or 'the query'}: {message}"


_TEXT = r"[^\u0000-\u001f\u007f]{0,200}"
_MAX_LISTED = 20  # Maximum entries of a list in the schema for decoders

_HINT = (
    'A query of the table: "cannot" is null or a reason; "select" lists columns to show, "where" is a condition {"column", "op", '
    '"value"}, {"all": [...]}, {"any": [...]}, {"no": ...} or null, "group" lists columns, "aggregate" '
    'lists {"function", "column"}, "sort" lists {"by", "descending"}, "limit" is a number or null.'
)


def query_constraint(columns: Sequence[str]) -> constraint.Constraint:
    """The constraint for a table with these columns."""
    column = {"$ref": "#/$defs/column"}
    text = {"type": "string", "pattern": f"^{_TEXT}$"}

    def several(
        items: Mapping[str, Any], least: int = 0, most: int = _MAX_LISTED
    ) -> dict[str, Any]:
        return {"type": "array", "items": items, "minItems": least, "maxItems": most}

    def closed(**properties: Any) -> dict[str, Any]:
        return constraint.closed_object(properties)

    where, arithmetic = {"$ref": "#/$defs/where"}, {"$ref": "#/$defs/arithmetic"}
    nothing = {"type": "null"}
    schema = {
        **closed(
            cannot={"anyOf": [text, nothing]},
            select=several(column),
            where={"anyOf": [where, nothing]},
            group=several({"enum": list(columns)}),
            aggregate=several(
                closed(
                    function={"enum": list(get_args(Function))}, column={"anyOf": [column, nothing]}
                )
            ),
            sort=several(
                closed(by={"anyOf": [text, arithmetic]}, descending={"enum": [True, False]})
            ),
            limit={"anyOf": [{"enum": _LIMITS}, nothing]},
        ),
        "$defs": {
            "column": {"anyOf": [{"enum": list(columns)}, arithmetic]},
            "arithmetic": {
                "anyOf": [
                    closed(**{name: several({"anyOf": [column, _NUMBER]}, 2, _MAX_OPERANDS)})
                    for name in SIGNS
                ]
            },
            "where": {
                "anyOf": [
                    closed(column=column, op={"enum": list(OPERATORS)}, value=several(text)),
                    closed(all=several(where, 1)),
                    closed(any=several(where, 1)),
                    closed(no=where),
                ]
            },
        },
    }

    return constraint.Constraint("query", json_form=constraint.JsonForm(schema, hint=_HINT))


_NUMBER = {"type": "number", "minimum": -_LARGEST, "maximum": _LARGEST}


_LIMITS = [*range(1, 21), 25, 30, 40, 50, 100, 200, 500, 1_000]
"""The allowed values of `limit`; listed, because decoders have no common keyword for numeric ranges."""
