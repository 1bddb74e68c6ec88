"""Native actions on lists and numbers, and the one that finds nothing."""

from __future__ import annotations

from decimal import Decimal, localcontext
from itertools import chain

from pearl.actions.arithmetic.program import NotGivenError
from pearl.actions.native import Family
from pearl.actions.values import EmptyListError, Value, items_of, without_repeats, written_out
from pearl.documents.comparisons import key_of, numbers_in
from pearl.documents.numbers import UnclearNumberError, numbers_of, quoted
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

_LIST = ValueType.LIST
_ITEMS = (Parameter("ITEMS", _LIST),)
_NUMBERS = (Parameter("NUMBERS", _LIST),)
_A_AND_B = (Parameter("A", _LIST), Parameter("B", _LIST))


@PLUGINS.action(
    "CONCAT", (Parameter("S1"), Parameter("S2")),
    "Join the texts in the order given", is_variadic=True,
)  # fmt: skip
def concat(*texts: str) -> Value:
    """Join the texts that are not blank, each stripped of outer blank lines."""
    return "\n\n".join(text.strip("\n") for text in texts if text.strip())


@PLUGINS.action(
    "FIRST_FOUND", (Parameter("A", reads="results"), Parameter("B", reads="results")),
    "Return the first of A, B and any further results that found something; the steps of later ones run only if needed",
    is_variadic=True, traits=["tries"],
)  # fmt: skip
def first_found(*results: Value) -> Value:
    """Take the first result that is not empty."""
    for value in results:
        if not isinstance(value, str | list | Rows) or items_of(value):
            return value
    return results[0]


@PLUGINS.action(
    "NO_SOURCE", (Parameter("QUESTION"),),
    "Say that none of the sources can have the answer to QUESTION", traits=["declines"],
)  # fmt: skip
def no_source(question: str) -> Value:
    """Find nothing."""
    raise NotGivenError(f"No source fits the question: {question}")


def _filled(items: list[str], wanted: str) -> list[str]:
    if not items:
        raise EmptyListError(f"the list is empty, it has no {wanted}")
    return items


@PLUGINS.action("FIRST", _ITEMS, "Return the entry that stands first in ITEMS", traits=["picks"])
def first(items: list[str]) -> Value:
    """Take the first entry."""
    return _filled(items, "first entry")[0]


@PLUGINS.action("LAST", _ITEMS, "Return the entry that stands last in ITEMS", traits=["picks"])
def last(items: list[str]) -> Value:
    """Take the last entry."""
    return _filled(items, "last entry")[-1]


@PLUGINS.action(
    "UNIQUE", _ITEMS,
    "Return ITEMS with repeated entries dropped, keeping the order in which they first appear",
    returns=_LIST, traits=["selects"],
)  # fmt: skip
def unique(items: list[str]) -> Value:
    """Keep the first occurrence of each entry."""
    return without_repeats(items)


@PLUGINS.action(
    "UNION", _A_AND_B,
    "Return the entries of A, B and any further lists as one list without repeats",
    is_variadic=True, returns=_LIST,
)  # fmt: skip
def union(*lists: list[str]) -> Value:
    """Concatenate the lists and keep the first occurrence of each entry."""
    return without_repeats(chain.from_iterable(lists))


@PLUGINS.action(
    "INTERSECT", _A_AND_B, "Return the entries that are in A and in B alike",
    returns=_LIST, traits=["selects"],
)  # fmt: skip
def intersect(a: list[str], b: list[str]) -> Value:
    """Keep the entries of the first list that are in the second, each once, in the first list's spelling."""
    shared = {key_of(item) for item in b}
    return without_repeats(item for item in a if key_of(item) in shared)


@PLUGINS.action(
    "DIFFERENCE", _A_AND_B, "Return the entries of A that are not in B",
    returns=_LIST, traits=["selects"],
)  # fmt: skip
def difference(a: list[str], b: list[str]) -> Value:
    """Keep the entries of the first list that are not in the second; repeats and order are kept."""
    taken = {key_of(item) for item in b}
    return [item for item in a if key_of(item) not in taken]


def _count_bounds(rows: Rows) -> tuple[int, int]:
    """The minimum and maximum count, over all possible values of undecided rows and with unread rows."""
    n = len(rows.values)
    # A row without a value may stand for several rows, such as a pair with an unknown key.
    n_possible = sum(
        max(1, len(row.possible)) if row.value is None else 1 for row in rows.undecided
    )
    return n, n + n_possible + rows.n_unread


@PLUGINS.action(
    "COUNT", _ITEMS,
    "Return how many entries ITEMS has, as a number",
    returns=ValueType.NUMBER, traits=["counts"], bounds=_count_bounds,
)  # fmt: skip
def count(items: list[str]) -> Value:
    """Count the entries."""
    return len(items)


def _alike(items: list[str]) -> list[Decimal]:
    """Read the numbers of the entries; entries with different units, or words beside the number, are an error."""
    numbers = numbers_of(items)
    first: dict[str, str] = {}  # unit → the first entry in it
    for item, number in numbers_in(list(dict.fromkeys(items))).items():
        if number is None:
            raise UnclearNumberError(f"{quoted(item)} is a date or a bound, not a number")
        if number.unit:
            first.setdefault(number.unit, item)
    if len(first) > 1:
        one, other, *_ = map(quoted, first.values())
        raise UnclearNumberError(f"numbers in different units: {one} and {other}")
    return numbers


@PLUGINS.action(
    "SUM", _NUMBERS,
    "Add up all NUMBERS and return the total", returns=ValueType.NUMBER, traits=["sums_up"],
)  # fmt: skip
def total(items: list[str]) -> Value:
    """Return the exact sum; 0 for an empty list."""
    numbers = _alike(items)
    # From the first digit of the largest number to the last of the finest, and the digits that their sum can have more
    first = max((number.adjusted() for number in numbers), default=0)
    last = min((int(number.as_tuple().exponent) for number in numbers), default=0)
    with localcontext(prec=max(first, 0) - min(last, 0) + len(str(len(numbers))) + 2):
        return written_out(sum(numbers, Decimal(0)))


@PLUGINS.action(
    "MAX", _NUMBERS, "Return the largest of NUMBERS", returns=ValueType.NUMBER, traits=["sums_up"]
)
def largest(items: list[str]) -> Value:
    """Take the largest."""
    return written_out(max(_alike(_filled(items, "largest number"))))


@PLUGINS.action(
    "MIN", _NUMBERS, "Return the smallest of NUMBERS", returns=ValueType.NUMBER, traits=["sums_up"]
)
def smallest(items: list[str]) -> Value:
    """Take the smallest."""
    return written_out(min(_alike(_filled(items, "smallest number"))))
