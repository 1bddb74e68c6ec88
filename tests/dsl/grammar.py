"""The grammar alone, as lark reads it, without anything of pearl around it."""

from __future__ import annotations

from lark import Lark, UnexpectedInput

from pearl.plugins.files import read_data

GRAMMAR = Lark(
    read_data("grammars", "plan.lark"),
    parser="lalr",
    start=["start", "file", "step", "action", "library_action"],
    maybe_placeholders=False,
)


def accepts(text: str, start: str) -> bool:
    try:
        GRAMMAR.parse(text, start=start)
    except UnexpectedInput:
        return False
    return True
