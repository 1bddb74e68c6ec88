"""Parse by the LALR tables that lark makes of a grammar (`docs/make_grammar_tables.py`)."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

END = "$END"  # lark's name for the end of the text


class Token(str):
    """A part of the text that a terminal matches."""

    __slots__ = ("start_pos", "type")

    type: str
    start_pos: int


class UnexpectedTextError(ValueError):
    """The text does not follow the grammar."""

    def __init__(self, at: int) -> None:
        self.at = at


class Rule(Struct, frozen=True, array_like=True):
    """A production; a kept child of a rule whose name begins with `_` is replaced by its children."""

    origin: str
    size: int
    kept: list[tuple[int, bool]]  # position, whether it is replaced


_Terminal = tuple[str, str, re.Pattern[str] | None]  # Name; text, or expression


class Tables(Struct, frozen=True):
    """The tables of a grammar without priorities, `%ignore`, aliases and terminals that overlap in a state."""

    digest: str  # Of the grammar
    terminals: dict[str, str]  # Texts or expressions, in the order in which they are tried
    texts: list[str]  # Terminals that are texts
    rules: list[Rule]
    states: list[dict[str, int]]  # Symbol → the next state, or -1 - number of the rule to reduce by
    starts: dict[str, tuple[int, int]]  # Rule → its first state, and the last one


class Parser:
    """For each rule, calls the method of `builder` with the rule's name, which makes the node."""

    def __init__(self, tables: Tables, builder: object) -> None:
        self._tables, self._builder = tables, builder
        self._accepted: dict[int, list[_Terminal]] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}

    def parse(self, text: str, start: str) -> Any:
        """The node of a text; `UnexpectedTextError` if it does not follow the start rule."""
        state, last = self._tables.starts[start]
        states, values = [state], list[Any]()
        at = begin = 0
        while True:
            kind, token = END, Token()
            if at < len(text):
                begin = at
                kind, at = self._next(text, at, states[-1])
                token = Token(text[begin:at])
                token.type, token.start_pos = kind, begin
            # Reduce as long as the state says so, then shift the token.
            while (to := self._tables.states[states[-1]].get(kind)) is not None and to < 0:
                rule = self._tables.rules[-1 - to]
                first = len(values) - rule.size
                value = self._value(rule, values[first:])
                del values[first:], states[first + 1 :]
                values.append(value)
                states.append(self._tables.states[states[-1]][rule.origin])
                if kind == END and states[-1] == last:
                    return value
            if to is None:
                raise UnexpectedTextError(begin)
            states.append(to)
            values.append(token)

    def _value(self, rule: Rule, parts: list[Any]) -> Any:
        children: list[Any] = []
        for at, is_replaced in rule.kept:
            if not is_replaced:
                children.append(parts[at])
            elif children:
                children += parts[at]
            else:  # Not copied: a long list would take quadratic time
                children = parts[at]
        return children if rule.origin[0] == "_" else getattr(self._builder, rule.origin)(children)

    def _next(self, text: str, at: int, state: int) -> tuple[str, int]:
        """The terminal that follows, of those that a state accepts, and its end."""
        if (accepted := self._accepted.get(state)) is None:
            names = (n for n in self._tables.terminals if n in self._tables.states[state])
            self._accepted[state] = accepted = []
            for name in names:
                written = self._tables.terminals[name]
                if name not in self._tables.texts and name not in self._patterns:
                    self._patterns[name] = re.compile(written)
                accepted.append((name, written, self._patterns.get(name)))
        for name, fixed, pattern in accepted:
            if pattern is None:
                if text.startswith(fixed, at):
                    return name, at + len(fixed)
            elif found := pattern.match(text, at):
                return name, found.end()
        raise UnexpectedTextError(at)
