"""Actions that a model carries out for each row. Every other module is one, named by its file name.

A module has `ACTION`, an `Action` whose first parameter is `ROWS`; `KIND`, the form of the reply to
an item; `READING`, the same action for one text that is too long to be an item; and `collect`,
which makes rows of the replies. It may have `select`, which takes the first K of those rows, and `QUERY`,
the name of a parameter by which a reranker scores rows in place of the model. Any other action with `ROWS` as its first parameter is a `MAP` with
a definition of its own, and `EACH_NAME(ROWS, ...)` is `NAME(CTX, ...)` for each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pearl import plugins
from pearl.documents.rows import Rows
from pearl.dsl.signatures import CTX, EACH, Action, ActionLibrary, Parameter, ValueType
from pearl.replies.items import ItemKind

__all__ = [
    "CONTRACT",
    "ByRow",
    "by_row",
    "each_of",
    "known",
    "query_of",
    "reading",
    "selected",
    "with_column",
]


class ByRow(Protocol):
    """What a module of this folder looks like to its users."""

    ACTION: Action
    KIND: ItemKind
    READING: Action

    def collect(self, rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
        """Rows and the reply about each, None where it is undecided → the rows of the result.

        Args:
            rows: The rows that were asked about.
            replies: One each, in the same order.
            column: The name of the step's output.
        """
        ...


CONTRACT = ByRow


def known() -> dict[str, Action]:
    """Every action of this folder by name."""
    actions = [_module(name).ACTION for name in plugins.names(__name__)]
    return {action.name: action for action in actions}


def _module(name: str) -> Any:
    return plugins.load(__name__, name)


def by_row(action: Action) -> ByRow:
    """How an action that reads rows is carried out."""
    name = action.name.lower()
    if plugins.exists(__name__, name):
        module: ByRow = _module(name)
        if [p.name for p in module.ACTION.parameters] == [p.name for p in action.parameters]:
            return module
    mapping: ByRow = _module("map")
    return mapping


def query_of(how: ByRow) -> str:
    """The name of the parameter that a reranker scores rows by; "" if only a model can."""
    return getattr(how, "QUERY", "")


def selected(how: ByRow, rows: Rows, k: int) -> Rows:
    """The first K of the rows of a result, where the action has such a number."""
    select: Callable[[Rows, int], Rows] | None = getattr(how, "select", None)
    return rows if select is None else select(rows, k)


def each_of(action: Action, library: ActionLibrary) -> Action | None:
    """The library's action that `EACH_NAME` carries out for each row; None for other actions."""
    is_each = action.name.startswith(EACH)
    return library.get(action.name.removeprefix(EACH)) if is_each else None


def reading(action: Action, library: ActionLibrary) -> Action:
    """The action that reads one row as a document of its own.

    Example:
        >>> from pearl.dsl.signatures import Parameter
        >>> harm = Action("HARM", (Parameter.named("ROWS"),), "Name the harm")
        >>> reading(harm, ActionLibrary("none", [])).signature
        'HARM(CTX)'
    """
    if (each := each_of(action, library)) is not None:
        return each
    module = by_row(action)
    if action.name == module.ACTION.name:
        return module.READING
    first = Parameter(CTX, ValueType.CONTEXT)
    return replace(action, parameters=(first, *action.parameters[1:]), returns=ValueType.TEXT)


def with_column(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Rows with the replies as one more column, which is their value.

    Nothing was asked about the doubtful rows: theirs is undecided.
    """
    answered = tuple(
        row.with_column(column, reply) for row, reply in zip(rows, replies, strict=True)
    )
    unasked = tuple(row.with_column(column, None) for row in rows.doubtful)
    return replace(rows, rows=answered, doubtful=unasked, column=column, is_answered=True)
