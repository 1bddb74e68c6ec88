"""The parser that reads lark's tables, compared with lark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import Lark, UnexpectedInput

from pearl.dsl import lalr
from pearl.dsl.parser import Start, coarse_grammar
from tests.dsl.strategies import broken_texts, plan_texts

STARTS = get_args(Start)


class Nodes:
    """Makes a tuple of the name of a rule and its children."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name.isupper():  # inlined, or a terminal
            raise AttributeError(name)
        return lambda children: (str(name), *children)


LARK = Lark(
    coarse_grammar(),
    parser="lalr",
    start=[*STARTS],
    maybe_placeholders=False,
    transformer=Nodes(),  # type: ignore[arg-type]
)
OURS = lalr.Parser(lalr.build(coarse_grammar(), STARTS), Nodes())


def placed(node: Any) -> Any:
    """A node with the kinds and positions of its tokens, which `==` does not compare."""
    if isinstance(node, tuple):
        return tuple(map(placed, node))
    return (node.type, node.start_pos, str(node)) if hasattr(node, "type") else node


def result(parse: Callable[[str, str], Any], text: str, start: str) -> Any:
    """The node, or the place where the text leaves the grammar."""
    try:
        return placed(parse(text, start))
    except UnexpectedInput as error:
        return error.pos_in_stream
    except lalr.UnexpectedTextError as error:
        return error.at


@given(st.one_of(plan_texts, broken_texts()), st.sampled_from(STARTS))
@example("", "file")
@example("1. a = F(", "step")
@example("- ", "declared")
@example("F(CTX, a, ...) -> List # it", "library_action")
def test_nodes_and_places_of_errors_are_those_of_lark(text: str, start: str) -> None:
    for part in (text, *text.split("\n")):
        assert result(OURS.parse, part, start) == result(LARK.parse, part, start)


GRAMMAR = """
start: pair ("," pair)*
pair: NAME [_sign] NUMBER+
_sign: SIGN SIGN?
NAME: /[a-z]+/
NUMBER: /[0-9]+/
SIGN: "+" | "-"
"""


@pytest.mark.parametrize("text", ["a1", "a+-1,b+2", "a", "1", "a1,", "a+,", "a1 b2", "a12,b-3,c4"])
def test_another_grammar(text: str) -> None:
    lark = Lark(GRAMMAR, parser="lalr", maybe_placeholders=False, transformer=Nodes())  # type: ignore[arg-type]
    ours = lalr.Parser(lalr.build(GRAMMAR, ["start"]), Nodes())
    assert result(ours.parse, text, "start") == result(lark.parse, text, "start")
