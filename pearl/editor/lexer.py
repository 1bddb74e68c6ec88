"""A Pygments lexer for plan and action files, generated from the grammar: `pygmentize -l plan`."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import (
    Comment,
    Error,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
    _TokenType,
)

from pearl.editor.line_automaton import COMMENT, DOCUMENT, LINE_STARTS, line_automaton, terminals

_TOKENS: dict[str, _TokenType] = {
    "heading": Keyword,
    "none": Keyword.Constant,
    "question": Generic.Strong,
    "number-of-step": Name.Label,
    "output": Name.Variable,
    "reference": Name.Variable,
    "action": Name.Function,
    "declaration": Name.Function,
    "parameter": Name.Variable.Instance,
    "string": String,
    "number": Number,
    "type": Keyword.Type,
    "operator": Operator,
    "punctuation": Punctuation,
    "explanation": Comment,
    "definition": String.Doc,
}


def _rules(name: str, target: str | tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The rules that read a state and enter it."""
    state = line_automaton()[name]
    rules: list[tuple[Any, ...]] = [(state.pattern, _TOKENS[state.kind], target)]
    if state.kind == "reference":
        rules.insert(0, (DOCUMENT, Name.Builtin, target))
    return rules


def _tokens() -> dict[str, list[tuple[Any, ...]]]:
    """The states of the automaton, and one state for the rest of a line that breaks the grammar."""
    line_end: list[tuple[Any, ...]] = [(r"\n", Whitespace, "#pop")]
    tokens = {
        "root": [
            (r"[^\S\n]*\n", Whitespace),
            *(rule for name in LINE_STARTS for rule in _rules(name, name)),
            (COMMENT, Comment.Single),
            (r"[^\n]", Error, "broken"),
        ],
        "broken": [
            *line_end,
            (terminals()["STRING"], String),
            (terminals()["NUMBER"], Number),
            (terminals()["NAME"], Name),
            (r"[^\n]", Text),
        ],
    }
    for name, state in line_automaton().items():
        tokens[name] = [
            *line_end,
            *(rule for after in state.following for rule in _rules(after, ("#pop", after))),
            (r"[^\n]", Error, ("#pop", "broken")),
        ]
    return tokens


class PlanLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Plan files and action files; text that breaks the grammar is `Error`."""

    name = "PEARL plan"
    aliases: ClassVar = ["plan", "actions", "pearl"]
    filenames: ClassVar = ["*.plan", "*.actions"]
    mimetypes: ClassVar = ["text/x-pearl-plan"]
    url = "https://arxiv.org/abs/2305.14564"
    tokens: ClassVar = _tokens()
