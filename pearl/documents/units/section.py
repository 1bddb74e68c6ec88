"""Sections: a heading and what follows, up to the next heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from pearl.documents.passages import ENDED, LOST_BREAK, PARAGRAPH_BREAK, paragraphs
from pearl.documents.units import Piece, lines, trimmed
from pearl.errors.patterns import lazy_pattern

_MAX_HEADING = 100  # maximum characters of a heading

_MAX_SHARE_OF_CAPITALS = 0.5
"""Maximum share of lines in capitals; beyond it, capitals do not mark headings."""

_ITEM = 3  # level of `1. ...`: a heading or the item of a list
_INNERMOST = 9  # level of lines that stand alone

_MAX_ALONE = 60  # maximum characters of a heading that is recognised only by its place

_LABEL = lazy_pattern(  # ARTICLE IX, Schedule A, Section 4.2:, §7
    r"[ \t]*((?:(?P<outer>article|part|chapter|title|schedule|appendix|annex|exhibit)|section|clause|§§?)[ ]?"
    r"(?:[\dIVXLC]{1,6}|[A-Z])(?:\.\d{1,3}){0,4}\b(?:[ ]?[.:)–—-]+(?=\s|\Z))?)[ \t]*",
    re.I,
)
_NUMBER = lazy_pattern(r"[ \t]*(\d{1,3}((?:\.\d{1,3}){0,5})[.)]?)(?:[ \t]+|\Z)")  # 1.2 or 3)
_CAPITALS = lazy_pattern(  # IMPRESSION: normal, or a line PAYMENT TERMS
    r"[ \t]*([^\Wa-z\d_][^\na-z]{1,60}?)(?:[ \t]*(?P<colon>:)(?=[\s,]|\Z)|[ \t]*\Z)"
)
_LETTER = lazy_pattern(r"[ \t]*(([A-Z])[.)])[ \t]+(?=\S)")  # D. Statement of facts
_LISTED = lazy_pattern(r"[^\w\s(\[\"'“„«]|\d{1,3}[.)]\s")  # - an entry, 3) an entry
_PART = lazy_pattern(
    r"(?:[^,]|,(?=\s)|(?<=\d),(?=\d))+"
)  # between such breaks; not at `a, b` or `1,250`
_RUN_IN = lazy_pattern(r"([^.:\n]{2,60}?)[.:](?=\s|\Z)")  # Term. The term is five years.
_SMALL = lazy_pattern(  # words that titles capitalise, unlike "of"
    r"(?!of\b|and\b|the\b|to\b|in\b|for\b|on\b|by\b|or\b|a\b|an\b|with\b)[a-z]\w*"
)


class _Heading(NamedTuple):
    start: int
    end: int  # start of the text below the heading
    title: str
    level: int  # 1 for the outermost
    is_bare: bool = False  # a label without a title: `ARTICLE IX`


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""Every section, with its heading in the field `Section`.

    Headings are Markdown headings (`#`, underlined). In a text with none of them except a title on top,
    they are numbered lines (`1.2`, `Section 4.`, `ARTICLE IX`; the title may begin the paragraph),
    lettered ones in order, lines in capitals, and short lines alone before a paragraph. A label with its
    value (`VAT ID: DE 12`) heads at most its paragraph.
    The text before the first heading is a section without a heading. A heading directly above a deeper
    heading belongs to the section of the deeper one.
    """
    headings = _markdown(text)
    if len(headings) < 2 and not text[: headings[0].start if headings else 0].strip():
        headings += _plain(text, headings[0].end if headings else 0)
    headings = list(_merged(text, headings))
    if not headings:
        raise ValueError("no sections: the text has no headings")
    ends = [*(heading.start for heading in headings[1:]), len(text)]
    return [
        *trimmed(text, 0, headings[0].start, {"Section": ""}),
        *(
            piece
            for heading, end in zip(headings, ends, strict=True)
            for piece in trimmed(text, heading.start, end, {"Section": heading.title})
        ),
    ]


def _merged(text: str, headings: Sequence[_Heading]) -> Iterator[_Heading]:
    """The headings, without those directly above a deeper one."""
    outer: _Heading | None = None
    for heading, following in zip_longest(headings, headings[1:]):
        merged = heading
        if outer:
            title = f"{outer.title} {heading.title}" if outer.is_bare else heading.title
            merged = heading._replace(start=outer.start, title=title)
        outer = None
        is_empty = following and not text[heading.end : following.start].strip()
        if following and is_empty and (heading.is_bare or following.level > heading.level):
            outer = merged._replace(is_bare=heading.is_bare)
        else:
            yield merged


def _markdown(text: str) -> list[_Heading]:
    found: list[_Heading] = []
    is_code = False
    above: tuple[int, str] | None = None  # the line before, if it is the first of its paragraph
    was_blank = True
    for at, line in lines(text):
        end, rule = at + len(line), line.strip()
        if rule.startswith(("```", "~~~")):
            is_code = not is_code
        elif not is_code and rule.startswith("#") and not line.startswith(("    ", "\t")):
            title = rule.lstrip("#")  # ## Findings
            level = len(rule) - len(title)
            if level <= 6 and title[:1] in (" ", "\t"):
                found.append(_Heading(at, end, title.strip().rstrip(" \t#"), level))
        elif not is_code and above and len(rule) > 2 and set(rule) in ({"="}, {"-"}):
            start, title = above
            found.append(_Heading(start, end, title, 1 if rule[0] == "=" else 2))
        is_blank = not line or line.isspace()
        is_title = was_blank and not is_blank and len(line) <= _MAX_HEADING and "|" not in line
        above = (at, rule) if is_title and not is_code else None
        was_blank = is_blank
    return found


def _plain(text: str, start: int = 0) -> list[_Heading]:
    filled = list(_filled(text, start))
    n_capitals = sum(line.isupper() for _, line, _ in filled)
    in_capitals = n_capitals <= _MAX_SHARE_OF_CAPITALS * len(filled)
    fields = _fields(filled)
    found: list[_Heading] = []
    is_below = False  # a heading
    for i, (at, line, begins) in enumerate(filled):
        is_number = (begins or is_below) and text[at - 1 : at] != ","
        heading = _numbered(line, at) if is_number else None
        if heading is None and in_capitals and i not in fields:
            heading = _capitals(line, at, begins or is_below)
        if heading:
            found.append(heading)
        is_below = heading is not None
    # Drop a lettered heading unless the letter before or after it is a heading, too
    lettered = [each for each in found if _LETTER.match(each.title)]
    neighbours = ((a, b) for a, b in pairwise(lettered) if ord(b.title[0]) - ord(a.title[0]) == 1)
    dropped = {*lettered} - {each for pair in neighbours for each in pair}
    found = _without_lists(text, [each for each in found if each not in dropped])
    found = sorted([*found, *_alone(text, start, found)])
    return sorted([*found, *_ends(text, found)])


def _filled(text: str, start: int) -> Iterator[tuple[int, str, bool]]:
    """The lines that are not blank, and whether each begins a paragraph; commas may stand for line breaks."""
    begins = True
    for at, line in lines(text, start):
        if not line or line.isspace():
            begins = True
            continue
        is_flat = LOST_BREAK.search(line)
        for a, b in map(re.Match.span, _PART.finditer(line)) if is_flat else [(0, len(line))]:
            yield at + a, line[a:b], begins
            begins = bool(ENDED.search(line[max(a, b - 9) : b])) and line[b - 1] != ":"
        begins = False


def _fields(filled: Sequence[tuple[int, str, bool]]) -> set[int]:
    """The lines that are labels with their values, in blocks where not all labels are in capitals."""
    blocks: list[list[int]] = []
    for i, (_, line, begins) in enumerate(filled):
        name, _, value = line.strip().partition(":")  # VAT ID: DE 12
        is_field = name[:1].isalpha() and len(name) <= 41 and value[:1] in (" ", "\t")
        if is_field and not ENDED.search(line):
            if begins or not blocks or blocks[-1][-1] != i - 1:
                blocks.append([])
            blocks[-1].append(i)
    labels = [[filled[i][1].partition(":")[0] for i in block] for block in blocks]
    of_blocks = zip(blocks, labels, strict=True)
    return {i for block, names in of_blocks if not all(map(str.isupper, names)) for i in block}


def _alone(text: str, start: int, headings: Sequence[_Heading]) -> list[_Heading]:
    """Short lines alone between a finished text and a paragraph; a single one does not head most of the text."""
    heads = {each.end - len(text[each.start : each.end].lstrip()) for each in headings}
    spans = [span for span in paragraphs(text) if span.start >= start]
    shown = [text[span.start : span.end] for span in spans]
    found: list[_Heading] = []
    for i, (span, line) in enumerate(zip(spans[:-1], shown, strict=False)):
        above, below = shown[i - 1] if i else ".", shown[i + 1]
        last = above.rpartition("\n")[2]
        if (
            span.start not in heads and _is_alone(line)
            and (ENDED.search(above) or _LISTED.match(last.lstrip()) or spans[i - 1].start in heads)
            and ((ENDED.search(below) and below[-1] != ":") or _LISTED.match(below))
        ):  # fmt: skip
            heads.add(span.start)
            found.append(_Heading(span.start, span.end, line, _INNERMOST))
    if len(found) == 1:
        ends = [each.start for each in headings if each.start > found[0].start]
        if 2 * (min(ends, default=len(text)) - found[0].start) > len(text):
            return []
    return found


def _is_alone(line: str) -> bool:
    """Whether a paragraph is one short line that begins like a title and does not end like a sentence."""
    return (
        len(line) <= _MAX_ALONE and line[0].isalpha() and not line[0].islower()
        and (line[-1].isalnum() or line[-1] == ")") and not any(mark in line for mark in "\n\t|:")
        and sum(map(str.isdigit, line)) < sum(map(str.isalpha, line))
    )  # fmt: skip


def _ends(text: str, headings: Sequence[_Heading]) -> Iterator[_Heading]:
    """Yield an end, as a heading without text, after the paragraph of each label with a value (`VAT ID: DE 12`)."""
    for heading, following in zip_longest(headings, headings[1:]):
        end = following.start if following else len(text)
        blank = PARAGRAPH_BREAK.search(text, heading.end, end) if heading.level == 1 else None
        value = text[heading.end : blank.start()] if blank else ""
        if blank and value.partition("\n")[0].strip() and not ENDED.search(value):
            yield _Heading(blank.end(), blank.end(), "", _INNERMOST)


def _without_lists(text: str, headings: list[_Heading]) -> list[_Heading]:
    """Remove numbered lines that are list items: if most have no text below, or if they are few and none is a `1.1`."""
    n_items = n_empty = 0
    for heading, following in zip_longest(headings, headings[1:]):
        if heading.level == _ITEM:
            n_items += 1
            below = text[heading.end : following.start if following else len(text)].strip()
            n_empty += not below and (following is None or following.level <= _ITEM)
    levels = [heading.level for heading in headings]
    n_outer = levels.count(1)
    is_minor = n_items < max(2, n_outer) and n_outer and max(levels) == _ITEM
    if is_minor or 2 * n_empty > n_items:
        return [heading for heading in headings if heading.level != _ITEM]
    return headings


def _numbered(line: str, at: int) -> _Heading | None:
    if label := _LABEL.match(line):
        level = 1 if label["outer"] else 2
    elif label := _NUMBER.match(line):
        level = _ITEM + label[2].count(".")
    elif label := _LETTER.match(line):
        rest = line[label.end() :].rstrip()
        title = f"{label[1]} {rest}"
        return _Heading(at, at + len(line), title, _ITEM) if _is_title(rest) else None
    else:
        return None
    rest = line[label.end() :].rstrip()
    number = label[1].strip()
    if not rest:
        if number.isdigit():  # the number of a page
            return None
        return _Heading(at, at + len(line), number, level, is_bare=True)
    if _is_title(rest):
        return _Heading(at, at + len(line), f"{number} {rest}", level)
    if (run_in := _RUN_IN.match(rest)) and _is_title(run_in[1]):
        end = at + label.end() + run_in.end()
        return _Heading(at, end, f"{number} {run_in[1]}", level)
    if level > _ITEM and rest[0].isupper():  # a clause without a title
        return _Heading(at, at + label.end(), number, level)
    return None


def _is_title(text: str) -> bool:
    """Whether a text is like a title: short, most words capitalised, not the end of a sentence."""
    words = text.split()
    if len(text) > _MAX_HEADING or len(words) > 12 or text[-1] in ".;,:" or not text[0].isupper():
        return False
    return 2 * len(_SMALL.findall(text)) <= len(words) or len(words) <= 4


def _capitals(line: str, at: int, stands_apart: bool) -> _Heading | None:
    match = _CAPITALS.match(line[: _MAX_HEADING + 1])
    if not match or not (match["colon"] or stands_apart):
        return None
    title = match[1].strip()
    least = 2 if match["colon"] and match.end() == len(line.rstrip()) else 4
    if sum(map(str.isalpha, title)) < least or title[-1] in ".!?;," or not title.isupper():
        return None
    return _Heading(at, at + match.end(), title, 1)
