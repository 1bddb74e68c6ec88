"""The reply of a composer → sentences with their citations, whose numbers and quotations are those of the cited results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pearl.documents.dates import find_dates
from pearl.documents.evidence import find_quotes, normalise
from pearl.documents.evidence.finding import n_words
from pearl.documents.lexicon import CURRENCY_UNITS, SHARES
from pearl.documents.numbers import quantities
from pearl.documents.passages import sentences
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH, MAX_SENTENCES = 6_000, 40  # Maximum characters and sentences of a composed answer

_MARKS = lazy_pattern(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")  # [1], [2, 3]
_MARKS_AFTER = lazy_pattern(  # It leaked. [1][2]
    r"(?P<end>[.!?…。！？][\"'”’»)]*)(?P<marks>(?:[^\S\n]*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])+)(?P<more>[.]?)"
)
_LISTED = lazy_pattern(r"\A\s*(?:[-*•]\s+)?(?:(\d{1,2})[.)]\s)?")  # - It leaked, 2. It leaked
_MARK_FIRST = lazy_pattern(r"^\s*(?:[-*•]\s+)?\[\d", re.M)  # [1] It leaked
_NAME = lazy_pattern(r"\{\s*(\w+)\s*\}")  # {total}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a composed answer: alone (`said`), what it cites, and what it rests on, the same or what follows an introduction."""

    text: str
    said: str
    cites: tuple[int, ...]
    rests_on: tuple[int, ...]
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Composed:
    """A composed answer; without sentences, `why` is the reason why the reply is not used."""

    sentences: tuple[Sentence, ...] = ()
    why: str = ""
    n_bad_cites: int = 0
    n_uncited: int = 0


def read_composed(
    text: str,  # without reasoning
    items: Sequence[str],  # what each number from 1 cites: a quote with the result it belongs to
    # item and text of each named value; a sentence that inserts one cites its item
    values: Mapping[str, tuple[int, str]],
    question: str,  # its numbers may be repeated
    # what stands once behind a named value, unless its sentence has the numbers of it
    asides: Mapping[str, str] = {},
) -> Composed:
    """Read a composed answer."""
    text = text.strip().translate(_BRACKETS)
    question = question.replace("?", " ")  # behind a number, it would be a doubtful digit
    if len(text) > MAX_LENGTH:
        return Composed(why=f"it has {len(text):,} characters")
    if "<input" in text or any(line.lstrip().startswith("|") for line in text.splitlines()):
        return Composed(why="it repeats the results, or is a table")
    if _MARK_FIRST.search(text):
        return Composed(why="its citations stand before the sentences")
    found: list[Sentence] = []
    n_bad = n_uncited = 0
    n_listed = 0  # the last number of a numbered list
    left = dict(asides)
    lines = _MARKS_AFTER.sub(r"\g<marks>\g<end> ", text).splitlines()
    paragraph = 0
    for number, line in enumerate(lines):
        paragraph += not line.strip()
        for at, piece in enumerate(_sentences(line)):
            numbers = [
                int(n) - 1
                for marks in _MARKS.findall(piece)
                for n in marks.replace(";", ",").split(",")
            ]
            good = [n for n in numbers if 0 <= n < len(items)]
            n_bad += len(numbers) - len(good)
            bare = " ".join(_MARKS.sub("", piece).split())
            names = _NAME.findall(bare)
            if unknown := [name for name in names if name not in values]:
                return Composed(why=f"it names '{{{unknown[0]}}}', which is no result")
            cites = tuple(dict.fromkeys([*good, *(values[name][0] for name in names)]))
            if not bare or not (cites or (bare.endswith(":") and not numbers)):
                n_uncited += bool(bare)
                continue
            own = {value for _, value, _ in quantities(bare)}
            for name in names:
                if name in left and own.issuperset(v for _, v, _ in quantities(left[name])):
                    del left[name]
            shown = _NAME.sub(lambda name: values[name[1]][1] + left.pop(name[1], ""), bare)
            said = shown
            if at == 0 and (listed := _LISTED.match(shown)) is not None:
                n_listed += bool(listed[1])
                if not listed[1] or int(listed[1]) == n_listed:
                    said = shown[listed.end() :]
            # An introduction speaks of the sentences that follow it.
            support = [question, *(items[n] for n in cites or range(len(items)))]
            if stranger := _stranger(said, "\n".join(support)):
                return Composed(
                    why=f"it says '{stranger}', which the results that it cites do not have"
                )
            indent = piece[: len(piece) - len(piece.lstrip())] if at == 0 else ""
            found.append(Sentence(indent + shown, said, cites, cites, (paragraph, number)))
    kept = with_introductions(found)
    n_uncited += len(found) - len(kept)
    if len(kept) > MAX_SENTENCES:
        return Composed(why=f"it has {len(kept)} sentences")
    if not kept:
        return Composed(why="no sentence cites a result", n_bad_cites=n_bad, n_uncited=n_uncited)
    return Composed(kept, "", n_bad, n_uncited)


def with_introductions(found: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences, each introduction with what those after it cite; without one that nothing follows."""
    kept: list[Sentence] = []
    for i, sentence in enumerate(found):
        if not sentence.cites:
            after = takewhile(lambda each: each.cites, found[i + 1 :])
            rests_on = tuple(dict.fromkeys(n for each in after for n in each.cites))
            if not rests_on:
                continue
            sentence = replace(sentence, rests_on=rests_on)
        kept.append(sentence)
    return tuple(kept)


_BRACKETS = str.maketrans("［］｛｝", "[]{}")


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line with the blanks before them."""
    ends = [span.end for span in sentences(line)]
    at = 0
    for end in [*ends[:-1], len(line)]:
        last = line[at:end].rpartition(" ")[2].lstrip("(")
        if end < len(line) and last.endswith(".") and len(last) <= 3 and last[:-1].isdigit():
            continue  # the day of a date rather than the end of a sentence: `25. November`
        yield line[at:end]
        at = end


def _stranger(text: str, support: str) -> str:
    """A number or a quotation of a text that its support does not have; "" if it has all of them."""
    text, support = text.translate(_NO_EMPHASIS), support.translate(_NO_EMPHASIS)
    days = {day.period for day in find_dates(support)}
    for day in reversed(find_dates(text)):
        if day.period and day.period not in days:
            return text[day.start : day.end]
        if day.period:
            text = f"{text[: day.start]} {text[day.end :]}"
    known = list(quantities(support))
    for shown, value, unit in quantities(text):
        if not any(value == each and _agree(unit, other) for _, each, other in known):
            return f"{shown} {unit if unit not in shown else ''}".strip()
    whole = normalise(support).casefold()
    for quote in find_quotes(text):
        if (
            n_words(quote) > 1
            and normalise(quote).casefold().strip(" .,;:!?…。！？，") not in whole
        ):
            return quote
    return ""


_NO_EMPHASIS = str.maketrans("\t", " ", "*_`")
_STRICT = CURRENCY_UNITS | SHARES.keys()


def _agree(unit: str, other: str) -> bool:
    """Whether units are equal; a currency or a % is always written, other units may be left out."""
    return unit == other or (not (unit and other) and _STRICT.isdisjoint((unit, other)))
