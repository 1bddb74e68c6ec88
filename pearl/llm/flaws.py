"""Blank texts and texts that end in a loop, a common failure of small models."""

from __future__ import annotations

import re
import unicodedata

from msgspec.structs import replace

from pearl.documents.rows import shortened
from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Request, Usage
from pearl.replies.raw import without_reasoning

# Letters and symbols without a visible glyph: Hangul fillers, Khmer inherent vowels, the blank
# Braille cell.
_EMPTY = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Unicode categories without a visible glyph: blanks, controls, formats (zero-width characters,
# the byte order mark), surrogates, unassigned characters, and combining marks.
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Cn", "Mn", "Me"})


def is_blank(text: str) -> bool:
    """Whether a text is empty or has no visible character."""
    return all(
        character in _EMPTY or unicodedata.category(character) in _INVISIBLE for character in text
    )


MIN_TIMES = 4  # Minimum consecutive repetitions at the end of a text
# Minimum total length of a loop: a refrain, a ruled line or a table of dashes is none.
MIN_CHARACTERS = 1_000
MAX_PERIOD = 2_000  # Maximum length of the repeated unit in characters
NEEDLE = 24  # Characters at the end whose earlier occurrences are candidates for the period
MAX_QUOTED = 60  # Maximum characters of the repeated unit that a message quotes
CHECKED_EVERY = 256  # Characters between two checks of a streamed text
_WINDOW = MIN_TIMES * MAX_PERIOD
# "1. ", "- ": the numbers differ between repetitions
_NUMBERING = lazy_pattern(r"^[ \t]*(?:\d+[.):]|[-*•])[ \t]+", re.MULTILINE)


def loop_in(text: str) -> str | None:
    r"""The unit that a text repeats at its end, ignoring line numbers; None if there is no loop."""
    tail = text[-2 * _WINDOW :]  # Doubled, because line numbers may be as long as the unit
    for form in (tail, _NUMBERING.sub("", tail)):
        period = _period(form)
        if period is None:
            continue
        unit = form[-period:]
        for mark in ("\n", " "):  # It begins at a line or word
            if at := unit.rfind(mark) + 1:
                return unit[at:] + unit[:at]
        return unit
    return None


def _period(text: str) -> int | None:
    """The length of the repeated unit; None if there is no loop."""
    n = len(text)
    if n < MIN_CHARACTERS:
        return None
    needle = text[n - NEEDLE :]
    at = n - NEEDLE
    while (at := text.rfind(needle, max(0, n - NEEDLE - MAX_PERIOD), at + NEEDLE - 1)) >= 0:
        period = n - NEEDLE - at
        start = n - max(MIN_CHARACTERS, MIN_TIMES * period)
        if start >= 0 and text[start : n - period] == text[start + period :]:
            return period
    return None


REPETITION_HELP = (
    "small models do; use a larger one, or a shorter prompt: --nearest 2, --context retrieve"
)


def repeats(name: str, loop: str, usage: Usage | None, reply: str) -> ModelError:
    """The error for a reply of the model `name` that ends in a loop."""
    shown = shortened(loop, MAX_QUOTED) or "blanks"
    return ModelError(
        f"the reply of {name} repeats itself and was stopped: '{shown}'",
        kind="repetition",
        help=REPETITION_HELP,
        usage=usage,
        reply=reply,
    )


class Watch:
    """Detects a loop in a text while it is generated."""

    def __init__(self) -> None:
        self._tail = ""
        self._n_new = 0

    def add(self, text: str) -> str | None:
        """Append text; return the repeated unit as soon as the text ends in a loop, else None."""
        self._tail = (self._tail + text)[-2 * _WINDOW :]
        self._n_new += len(text)
        if self._n_new < CHECKED_EVERY:
            return None
        self._n_new = 0
        return loop_in(self._tail)


_CONTROL = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters except line ends and tabs, and terminal colour codes."""
_HEAD, _TAIL = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = lazy_pattern(rf"[\ud800-\udfff]|(?<!\\)(?:{_HEAD}(?!{_TAIL})|(?<!{_HEAD}){_TAIL})")
"""A lone surrogate, which no file or server accepts, also as a JSON escape."""

_PAGES = ("<!doctype html", "<html")
"""Beginnings of the web page of a gateway instead of a reply."""


def usable(
    completion: Completion, request: Request | None, *, is_computed: bool = False
) -> Completion:
    """Remove reasoning and control characters from a completion; raise an error if it is unusable."""
    text, usage = completion.text, completion.usage
    if not text.isascii() or "\\u" in text:
        text = _SURROGATE.sub("\ufffd", text)
    if (
        not text.isprintable()
        and _CONTROL.search(text)
        and not _CONTROL.search((request and request.document) or "")
    ):
        text = _CONTROL.sub("", text)  # Control characters belong to no quote of the document
    split = without_reasoning(text)
    loop = None if is_computed else loop_in(text)
    if loop is not None:
        raise repeats(completion.model, loop, usage, split.text)
    if split.is_unclosed:
        message = f"the reply of {completion.model} was cut off in its reasoning"
        raise ModelError(message, kind="truncated", usage=usage)
    if is_blank(split.text):
        message = f"the reply of {completion.model} is blank"
        raise ModelError(message, kind="empty", usage=usage, reply=text)
    if split.text[:100].lstrip().lower().startswith(_PAGES):
        message = f"{completion.model} sent a web page: {shortened(split.text, 80)}"
        raise ModelError(message, kind="transport", usage=usage, reply=text)
    reasoning = "\n".join(filter(None, (completion.reasoning, split.reasoning)))
    return replace(completion, text=split.text, reasoning=reasoning)


def trimmed(error: ModelError, model: str) -> ModelError:
    """The error of a failed call, with its partial reply without reasoning."""
    loop = loop_in(error.reply) if error.kind == "truncated" else None
    error.reply = without_reasoning(error.reply).text
    return error if loop is None else repeats(model, loop, error.usage, error.reply)
