"""The TextMate grammar colours what the Pygments lexer does, by the rules of TextMate.

`Reader` follows the manual of TextMate for what the grammar uses: regions that begin, end and
include, the leftmost match, `\\G`. The engine of an editor was compared with it by hand.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import regex
from pygments.token import Comment, Name

from pearl.editor.lexer import _TOKENS
from pearl.editor.line_automaton import _SCOPES, textmate_grammar
from tests.editor.test_lexer import LIBRARIES, PLANS, lexed

GRAMMAR = json.loads(json.dumps(textmate_grammar()))


@cache
def _pattern(source: str) -> regex.Pattern[str]:
    """An expression of Oniguruma's, as far as the grammar has them, as one of `regex`."""
    return regex.compile(regex.sub(r"\\x\{(..)\}", r"\\x\1", source))


class Reader:
    """Reads lines by a TextMate grammar."""

    def __init__(self, grammar: dict[str, Any]) -> None:
        self._grammar = grammar

    def line(self, line: str) -> list[tuple[str, str]]:
        """Each text of a line that has a scope, with it."""
        found: list[tuple[str, str]] = []
        at, anchor, patterns = 0, -1, self._flat(self._grammar["patterns"])
        while True:
            best: tuple[regex.Match[str], dict[str, Any]] | None = None
            for rule in patterns:
                source = rule.get("begin") or rule["match"]
                if r"\G" in source and at != anchor:
                    continue
                match = _pattern(source).search(line, at)
                if match and (best is None or match.start() < best[0].start()):
                    best = match, rule
            if best is None:
                return found
            match, rule = best
            scope = rule.get("name") or rule["beginCaptures"]["0"]["name"]
            if "begin" in rule and match.re.groups and match[1] is not None:
                scope = rule["beginCaptures"]["1"]["name"]
            found.append((match[0], scope))
            at = match.end()
            if "begin" in rule:
                anchor, patterns = at, self._flat(rule["patterns"])

    def _flat(self, patterns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        flat = []
        for rule in patterns:
            if "include" in rule:
                inside = self._grammar["repository"][rule["include"][1:]]
                flat += [inside] if "begin" in inside else self._flat(inside["patterns"])
            else:
                flat.append(rule)
        return flat


def scopes(text: str) -> list[tuple[str, str]]:
    reader = Reader(GRAMMAR)
    return [token for line in text.split("\n") for token in reader.line(line)]


def as_lexed(text: str) -> list[tuple[str, str]]:
    """What the lexer reads, by the scopes of the same kinds."""
    of_token = {token: f"{_SCOPES[kind]}.pearl" for kind, token in _TOKENS.items()}
    of_token |= {
        Name.Variable: "variable.other.pearl",
        Name.Builtin: "variable.language.pearl",
        Comment.Single: "comment.line.number-sign.pearl",
        Name.Function: "entity.name.function.pearl",
    }
    return [(value, of_token[token]) for _, value, token in lexed(text)]


def without_definition(scope: str) -> str:
    """The lexer has one token for a name that is defined and one that is used."""
    return scope.replace(".definition.", ".")


@pytest.mark.parametrize("path", [*PLANS, *LIBRARIES], ids=lambda path: path.name)
def test_a_file_has_the_colours_of_the_lexer(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [(value, without_definition(scope)) for value, scope in scopes(text)] == as_lexed(text)


def test_a_broken_line_keeps_its_known_colours_and_other_lines_do_not_change() -> None:
    good = '2. b = FIND(CTX, "c") : d'
    assert scopes(f'1. a = FIND(CTX,  "b") : c\n{good}')[-len(scopes(good)) :] == scopes(good)
    assert ('"b"', "string.quoted.double.pearl") in scopes('1. a = FIND(CTX,  "b") : c')


def test_every_expression_and_every_inclusion_is_there() -> None:
    text = json.dumps(GRAMMAR)
    included = set(regex.findall(r'"include": "#([^"]+)"', text))
    assert included == set(GRAMMAR["repository"])
    for source in regex.findall(r'"(?:begin|match|end)": ("(?:[^"\\]|\\.)*")', text):
        _pattern(json.loads(source))
        assert not regex.search(r"\\x(?!\{)|\\[uU](?!\()(?=[0-9a-f]{4})", json.loads(source))
