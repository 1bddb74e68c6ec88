"""SORT(ITEMS): a list in ascending order."""

import re
from decimal import Decimal

from pearl.actions.values import Value
from pearl.documents.numbers import check_alike
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "SORT",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return the entries of ITEMS in ascending order",
    returns=ValueType.LIST,
    is_native=True,
)

_LEADING = re.compile(r"\s*+([-+]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:\.\d++)?)")


def run(items: list[str]) -> Value:
    """Sort by number if every entry begins with one, else by letter, case aside.

    Example:
        >>> run(["10 mg", "9 mg", "1,000 mg"])
        ['9 mg', '10 mg', '1,000 mg']
        >>> run(["pear", "Apple", "2 figs"])
        ['2 figs', 'Apple', 'pear']
    """
    leading = [match for item in items if (match := _LEADING.match(item))]
    if len(leading) < len(items):
        return sorted(items, key=str.casefold)
    check_alike((m.string, m.start(1), m.end(1)) for m in leading)
    ranked = [(Decimal(m[1].replace(",", "")), m.string.casefold(), m.string) for m in leading]
    return [item for _, _, item in sorted(ranked)]
