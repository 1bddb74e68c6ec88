"""The grammar of plans → an automaton that reads one line, from which lexers are made; a TextMate grammar from it.

A state is a place of a terminal in a rule; the rules say which places may follow (the construction of Glushkov, 1961).
Lines are read one by one, so a broken line leaves the others as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pearl.dsl.parser import coarse_grammar
from pearl.dsl.signatures import CTX
from pearl.errors.patterns import lazy_pattern

STARTS = ("file", "library_action")
"""The rules of the grammar that files are read by."""

COMMENT = r"[^\S\n]*#[^\n]*"
"""A line that readers of action files skip; the grammar has none."""

DOCUMENT = rf"{CTX}(?=[ ,)\]]|$)"
"""The one name that is not the plan's own."""

_KINDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("file", "TEXT"): ("question",),
    ("step", "NAME"): ("output", "action"),
    ("step", "TEXT"): ("explanation",),
    ("action", "TEXT"): ("definition",),
    ("library_action", "TEXT"): ("definition",),
    ("signature", "NAME"): ("declaration", "parameter"),
    ("reference", "NAME"): ("reference",),
}
"""Rule and terminal → what it is there, by how often the terminal stood in the rule before."""

_KIND_OF_TERMINAL: Mapping[str, str] = {
    '"Question: "': "heading",
    '"New actions:"': "heading",
    "_NO_ACTIONS": "none",
    "_NUMBER_DOT": "number-of-step",
    "STRING": "string",
    "NUMBER": "number",
    "GIVES": "type",
    '" = "': "operator",
    "_DASH": "punctuation",
    "_COMMA": "punctuation",
    "_COLON": "punctuation",
    "_HASH": "punctuation",
    "ELLIPSIS": "punctuation",
    "LSQB": "punctuation",
    "RSQB": "punctuation",
    '"("': "punctuation",
    '")"': "punctuation",
}

_BREAK = re.escape("\n")

_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*"|\w+|[()\[\]|*+?]')


@dataclass(frozen=True, slots=True)
class LineState:
    """A terminal that was read, at one of its places."""

    kind: str
    pattern: str
    following: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Automaton:
    """The states, and the numbers of those that a line begins with, in the order to be tried."""

    states: tuple[LineState, ...]
    first: tuple[int, ...]


@cache
def terminals() -> Mapping[str, str]:
    r"""Every named terminal of the grammar as a regular expression.

    Example:
        >>> terminals()["_DASH"], terminals()["_COLON"]
        ('\\-\\ ', ' ?: ')
    """
    found = re.findall(r"^([A-Z_]+): (?:\"(.*)\"|/(.*)/)$", coarse_grammar(), re.M)
    return {name: pattern or _literal(text) for name, text, pattern in found}


def _literal(text: str) -> str:
    return re.escape(text.replace(r"\n", "\n"))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a rule: whether it may be empty, the places it begins with and those it ends with."""

    is_optional: bool
    first: frozenset[int]
    last: frozenset[int]


_EMPTY = _Part(True, frozenset(), frozenset())


class _Places:
    """The places of all terminals of the rules, as they are reached from a start."""

    def __init__(self, grammar: str) -> None:
        found = re.findall(r"^([a-z_]+): (.+(?:\n +\|.+)*)$", grammar, re.M)
        self._rules = {name: _TOKEN.findall(text) for name, text in found}
        self.kinds: list[str] = []
        self.patterns: list[str] = []
        self.follow: list[set[int]] = []

    def rule(self, name: str) -> _Part:
        """All that a rule may be; each use of a rule has places of its own."""
        return self._alternatives(name, self._rules[name][::-1], {})

    def _alternatives(self, rule: str, left: list[str], seen: dict[str, int]) -> _Part:
        """Read up to the closing bracket; `left` has the tokens from the last to the next."""
        parts = [self._sequence(rule, left, seen)]
        while left and left[-1] == "|":
            left.pop()
            parts.append(self._sequence(rule, left, seen))
        return _Part(
            any(part.is_optional for part in parts),
            frozenset().union(*(part.first for part in parts)),
            frozenset().union(*(part.last for part in parts)),
        )

    def _sequence(self, rule: str, left: list[str], seen: dict[str, int]) -> _Part:
        before = _EMPTY
        while left and left[-1] not in ("|", ")", "]"):
            part = self._item(rule, left, seen)
            for place in before.last:
                self.follow[place] |= part.first
            before = _Part(
                before.is_optional and part.is_optional,
                before.first | part.first if before.is_optional else before.first,
                before.last | part.last if part.is_optional else part.last,
            )
        return before

    def _item(self, rule: str, left: list[str], seen: dict[str, int]) -> _Part:
        token = left.pop()
        if token in ("(", "["):
            part = self._alternatives(rule, left, seen)
            left.pop()
        elif token in self._rules:
            part = self.rule(token)
        else:
            part = self._place(rule, token, seen)
        is_optional = part.is_optional or token == "["
        if left and left[-1] in ("*", "+", "?"):
            repeated = left.pop()
            is_optional |= repeated != "+"
            if repeated != "?":
                for place in part.last:
                    self.follow[place] |= part.first
        return _Part(is_optional, part.first, part.last)

    def _place(self, rule: str, token: str, seen: dict[str, int]) -> _Part:
        number = len(self.kinds)
        pattern = _literal(token[1:-1]) if token[0] == '"' else terminals()[token]
        kinds = _KINDS.get((rule, token)) or (
            ("",) if pattern == _BREAK else (_KIND_OF_TERMINAL[token],)
        )
        nth = seen[token] = seen.get(token, -1) + 1
        self.kinds.append(kinds[min(nth, len(kinds) - 1)])
        self.patterns.append(pattern)
        self.follow.append(set())
        place = frozenset({number})
        return _Part(False, place, place)


@cache
def line_automaton() -> Automaton:
    """The automaton of the grammar, made deterministic: a state is all places that the same line leads to."""
    places = _Places(coarse_grammar())
    begins = {place for start in STARTS for place in places.rule(start).first}
    for i, pattern in enumerate(places.patterns):
        if pattern.endswith(_BREAK):
            begins |= places.follow[i]
            places.follow[i] = set()
    states: dict[frozenset[int], LineState] = {}
    numbers: dict[frozenset[int], int] = {}

    def numbered(among: Iterable[int]) -> tuple[int, ...]:
        together: dict[tuple[str, str], set[int]] = {}
        for i in sorted(among):
            together.setdefault((places.kinds[i], places.patterns[i]), set()).add(i)
        found = [
            (pattern, frozenset(same))
            for (_, pattern), same in together.items()
            if pattern != _BREAK
        ]
        found.sort(key=lambda each: _order(each[0]))
        for _, same in found:
            numbers.setdefault(same, len(numbers))
        return tuple(numbers[same] for _, same in found)

    first = numbered(begins)
    while left := [same for same in numbers if same not in states]:
        for same in left:
            i = min(same)
            pattern = places.patterns[i]
            if pattern.endswith(_BREAK):
                pattern = f"{pattern.removesuffix(_BREAK)}$"
            following = numbered({j for place in same for j in places.follow[place]})
            states[same] = LineState(places.kinds[i], pattern, following)
    return Automaton(tuple(states[same] for same in numbers), first)


def _order(pattern: str) -> tuple[bool, int]:
    """Fixed texts before expressions, the longest first: `- None` is no dash with a name."""
    return re.search(r"(?<!\\)[*+?\[(]", pattern) is not None, -len(pattern)


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

_CODE_POINT = lazy_pattern(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.S)


def textmate_grammar() -> dict[str, Any]:
    """The grammar as JSON data, for editors whose regular expressions are Oniguruma's."""
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
