"""Sentences of a grammar as a random decoder writes them: llguidance over single bytes."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

import numpy as np
from hypothesis import strategies as st
from lark import Lark, UnexpectedInput
from llguidance import LLMatcher, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark
from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.decoding.grammar import States
from pearl.dsl.nodes import CTX, Argument, ListLiteral, Plan, Reference, print_step
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.plugins.files import read_data
from tests.dsl.strategies import names, outputs, texts

GRAMMAR = Lark(
    read_data("grammars", "plan.lark"),
    parser="lalr",
    start=["start", "file", "step", "action", "library_action"],
    maybe_placeholders=False,
)
"""The grammar of plans alone, without anything of pearl around it."""


def accepts(text: str, start: str) -> bool:
    """Whether a text follows a start rule of the grammar of plans."""
    try:
        GRAMMAR.parse(text, start=start)
    except UnexpectedInput:
        return False
    return True


@cache
def _bytes() -> LLTokenizer:
    return LLTokenizer("byte")


def _matcher(grammar: str) -> LLMatcher:
    return _compiled(grammar).deep_copy()


@lru_cache(maxsize=16)
def _compiled(grammar: str) -> LLMatcher:
    matcher = LLMatcher(_bytes(), grammar)
    assert not matcher.get_error(), matcher.get_error()
    return matcher


def grammar_of(constraint: Constraint) -> str:
    """What a decoder is held to: the grammar of a plan, or the compact JSON of a schema."""
    if constraint.json_form is None:
        return constraint.lark
    schema = {"x-guidance": {"whitespace_flexible": False}, **constraint.json_form.schema}
    return f"start: %json {json.dumps(schema)}"


def sentence(grammar: str, seed: int, *, stop: float = 0.3) -> str:
    """One sentence, each byte drawn from those allowed; ends with chance `stop` where it may."""
    draw = random.Random(seed)
    matcher = _matcher(grammar)
    eos = _bytes().eos_token
    written = bytearray()
    while not matcher.is_stopped():
        mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little")).tolist()
        if matcher.is_accepting() and (allowed == [eos] or draw.random() < stop):
            break
        token = draw.choice([token for token in allowed if token != eos])
        matcher.consume_token(token)
        written.append(token)
    return written.decode()


def admits(grammar: str, text: str) -> bool:
    """Whether a text is a sentence, says llguidance."""
    return admits_each(grammar, [text])[0]


def admits_each(grammar: str, texts: Iterable[str]) -> list[bool]:
    """`admits` for many texts; the grammar is read once."""
    matcher = _matcher(grammar)
    found = []
    for text in texts:
        tokens = list(text.encode())
        found.append(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())
        matcher.reset()
    return found


def gbnf_admits(grammar: str, text: str) -> bool:
    """Whether a text is a sentence of a GBNF grammar, which llguidance converts to its own notation."""
    return admits(_lark(grammar), text)


@cache
def _lark(grammar: str) -> str:
    # The converter drops the leading zeros of escapes, so they become characters here.
    return re.sub(r"\\[uU]([0-9a-f]+)", lambda m: chr(int(m[1], 16)), gbnf_to_lark(grammar))


def lalr_admits(grammar: str, text: str) -> bool:
    """Whether a text is a sentence, says lark, whose lexer takes the longest match."""
    try:
        _lalr(grammar).parse(text)
    except UnexpectedInput:
        return False
    return True


@cache
def _lalr(grammar: str) -> Lark:
    return Lark(grammar, parser="lalr", maybe_placeholders=False)


@st.composite
def typed_libraries(draw: st.DrawFn) -> ActionLibrary:
    """Libraries whose actions take and give values of every type; some leave nothing to call."""
    types = st.sampled_from(list(ValueType))
    actions = []
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        given = draw(st.lists(st.tuples(outputs, types), max_size=3, unique_by=lambda p: p[0]))
        parameters = tuple(Parameter(*one) for one in given)
        is_variadic = bool(parameters) and draw(st.booleans())
        returns = draw(types.filter(lambda kind: kind is not ValueType.CONTEXT))
        actions.append(Action(name, parameters, draw(texts(0)), is_variadic, returns))
    return ActionLibrary("typed", actions)


def counted(plan: Plan, library: ActionLibrary) -> str:
    """The steps of a valid plan with their outputs renamed as the indexed grammar counts them."""
    kinds = {
        action.name: shape.kind
        for shape, actions in States(library.values(), 1).groups.items()
        for action in actions
    }
    to = {CTX: CTX}
    counts: Counter[str] = Counter()
    steps = []
    for number, step in enumerate(plan.steps, start=1):
        kind = kinds[step.action]
        counts[kind] += 1
        arguments = tuple(renamed(argument, to) for argument in step.arguments)
        to[step.output] = f"{kind}{counts[kind]}"
        steps.append(print_step(replace(step, output=to[step.output], arguments=arguments), number))
    return "\n".join(steps)


def renamed(argument: Argument, to: Mapping[str, str]) -> Argument:
    if isinstance(argument, Reference):
        return Reference(to[argument.name])
    if isinstance(argument, ListLiteral):
        return ListLiteral(tuple(renamed(item, to) for item in argument.items))
    return argument
