"""A reply → the quotes in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pearl.documents.evidence.normal import UNSPACED

MIN_PASSAGE_WORDS = 4
"""Minimum words of a passage; a shorter quote is a term or a title, which may occur in many
places."""
CHARACTERS_PER_WORD = 2
"""Minimum characters in scripts without blanks between words."""

_QUOTED_LINE = re.compile(
    r"""[ \t]* (?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?  # may be an item of a list
    > (?:[ \t]*>)*+ (?!=|[-+−–±~≈<.,$€£¥₹]*\d(?!\d?[.)]\s))  # `>=` and `>5 mg` compare
    [ \t]* (?P<text>.*)""",
    re.VERBOSE,
)
_WITHIN = r"(?!\n\s*\n)"  # a quotation may run over a line break, not over a paragraph's end
_PAIRS = (
    (r'(?<!\w)"', '"', r'"(?!\w)'),
    *(
        (begin, begin + end, f"[{end}]")
        for begin, end in (("“", "”"), ("„", "“”"), ("‚", "‘"), "«»", "‹›", "「」", "『』")
    ),
    (r"(?<!\w)”(?=\w)", "”", r"”(?!\w)"),  # the same mark, or marks the other way round
    (r"(?<!\w)»(?=\S)", "»«", "«"),
    (r"(?<!\w)›(?=\S)", "›‹", "‹"),
)
# An apostrophe is no mark: not between letters, not where it stands for what was left off.
_CLIPPED = r"(?i:tis|twas|twere|til|till|em|cause|bout|round|n|s|t|[0-9]0s)\b"
_POSSESSIVE = r"(?<=s)['’](?=\s+[a-z])"  # of several, unless nothing else ends the quotation
_SINGLE = "|".join(
    rf"{begin}(?!\s|{_CLIPPED})((?:{_WITHIN}(?!{begin}\w)[\s\S])+?){end}"
    for begin, mark in ((r"(?<!\w)‘", "’"), (r"(?<!\w)'", "'"))
    for end in (rf"(?!{_POSSESSIVE})(?<=\S){mark}(?!\w)", rf"(?<=\S){mark}(?!\w)")
)
_INLINE = re.compile(
    "|".join(rf"{begin}((?:{_WITHIN}[^{marks}])+){end}" for begin, marks, end in _PAIRS)
    + f"|{_SINGLE}",
)
_MARK = re.compile("""["“„‚«‹「『”»›‘']""")
"""How an inline quotation may begin: most paragraphs have none, which is told much sooner."""
_KEY = re.compile(r"[{,]\s*\Z"), re.compile(r"\s*:")
"""What stands before and after a key of a JSON object, which quotes nothing."""


def quoted_line(line: str) -> str | None:
    """The content of a block-quote line, or None for any other line.

    The rule is Markdown's, except that a `>` right before a number is read as "more than".

    Example:
        >>> quoted_line(">The wind blew."), quoted_line("- > It rained."), quoted_line("> ")
        ('The wind blew.', 'It rained.', '')
        >>> quoted_line("He wrote > that."), quoted_line(">5 mg a day")
        (None, None)
    """
    match = _QUOTED_LINE.fullmatch(line)
    return None if match is None else match["text"].rstrip()


def find_quotes(reply: str) -> list[str]:
    r"""The quotes of a reply in order: block quotes and inline quotations of any length.

    A block quote is a run of lines that `quoted_line` accepts. Inline quotations use the quotation
    marks of any language, single or double, and end within their paragraph; a nested quotation is
    part of the outer one. Not quotes: italics, code, headings, JSON keys and unclosed quotations.

    Example:
        >>> find_quotes("He wrote 'it was dark' in the boys' room.\n\n> The wind\n> blew.\n")
        ['it was dark', 'The wind\nblew.']
    """
    quotes: list[str] = []
    for is_block, text in _paragraphs(reply):
        found = [text] if is_block else _inline(text)
        quotes += [quote.strip() for quote in found if any(map(str.isalnum, quote))]
    return quotes


def _inline(text: str) -> Iterator[str]:
    if not _MARK.search(text):
        return
    before, after = _KEY
    for match in _INLINE.finditer(text):
        if not (
            after.match(text, match.end())
            and before.search(text, max(match.start() - 20, 0), match.start())
        ):
            yield match[match.lastindex or 0]


def n_words(text: str) -> int:
    """Number of words in a text; two characters of scripts without blanks count as one."""
    n_unspaced = len(UNSPACED.findall(text))
    return max(len(text.split()), n_unspaced // CHARACTERS_PER_WORD)


def is_passage(quote: str) -> bool:
    """Whether a quote is long enough to be a passage rather than a term."""
    return n_words(quote) >= MIN_PASSAGE_WORDS


def _paragraphs(reply: str) -> list[tuple[bool, str]]:
    """Paragraphs, each with whether it is a block quote; markers are removed."""
    runs: list[tuple[bool, list[str]]] = []
    for line in reply.splitlines():
        quoted = quoted_line(line)
        is_block = quoted is not None
        if not runs or runs[-1][0] != is_block:
            runs.append((is_block, []))
        runs[-1][1].append(line if quoted is None else quoted)
    return [(is_block, "\n".join(lines)) for is_block, lines in runs]
