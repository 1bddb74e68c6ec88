"""GBNF as llama.cpp reads it, small: whether a text is a sentence of a grammar."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["Gbnf"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<define>[a-zA-Z0-9-]+)\s*::=
        | (?P<name>[a-zA-Z0-9-]+)
        | "(?P<string>(?:[^"\\\n]|\\.)*)"
        | (?P<class>\[(?:[^\]\\]|\\.)+\])
        | (?P<repeat>[?*+]|\{\d+(?:,\d*)?\})
        | (?P<mark>[|()]))""",
    re.VERBOSE,
)

_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([trn\\"\[\]]))')

Node = tuple  # ("text", str) | ("class", pattern) | ("name", str) | ("repeat", node, min, max) ...


def _meant(text: str) -> str:
    """A text without its escapes; one that llama.cpp does not know fails."""
    plain = {"t": "\t", "r": "\r", "n": "\n"}
    left = _ESCAPE.sub("", text)
    assert "\\" not in left, f"unknown escape in {text!r}"
    return _ESCAPE.sub(
        lambda m: plain.get(m[4], m[4]) if m[4] else chr(int(m[1] or m[2] or m[3], 16)), text
    )


class Gbnf:
    """A grammar; its rules are not left-recursive."""

    def __init__(self, text: str) -> None:
        self._tokens = self._scan(text)
        self._at = 0
        self.rules: dict[str, Node] = {}
        while self._at < len(self._tokens):
            kind, name = self._next()
            assert kind == "define", (kind, name)
            assert name not in self.rules, f"{name} is defined twice"
            self.rules[name] = self._choice()
        used = {value for kind, value in self._tokens if kind == "name"}
        assert used <= set(self.rules), f"undefined: {used - set(self.rules)}"

    @staticmethod
    def _scan(text: str) -> list[tuple[str, str]]:
        tokens = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            assert found, text[at : at + 40]
            tokens.append((str(found.lastgroup), str(found[str(found.lastgroup)])))
            at = found.end()
        return tokens

    def _next(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _choice(self) -> Node:
        ways = [self._sequence()]
        while self._peek() == ("mark", "|"):
            self._next()
            ways.append(self._sequence())
        return ("choice", tuple(ways))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek()[0] not in ("end", "define") and self._peek()[1:] != ("|",):
            kind, value = self._peek()
            if (kind, value) == ("mark", ")"):
                break
            self._next()
            if kind == "repeat":
                numbers = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(value)
                if numbers is None:
                    low, comma, high = value.strip("{}").partition(",")
                    numbers = int(low), int(high) if high else None if comma else int(low)
                parts[-1] = ("repeat", parts[-1], *numbers)
            elif kind == "mark":
                assert value == "(", value
                parts.append(self._choice())
                assert self._next() == ("mark", ")")
            elif kind == "string":
                parts.append(("text", _meant(value)))
            elif kind == "class":
                parts.append(("class", self._class(value)))
            else:
                parts.append((kind, value))
        return ("sequence", tuple(parts))

    @staticmethod
    def _class(text: str) -> tuple[bool, tuple[tuple[str, str], ...]]:
        body = text[1:-1]
        is_negated = body.startswith("^")
        ranges = []
        one = rf"(?:{_ESCAPE.pattern}|[^\\])"
        for found in re.finditer(rf"(?P<low>{one})(?:-(?P<high>{one}))?", body[is_negated:]):
            low = _meant(found["low"])
            ranges.append((low, _meant(found["high"]) if found["high"] else low))
        return is_negated, tuple(ranges)

    def admits(self, text: str) -> bool:
        @cache
        def ends(node: Node, at: int) -> frozenset[int]:
            """Where a match that begins at a place may end."""
            match node:
                case ("text", value):
                    return frozenset({at + len(value)} if text.startswith(value, at) else ())
                case ("class", (is_negated, ranges)):
                    is_in = at < len(text) and any(a <= text[at] <= b for a, b in ranges)
                    is_match = at < len(text) and is_in != is_negated
                    return frozenset({at + 1} if is_match else ())
                case ("name", value):
                    return ends(self.rules[value], at)
                case ("choice", ways):
                    return frozenset().union(*(ends(way, at) for way in ways))
                case ("sequence", parts):
                    here = {at}
                    for part in parts:
                        here = {end for start in here for end in ends(part, start)}
                    return frozenset(here)
                case (_, inner, low, high):
                    found = {at} if low == 0 else set()
                    here, times = {at}, 0
                    while here and (high is None or times < high):
                        here = {end for start in here for end in ends(inner, start)} - found
                        times += 1
                        found |= here if times >= low else set()
                    return frozenset(found)
            raise AssertionError(node)

        return len(text) in ends(("name", "root"), 0)
