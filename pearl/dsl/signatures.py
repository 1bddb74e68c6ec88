"""Actions: names, signatures and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from pearl.errors import Span

CTX = "CTX"  # The name of the document in plans

NOTHING = "Nothing found."  # The text of an empty value; prompts ask models to reply with it


class ValueType(StrEnum):
    """The type of an argument or a return value."""

    TEXT = "Text"
    NUMBER = "Number"
    BOOL = "Bool"
    DATE = "Date"
    LIST = "List"
    TABLE = "Table"
    PASSAGES = "Passages"
    CONTEXT = "Context"
    """The value of `CTX`: a document, a corpus or a table, or a text in its place."""


_READABLE = frozenset({ValueType.LIST, ValueType.TABLE, ValueType.PASSAGES})


def outputs_for(wanted: ValueType) -> frozenset[ValueType]:
    """The types of outputs that a parameter of the type `wanted` accepts."""
    if wanted is ValueType.TEXT:
        return frozenset(ValueType) - {ValueType.CONTEXT}
    readable = _READABLE if wanted in (ValueType.LIST, ValueType.CONTEXT) else frozenset()
    return readable | {ValueType.TEXT, ValueType.DATE} | ({wanted} - {ValueType.CONTEXT})


ROWS = "ROWS"  # The name of a parameter that takes rows, one by one

PERIOD = "PERIOD"  # The name of a parameter that takes the period of a figure

EACH = "EACH_"  # `EACH_NAME(ROWS, ...)` is the library's `NAME(CTX, ...)` for each row


Trait = Literal[
    "selects",  # returns rows of its first argument
    "picks",  # returns the value of one of them; a value of a field is `by_field`
    "by_field",  # returns the values of the field that its second argument names
    "groups",  # returns groups of rows
    "multiplies",  # returns pairs of rows
    "counts",  # returns how many rows there are
    "sums_up",  # returns a value computed from all rows, such as a sum
    "figures",  # adds a computed number to each row
    "condition",  # judges each row by a field
    "first",  # takes the first rows
    "compares",  # judges several rows together
    "reduces",  # returns a text of all rows, or of each group
    "splits",  # takes texts apart
    "declines",  # says that no source has the answer; for plans over sources only
    "claims",  # a model's reply is a claim about a passage
    "tries",  # returns its first argument that found something; later ones run only if none did
]
"""What an action does with rows; estimates, checks, passes and prompts use it."""


class Compared(Struct, frozen=True, eq=False):
    """A value of which the first `N_COMPARED` fields count for equality; the others, such as its place, do not."""

    N_COMPARED: ClassVar[int]

    def _compared(self) -> tuple[Any, ...]:
        return astuple(self)[: self.N_COMPARED]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._compared() == other._compared()

    def __ne__(self, other: object) -> bool:  # that of Struct compares identities
        return not self == other

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        named = zip(self.__struct_fields__, self._compared(), strict=False)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in named)})"


class Parameter(Compared, frozen=True, eq=False):
    """One parameter. Equality includes the type, so native and text actions differ."""

    N_COMPARED = 4

    name: str
    type: ValueType = ValueType.TEXT
    reads: Literal[
        "", "rows", "passages", "table", "number", "labels", "value", "figure", "date",
        "results", "fields", "entry_fields",
    ] = ""  # fmt: skip
    choices: tuple[str, ...] = ()
    least: int | None = 1
    """The minimum of a number of rows; None allows any number but 0."""

    @classmethod
    def named(cls, name: str) -> Parameter:
        """The parameter of an untyped signature: `CTX` takes a document, `ROWS` takes rows."""
        if name == CTX:
            return cls(name, ValueType.CONTEXT)
        return cls(name, ValueType.LIST, "rows") if name == ROWS else cls(name)


class Action(Compared, frozen=True, eq=False, dict=True):
    """A named action with its signature and its definition in words."""

    N_COMPARED = 6

    name: str
    parameters: tuple[Parameter, ...]
    definition: str = ""
    is_variadic: bool = False
    returns: ValueType = ValueType.TEXT
    is_native: bool = False
    traits: frozenset[Trait] = frozenset()
    labels: tuple[str, ...] = ()
    """The texts, one of which it returns; () for any text."""
    span: Span = Span(0, 0)

    @property
    def signature(self) -> str:
        """The call as it is written in a library: `CONCAT(S1, S2, ...)`."""
        names = [parameter.name for parameter in self.parameters]
        return f"{self.name}({', '.join([*names, '...'] if self.is_variadic else names)})"

    @property
    def min_arity(self) -> int:
        """The fewest arguments a call takes."""
        n = len(self.parameters)
        if self.is_variadic and n >= 2:
            last, before = (re.sub(r"\d+$", "", p.name) for p in self.parameters[:-3:-1])
            if last == before:
                return n - 1
        return n

    def accepts(self, n_arguments: int) -> bool:
        """Whether a call may have this many arguments."""
        is_few = self.is_variadic or n_arguments <= len(self.parameters)
        return is_few and self.min_arity <= n_arguments

    def parameter(self, index: int) -> Parameter:
        """The parameter that argument `index` (from 0) goes to; the last one repeats."""
        last = len(self.parameters) - 1
        if index <= last:
            return self.parameters[index]
        stem = re.sub(r"\d+$", "", self.parameters[last].name)
        return replace(self.parameters[last], name=f"{stem}{index + 1}")

    @property
    def repeated_parameter(self) -> str | None:
        """A parameter name that occurs twice in the signature, or None."""
        names = [parameter.name for parameter in self.parameters]
        return next((name for i, name in enumerate(names) if name in names[:i]), None)

    # Cached, because they are asked many times about each of many documents.
    @cached_property
    def reads_rows(self) -> bool:
        """Whether a model carries out the action for each row of its first argument."""
        return not self.is_native and bool(self.parameters) and self.parameters[0].name == ROWS

    @cached_property
    def cost(self) -> Literal["computed", "search", "rows", "text"]:
        """The kind of cost of a call: none, a search, a model call for each row, or one for a text."""
        if self.searches:
            return "search"
        is_by_row = self.reads_rows and "reduces" not in self.traits
        return "computed" if self.is_native else "rows" if is_by_row else "text"

    @cached_property
    def searches(self) -> bool:
        """Whether the action searches: returns the best passages of a document, or the best rows."""
        return any(parameter.reads == "passages" for parameter in self.parameters)

    @cached_property
    def asks_table(self) -> bool:
        """Whether a model carries out the action by querying a table."""
        return any(parameter.reads == "table" for parameter in self.parameters)

    @cached_property
    def composes(self) -> bool:
        """Whether the action composes the answer from the results of other steps."""
        return not self.is_native and any(each.reads == "results" for each in self.parameters)

    @cached_property
    def extracts(self) -> bool:
        """Whether the action takes a record, or records (`extracts_all`), from a document."""
        return self.extracts_all or any(
            parameter.reads == "fields" for parameter in self.parameters
        )

    @cached_property
    def extracts_all(self) -> bool:
        """Whether the action takes every record of one kind from a document, as rows."""
        return any(parameter.reads == "entry_fields" for parameter in self.parameters)

    @cached_property
    def reads_context(self) -> bool:
        """Whether the action takes a document."""
        return any(p.type is ValueType.CONTEXT for p in self.parameters)


class ActionLibrary(Mapping[str, Action]):
    """A named, immutable set of actions; `stands_for` maps removed names to the actions that replaced them."""

    def __init__(
        self, name: str, actions: Iterable[Action], stands_for: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.stands_for = stands_for or {}
        self._actions = {action.name: action for action in actions}

    def __getitem__(self, name: str) -> Action:
        return self._actions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)

    def __repr__(self) -> str:
        return f"ActionLibrary({self.name!r}, {len(self)} actions)"

    def extended(self, actions: Iterable[Action]) -> ActionLibrary:
        """A copy with more actions, which replace those of the same name."""
        return ActionLibrary(self.name, [*self.values(), *actions])
