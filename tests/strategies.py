"""Hypothesis strategies: names, texts, actions, libraries, plans, and texts of plans."""

from __future__ import annotations

from hypothesis import strategies as st

from pearl.dsl.nodes import CTX, Argument, ListLiteral, Number, Plan, Reference, Step, String
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType

# The same examples on every run, and no clock: a busy machine is no failure. New examples without
# end are the business of experiments/fuzz_plans.py.

AWKWARD = "=:,()[]'\"“”‘’#/-–—\\*`>.… \t\u00a0\u2028\u3000{}0123456789éñ鍵ש🔑e\u0301"
"""Characters that readers trip over."""

TYPEABLE = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")

FIRST = "ABCXYZ_abcxyzéñΩДשकข検鍵한"

names = st.builds(
    str.__add__,
    st.sampled_from(FIRST),
    st.text(st.sampled_from(FIRST + "0123456789\u0301\u093e"), max_size=8),
)
"""Names as the grammar has them, of many scripts."""

outputs = names.filter(lambda name: name != CTX)


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
        return draw(st.integers(-(10**15) + 1, 10**15 - 1))
    whole = draw(st.integers(0, 10**14 - 1))
    decimals = draw(st.text(st.sampled_from("0123456789"), min_size=1, max_size=15))
    value = float(f"{draw(st.sampled_from(['', '-']))}{whole}.{decimals}")
    return int(value) if value == int(value) else value


def items(references: st.SearchStrategy[str]) -> st.SearchStrategy[Reference | String | Number]:
    return st.one_of(references.map(Reference), string_values.map(String), numbers().map(Number))


def arguments(references: st.SearchStrategy[str]) -> st.SearchStrategy[Argument]:
    lists = st.lists(items(references), max_size=3).map(tuple).map(ListLiteral)
    return st.one_of(items(references), lists)


def _parameters(names_: list[str]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name, ValueType.CONTEXT if name == CTX else ValueType.TEXT) for name in names_
    )


@st.composite
def actions(draw: st.DrawFn, name: st.SearchStrategy[str] = names) -> Action:
    """Actions as an action file declares them."""
    taken = draw(st.lists(outputs, max_size=3, unique=True))
    parameters = _parameters([CTX, *taken] if draw(st.booleans()) else taken)
    return Action(draw(name), parameters, draw(texts()), bool(parameters) and draw(st.booleans()))


@st.composite
def libraries(draw: st.DrawFn) -> ActionLibrary:
    found = draw(st.lists(actions(), min_size=1, max_size=5, unique_by=lambda a: a.name))
    return ActionLibrary("drawn", found)


@st.composite
def wild_plans(draw: st.DrawFn) -> Plan:
    """Plans that can be written down; what they call and refer to need not exist."""
    steps = st.builds(
        Step, names, names, st.lists(arguments(names), max_size=4).map(tuple), texts()
    )
    return Plan(
        tuple(draw(st.lists(steps, min_size=1, max_size=4))),
        tuple(draw(st.lists(actions(), max_size=2))),
        draw(st.none() | texts()),
    )


@st.composite
def valid_plans(draw: st.DrawFn, library: ActionLibrary) -> Plan:
    """Plans that are valid under a library of texts; they may declare actions of their own."""
    own = draw(
        st.lists(
            actions(names.filter(lambda name: name not in library)),
            max_size=2,
            unique_by=lambda action: action.name,
        )
    )
    known = list(library.extended(own).values())
    steps: list[Step] = []
    for output in draw(st.lists(outputs, min_size=1, max_size=5, unique=True)):
        action = draw(st.sampled_from(known))
        n = action.min_arity + (draw(st.integers(0, 2)) if action.is_variadic else 0)
        earlier = st.sampled_from([CTX, *(step.output for step in steps)])
        given: list[Argument] = [
            Reference(draw(earlier))
            if action.parameter(i).type is ValueType.CONTEXT
            else draw(arguments(earlier))
            for i in range(n)
        ]
        steps.append(Step(output, action.name, tuple(given), draw(texts())))
    return Plan(tuple(steps), tuple(own), draw(st.none() | texts()))


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
            row = rows.pop(at) if draw(st.booleans()) else draw(st.sampled_from(LINES))
            rows.insert(draw(st.integers(0, len(rows))), row)
            text = "\n".join(rows)
        else:
            at = draw(st.integers(0, len(text)))
            until = min(len(text), at + draw(st.integers(0, 3)))
            text = text[:at] + draw(st.text(st.sampled_from(AWKWARD), max_size=2)) + text[until:]
    return text


LINES = (
    "", "  ", "```", "```text", "New actions:", "**New actions:** None", "- None", "none",
    "Question: Who?", "- COUNT_X(CTX, X) : Count", "- COUNT_X(CTX)", "Sure, here is the plan:",
    "1. First, I read the question.", "ans = FIND(CTX, 'x')", "- ans = FIND(CTX, “x”) # find",
    "2) b = FIND(CTX, x) (find)", "FIND(CTX)", "> quoted",
)  # fmt: skip
