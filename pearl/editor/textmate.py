r"""A TextMate grammar of plan files and action files, made from the grammar of plans.

Every state of the automaton is a region that begins with its terminal and ends with the line, in
which `\G`, the end of the terminal, is where the next one has to be.
"""

from __future__ import annotations

import re
from typing import Any

from pearl.editor.line_automaton import COMMENT, DOCUMENT, LineState, line_automaton, terminals

_SCOPES = {
    "heading": "keyword.control",
    "none": "constant.language",
    "question": "markup.heading",
    "number-of-step": "entity.name.label",
    "output": "variable.other.definition",
    "reference": "variable.other",
    "action": "entity.name.function",
    "declaration": "entity.name.function.definition",
    "parameter": "variable.parameter",
    "string": "string.quoted.double",
    "number": "constant.numeric",
    "type": "storage.type",
    "operator": "keyword.operator.assignment",
    "punctuation": "punctuation",
    "explanation": "comment.line",
    "definition": "string.unquoted.documentation",
}
"""Kind → scope, of the names that themes know (https://macromates.com/manual/en/language_grammars)."""

_CODE_POINT = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.S)


def textmate_grammar() -> dict[str, Any]:
    """The grammar as JSON data, for editors whose regular expressions are Oniguruma's.

    Example:
        >>> textmate_grammar()["scopeName"]
        'source.pearl'
    """
    automaton = line_automaton()
    return {
        "name": "PEARL plan",
        "scopeName": "source.pearl",
        "fileTypes": ["plan", "actions"],
        "patterns": [
            *({"include": f"#line-{number}"} for number in automaton.first),
            {"match": f"^{COMMENT}", "name": _scope("comment.line.number-sign")},
        ],
        "repository": {
            **{
                f"line-{number}": _region("^", automaton.states[number])
                for number in automaton.first
            },
            **{
                f"state-{number}": _region(r"\G", state)
                for number, state in enumerate(automaton.states)
                if number not in automaton.first
            },
            "broken": {
                "patterns": [
                    {"match": _oniguruma(terminals()[name]), "name": _scope(_SCOPES[kind])}
                    for name, kind in (
                        ("STRING", "string"),
                        ("NUMBER", "number"),
                        ("NAME", "reference"),
                    )
                ]
            },
        },
    }


def _region(anchor: str, state: LineState) -> dict[str, Any]:
    """What begins with a terminal, and goes on to the end of the line."""
    first: dict[str, Any] = {"name": _scope(_SCOPES[state.kind])}
    pattern = _oniguruma(state.pattern)
    if state.kind == "reference":  # the document or another name, whichever matched
        pattern = f"({_oniguruma(DOCUMENT)})|{pattern}"
        captures = {"0": first, "1": {"name": _scope("variable.language")}}
    else:
        captures = {"0": first}
    return {
        "begin": f"{anchor}(?:{pattern})",
        "beginCaptures": captures,
        "end": "$",
        "patterns": [
            *({"include": f"#state-{number}"} for number in state.following),
            {"include": "#broken"},
        ],
    }


def _scope(name: str) -> str:
    return f"{name}.pearl"


def _oniguruma(pattern: str) -> str:
    r"""A regular expression of Python's as Oniguruma has it, which reads `\x7f` as a byte.

    Example:
        >>> _oniguruma(r"[\x00-\x20\"\\x7f]")
        '[\\x{00}-\\x{20}\\"\\\\x7f]'
    """
    return _CODE_POINT.sub(
        lambda found: found[0] if found[4] else f"\\x{{{found[1] or found[2] or found[3]}}}",
        pattern,
    )
