r"""A reply → the option that it names; else it is unmapped.

Parsing is strict: `C`, `(C)`, `C. its text`, `Answer: C` or the option's own text. The first letter
of a sentence ("The ..." for T) is not an option, and neither is one that is discussed ("A) is
wrong").
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Sequence

_MARKS = re.compile(r"[*_`]+")
_QUOTES = "\"'“”‘’«»"
_BLANKS = r"[^\S\n]*+"
_SAYS = re.compile(  # "option" alone says nothing: "Option A: it rained" weighs it
    rf"(?:^|(?<=[\s.,:;!?]))(?:the |my )?(?:final |best |correct )?(?:answer\b{_BLANKS}(?:(?:is|would be)\b)?+|(?:option|choice)\b{_BLANKS}(?:(?:is|would be)\b|(?=[:=])))"
    rf"{_BLANKS}[:=]?+{_BLANKS}(?=(?P<rest>\S))",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_SAID = 8
"""Times, the last ones, that a reply says "Answer:" at most, or reading takes quadratic time."""
_LETTER = re.compile(
    r"(?:option\s+)?(?P<open>[(\[])?(?P<letter>[A-Z])(?(open)[)\]])(?:[.):]?$|(?:[.):]|\s+[-–—](?=\s)|(?=\s*\()|(?(open)(?=\s)|(?!)))\s*(?P<text>\S.*)$)",
    re.IGNORECASE,
)
_ANOTHER = re.compile(  # what stands after a letter: "A) or B)", "(A) (B)"
    r"(?:(?:and|or)\b|[&,/+])?\s*(?:option\s+)?[(\[]?(?P<letter>[A-Z])(?:[)\].:]|$)", re.IGNORECASE
)


def read_choice(reply: str, options: Sequence[str]) -> int | None:
    """The index of the option that a reply names, from 0; None if it names none, or several.

    Tried in order: the whole reply, the text after the last "Answer:", the first and the last line;
    no line may name another option.

    Example:
        >>> options = ["a boat", "a mill", "Two dogs"]
        >>> [read_choice(r, options) for r in ("C", "(B)", "Answer: A", "two dogs.", "The mill")]
        [2, 1, 0, 2, None]
    """
    text = unicodedata.normalize("NFKC", reply).strip()
    whole = _named(text, options)
    if whole is not None:
        return whole
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(">")]  # quoted, not said
    said: deque[str] = deque(maxlen=_MAX_SAID)
    for line in lines:
        bare = _MARKS.sub("", line)
        said.extend(bare[match.start("rest") :] for match in _SAYS.finditer(bare))
    for rest in reversed(said):
        if re.match(r"(?:not|neither)\b", rest, re.IGNORECASE):
            return None
        if (declared := _declared(rest, options)) is not None:
            return declared
    if said:
        return None
    ends = {_named(line, options) for line in (lines[:1] + lines[-1:])} - {None}
    named = {_named(line, options) for line in lines} - {None}
    return ends.pop() if len(ends) == 1 and ends == named else None


def _named(text: str, options: Sequence[str]) -> int | None:
    """The option that equals a text: by its own words, its letter, or both."""
    folded = [_folded(option) for option in options]
    named = {i for i, option in enumerate(folded) if option and option == _folded(text)}
    index, added = _lettered(text)
    if index is not None and index < len(options):
        own = folded[index]
        others = {i for i, option in enumerate(folded) if option == added != own}
        # The words after the letter may be shortened or explained, but not those of another option.
        if not added or own.startswith(added) or (own and added.startswith(own)) or others:
            named |= {index, *others}
    return named.pop() if len(named) == 1 else None


def _declared(text: str, options: Sequence[str]) -> int | None:
    """The option after "Answer:", where reasons may follow the letter."""
    named = _named(text, options)
    index, added = _lettered(text)
    if named is not None or index is None or index >= len(options):
        return named
    another = _ANOTHER.match(added)
    is_other = added in map(_folded, options) or (
        another is not None and ord(another["letter"].upper()) - ord("A") < len(options)
    )
    return None if is_other else index


def _lettered(text: str) -> tuple[int | None, str]:
    """The index of the letter that a text begins with, and the words that follow."""
    bare = _MARKS.sub("", text).strip(_QUOTES + " \t")
    found = _LETTER.fullmatch(bare)
    if found is None:
        return None, ""
    words = found["text"] or ""
    if words.startswith("(") and words.endswith(")"):
        words = words[1:-1]
    return ord(found["letter"].upper()) - ord("A"), _folded(words)


def _folded(text: str) -> str:
    """The comparison key of an option: without case, blanks, quote marks and final full stop."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip(_QUOTES + " ").rstrip(".").strip(_QUOTES + " ")


def read_answer(answer: str, options: Sequence[str]) -> int | None:
    """The option that an answer in words equals verbatim, with or without its letter.

    The answer was written without seeing the options, so a letter alone names none: vitamin A is
    not option A.

    Example:
        >>> [read_answer(said, ["vitamin C", "vitamin A"]) for said in ("A", "Vitamin A.", "B. vitamin A")]
        [None, 1, 1]
    """
    text = unicodedata.normalize("NFKC", answer).strip()
    index, words = _named(text, options), _lettered(text)[1]
    if index is None or _folded(options[index]) not in (_folded(text), words):
        return None
    return index
