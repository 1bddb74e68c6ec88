"""A reply → the quotes in it."""

from __future__ import annotations

import re

from pearl.evidence.normal import UNSPACED

__all__ = ["find_quotes", "is_passage", "quoted_line"]

MIN_QUOTED_WORDS = 4
MIN_QUOTED_CHARACTERS = 8
"""A shorter inline quotation is a term or a title. Characters are counted in scripts that write
no blanks between words."""

_QUOTED_LINE = re.compile(
    r"""[ \t]* (?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?  # may be an item of a list
    > (?:[ \t]*>)*+ (?!= | [-+−–±~≈<.,$€£¥₹]*\d)  # not `>=` and `>5 mg`, comparisons
    [ \t]* (?P<text>.*)""",
    re.VERBOSE,
)
_MARKS = (('(?<!\\w)"', '"', '"(?!\\w)'), *(
    (begin, begin + end, f"[{end}]") for begin, end in ("“”", ("„", "“”"), "«»", "「」")
))  # fmt: skip
_INLINE = re.compile(
    # A quotation may run over a line break, but not over a paragraph's end.
    "|".join(rf"{begin}((?:(?!\n\s*\n)[^{marks}])+){end}" for begin, marks, end in _MARKS)
)


def quoted_line(line: str) -> str | None:
    """What a line of a block quote quotes, or None for any other line.

    The rule is Markdown's, except that a `>` right before a number is read as "more than".

    Args:
        line: One line of a reply, without its line break.

    Returns:
        The line without its marks; empty for the blank line between two quoted paragraphs.

    Example:
        >>> quoted_line(">The wind blew."), quoted_line("- > It rained."), quoted_line("> ")
        ('The wind blew.', 'It rained.', '')
        >>> quoted_line("He wrote > that."), quoted_line(">5 mg a day")
        (None, None)
    """
    match = _QUOTED_LINE.fullmatch(line)
    return None if match is None else match["text"].rstrip()


def find_quotes(reply: str) -> list[str]:
    r"""The quotes of a reply in their order: block quotes and longer inline quotations.

    A block quote is a run of lines that begin with `> `. Inline quotations stand in "…", “…”,
    „…“, «…» or 「…」 and have at least four words, or eight characters in scripts that write no
    blanks between words.

    Example:
        >>> find_quotes('He wrote "it was a dark night" there.\n\n> The wind\n> blew.\n')
        ['it was a dark night', 'The wind\nblew.']
    """
    quotes: list[str] = []
    for is_block, text in _paragraphs(reply):
        if is_block:
            quotes += [text.strip()] if text.strip() else []
            continue
        for match in _INLINE.finditer(text):
            quote = match[match.lastindex or 0].strip()
            if is_passage(quote):
                quotes.append(quote)
    return quotes


def is_passage(quote: str) -> bool:
    """Whether a quote is more than a term, which stands in many places."""
    n_unspaced = len(UNSPACED.findall(quote))
    return len(quote.split()) >= MIN_QUOTED_WORDS or n_unspaced >= MIN_QUOTED_CHARACTERS


def _paragraphs(reply: str) -> list[tuple[bool, str]]:
    """Runs of lines, and whether they are a block quote, which is given without its marks."""
    runs: list[tuple[bool, list[str]]] = []
    for line in reply.splitlines():
        quoted = quoted_line(line)
        is_block = quoted is not None
        if not runs or runs[-1][0] != is_block:
            runs.append((is_block, []))
        runs[-1][1].append(line if quoted is None else quoted)
    return [(is_block, "\n".join(lines)) for is_block, lines in runs]
