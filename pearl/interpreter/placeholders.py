"""Texts that are not known before a run: what stands for them in prompts, and how long they may be."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pearl.documents.tokens import Counter
from pearl.interpreter.bounds import Range


class Placeholders:
    """Placeholders of one plan, counted apart from the texts around them."""

    def __init__(self, counter: Counter, texts: Sequence[str]) -> None:
        self._counter = counter
        self._most: dict[str, float | None] = {}  # placeholder → maximum tokens
        self._seam = counter.most(0)
        self._tag = "\ue000"  # a character that occurs in no known text
        while any(self._tag in text for text in texts):
            self._tag += "\ue000"
        self._marks = re.compile(f"({self._tag}\\d+\ue001)")

    def new(self, most: float | None) -> str:
        """A placeholder for a text of at most this many tokens in any context; None for no bound."""
        mark = f"{self._tag}{len(self._most)}\ue001"
        self._most[mark] = most
        return mark

    def are_in(self, text: str) -> bool:
        """Whether a text has placeholders."""
        return self._marks.search(text) is not None

    def tokens(self, text: str, part: str = "") -> Range:
        """Tokens of a text around a counted part; exact but for seams if it has no placeholders."""
        pieces = self._marks.split(text)
        if len(pieces) == 1:
            return Range(*self._counter.bounds_with(text, part))
        least, fixed = self._counter.bounds("".join(pieces[::2]), part)
        most: float | None = fixed
        for mark in pieces[1::2]:
            held = self._most[mark]
            # `bounds` does not account for the seams on both sides.
            most = None if most is None or held is None else most + held + 2 * self._seam
        return Range(least, most)

    def widest(self, text: str) -> float | None:
        """Maximum tokens of a text in any context."""
        if self.are_in(text):
            return self.tokens(text).most
        return self._counter.bounds(text)[1]
