r"""A model's reply about numbered items → the value of each. The only parser of such replies.

The reply asked for is one line `N: value` for every item. Values are taken by the number they are
given with, never by their position: a number that is missing, that stands there with two different
values or with one that is not allowed leaves its own item undecided, and no other.

    yes_no    yes or no
    label     one of the labels; only case, blanks and the marks around it may differ
    line      one line of text; `Nothing found.` where the item says nothing
    rating    a number from 0 to 10
    pick      the numbers of the items that are chosen, best first, a line each
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pearl.dsl.cursor import terminal
from pearl.dsl.decoding.constraint import Constraint, JsonForm
from pearl.dsl.decoding.schema import closed_object, require
from pearl.dsl.printer import one_line
from pearl.dsl.signatures import NOTHING
from pearl.replies.item_lines import claims, picks
from pearl.replies.typed import says_nothing

__all__ = [
    "MAX_ITEM_TOKENS",
    "MAX_RATING",
    "ItemKind",
    "ItemReplies",
    "form_flaw",
    "items_constraint",
    "label_line",
    "line_length",
    "read_items",
]

ItemKind = Literal["yes_no", "label", "line", "rating", "pick"]
"""What is asked of every item; `pick` chooses among them."""

MAX_ITEM_TOKENS = 64
"""Maximum tokens of a free line about one item."""
MAX_RATING = 10
_CHARACTERS_A_TOKEN = 4

_YES_NO = ("yes", "no")
_EDGES = " \t*_`\"'“”‘’«»„.,;:!()[]{}"
"""Marks around a value that say nothing."""
_UNDECIDED = frozenset(
    {"undecided", "undecidable", "unclear", "unsure", "uncertain", "not sure", "n/a", "n.a", "null",
     "cannot tell", "can't tell", "cannot say", "cannot be determined", "not applicable"}
)  # fmt: skip
_RATING = re.compile(r"([0-9]{1,2}(?:\.[0-9]{1,3})?)(?:\s*(?:/|out of)\s*10)?", re.I)


@dataclass(frozen=True, slots=True)
class ItemReplies:
    """What a reply says of the items.

    Attributes:
        values: The value of every item in order, a label as it was given; None for undecided. Of
            `pick`: its place, "1" for the best, and "" for one that is not chosen; or None for all.
        flaws: How the reply departs from what was asked, a phrase each.
    """

    values: tuple[str | None, ...]
    flaws: tuple[str, ...] = ()


def read_items(
    text: str,
    n: int,
    kind: ItemKind,
    labels: Sequence[str] = (),
    n_picks: int = 0,
    max_length: int | None = None,
) -> ItemReplies:
    r"""Parse the reply about `n` items.

    Args:
        text: The reply.
        n: Items, numbered from 1.
        kind: What was asked of them.
        labels: The values allowed for `label`.
        n_picks: Items to choose for `pick`.
        max_length: Characters at which a constraint cuts a line off; None if none does.

    Example:
        >>> read_items("2: Spam\n**1**: no spam\n4: ham", 3, "label", ["spam", "ham"])
        ItemReplies(values=(None, 'spam', None), flaws=("item 1: 'no spam' is not allowed", 'item 3: missing', 'item 4: there is none'))
        >>> read_items("4\n2", 4, "pick", n_picks=2).values
        ('', '2', '', '1')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if kind == "pick":
        return _read_picks(text, n, n_picks)
    allowed = _YES_NO if kind == "yes_no" else tuple(labels)
    given: dict[int, list[str | None]] = {}
    flaws: list[str] = []
    last = 0
    in_order = True
    cut: int | None = None
    for claim in claims(text, is_free=kind == "line"):
        if not 1 <= claim.id <= n:
            flaws.append(f"item {claim.id}: there is none")
            continue
        in_order, last = in_order and claim.id > last, claim.id
        cut = claim.id if claim.is_last else None
        given.setdefault(claim.id, []).append(claim.value)
    if len(given) == n or (in_order and last == n):
        cut = None  # it got to its end
    values: list[str | None] = []
    wrong: list[str] = []
    for i in range(1, n + 1):
        value, flaw = _value(given.get(i, []), kind, allowed)
        is_full = kind == "line" and any(_is_full(one, max_length) for one in given.get(i, []))
        if is_full and value is not None:
            value, flaw = None, "is cut off"
        if i == cut and value is not None and _may_go_on(value, kind, allowed):
            value, flaw = None, "may be cut off"
        values.append(value)
        if flaw:
            wrong.append(f"item {i}: {flaw}")
    return ItemReplies(tuple(values), (*wrong, *flaws))


def label_line(label: str) -> str:
    """A label as prompts and constraints show it: on one line."""
    return " ".join(one_line(label).split())


def _value(
    given: Sequence[str | None], kind: ItemKind, allowed: Sequence[str]
) -> tuple[str | None, str]:
    """The value of an item from all values that the reply gives it, and what is wrong, or ""."""
    if not given:
        return None, "missing"
    values = {None if one is None else _read(one, kind, allowed) for one in given}
    if len(values) > 1:
        return None, "repeated with another value"
    value = values.pop()
    if value is not None:
        return value, ""
    shown = " ".join((given[0] or "").split())
    if _bare(shown) in _UNDECIDED:
        return None, "undecided"
    return None, f"{shown[:60]!r} is not allowed" if shown else "no value that can be read"


def _read(text: str, kind: ItemKind, allowed: Sequence[str]) -> str | None:
    """A value in the form of its kind, or None."""
    text = " ".join(one_line(text).split())
    match kind:
        case "rating":
            found = _RATING.fullmatch(_bare(text))
            number = float(found[1]) if found else -1
            return f"{number:g}" if 0 <= number <= 10 else None
        case "line":
            if says_nothing(text):
                return NOTHING
            return None if not _bare(text) or _bare(text) in _UNDECIDED else text
        case "yes_no":
            word = {"true": "yes", "false": "no"}.get(_bare(text), _bare(text))
            return word if word in allowed else None
        case _:
            return _same_label(text, tuple(allowed))


def _bare(text: str) -> str:
    return text.strip(_EDGES).casefold()


@lru_cache(maxsize=1_024)
def _same_label(text: str, labels: tuple[str, ...]) -> str | None:
    """The label that a text is, as it was given; None if it is none, or might be several."""
    shown = {label: label_line(label) for label in dict.fromkeys(labels)}
    ways = (
        [label for label, line in shown.items() if line == text],
        [label for label, line in shown.items() if line.casefold() == text.casefold()],
        [label for label, line in shown.items() if line.casefold() == _bare(text)],
        [label for label, line in shown.items() if _bare(line).strip("?") == _bare(text)],
    )
    found = next((labels for labels in ways if labels), []) if _bare(text) else ways[0]
    return found[0] if len(found) == 1 else None


def _is_full(text: str | None, max_length: int | None) -> bool:
    """Whether a line ends where a constraint ends it; a blank there is not seen."""
    return text is not None and max_length is not None and len(text) - max_length in (-1, 0)


def _may_go_on(value: str, kind: ItemKind, allowed: Sequence[str]) -> bool:
    """Whether a value may be the beginning of another that was cut off."""
    if kind == "rating":
        return value == "1"
    start = value.casefold()
    longer = (other.casefold() for other in allowed if other != value)
    return kind == "line" or any(other.startswith(start) for other in longer)


def _read_picks(text: str, n: int, n_picks: int) -> ItemReplies:
    """The chosen items; all or none, for only their order says which is the best."""
    picked, flaw = picks(text)
    if not flaw and len(picked) != n_picks:
        flaw = f"{len(picked)} items are chosen, not {n_picks}"
    if not flaw and len(set(picked)) < len(picked):
        flaw = "an item is chosen twice"
    if not flaw and any(not 1 <= id <= n for id in picked):
        flaw = "an item is chosen that there is not"
    if flaw:
        return ItemReplies((None,) * n, (flaw,))
    places = {id: str(place) for place, id in enumerate(picked, start=1)}
    return ItemReplies(tuple(places.get(i, "") for i in range(1, n + 1)))


# ---------------------------------------------------------------------------------------------
# Constraints for decoders


def items_constraint(
    n: int,
    kind: ItemKind,
    labels: Sequence[str] = (),
    *,
    n_picks: int = 0,
    max_item_tokens: int = MAX_ITEM_TOKENS,
    max_text: int | None = None,
) -> Constraint:
    r"""The language of the replies to an `ItemsTask`, as `read_items` takes them.

    Args:
        n: Items.
        kind: What is asked of them. That no item is chosen twice, a grammar for `pick` cannot say.
        labels: The values allowed for `label`, at least one.
        n_picks: Items to choose for `pick`.
        max_item_tokens: Maximum tokens of a free line, 4 characters each.
        max_text: Maximum characters of a free text in constraints for this model; None for no limit.

    Example:
        >>> print(items_constraint(2, "label", ["spam", 'not "spam"']).lark, end="")
        start: "1: " VALUE "\n2: " VALUE
        VALUE: "spam" | "not \"spam\""
    """
    lines = tuple(dict.fromkeys(map(label_line, labels)))
    return _items_constraint(
        n, kind, lines, n_picks, line_length(max_item_tokens, max_text), max_text
    )


def line_length(max_item_tokens: int, max_text: int | None = None) -> int:
    """Characters of a free line at most, where a constraint holds replies to their form."""
    length = max_item_tokens * _CHARACTERS_A_TOKEN
    return length if max_text is None else min(length, max_text)


@lru_cache(maxsize=32)
def _items_constraint(
    n: int,
    kind: ItemKind,
    labels: tuple[str, ...],
    n_picks: int,
    max_length: int,
    max_text: int | None,
) -> Constraint:
    value = _terminal(n, kind, labels, max_length)
    if kind == "pick":
        start = ' "\\n" '.join(["VALUE"] * n_picks)
    else:
        start = ' "\\n'.join(f'{i}: " VALUE' for i in range(1, n + 1))
        start = f'"{start}'
    form = _json_form(n, kind, labels, n_picks, max_text)
    return Constraint(f"items-{kind}", f"start: {start}\nVALUE: {value}\n", form)


def form_flaw(
    text: str, n: int, kind: ItemKind, labels: Sequence[str] = (), n_picks: int = 0
) -> str | None:
    """How a reply departs from its constraint; None if it does not.

    A reply of that form may still leave an item undecided: it chooses one twice, or says "unclear".
    """
    ids = [""] * n_picks if kind == "pick" else [f"{i}: " for i in range(1, n + 1)]
    lines = text.strip("\n").split("\n")
    if len(lines) != len(ids):
        return f"it has {len(lines)} lines, not {len(ids)}"
    allowed = None if kind == "line" else set(_allowed(n, kind, list(map(label_line, labels))))
    for id, line in zip(ids, lines, strict=True):
        # Blanks at its end are lost where a line is empty.
        value = f"{line} ".removeprefix(id).strip() if f"{line} ".startswith(id) else None
        if value is None or (allowed is not None and value not in allowed):
            return f"{line[:60]!r} is not of the form"
    return None


def _allowed(n: int, kind: ItemKind, labels: Sequence[str]) -> Sequence[str]:
    """The values that are allowed, on one line each; any other text for `line`."""
    match kind:
        case "yes_no":
            return _YES_NO
        case "label":
            return labels
        case "rating":
            return [str(i) for i in range(MAX_RATING + 1)]
        case "pick":
            return [str(i) for i in range(1, n + 1)]
        case "line":
            return ()


def _terminal(n: int, kind: ItemKind, labels: Sequence[str], max_length: int) -> str:
    """The terminal of one value."""
    if kind == "line":
        text = terminal("TEXT").pattern.removesuffix("*")
        return f"/{text}{{0,{max_length - 1}}}/"
    allowed = _allowed(n, kind, labels)
    escaped = (value.replace("\\", r"\\").replace('"', r"\"") for value in allowed)
    return " | ".join(f'"{value}"' for value in escaped)


def _json_form(
    n: int, kind: ItemKind, labels: Sequence[str], n_picks: int, max_text: int | None
) -> JsonForm:
    """The same as an object of the pairs, or as an array of the numbers chosen."""
    ids = [str(i) for i in range(1, n + 1)]
    one: dict[str, Any] = {"type": "string"}
    if kind in ("rating", "pick"):
        one = {"type": "integer", "enum": [int(value) for value in _allowed(n, kind, labels)]}
    elif kind != "line":
        one["enum"] = list(_allowed(n, kind, labels))
    elif max_text is not None:
        one["maxLength"] = max_text
    if kind == "pick":
        values = {"type": "array", "items": one, "minItems": n_picks, "maxItems": n_picks}
        schema = closed_object({"items": values})
        hint = '{"items": [...]}, the numbers of the items chosen, best first.'
    else:
        # Every value by reference: an enumeration of labels a hundred times is a long schema.
        schema = closed_object({i: {"$ref": "#/$defs/value"} for i in ids}) | {
            "$defs": {"value": one}
        }
        hint = f'an object with the value of every item by its number, "1" to "{n}".'

    def text_of(data: Any) -> str:
        require(data, schema)
        if kind == "pick":
            return "\n".join(map(str, data["items"]))
        return "\n".join(f"{i}: {one_line(str(data[i]))}" for i in ids)

    return JsonForm(schema, text_of, hint)
