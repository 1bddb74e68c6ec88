"""Hypothesis strategies: names, texts, actions, libraries, plans, and texts of plans.

Hypothesis looks over every strategy once, which takes longer than to draw from it: what can be made
in advance is not made anew for each example.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from unicodedata import normalize

from hypothesis import assume
from hypothesis import strategies as st

from pearl.dsl.nodes import (
    CTX,
    Argument,
    Declared,
    ListLiteral,
    Number,
    Plan,
    Reference,
    Step,
    String,
    print_plan,
)
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType

# The same examples on every run, and no clock: a busy machine is no failure. New examples without
# end are the business of tests/faults/test_fuzz.py.

AWKWARD = "=:,()[]'\"“”‘’#/-–—\\*`>.… \t\u00a0\u2028\u3000{}0123456789éñ鍵ש🔑e\u0301"
"""Characters that readers trip over."""

TYPEABLE = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")

FIRST = "ABCXYZ_abcxyzéñΩДשकข検鍵한ꓮ𐐀"

names = st.builds(
    str.__add__,
    st.sampled_from(FIRST),
    st.text(st.sampled_from(FIRST + "0123456789\u0301\u093e\U0001d538"), max_size=8),
).map(partial(normalize, "NFC"))
"""Names as plans keep them, of many scripts."""

outputs = names.filter(lambda name: name != CTX)


@cache
def texts(min_size: int = 1) -> st.SearchStrategy[str]:
    """Free text of one line, without the outer blanks that are no part of it."""
    characters = st.one_of(st.sampled_from(AWKWARD.replace("\t", "")), TYPEABLE)
    whole = st.text(characters, max_size=40).map(lambda text: text.strip(" \u00a0"))
    return whole.filter(lambda text: len(text) >= min_size)


string_values = st.text(
    st.one_of(
        st.sampled_from(AWKWARD + "\n\0\x07\x85\ufffe"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
)
"""What a quoted string can mean: everything but half a character."""


@st.composite
def numbers(draw: st.DrawFn) -> int | float:
    """Numbers as the reader gives them: an integer wherever the value is one."""
    if draw(st.booleans()):
        return draw(_INTEGERS)
    value = float(f"{draw(_SIGNS)}{draw(_WHOLES)}.{draw(_DECIMALS)}")
    return int(value) if value == int(value) else value


_INTEGERS = st.integers(-(10**15) + 1, 10**15 - 1)
_WHOLES = st.integers(0, 10**14 - 1)
_DECIMALS = st.text(st.sampled_from("0123456789"), min_size=1, max_size=15)
_SIGNS = st.sampled_from(["", "-"])

_CONSTANTS = st.one_of(string_values.map(String), numbers().map(Number))
_WILD_ITEMS = st.one_of(names.map(Reference), _CONSTANTS)
_WILD_ARGUMENTS = st.one_of(
    _WILD_ITEMS, st.lists(_WILD_ITEMS, max_size=3).map(tuple).map(ListLiteral)
)


def _parameters(names_: list[str]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name, ValueType.CONTEXT if name == CTX else ValueType.TEXT) for name in names_
    )


@st.composite
def actions(draw: st.DrawFn) -> Action:
    """Actions as an action file declares them."""
    taken = draw(_PARAMETERS)
    parameters = _parameters([CTX, *taken] if draw(st.booleans()) else taken)
    return Action(draw(names), parameters, draw(texts()), bool(parameters) and draw(st.booleans()))


_PARAMETERS = st.lists(outputs, max_size=3, unique=True)


@st.composite
def libraries(draw: st.DrawFn) -> ActionLibrary:
    return ActionLibrary("drawn", draw(_LIBRARIES))


_LIBRARIES = st.lists(actions(), min_size=1, max_size=5, unique_by=lambda action: action.name)


@st.composite
def wild_plans(draw: st.DrawFn) -> Plan:
    """Plans that can be written down; what they call and refer to need not exist."""
    blocks = tuple(draw(_WILD_SOURCES)), tuple(draw(_WILD_SOURCES))
    return Plan(tuple(draw(_WILD_STEPS)), tuple(draw(_WILD_ACTIONS)), draw(_QUESTIONS), *blocks)


_QUESTIONS = st.none() | texts()
_WILD_ACTIONS = st.lists(actions(), max_size=2)
_WILD_SOURCES = st.lists(st.builds(Declared, names, texts(0)), max_size=2)
_WILD_STEPS = st.lists(
    st.builds(Step, names, names, st.lists(_WILD_ARGUMENTS, max_size=4).map(tuple), texts()),
    min_size=1,
    max_size=4,
)


@st.composite
def valid_plans(draw: st.DrawFn, library: ActionLibrary) -> Plan:
    """Plans that are valid under a library of texts; they may declare actions of their own."""
    own = draw(_OWN_ACTIONS.filter(lambda own: not any(action.name in library for action in own)))
    known = list(library.extended(own).values())
    steps: list[Step] = []
    for output in draw(_OUTPUTS):
        action = draw(st.sampled_from(known))
        n = action.min_arity + (draw(st.integers(0, 2)) if action.is_variadic else 0)
        earlier = [CTX, *(step.output for step in steps)]
        if not steps and "tries" in action.traits:
            continue
        given: list[Argument] = [
            Reference(draw(st.sampled_from(earlier["tries" in action.traits :])))
            if action.parameter(i).type is ValueType.CONTEXT or "tries" in action.traits
            else _argument(draw, earlier)
            for i in range(n)
        ]
        steps.append(Step(output, action.name, tuple(given), draw(texts())))
    assume(steps)
    return Plan(tuple(steps), tuple(own), draw(_QUESTIONS))


_OWN_ACTIONS = st.lists(actions(), max_size=2, unique_by=lambda action: action.name)
_OUTPUTS = st.lists(outputs, min_size=1, max_size=5, unique=True)


def _argument(draw: st.DrawFn, earlier: Sequence[str]) -> Argument:
    if draw(st.booleans()):
        return _item(draw, earlier)
    return ListLiteral(tuple(_item(draw, earlier) for _ in range(draw(st.integers(0, 3)))))


def _item(draw: st.DrawFn, earlier: Sequence[str]) -> Reference | String | Number:
    if draw(st.booleans()):
        return Reference(draw(st.sampled_from(earlier)))
    return draw(_CONSTANTS)


plan_texts = wild_plans().map(print_plan)
"""Texts that follow the grammar."""


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """Texts of plans with some characters, and some lines, taken out, put in or moved."""
    text = draw(plan_texts)
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            rows = text.split("\n")
            at = draw(st.integers(0, len(rows) - 1))
            row = rows.pop(at) if draw(st.booleans()) else draw(_LINES)
            rows.insert(draw(st.integers(0, len(rows))), row)
            text = "\n".join(rows)
        else:
            at = draw(st.integers(0, len(text)))
            until = min(len(text), at + draw(st.integers(0, 3)))
            text = text[:at] + draw(_PIECES) + text[until:]
    return text


_LINES = st.sampled_from((
    "", "  ", "```", "```text", "New actions:", "**New actions:** None", "- None", "none",
    "Question: Who?", "- COUNT_X(CTX, X) : Count", "- COUNT_X(CTX)", "Sure, here is the plan:",
    "1. First, I read the question.", "ans = FIND(CTX, 'x')", "- ans = FIND(CTX, “x”) # find",
    "2) b = FIND(CTX, x) (find)", "FIND(CTX)", "> quoted", "c = FIND(CTX,", "  'x',  # what", ") : Find", "   : Find it",
    "1. FIND(CTX, 'x') -> y", "2. FIND(b)", "for x in y:", "topic = 'x'", "d = topic", "2. e = F(G(H(CTX), 'x'), topic)",
    "| 1 | f | F(CTX) | Find |", '1. g = F(X="z" + b, Y=$c, CTX=`ctx`)', "h = F(CTX) : x 3. i = F(step1)", "- J(X: str) -> int : J",
))  # fmt: skip

_PIECES = st.text(st.sampled_from(AWKWARD), max_size=2)
