"""Actions computed in Python: one per file of this folder, and several in each `_` file.

A plug-in has `ACTION`, an `Action` with `is_native=True` and typed parameters, and
`run(*values) -> Value`, where each value already has the Python form of its parameter's type:

    Text → str    Number → int or float    Bool → bool    List → list[str]

or of what the parameter `reads`: `Rows`, a number, or the value as it is. `run` raises `ValueError`
with the reason for invalid values, and `EmptyListError` if the list that it selects from is empty.
A library's action is native if its name and signature match a plug-in; its parameters may have any
names, except those of an operator on rows. The values are those of `pearl.actions.values`. Every
library has all native actions, except plug-ins with `IS_SPECIALISED = True`, which it has to list.

An action on lists gets the values of rows; returned entries become the rows they belong to.
Undecided rows never make a result wrong: a result that they might change is undecided as well.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, reduce
from itertools import islice, product
from operator import and_, or_
from types import SimpleNamespace
from typing import Any, Protocol

from msgspec.structs import replace

from pearl import plugins
from pearl.actions import by_search
from pearl.actions.values import MAY_CHANGE, Scalar, Value, argument, as_rows, as_text, behind
from pearl.documents.numbers import Quantity
from pearl.documents.rows import Row, Rows, Stated, without_duplicates
from pearl.dsl.signatures import Action, Parameter, Trait, ValueType


class NativeAction(Protocol):
    """The interface of a native action."""

    ACTION: Action

    def run(self, *values: Any) -> Value:
        """Compute the value of the action; `ValueError` if it cannot work with these values."""
        ...


CONTRACT = NativeAction

Run = Callable[..., Value]


class Family(dict[str, Any]):
    """Native actions that share a file, by name."""

    def action(
        self, name: str, parameters: tuple[Parameter, ...], definition: str, *,
        is_variadic: bool = False, returns: ValueType = ValueType.TEXT, traits: Iterable[Trait] = (),
        labels: tuple[str, ...] = (), **about: Any,
    ) -> Callable[[Run], Run]:  # fmt: skip
        """Add the decorated function as the native action of that name."""
        action = Action(
            name, parameters, definition, is_variadic, returns, is_native=True,
            traits=frozenset(traits), labels=labels,
        )  # fmt: skip

        def add(run: Run) -> Run:
            self[name.lower().replace("_", "-")] = SimpleNamespace(ACTION=action, run=run, **about)
            return run

        return add


def known() -> dict[str, Action]:
    """Every native action by name."""
    modules = map(_module, plugins.names(__name__))
    return {module.ACTION.name: module.ACTION for module in modules}


def general() -> dict[str, Action]:
    """The native actions that every library has."""
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
    """Return the native or searching action of the same name and signature, else the given action."""
    name = action.name.lower()
    if action.name != name.upper():
        return action
    if action.name == "FIND_FIGURE":
        return replace(action, traits=frozenset({"claims"}))
    if plugins.exists(__name__, name):
        native: Action = _module(name).ACTION
    elif (searching := by_search.known().get(action.name)) is not None:
        native = searching
    else:
        return action
    has_shape = (
        len(native.parameters) == len(action.parameters)
        and native.is_variadic == action.is_variadic
        and native.reads_context == action.reads_context
        and action.returns in (ValueType.TEXT, native.returns)
    )
    if not has_shape or (is_operator(native) and _named(native) != _named(action)):
        return action
    return replace(native, definition=action.definition or native.definition, span=action.span)


def is_operator(action: Action) -> bool:
    """Whether the action takes rows with their fields and spans."""
    return any(parameter.reads for parameter in action.parameters)


def is_joining(action: Action) -> bool:
    """Whether the action only joins texts, so that undecided parts may stay in them as marks."""
    return all(p.type is ValueType.TEXT and not p.reads for p in action.parameters)


def _named(action: Action) -> list[str]:
    return [parameter.name for parameter in action.parameters]


def compute(action: Action, values: Sequence[Value]) -> Value:
    """Run a native action."""
    module: NativeAction = _module(action.name.lower())
    parameters = [action.parameter(i) for i in range(len(values))]
    if any(parameter.reads == "rows" for parameter in parameters):
        return module.run(*map(argument, values, parameters))
    given = behind(values)
    is_list_action = ValueType.LIST in (p.type for p in parameters)
    if is_list_action and given is not None:
        values = [as_rows(value) if isinstance(value, Scalar) else value for value in values]
        result = _over_rows(module.run, parameters, values, "selects" in action.traits)
    else:
        result = _of_counts(lambda *case: module.run(*map(argument, case, parameters)), values)
    if given is None or isinstance(result, Rows | Scalar | list):
        return result
    bounds: Callable[[Rows], tuple[int, int]] | None = getattr(module, "bounds", None)
    if bounds and isinstance(result, int):
        # Whether a row counts does not depend on its other cells or on the members of its group.
        given = replace(given, columns=(), shows_possible=False)
        stated = given.stated if given.stated and given.stated.value == result else None
        low, high = bounds(given)
        return Scalar(result, given, low=low, high=high, stated=stated)
    return Scalar(result, given, is_marked=is_joining(action))


_MAX_CASES = 16  # maximum combinations of certain and possible entries to compute


def _of_counts(run: Callable[..., Value], values: Sequence[Value]) -> Value:
    """Compute over numbers, and note how rows that do not state what a count asks could change the result."""
    result = run(*values)
    cases = [
        (each, _with_all(each, each.stated))
        if isinstance(each, Scalar) and each.stated and each.stated.not_stated and not isinstance(each.value, str)
        else (each,)
        for each in values
    ]  # fmt: skip
    if not 1 < math.prod(map(len, cases)) <= _MAX_CASES or not isinstance(result, Scalar):
        return result
    found: dict[str, Quantity | None] = {}
    for case in product(*cases):
        with suppress(ValueError):  # a division by zero
            other = run(*case)
            found |= {as_text(other.value): other.exact} if isinstance(other, Scalar) else {}
    if len(found) < 2:
        return result
    counts = [
        f"{as_text(least.value)} to {as_text(most.value)} of {stated.of + stated.not_stated:,}"
        for least, most in (case for case in cases if len(case) > 1)
        if (stated := least.stated)
    ]
    note = f"{MAY_CHANGE} '{result.value}': it compares {' and '.join(counts)}"
    if exact := {number.amount: text for text, number in found.items() if number}:
        # A computed number is given as a range; only a decided text may become another one.
        ends = [exact[min(exact)], exact[max(exact)]]
        note = f"what rows do not state: {' to '.join(ends)}, with {' and '.join(counts)}"
    return replace(result, rows=result.rows.noting(note))


def _with_all(count: Scalar, stated: Stated) -> Scalar:
    """The count or share that would result if all rows that do not state the fact were counted."""
    value, n = count.value, stated.not_stated
    if value != stated.value:
        return replace(count, value=(stated.value + n) / (stated.of + n))
    low, high = (None if end is None else end + n for end in (count.low, count.high))
    return replace(count, value=stated.value + n, low=low, high=high)


def _over_rows(
    run: Callable[..., Value],
    parameters: Sequence[Parameter],
    values: Sequence[Value],
    selects: bool,
) -> Value:
    """Run an action on lists over the values of rows, and turn the returned entries into their rows."""
    collections = [value for value in values if isinstance(value, Rows)]
    are_whole = len(collections) == len(values) and all(
        row.spans and row.value == row.text for each in collections for row in each.every
    )
    keys = [{row.key for row in each.every} for each in collections]
    # Rows with the same text differ by place; rows of two documents share no place, so texts are compared.
    are_by_place = are_whole and len(values) > 1 and not (selects and keys[0].isdisjoint(keys[1]))
    if are_by_place:
        values = collections = [_valued(each, lambda row: str(row.key)) for each in collections]
    certain = run(*map(argument, values, parameters))
    if not isinstance(certain, list):
        return certain
    every = [row for each in collections for row in each]
    every += [row for each in collections for row in each.doubtful]
    known = [row for row in every if row.value is not None]
    unread = without_duplicates(row for row in every if row.value is None)
    # A value that could not be read may equal any known value; a new value would not change the result.
    anything = [row.value for row in known]
    cases: list[tuple[Any, ...]] = []
    for value in values:
        if isinstance(value, Rows) and value.undecided:
            is_unread = any(row.value is None for row in value.every)
            possible = anything if is_unread else [row.value for row in value.doubtful]
            cases.append((value.values, [*value.values, *possible]))
        else:
            cases.append((value,))
    results: list[Iterable[str | None]] = [certain]
    if 1 < math.prod(map(len, cases)) <= _MAX_CASES:
        for case in product(*cases):
            result = run(*map(argument, case, parameters))
            results.append(result if isinstance(result, list) else [])
    elif any(len(case) > 1 for case in cases):
        results += [], anything
    counts = [Counter(each) for each in results]
    least, most = Counter(reduce(and_, counts)), Counter(reduce(or_, counts))
    places: dict[str | None, deque[Row]] = {}
    for row in known:
        places.setdefault(row.value, deque()).append(row)
    sure: list[Row] = []
    unsure: list[Row] = []
    for item in certain:
        is_sure, least[item] = least[item] > 0, least[item] - 1
        most[item] -= 1
        rows = places.get(item)
        (sure if is_sure else unsure).append(rows.popleft() if rows else Row(item, text=item))
    for text, n in most.items():
        unsure += islice(places.get(text, ()), max(0, n))
    is_order_known = not any(each.undecided for each in collections)
    found = replace(
        collections[0], rows=tuple(sure), doubtful=(*unsure, *unread), notes=(),
        is_in_order=False if is_order_known else None, n_unread=sum(each.n_unread for each in collections),
        stated=None,
    )  # fmt: skip
    found = found.noting(*(note for each in collections for note in each.notes))
    if are_by_place:
        return _valued(found, lambda row: row.text)
    if are_whole and len(values) == 1 and (n_equal := len(collections[0]) - len(certain)):
        return found.noting(
            f"rows with the same text as one before, which are left out: {n_equal:,}"
        )
    return found


def _valued(rows: Rows, value: Callable[[Row], str]) -> Rows:
    sure, doubtful = (
        tuple(row.valued(value(row)) for row in those) for those in (rows, rows.doubtful)
    )
    return replace(rows, rows=sure, doubtful=doubtful)
