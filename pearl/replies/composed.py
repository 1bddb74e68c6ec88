"""The reply of a composer → sentences with citations; their numbers and quotations must occur in the cited results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.dates import find_dates
from pearl.documents.evidence import find_quotes, normalise
from pearl.documents.evidence.finding import n_words
from pearl.documents.lexicon import CURRENCY_UNITS, SHARES
from pearl.documents.numbers import quantities
from pearl.documents.passages import sentences
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH, MAX_SENTENCES = 6_000, 40  # Maximum characters and sentences of a composed answer

_MARKS = lazy_pattern(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")  # Trailing citations: [1], [2, 3]
_MARKS_AFTER = lazy_pattern(  # Citations after the full stop: It leaked. [1][2]
    r"(?P<end>[.!?…。！？][\"'”’»)]*)(?P<marks>(?:[^\S\n]*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])+)(?P<more>[.]?)"
)
_LISTED = lazy_pattern(r"\A\s*(?:[-*•]\s+)?(?:(\d{1,2})[.)]\s)?")  # - It leaked, 2. It leaked
_NAME = lazy_pattern(r"\{\s*(\w+)\s*\}")  # A computed value: {total}


class Sentence(Struct, frozen=True):
    """A sentence of a composed answer: its text alone (`said`), what it cites, and what it rests on (for an introduction, what the next sentences cite)."""

    text: str
    said: str
    cites: tuple[int, ...]
    rests_on: tuple[int, ...]
    place: tuple[int, int]


class Composed(Struct, frozen=True):
    """A composed answer; if it has no sentences, `why` says why the reply is not used."""

    sentences: tuple[Sentence, ...] = ()
    why: str = ""
    n_bad_cites: int = 0
    n_uncited: int = 0

    @property
    def notes(self) -> list[str]:
        """Notes on the parts of the reply that are not used."""
        notes = [f"the composed answer is not shown: {self.why}"] if self.why else []
        if n := self.n_bad_cites:
            notes.append(f"the composed answer has {counted(n, 'citation')} without a quote")
        if self.sentences and (n := self.n_uncited):
            notes.append(f"{counted(n, 'sentence')} without a citation, left out of the answer")
        return notes


def read_composed(
    text: str,  # Without reasoning
    # For each citation number from 1: the quote, with the result it belongs to
    items: Sequence[str],
    # Item and text of each named value; a sentence that inserts a value cites its item
    values: Mapping[str, tuple[int, str]],
    question: str,  # The answer may repeat its numbers
    # Text added once after a named value, unless its sentence already has the numbers in it
    asides: Mapping[str, str] = {},
) -> Composed:
    """Read a composed answer."""
    text = text.strip().translate(_BRACKETS)
    question = question.replace("?", " ")  # After a number, it would mark a doubtful digit
    if len(text) > MAX_LENGTH:
        return Composed(why=f"it has {len(text):,} characters")
    if "<input" in text or any(line.lstrip().startswith("|") for line in text.splitlines()):
        return Composed(why="it repeats the results, or is a table")
    firsts = (line.lstrip().lstrip("-*•").lstrip()[:2] for line in text.splitlines())
    if any(first[:1] == "[" and first[1:].isdecimal() for first in firsts):  # [1] It leaked
        return Composed(why="its citations stand before the sentences")
    found: list[Sentence] = []
    n_bad = n_uncited = 0
    n_listed = 0  # The last number of a numbered list
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
            # An introduction is supported by the sentences after it.
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
    """Let each introduction rest on what the sentences after it cite; drop one that nothing follows."""
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
    """The sentences of a line, each with the blanks before it."""
    ends = [span.end for span in sentences(line)]
    at = 0
    for end in [*ends[:-1], len(line)]:
        last = line[at:end].rpartition(" ")[2].lstrip("(")
        if end < len(line) and last.endswith(".") and len(last) <= 3 and last[:-1].isdigit():
            continue  # The day of a date, not the end of a sentence: `25. November`
        yield line[at:end]
        at = end


def _stranger(text: str, support: str) -> str:
    """A number or quotation in a text that does not occur in its support; "" if all do."""
    text, support = text.translate(_NO_EMPHASIS), support.translate(_NO_EMPHASIS)
    days = {day.period for day in find_dates(support)}
    for day in reversed(find_dates(text)):
        if day.period and day.period not in days:
            return text[day.start : day.end]
        if day.period:
            text = f"{text[: day.start]} {text[day.end :]}"
    known = list(quantities(support))
    for shown, value, unit in quantities(text):
        if not any(
            value == each
            # A currency or % must be the same, other units may be omitted
            and (unit == other or (not (unit and other) and _STRICT.isdisjoint((unit, other))))
            for _, each, other in known
        ):
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
