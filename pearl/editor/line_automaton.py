"""An automaton that reads one line of a plan or of an action file: a lexer and a TextMate grammar are generated from it.

A state is a terminal of the grammar at one of its places, with the states that may follow it. Lines are read one by one,
so a broken line leaves the others as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from pearl.dsl.parser import coarse_grammar
from pearl.dsl.signatures import CTX
from pearl.errors.patterns import lazy_pattern

COMMENT = r"[^\S\n]*#[^\n]*"
"""A comment line of a file; the grammar has no comments."""

DOCUMENT = rf"{CTX}(?=[ ,)\]]|$)"
"""The name of the document, which no step defines."""


@dataclass(frozen=True, slots=True)
class LineState:
    """A terminal at one of its places."""

    kind: str
    pattern: str
    following: tuple[str, ...]


@cache
def terminals() -> Mapping[str, str]:
    r"""Every named terminal of the grammar as a regular expression.

    Example:
        >>> terminals()["_DASH"], terminals()["_COLON"]
        ('\\-\\ ', ' ?: ')
    """
    found = re.findall(r"^([A-Z_]+): (?:\"(.*)\"|/(.*)/)$", coarse_grammar(), re.M)
    return {name: pattern or re.escape(text) for name, text, pattern in found}


LINE_STARTS = ("new-actions", "question-heading", "no-actions", "dash", "declaration", "number")

_ITEMS = ("string", "reference", "number-item")
_LIST_ITEMS = ("list-string", "list-reference", "list-number")
_AFTER_SIGNATURE = ("hash", "definition-colon")

_STATES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "new-actions": ("heading", "New actions:", ()),
    "question-heading": ("heading", "Question: ", ("question",)),
    "question": ("question", "TEXT", ()),
    "no-actions": ("none", "- None$", ()),
    "dash": ("punctuation", "_DASH", ("declaration",)),
    "declaration": ("declaration", "NAME", ("signature",)),
    "signature": ("punctuation", r"\(", ("signature-end", "parameter")),
    "parameter": ("parameter", "NAME", ("signature-end", "parameter-comma")),
    "parameter-comma": ("punctuation", "_COMMA", ("ellipsis", "parameter")),
    "ellipsis": ("punctuation", "ELLIPSIS", ("signature-end",)),
    "signature-end": ("punctuation", r"\)", ("type", *_AFTER_SIGNATURE)),
    "type": ("type", "GIVES", _AFTER_SIGNATURE),
    "hash": ("punctuation", "_HASH", ("definition",)),
    "definition-colon": ("punctuation", "_COLON", ("definition",)),
    "definition": ("definition", "TEXT", ()),
    "number": ("number-of-step", "_NUMBER_DOT", ("output",)),
    "output": ("output", "NAME", ("equals",)),
    "equals": ("operator", " = ", ("action",)),
    "action": ("action", "NAME", ("call",)),
    "call": ("punctuation", r"\(", ("list", "call-end", *_ITEMS)),
    "string": ("string", "STRING", ("call-end", "comma")),
    "reference": ("reference", "NAME", ("call-end", "comma")),
    "number-item": ("number", "NUMBER", ("call-end", "comma")),
    "comma": ("punctuation", "_COMMA", ("list", *_ITEMS)),
    "list": ("punctuation", "LSQB", ("list-end", *_LIST_ITEMS)),
    "list-string": ("string", "STRING", ("list-end", "list-comma")),
    "list-reference": ("reference", "NAME", ("list-end", "list-comma")),
    "list-number": ("number", "NUMBER", ("list-end", "list-comma")),
    "list-comma": ("punctuation", "_COMMA", _LIST_ITEMS),
    "list-end": ("punctuation", "RSQB", ("call-end", "comma")),
    "call-end": ("punctuation", r"\)", ("colon",)),
    "colon": ("punctuation", "_COLON", ("explanation",)),
    "explanation": ("explanation", "TEXT", ()),
}
"""State → its kind, its terminal or pattern, and the states that may follow, in the order of attempts."""


@cache
def line_automaton() -> Mapping[str, LineState]:
    """The states by name, with the patterns of their terminals."""
    return {
        name: LineState(kind, terminals().get(pattern, pattern), following)
        for name, (kind, pattern, following) in _STATES.items()
    }


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
"""Kind → scope name that themes use (https://macromates.com/manual/en/language_grammars)."""

_CODE_POINT = lazy_pattern(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.S)


def textmate_grammar() -> dict[str, Any]:
    """The TextMate grammar as JSON data, for editors with Oniguruma regular expressions."""
    automaton = line_automaton()
    return {
        "name": "PEARL plan",
        "scopeName": "source.pearl",
        "fileTypes": ["plan", "actions"],
        "patterns": [
            *({"include": f"#line-{name}"} for name in LINE_STARTS),
            {"match": f"^{COMMENT}", "name": _scope("comment.line.number-sign")},
        ],
        "repository": {
            **{f"line-{name}": _region("^", automaton[name]) for name in LINE_STARTS},
            **{
                name: _region(r"\G", automaton[name])
                for name in dict.fromkeys(chain(*(s.following for s in automaton.values())))
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
    """A region that begins with a terminal and ends with the line."""
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
            *({"include": f"#{name}"} for name in state.following),
            {"include": "#broken"},
        ],
    }


def _scope(name: str) -> str:
    return f"{name}.pearl"


def _oniguruma(pattern: str) -> str:
    r"""A regular expression of Python in the syntax of Oniguruma, which reads `\x7f` as a byte.

    Example:
        >>> _oniguruma(r"[\x00-\x20\"\\x7f]")
        '[\\x{00}-\\x{20}\\"\\\\x7f]'
    """
    return _CODE_POINT.sub(
        lambda found: found[0] if found[4] else f"\\x{{{found[1] or found[2] or found[3]}}}",
        pattern,
    )
