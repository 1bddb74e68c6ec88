"""Mentions that overlap, or mean several things → those that a question means, or that it is unsure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pearl.documents.passages import terms
from pearl.llm.backends.extractive.table_cues import FRAME
from pearl.tables.mentions import Mention, question_words

VALUES = ("value", "synonym", "short", "alike")
COLUMNS = ("column", "column word")
_PHRASES = ("phrase", "negated")
_RANK = {how: rank for rank, how in enumerate(("value", "column", *VALUES[1:], "column word", *_PHRASES))}  # fmt: skip


class UnsureError(Exception):
    """A question says something that the table, or the rules, do not account for."""


class Words:
    """The words of a question."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.places = [word.span() for word in question_words(question)]
        self.texts = [question[start:end] for start, end in self.places]

    def at(self, start: int, end: int) -> set[int]:
        """The words between two characters."""
        return {i for i, (at, to) in enumerate(self.places) if at < end and to > start}

    def span(self, one: Mention) -> tuple[int, int]:
        """Where a mention is, in characters."""
        return self.places[one.start][0], self.places[one.end - 1][1]

    def said(self, one: Mention) -> str:
        """A mention as it is written."""
        start, end = self.span(one)
        return self.question[start:end]

    def counts(self, number: int) -> bool:
        """Whether a word says something of rows."""
        stems = terms(self.texts[number], drop_stop_words=True)
        return bool(stems) and not FRAME & {self.texts[number].lower(), *stems}

    def content(self, one: Mention) -> set[int]:
        """The words of a mention that say something of rows."""
        return {at for at in range(one.start, one.end) if self.counts(at)}

    def between(self, those: Iterable[Mention]) -> UnsureError:
        """That it is open which of several is meant."""
        those = list(those)
        meant = dict.fromkeys(f"{o.column}: {o.text}" if o.text else o.column for o in those)
        return UnsureError(f"'{self.said(those[0])}' may mean {' or '.join(list(meant)[:4])}")


def choose(
    words: Words, mentions: Sequence[Mention], taken: Collection[int], about: bool
) -> list[Mention]:
    """Mentions that do not overlap, in order: the longest first, and of those the surest."""
    free = [one for one in mentions if not set(taken).intersection(range(one.start, one.end))]
    sure = [one for one in free if one.how not in _PHRASES]
    named = {at for one in sure for at in range(one.start, one.end)}
    # What is named otherwise is no phrase, wherever it stands.
    free = [one for one in free if one.how not in _PHRASES or not words.content(one) <= named]
    spans: dict[tuple[int, int], list[Mention]] = {}
    for one in free:
        spans.setdefault((one.start, one.end), []).append(one)
    order = sorted(
        spans.values(),
        key=lambda those: (-len(words.content(those[0])), min(_RANK[one.how] for one in those)),
    )
    chosen: list[Mention] = []
    used: set[int] = set()
    for those in order:
        span = range(those[0].start, those[0].end)
        if not used.intersection(span):
            used.update(span)
            chosen += _best(words, those, free, about)
    return sorted(chosen, key=lambda one: one.start)


def _best(
    words: Words, those: list[Mention], free: Sequence[Mention], about: bool
) -> list[Mention]:
    """What some words mean: one value, or columns."""
    best = min(_RANK[one.how] for one in those)
    if best == _RANK["value"]:
        those = [one for one in those if one.how == "value"]
        if len(those) == 1:
            _check_name(words, those[0], free)
    elif best != _RANK["synonym"] and any(one.how in COLUMNS for one in those):
        exact = _literal(words, [one for one in those if one.how == "column"])
        values = [one for one in those if one.how in VALUES]
        if values and not exact:
            raise words.between([one for one in those if one.how not in _PHRASES])
        # Of several columns the kind tells which is compared.
        return [*exact, *(one for one in those if one.how == "column word")]
    elif best <= _RANK["alike"]:
        those = [one for one in those if one.how in VALUES]
    different = list({(one.column, one.text): one for one in those}.values())
    if len(different) > 1 and not about:
        raise words.between(different)
    return different


def _literal(words: Words, columns: list[Mention]) -> list[Mention]:
    """Of `Order` and `Ordered` the one that is written."""
    said = [one for one in columns if words.said(one).lower().rstrip("s") == one.column.lower().rstrip("s")]  # fmt: skip
    return said or columns


def _check_name(words: Words, one: Mention, free: Sequence[Mention]) -> None:
    """`Haifa pharmacy` may be a pharmacy in Haifa, `Haifa Pharmacy` is a name."""
    inner = [
        other
        for other in free
        if other.how in VALUES and other.column != one.column
        and one.start <= other.start and other.end <= one.end
    ]  # fmt: skip
    covered = {at for other in inner for at in range(other.start, other.end)}
    if one.end - one.start > 1 and words.content(one) <= covered and words.said(one) != one.text:
        raise words.between([one, *inner])
