"""Actions computed in Python. Every other module of this folder is one, named by its file name.

A module has `ACTION`, an `Action` with `is_native=True` and typed parameters, and
`run(*values) -> Value`, where each value already has the Python form of its parameter's type:

    Text → str    Number → int or float    Bool → bool    List → list[str]

or of what the parameter `reads`: `Rows`, a number, or the value as it is. `run` raises `ValueError`
with the reason for invalid values, and `EmptyListError` if the list that it selects from is empty.
A library's action is native if its name and signature match a module here; its parameters may be
named freely, but for those of an operator on rows. The values are those of `pearl.actions.values`.
Every library has all of them, but for modules with `IS_SPECIALISED = True`, which it has to list.

Of rows, a list is their values: entries that come back are the rows they belong to. Rows that are
undecided make no result wrong: what would be different with them is undecided, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

from pearl import plugins
from pearl.actions import by_search
from pearl.actions.entries import over_rows
from pearl.actions.garbage import collection_paused
from pearl.actions.values import Scalar, Value, argument, as_rows, behind, bounded
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, ValueType

__all__ = ["CONTRACT", "NativeAction", "bind", "compute", "general", "is_operator", "known"]


class NativeAction(Protocol):
    """What a module of this folder looks like to its users."""

    ACTION: Action

    def run(self, *values: Any) -> Value:
        """The value of the action.

        Raises:
            ValueError: These values are nothing that it works with.
        """
        ...


CONTRACT = NativeAction


def known() -> dict[str, Action]:
    """Every native action by name."""
    modules = map(_module, plugins.names(__name__))
    return {module.ACTION.name: module.ACTION for module in modules}


def general() -> dict[str, Action]:
    """Those that every library has.

    The others would be in every planning prompt, and some have a shape of their own, which takes
    2 KB of a grammar.
    """
    return {
        name: action
        for name, action in known().items()
        if not getattr(_module(name.lower()), "IS_SPECIALISED", False)
    }


@cache
def _module(name: str) -> Any:
    """The module of a native action; cached, because the lookup takes milliseconds."""
    return plugins.load(__name__, name)


def bind(action: Action) -> Action:
    """The action computed in Python, or by a search, of the same name and signature; else itself."""
    name = action.name.lower()
    if action.name != name.upper():
        return action
    if plugins.exists(__name__, name):
        native: Action = _module(name).ACTION
    elif (searching := by_search.known().get(action.name)) is not None:
        native = searching
    else:
        return action
    same_shape = (
        len(native.parameters) == len(action.parameters)
        and native.is_variadic == action.is_variadic
        and native.reads_context == action.reads_context
        and action.returns in (ValueType.TEXT, native.returns)
    )
    if not same_shape or (is_operator(native) and _named(native) != _named(action)):
        return action
    return Action(
        native.name,
        native.parameters,
        action.definition or native.definition,
        native.is_variadic,
        native.returns,
        is_native=True,
        counts=native.counts,
        span=action.span,
    )


def is_operator(action: Action) -> bool:
    """Whether it takes rows with their fields and spans."""
    return any(parameter.reads for parameter in action.parameters)


def is_joining(action: Action) -> bool:
    """Whether it joins texts, with whatever they say is undecided."""
    return all(p.type is ValueType.TEXT and not p.reads for p in action.parameters)


def _named(action: Action) -> list[str]:
    return [parameter.name for parameter in action.parameters]


def compute(action: Action, values: Sequence[Value]) -> Value:
    """Run a native action.

    Raises:
        ValueError: A value is not of the type that the action takes, and cannot be converted.
    """
    with collection_paused():
        return _computed(action, values)


def _computed(action: Action, values: Sequence[Value]) -> Value:
    module: NativeAction = _module(action.name.lower())
    parameters = [action.parameter(i) for i in range(len(values))]
    if any(parameter.reads == "rows" for parameter in parameters):
        return module.run(*map(argument, values, parameters))
    given = behind(values)
    is_list_action = ValueType.LIST in (p.type for p in parameters)
    if is_list_action and given is not None:
        values = [as_rows(value) if isinstance(value, Scalar) else value for value in values]
        result = over_rows(module.run, parameters, values)
    else:
        result = module.run(*map(argument, values, parameters))
    if given is None or isinstance(result, Rows | Scalar | list):
        return result
    bounds: Callable[[Value], tuple[int, int]] | None = getattr(module, "bounds", None)
    if bounds and isinstance(result, int):
        return bounded(result, given, *bounds(values[0]))
    return Scalar(result, given, is_marked=is_joining(action))
