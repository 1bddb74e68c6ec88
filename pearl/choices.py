r"""A reply → the option that it names; what names none is unmapped.

A reply is read strictly: `C`, `(C)`, `C. its text`, `Answer: C` or the option's own text. The first
letter of whatever was said ("The ..." for T) is not an option. Pure string work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

__all__ = ["read_answer", "read_choice"]

_MARKS = re.compile(r"[*_`]+")
_QUOTES = "\"'“”‘’«»"
_BLANKS = r"[^\S\n]*+"
_SAYS = re.compile(  # "option" alone says nothing: "Option A: it rained" weighs it
    rf"(?:^|(?<=[\s.,:;!?]))(?:the |my )?(?:final |best |correct )?(?:answer\b{_BLANKS}(?:(?:is|would be)\b)?+|(?:option|choice)\b{_BLANKS}(?:(?:is|would be)\b|(?=[:=])))"
    rf"{_BLANKS}[:=]?+{_BLANKS}(?=(?P<rest>\S.*)$)",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = re.compile(
    rf"(?:option\s+)?(?P<open>[(\[])?(?P<letter>[A-Z])(?(open)[)\]])(?:[.):]?$|[.):]{_BLANKS}(?P<text>\S.*)$|\s+[-–—]\s+(?P<dash>\S.*)$)",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[](?P<letter>[A-Z])[)\]]\s*(?P<text>\S.*)$", re.IGNORECASE)
_ANOTHER = re.compile(  # what stands after a letter: "A) or B)", "(A) (B)", "A - B"
    r"(?:(?:and|or)\b|[&,/+])?\s*(?:option\s+)?[(\[]?(?P<letter>[A-Z])(?:[)\].:]|$)", re.IGNORECASE
)


def read_choice(reply: str, options: Sequence[str]) -> int | None:
    """The option that a reply names, counted from 0; None if it names none, or several.

    The whole reply is read first, then what it says last after "Answer:", then its first and its
    last line; no line may name another option.

    Example:
        >>> options = ["a boat", "a mill", "Two dogs"]
        >>> [read_choice(r, options) for r in ("C", "(B)", "Answer: A", "two dogs.", "The mill")]
        [2, 1, 0, 2, None]
    """
    text = unicodedata.normalize("NFKC", reply).strip()
    whole = _read(text, options)
    if whole is not None:
        return whole
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(">")]  # quoted, not said
    said = [rest for line in lines if (rest := _said(line))]
    if said:
        return _read(said[-1], options)
    ends = {_read(line, options) for line in (lines[:1] + lines[-1:])} - {None}
    named = {_read(line, options) for line in lines} - {None}
    return ends.pop() if len(ends) == 1 and ends == named else None


def _said(text: str) -> str | None:
    """What stands after the last "Answer:" of a text."""
    found = list(_SAYS.finditer(_MARKS.sub("", text)))
    return found[-1]["rest"] if found else None


def _read(text: str, options: Sequence[str]) -> int | None:
    """The option that a text is, by its letter or its own words; None where the two disagree."""
    named = set(_named(text, options))
    return named.pop() if len(named) == 1 else None


def _named(text: str, options: Sequence[str]) -> Iterator[int]:
    folded = [_folded(option) for option in options]
    yield from (i for i, option in enumerate(folded) if option and option == _folded(text))
    index, rest = _lettered(text)
    if index is None or index >= len(options):
        return
    yield index
    own, added = folded[index], _folded(rest)
    if not rest or added == own:
        return
    # Its text may go along, also cut short or explained, but not another option.
    is_own = own.startswith(added) or bool(own and added.startswith(own))
    for words in filter(None, (rest, _said(rest))):
        yield from (i for i, option in enumerate(folded) if option and option == _folded(words))
        another = None if is_own else _ANOTHER.match(words)
        if another and _index(another) < len(options):
            yield _index(another)


def _lettered(text: str) -> tuple[int | None, str]:
    """The letter that a text begins with, counted from 0, and what goes along with it."""
    bare = _MARKS.sub("", text).strip(_QUOTES + " \t")
    found = _LETTER.fullmatch(bare) or _IN_BRACKETS.fullmatch(bare)
    if found is None:
        return None, ""
    groups = found.groupdict()
    return _index(found), groups.get("text") or groups.get("dash") or ""


def _index(found: re.Match[str]) -> int:
    return ord(found["letter"].upper()) - ord("A")


def _folded(text: str) -> str:
    """A text without what does not tell options apart: case, blanks, quote marks, the last stop."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip(_QUOTES + " ").rstrip(".").strip(_QUOTES + " ")


def read_answer(answer: str, options: Sequence[str]) -> int | None:
    """The option that an answer in words is already; "A. Smith did it" is a name, not the option A."""
    text = unicodedata.normalize("NFKC", answer).strip()
    index = _read(text, options)
    _, rest = _lettered(text)
    return index if index is None or not rest or _folded(rest) == _folded(options[index]) else None
