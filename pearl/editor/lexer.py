"""A Pygments lexer for plan files and action files, made from the grammar: `pygmentize -l plan`."""

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

from pearl.editor.line_automaton import COMMENT, DOCUMENT, LineState, line_automaton, terminals

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


def _rule(number: int, before: str | None) -> list[tuple[Any, ...]]:
    """What reads a state and goes to it, from the beginning of a line or from another state."""
    state: LineState = line_automaton().states[number]
    target = str(number) if before is None else ("#pop", str(number))
    rules: list[tuple[Any, ...]] = [(state.pattern, _TOKENS[state.kind], target)]
    if state.kind == "reference":
        rules.insert(0, (DOCUMENT, Name.Builtin, target))
    return rules


def _tokens() -> dict[str, list[tuple[Any, ...]]]:
    """The states of the automaton, and one for the rest of a line that does not follow the grammar."""
    automaton = line_automaton()
    strange: list[tuple[Any, ...]] = [(r"\n", Whitespace, "#pop")]
    tokens = {
        "root": [
            (r"[^\S\n]*\n", Whitespace),
            *(rule for number in automaton.first for rule in _rule(number, None)),
            (COMMENT, Comment.Single),
            (r"[^\n]", Error, "broken"),
        ],
        "broken": [
            *strange,
            (terminals()["STRING"], String),
            (terminals()["NUMBER"], Number),
            (terminals()["NAME"], Name),
            (r"[^\n]", Text),
        ],
    }
    for number, state in enumerate(automaton.states):
        tokens[str(number)] = [
            *strange,
            *(rule for after in state.following for rule in _rule(after, str(number))),
            (r"[^\n]", Error, ("#pop", "broken")),
        ]
    return tokens


class PlanLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Plan files and action files; what does not follow the grammar is `Error`."""

    name = "PEARL plan"
    aliases: ClassVar = ["plan", "actions", "pearl"]
    filenames: ClassVar = ["*.plan", "*.actions"]
    mimetypes: ClassVar = ["text/x-pearl-plan"]
    url = "https://arxiv.org/abs/2305.14564"
    tokens: ClassVar = _tokens()
