"""A model's reply to a step → its value and its quotes. The only parser of such replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from textwrap import dedent
from typing import Any, Literal

from pearl.documents.english import ONES, TENS
from pearl.documents.evidence import quoted_line
from pearl.documents.numbers import (
    IN_BRACKETS,
    UnclearNumberError,
    find_figures,
    plain,
    quantity,
    unit_of,
)
from pearl.documents.table.quantities import numbers_of
from pearl.documents.table.totals import TOTAL_WORD
from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object, require
from pearl.dsl.literals import terminal
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.errors.patterns import lazy_pattern

Value = str | bool | list[str]

State = Literal["found", "nothing", "undecided", "refused"]
"""Whether a reply has a value, states that nothing was found, is ambiguous, or is a refusal."""

MAX_AMOUNT = 200
"""Maximum characters of a number with its unit, or of a doubtful entry; bounds the time of patterns."""
MAX_QUOTED = 79
MAX_QUOTED_WORDS = 7
"""Maximum characters and words of a reply that a reason quotes."""
MAX_PLAIN_WORDS = 12
"""A longer line without a bullet is a sentence, not an entry."""
MAX_NAME_WORDS = 3
"""Maximum words of a name among several on one line."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The value and the quotes of a reply."""

    state: State
    value: Value
    quotes: tuple[str, ...] = ()
    why: str = ""


class _UnclearError(Exception):
    """The reply is ambiguous; the message says why."""


def read_reply(
    text: str,
    wanted: ValueType,
    *,
    source: str = "",
    is_second: bool = False,
    is_of_numbers: bool = False,
) -> Reply:
    r"""Parse the reply to a step.

    Example:
        >>> read_reply("- a dog\n- a cat\n\n> The dog saw the cat.", ValueType.LIST).value
        ['a dog', 'a cat']
        >>> read_reply("Nothing found.", ValueType.LIST).value
        []
        >>> read_reply("There is no mention of animals", ValueType.LIST).state
        'undecided'
        >>> read_reply("She was late.\n> She came at nine.", ValueType.TEXT).value
        'She was late.'
    """
    lines = [(line, quoted_line(line)) for line in text.splitlines() if not _FENCE.match(line)]
    quotes = tuple(quote.strip() for _, quote in lines if quote and quote.strip())
    said = dedent("\n".join(line for line, quote in lines if quote is None)).strip()
    if wanted not in _READERS:
        if re.match(r"\{\s*\"answer\"", said):
            said = _json_value(said)
        if says_nothing(said) or _is_not_stated(said, wanted):
            return Reply("nothing", said, quotes)
        return Reply("found", said or "\n\n".join(quotes) or text.strip(), quotes)
    is_none = said and "\n" not in said and said.strip(_EDGES).casefold() in _NONE
    if says_nothing(said) or is_none:
        return Reply("nothing", [], quotes)
    said = _COURTESY.sub("", said)
    try:
        if not said:
            raise _UnclearError("there is nothing in it but quotes")
        shown = "\n".join((source, *quotes))
        value = _READERS[wanted](said, shown, is_second)
        if is_of_numbers and isinstance(value, list):
            numbers_of(value)
        return Reply("nothing" if value == [] else "found", value, quotes)
    except (_UnclearError, UnclearNumberError) as unclear:
        if _is_not_stated(said, wanted):
            return Reply("nothing", [], quotes)
        why = f"the reply cannot be read as {_NAMES[wanted]}: {unclear}"
        return Reply("undecided", f"undecided: {why}", quotes, why)


def _is_not_stated(text: str, wanted: ValueType) -> bool:
    """Whether a reply says that the document does not state the result."""
    if wanted is ValueType.BOOL and _MAY_BE_A_VERDICT.search(text):
        return False
    if wanted is ValueType.LIST:
        if not (_OF_ALL.search(text) or len(text.split()) <= MAX_NAME_WORDS):
            return False
        if _NO_ENTRIES.fullmatch(text.replace("’", "'")):
            return True
    # imported on use: compiling its patterns takes 20 ms
    from pearl.replies.not_stated import says_not_stated

    return says_not_stated(text)


_MAY_BE_A_VERDICT = lazy_pattern(
    r"\b(?:mention|contain|nam(?:e|ing)|includ|list|refer|discuss|describ|cover|talk|about|address|report|record|show)\w*|提及|提到"
    r"|\b(?:unclear|clear|unknown|known?|sure|certain)\b",
    re.I,
)
"""Verbs that a condition itself may have, and doubts: "the text does not mention it" may be a "no"."""
_OF_ALL = lazy_pattern(
    r"\b(?:anything|nothing|none|such|this)\b|\b(?:any|no|aucune?|kein\w*|ning[uú]n\w*|nenhum\w*|nessun\w*) \w+(?:\W*\Z| (?:in|by|on|about|is|are|was|were|found)\b)",
    re.I,
)
"""Words of a statement about all entries, rather than about some: "any animals in ...", not "any wild animals"."""
_NO_ENTRIES = lazy_pattern(
    r"\W*(?:(?:there (?:is|are|was|were) no|(?:i|we) (?:do not|don't|did not|didn't|can't|cannot|could not|couldn't) (?:see|find|identify) any)"
    r" \w+|no \w+ (?:are|is|were|was) (?:mentioned|found|listed|named|stated|described|identified))"
    r" (?:in|by|within) the (?:\w+ )?(?:text|document|passage|story|article|excerpt)\W*|no (?:entries|entry|items?|results?|matches) found\W*",
    re.I,
)


_FENCE = lazy_pattern(r"\s*```")
_NOTHING = lazy_pattern(r"[\s*_`(\[]*nothing(?: was| is)? found(?:[\s*_`)\].]*|[.:;,–—].*)", re.I)
"""The requested line, and usual additions of models on the same line."""
_BUT = lazy_pattern(
    r"\b(?:but|however|except(?:ing)?|although|though|yet|only|unless|save for|apart from|aside from|"
    r"other than|besides|instead|still|otherwise|aber|jedoch|außer|nur|mais|sauf|cependant|pero|salvo|"
    r"excepto|mas|exceto|ma|tranne|но|кроме)\b|但|しかし|하지만",
    re.I,
)
"""Words that qualify a "nothing found"."""

_EDGES = " \t*_`\"'“”.:!()[]{}-•–"
_NONE = frozenset({
    "", "none", "none found", "none mentioned", "nothing", "no entries", "no entry", "not found",
    "n/a", "n.a", "not applicable", "not mentioned", "not stated", "empty", "empty list", "null",
})  # fmt: skip
"""Replies that mean "nothing" if a list, a number or yes or no is wanted."""

_BULLET = lazy_pattern(
    r"(?P<indent>[ \t]*)(?:[-*+•–—▪●◦○‣∙■□]|(?P<ordinal>\(?\d{1,4}[.)]|\(?[a-zA-Z]\)))"
    r"(?:[ \t]+(?P<entry>.*)|\Z)"
)
_SENTENCE = lazy_pattern(r"[.!?。！？…:]['\"”’)\]*_]*\Z")
_REMARK = lazy_pattern(
    r"\W*(?:sure|here|there|the (?:text|document|passage|story|author|following)|this|these|those|it|"
    r"i|we|you|based|according|in (?:the|this)|from the|unfortunately|sorry|note|however|only|yes|"
    r"so|thus|therefore|and|or|plus|also|others?|etc|total|sum|altogether|overall)\b",
    re.I,
)
"""Beginnings of sentences about a list; an entry that begins like this needs a bullet."""
_MARKUP = lazy_pattern(
    r"[-–—*•_=~#|<>{}\[\]\\]|.*(?:\||[\[{}\]],?|<[/\w][^<>]*>)\s*\Z|.*\b(?:found|mentioned|listed|identified)\W*\Z"
)
"""Tables, JSON, HTML, headings and marks that may be bullets or signs: not a plain entry."""
_NO_ENTRY = lazy_pattern(
    r"(?-i:and|or|plus|as well as|etc)\b.*|[\W_]*"
    r"|\W*(?:\d+|several|some|many|various|two|three)\s+(?:more|others?)\W*"
    rf"|\W*{TOTAL_WORD}\b"
    r"\W*(?:\Z|[:=(–-]|[$€£¥]?\d|of\b|number\b|amount\b|count\b|sum\b).*"
    r"|.+\b(?:(?:in|grand)\s+)?(?:sub)?total\W*"
    r"|.*\b(?:etc|and (?:so on|so forth|others|(?:\w+ )?more))\W*"
    r"|(?:here (?:are|is)|that(?:['’]s| is) (?:all|it)|these are|those are|i (?:found|hope|could)|let me know|the list)\b.*"
    r"|.*:[\s*_]*",
    re.I | re.S,
)
"""Lines that may not be entries: totals, "and so on", headings, remarks."""
_SEVERAL = lazy_pattern(
    r"[,;/&、，；،\t→+]|=>|->|\\n|\b(?:and|or|und|oder|et|ou|y|e|o|vs|as well as)\b|<br|\s[•|]\s",
    re.I,
)
"""Separators of several entries on one line."""
_WRITTEN_AS_ONE = lazy_pattern(r"<br|\s[•●▪]\s|\s\(?\d{1,2}\)\s|\s2\.\s")

_NO = lazy_pattern(
    r"\b(?:no|not|none|nothing|neither|nor|never|without|cannot|unknown|unclear|unspecified|\w+n['’]t|"
    r"kein\w*|nicht\w*|weder|aucune?|rien|pas|ni|ning[uú]n\w*|nada|nessun\w*|niente|nenhum\w*|geen|niets|"
    r"ingen|inget|brak|nie|нет|не|ни|sin|sem|senza|sans|ohne|zonder|utan|nihil|nil|zilch|yok|değil|"
    r"tidak|tiada|không|ei|eivät|δεν|κανέν\w*|لا|لم|ليس|नहीं|אין|לא)(?!\w)"
    r"|没有|沒有|無|无|未|なし|ない|ません|없|ไม่",
    re.I,
)
_ABSENT = lazy_pattern(
    r"\b(?:mention\w*|found|stated|listed|specified|described|identified|indicated|noted|information|"
    r"evidence|text|document|passage|erwähnt|genannt|gefunden|mentionn\w*|mencion\w*|trouv\w*|"
    r"encontr\w*|menzion\w*|vermeld)\b|提|言及|記載|언급"
    r"|(?:\bnot|\bcannot|n['’]t)(?: be)? (?:say|said|tell|told|clear|known|determined|decided|enough)\b",
    re.I,
)


def says_nothing(text: str) -> bool:
    """Whether a text is the "Nothing found." line.

    Example:
        >>> texts = "Nothing found: no such dog.", "Nothing found, but a cat.", "Nothing happened."
        >>> [says_nothing(text) for text in texts]
        [True, False, False]
    """
    return _NOTHING.fullmatch(text.strip()) is not None and not _BUT.search(text)


def _short(text: str) -> str:
    # A model that repeats a whole quoted sentence would look like an echo.
    words = text.split(maxsplit=MAX_QUOTED_WORDS)
    shown = " ".join(words[:MAX_QUOTED_WORDS])
    is_whole = len(words) <= MAX_QUOTED_WORDS and len(shown) <= MAX_QUOTED
    return repr(shown if is_whole else f"{shown[:MAX_QUOTED]}…")


def _entries(said: str, source: str, is_second: bool) -> Value:
    """The entries of a list."""
    rows = [row for row in said.split("\n") if row.strip()]
    entries = _json_entries(said)
    if entries is None and any(map(_RULE.fullmatch, rows)):
        entries = _table_entries(said)
    is_marked = entries is not None or any(_BULLET.fullmatch(row) for row in rows)
    if entries is None:
        entries = _bulleted(said.split("\n"), source) if is_marked else _unmarked(rows, source)
    if not entries:
        if "[" not in said:
            raise _UnclearError("its entries are empty")
        return []
    _refuse_denials(entries, is_second)
    _refuse_others(entries)
    if not all(map(_NO.search, entries)):  # no fever, no cough
        _refuse_non_instances(entries, source)
    _refuse_repeats(entries)
    if is_marked:
        _refuse_several(entries)
        _refuse_groups(entries, source)
    return [_unquoted(plain(entry).rstrip(";,")) for entry in entries]


def _unquoted(entry: str) -> str:
    """An entry without the quotation marks or the emphasis around all of it."""
    match = re.fullmatch(r"([\"“'*_])([^\"“”'*_]+)[\"”'*_]", entry)
    return match[2] if match else entry


def _json_entries(said: str) -> list[str] | None:
    """The entries of a JSON array, or of an object with one array; None if the reply has no JSON."""
    if _OF_PYTHON.fullmatch(said):
        said = said.replace("'", '"')
    start = re.search(r"^[ \t]*(?=[\[{])", said, re.M)
    decoder = json.JSONDecoder(object_pairs_hook=_values, parse_int=str, parse_float=str)
    try:
        value, end = decoder.raw_decode(said, start.end()) if start else (None, 0)
    except (ValueError, RecursionError):
        return None
    if start is None or said[end:].lstrip(" \t")[:1].strip():
        return None
    if _DENYING_KEY.search(said):
        raise _UnclearError(
            "a key of its JSON may name what is no entry; one entry a line, after '- '"
        )
    counts: list[str] = []
    if isinstance(value, tuple):  # an object
        counts = [f"Total: {one}" for one in value if isinstance(one, str) and one.isdecimal()]
        value = value[0] if len(value) == 1 + len(counts) else None
    if isinstance(value, list) and any(isinstance(one, tuple) for one in value):
        value = _paired(value)
    if not (isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)):
        raise _UnclearError("it is JSON, but not one array of strings")
    _check_remarks([said[: start.start()], said[end:], *counts], len(value))
    return value


_OF_PYTHON = lazy_pattern(r"\['[^'\"\\\n]*'(?:, ?'[^'\"\\\n]*')*\]")
_RULE = lazy_pattern(r"(?=.*\|)\s*\|?(?:\s*:?-{2,}:?\s*(?:\||\Z))+\s*")
"""The line below the head of a table."""


def _table_entries(said: str) -> list[str]:
    """The entries of a table of one or two columns."""
    lines = said.split("\n")
    (at, *others) = [i for i, line in enumerate(lines) if _RULE.fullmatch(line)]
    end = next((i for i in range(at, len(lines)) if "|" not in lines[i]), len(lines))
    if others or not at:
        raise _UnclearError("it is not one table; one entry a line, after '- '")
    rows = [line.strip().strip("|").split("|") for line in lines[at + 1 : end]]
    entries = _paired([tuple(plain(cell).strip() for cell in row) for row in rows])
    _check_remarks([" ".join(lines[: at - 1]), *lines[end:]], len(entries))
    return entries


def _paired(rows: Sequence[Any]) -> list[str]:
    """Entries of one or two cells, the second one a detail of the first, beside their numbers."""
    columns = "it is a table of several columns; one entry a line, after '- '"
    if not all(isinstance(row, tuple) for row in rows):
        raise _UnclearError(columns)
    if all(row[:1] in ((str(i),), (f"{i}.",)) for i, row in enumerate(rows, 1)):
        rows = [row[1:] for row in rows]
    widths = {len(row) for row in rows}
    is_text = all(isinstance(cell, str) and cell.strip() for row in rows for cell in row)
    if not (is_text and (widths == {1} or widths == {2})):
        raise _UnclearError(columns)
    return [": ".join(row) for row in rows]


def _bulleted(rows: Sequence[str], source: str) -> list[str]:
    """The entries of one block of bullets, with remarks before it and, below a blank line, after it."""
    entries: list[str] = []
    details: dict[int, list[str]] = {}
    before: list[str] = []
    after: list[str] = []
    ordinals: list[str] = []
    indent, kinds, is_apart = -1, set(), False
    for row in rows:
        bullet = _BULLET.fullmatch(row)
        width = len(
            (bullet["indent"] if bullet else row[: len(row) - len(row.lstrip())]).expandtabs()
        )
        if not row.strip():
            is_apart = True
            continue
        if bullet is None and entries and width > indent:  # continuation line
            last = details.get(len(entries) - 1, entries)
            last[-1] = f"{last[-1]} {row.strip()}"
        elif bullet is None and not entries:
            before.append(row)
        elif bullet is None and (is_apart or after or _END_OF_LIST.match(row)):
            after.append(row)
        elif bullet is None or after:
            raise _UnclearError(
                f"{_short(after[0] if after else row)} stands among the entries; only entries, without headings"
            )
        elif indent >= 0 and width > indent:
            details.setdefault(len(entries) - 1, []).append((bullet["entry"] or "").strip())
        else:
            if not entries and before and not (is_apart or _HEADING.fullmatch(before[-1])):
                raise _UnclearError(f"{_short(before[-1])} may be a remark or an entry")
            indent = width  # numbers may be aligned at their right
            kinds.add(bullet["ordinal"] is None)
            ordinals.append(re.sub(r"\D", "", bullet["ordinal"] or ""))
            if len(kinds) > 1:
                raise _UnclearError(
                    f"{_short(row)} may be an entry within an entry; all entries on one level"
                )
            entries.append((bullet["entry"] or "").strip())
        is_apart = False
    numbers = [int(ordinal) for ordinal in ordinals if ordinal]
    if len(set(numbers)) > 1 and numbers != [numbers[0] + i for i in range(len(entries))]:
        raise _UnclearError("the numbers before the entries are not 1, 2, 3")
    if numbers and not all(entries):
        raise _UnclearError("a numbered entry is empty")
    if details:
        entries = _with_details(entries, details, source)
    entries = [entry for entry in entries if entry]
    _check_remarks([" ".join(before), *after], len(entries))
    inner = [re.fullmatch(r"(?:[-*•]|(\d+)[.)])\s+(.+)", entry, re.S) for entry in entries]
    is_double = all(one and one[1] in (None, str(i)) for i, one in enumerate(inner, 1))
    if is_double and len(entries) > 1 and _key(entries[-1]) not in _key(source):
        # "- 1. dog", "1. - dog"; the headings of a document have numbers of their own
        entries = [one[2] for one in inner if one]
    return entries


_END_OF_LIST = lazy_pattern(
    r"\W*(?:(?:grand )?total|altogether)\b[^\n]{0,40}\d|[-*_]{3,}\s*\Z", re.I
)
"""The line below the last entry: their number, or a rule."""
_OF_MEMBERS = lazy_pattern(
    r"\W*(?:names?|examples?|members?|includ\w+|entries|items?|list|such as|[^:]{0,30}\b(?:names|types|kinds|species|breeds))\W*:",
    re.I,
)


def _with_details(entries: Sequence[str], details: dict[int, list[str]], source: str) -> list[str]:
    """Entries with the bullets below them, if these are no entries of a group."""
    known = _words(source)
    named = [re.sub(r"[\s*_:]+\Z", "", plain(entry)) for entry in entries]
    for i, lines in details.items():
        is_entry = _words(named[i]) in known and (len(entries) > 1 or len(lines) == 1)
        for line in map(plain, lines):
            is_name = len(line.split()) <= MAX_NAME_WORDS and _words(line) in known
            is_detail = _SENTENCE.search(line) or re.match(r"[^:]{1,40}: ", line)
            if not (is_entry and is_detail and line) or is_name or _OF_MEMBERS.match(line):
                raise _UnclearError(
                    f"{_short(line)} may be an entry within an entry; all entries on one level"
                )
    return [
        f"{name}: {'; '.join(details[i])}" if i in details else entries[i]
        for i, name in enumerate(named)
    ]


def _unmarked(rows: Sequence[str], source: str) -> list[str]:
    """The entries of lines without bullets."""
    if len({len(row) - len(row.lstrip()) for row in rows}) > 1:
        raise _UnclearError("some lines are indented, and may be entries within entries")
    before: list[str] = []
    if len(rows) > 1 and rows[0].rstrip(" *_").endswith(":"):
        before, rows = [rows[0]], rows[1:]
    entries = [row.strip() for row in (rows[0].split(";") if len(rows) == 1 else rows)]
    entries = [entry for entry in entries if entry]
    if not entries:
        raise _UnclearError("it has no entry")
    if len(entries) > 1 and all(re.match(rf"{i}\s", row) for i, row in enumerate(entries, 1)):
        raise _UnclearError(f"{_short(entries[0])} may begin with its number, or an amount")
    if all(re.fullmatch(r"\*\*[^*]+\*\*", entry) for entry in entries):
        entries = list(map(plain, entries))
    _check_remarks(before, len(entries))
    _refuse_others(entries)
    for entry in entries:
        if _is_remark(entry) or _MARKUP.match(entry):
            raise _UnclearError(f"{_short(entry)} may be a remark; one entry a line, after '- '")
    if len(entries) == 1:
        if _key(entries[0]) not in _key(source):
            raise _UnclearError(
                f"{_short(entries[0])} may be a remark; one entry a line, after '- '"
            )
        _refuse_several(entries)
    return entries


_HEADING = lazy_pattern(r"\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*:?|.*:[\s*_]*)")
_QUALIFIES = lazy_pattern(
    r"\b(?:others?|another|more|also|additional\w*|further|plus|too|as well|even|etc|and so on|some|few|several|many|"
    r"possibl[ey]|perhaps|maybe|may|might|could|probabl[ey]|likely|partial\w*|incomplete|includ\w+|exclud\w+|"
    r"except\w*|impl\w+|infer\w*|duplicat\w*|twice|continu\w*|example\w*)\b|\.\.\.|…",
    re.I,
)
"""Words of a remark about a list that change what counts as an entry."""
_NUMBER_WORDS = (*ONES, TENS[0])
_COUNTED = lazy_pattern(r"\(\d{1,4} [^\W\d]+\)")
"""`(2 animals)` below a list."""
_COUNT = lazy_pattern(rf"\d[\d,.]*|\b(?:{'|'.join(_NUMBER_WORDS)})\b", re.I)


def _check_remarks(remarks: Sequence[str], n_entries: int) -> None:
    """Check that the remarks before and after a list agree with it."""
    for text in remarks:
        remark = plain(text).strip()
        if re.fullmatch(r"[-*_]{3,}|", remark):
            continue
        if not (
            _COUNTED.fullmatch(remark)
            or _SENTENCE.search(remark)
            or _REMARK.match(remark)
            or _HEADING.fullmatch(text)
        ):
            raise _UnclearError(f"{_short(remark)} may be a remark or an entry")
        if (
            doubt := re.match(r"(?:and|or)\b", remark, re.I)
            or _QUALIFIES.search(remark)
            or _BUT.search(remark)
            or _NO.search(remark)
        ):
            raise _UnclearError(
                f"{_short(doubt[0])} in the remark {_short(remark)} may change the list"
            )
        for count in _COUNT.findall(remark):
            number = count.strip(".,").replace(",", "").casefold()
            number = str(_NUMBER_WORDS.index(number)) if number in _NUMBER_WORDS else number
            if number != str(n_entries) and not _YEAR.fullmatch(number):
                raise _UnclearError(f"{_short(remark)} names {number}, the list has {n_entries}")


def _refuse_denials(entries: Sequence[str], is_second: bool) -> None:
    """Reject entries which say that no entry exists."""
    denials = [entry for entry in entries if _NO.search(entry)]
    for entry in denials:
        bare = entry.strip(_EDGES).casefold()
        if _NOTHING.fullmatch(entry) or bare in _NONE or _ABSENT.search(entry):
            raise _UnclearError(f"{_short(entry)} may say that no entry exists")
    # Several denials after a clarified request are intended: no fever, no cough.
    if denials and len(denials) == len(entries) and (len(entries) == 1 or not is_second):
        raise _UnclearError(f"{_short(denials[0])} may say that no entry exists")


def _refuse_others(entries: Sequence[str]) -> None:
    """Reject totals, headings and placeholders for unnamed entries."""
    for entry in entries:
        if _NO_ENTRY.fullmatch(entry) and not (
            len(entries) == 1 and entry.strip(_EDGES)[:1].isdigit()
        ):
            raise _UnclearError(f"{_short(entry)} may be no entry")
        if _WRITTEN_AS_ONE.search(entry):
            raise _UnclearError(f"{_short(entry)} may be several entries{_ONE_A_LINE}")
    total = re.fullmatch(r"(?:in all\W+)?(\w+) (?:[a-z]+ ){0,2}[a-z]+s\W*", entries[-1], re.I)
    n_before = len(entries) - 1
    number = total[1].casefold() if total else ""
    number = str(_NUMBER_WORDS.index(number)) if number in _NUMBER_WORDS else number
    is_count = number == str(n_before) or (not n_before and number.isdigit())
    if total and is_count and not unit_of(entries[-1], *total.span(1)):
        raise _UnclearError(f"{_short(entries[-1])} may be a number of entries, and no entry")


_PLACEHOLDER = lazy_pattern(
    r"[\[<{(][^\[\]<>{}()]*[\]>})]|.*(?:</s>|<\|[^|>]*\|>|<(?:eos|end_of_turn|pad|unk)>|\[/?INST\]|\[end\b[^\]]*\]).*"
    r"|\[[ xX]?\].*|\W*(?:end|eof|stop|done|fin|finis|finished|complete|end of (?:the |this )?(?:list|text|document|reply|response|answer|output|entries|file)|no more(?: \w+)?)\W*"
    r"|\W*(?:error|exception|traceback|warning|fatal|timeout)\b\s*[\]:).].*|\W*(?:tbd|tba|todo|placeholder|null|undefined)\W*",
    re.I | re.S,
)
"""Places of a template that are not filled in, marks of an end and errors."""
_ABOUT_LIST = lazy_pattern(
    r"\W*(?:sources?|notes?|n\.?b\.?|references?|disclaimer|quotes?|evidence|citations?|comments?|remarks?|explanation|"
    r"reason(?:ing)?|summary|conclusion|confidence|hint|caveat|correction|update|answer|question|instructions?|result|"
    r"count|number of [\w ]+)\s*:.*"
    r"|(?:(?:first|second|third|then|next|finally|now|okay|ok|so|sure|wait|hmm+)\b\W*)?(?:i|we|let me|let['’]s|my)\b.*"
    r"\b(?:text|document|passage|story|list|article|question|instructions?|request|answers?|entr(?:y|ies)|reply)\b.*"
    r"|(?:(?:first|second|third|next|last)\s)?(?:item|entry|element|example|option|page)\s*#?(?:\d*|one|two|three|four|five)"
    r"|(?:based on|according to|as an ai|sorry|please|hope (?:this|that)|there (?:is|are)|(?:the )?name of)\b.*"
    r"|\W*(?:see|same|ditto|as) (?:above|below|before|mentioned|the \w+)\W*|unable to\b.*|(?:more|others|nan)\W*|\W*(?:same as|ditto|idem)\b.*"
    r"|\W*(?:yes|no|true|false|various|misc(?:ellaneous)?|unknown|n/a|assistant|user|system|string|foo|bar)\W*"
    r"|(?:some|several|various|unnamed|other)\s(?:\w+\s)?\w+|the\s\w+\s(?:above|below)"
    r"|.*\b(?:rate limit|try again|internal server error|timed out|connection (?:reset|refused)|service unavailable)\b.*"
    r"|.*[(\[](?:duplicate|already \w+|crossed out|removed|excluded|omitted|deleted|repeated|correct(?:ed|ion)|wrong|incorrect|mistake\w*|should|actually|sorry)\b[^()]*[)\]]\W*"
    r"|(?:i|we) (?:can['’]t|cannot|(?:can|could|did|do)(?: not|n['’]t)) (?:find|see|identify|locate|spot|name|list|confirm|think of)\b.*"
    r"|(?:nothing (?:else|more)|excluding|except|not counting)\b.*|.+\b(?:was|were|is|are) (?:excluded|omitted|removed)\W*|~~.*",
    re.I | re.S,
)
"""Remarks and sources, which are entries only if the text itself says so."""
_HEDGES = (
    r"(?:implied|inferred|possibl[ey]|maybe|perhaps|probabl[ey]|presumabl[ey]|likely|uncertain|unclear|unsure|"
    r"assumed|apparently|potential(?:ly)?|might be|may be|could be|not sure|unconfirmed|alleged(?:ly)?)"
)
_HEDGED = lazy_pattern(
    rf"\W*{_HEDGES}\b.*|.*[(\[]\W*{_HEDGES}\b[^()]*[)\]]\W*|(?:\S+\s){{0,2}}\S*\?", re.I | re.S
)
_NOT_SO = r"not(?: \w+)? (?:mentioned|present|stated|named|listed|included|found|seen|there|sure|in)\b[^()]*|not"
_NEGATED = lazy_pattern(
    r".+(?:[:–—=]|\s-)\s*(?:no|none|not\b.*|false|absent|n/?a|0|[✗✘❌])\W*"
    r"|.*\b(?:do(?:es)?|did|should|must|can)(?: ?not|n['’]t) (?:be )?(?:count|includ|list|belong|qualif)\w*.*"
    r"|(?:no|not|keine?)\s(?:\S+\s?){1,3}"
    rf"|.+[(\[](?:no|none|{_NOT_SO}|absent|false)[)\]]\W*|\W*[✗✘❌].*|.*[✗✘❌]\W*|.*\ufffd.*",
    re.I | re.S,
)


def _refuse_non_instances(entries: Sequence[str], source: str) -> None:
    """Reject entries that are not instances of the requested kind."""
    shown = ""
    for entry in map(plain, entries):
        if len(entry) > MAX_AMOUNT:
            continue
        if _PLACEHOLDER.fullmatch(entry) or _STATUSES.fullmatch(entry):
            raise _UnclearError(f"{_short(entry)} is a placeholder or an end mark, and no entry")
        for pattern, what in (
            (_ABOUT_LIST, "may be a remark, and no entry"),
            (_HEDGED, "may be a guess; only entries that the text states"),
            (_NEGATED, "may say that it is no entry"),
        ):
            if pattern.fullmatch(entry):
                shown = shown or _key(source)
                if not re.search(rf"(?<!\w){re.escape(_key(entry))}(?!\w)", shown):
                    raise _UnclearError(f"{_short(entry)} {what}")


_BOLD = lazy_pattern(r"\*\*([^*]+)\*\*\s*[-–—:(].*|\*\*([^*]+[:–—-])\*\*.*", re.S)
"""An entry with its explanation."""


def _refuse_repeats(entries: Sequence[str]) -> None:
    """Reject entries that occur twice, as amounts may, and a number among entries without one."""
    figures = [entry for entry in entries if re.fullmatch(r"\W*\d[\d.,]*\W*", entry)]
    if figures and not all(re.search(r"\d", entry) for entry in entries):
        raise _UnclearError(f"{_short(figures[0])} may be a number of entries, and no entry")
    names = set()
    for entry in entries:
        bold = _BOLD.fullmatch(entry)
        name = _key(plain((bold[1] or bold[2]) if bold else entry)).strip(_EDGES + ",;")
        name = re.sub(r"\A(?:an?|the)\s", "", name)
        if name in names and not re.match(r"\W*(?:[A-Z]{3}\W*)?\d", name, re.I):
            raise _UnclearError(f"{_short(entry)} is named twice")
        names.add(name)


_ONE_A_LINE = "; write one a line, or put it in quotation marks if it is one"


def _refuse_several(entries: Sequence[str]) -> None:
    """Reject lines that may have several entries."""
    dashed = [
        entry for entry in entries if re.search(r"\s[-–—|/]\s", entry) and not _BOLD.match(entry)
    ]
    if dashed and (len(entries) == 1 or len(dashed) < len(entries)):
        raise _UnclearError(f"{_short(dashed[0])} may be several entries{_ONE_A_LINE}")
    is_quoted = len(entries) == 1 and _unquoted(entries[0]) != entries[0]
    if (
        len(entries) == 1
        and not is_quoted
        and _SEVERAL.search(entries[0])
        and not _SENTENCE.search(entries[0])
    ):
        raise _UnclearError(f"{_short(entries[0])} may be several entries{_ONE_A_LINE}")


def _refuse_groups(entries: Sequence[str], source: str) -> None:
    """Reject lines of several names that the source has, but not side by side: `Farm: dog, cat`."""
    known = ""
    for entry in map(plain, entries):
        names = _NAMES_JOINED.split(entry.rpartition(":")[2].strip(" ."))
        if len(names) > 1 and all(0 < len(name.split()) <= MAX_NAME_WORDS for name in names):
            known = known or _words(source)
            is_known = [_words(name) in known for name in (entry, *names)]
            if not is_known[0] and all(is_known[1:]):
                raise _UnclearError(f"{_short(entry)} may be several entries{_ONE_A_LINE}")


_NAMES_JOINED = lazy_pattern(r"\s?[,;&/]\s?|\s(?:and|und|et|y)\s")


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


_WORD = lazy_pattern(r"\w+")


def _is_remark(line: str) -> bool:
    """Whether a line without a bullet may be a sentence about the list."""
    return bool(
        _SENTENCE.search(line)
        or _REMARK.match(line)
        or _NO.search(line)
        or len(line.split()) > MAX_PLAIN_WORDS
    )


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()


_AFTER = lazy_pattern(
    r"(?P<unit>\s?(?:[^\W\d_]|[%‰°$€£¥₹])[^\s\d]*)?(?:\s[^\s\d]+){0,3}?"
    r"(?P<rest>(?:\s(?:are|is|were|was))?(?:\s(?:mentioned|named|listed|described|found|stated|given))?"
    r"(?:\s(?:in|from|by)\s(?:the|this)\s(?:whole\s)?\w+)?(?:\s\((?:see|from|per|as|according)\b[^()\d]*\))?)",
    re.I,
)
"""Texts that may follow a figure: its unit, a few words, its source."""
_ABOUT = r"(?:(?:about|around|approximately|approx\.|circa|ca\.|roughly)\s)?"
_LEAD = lazy_pattern(
    r"(?:.*(?:[:=]|\b(?:is|was|are|were|be|equals?|totals?|totall?ed|(?:amount|come|came)(?:s|ed)?\s+to|"
    r"stands\s+at|stood\s+at|count(?:ed)?|found|reported|recorded))\s+(?:a\s+total\s+of\s+)?"
    rf"|a\s+total\s+of\s+)?{_ABOUT}",
    re.I,
)
"""Texts that may precede a figure: none, or the beginning of its sentence."""
_YEAR_NAMED = lazy_pattern(
    r"\s*\(?\b(?:(?:in|for|of|during|at|by|as\sof|on|ended|ending|FY|fiscal|year)\s*)++"
    r"(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s(?:\d{1,2},?\s)?)?"
    r"(?:19|20)\d\d\b(?!\s?(?:million|billion|thousand|[%$€£¥]))\)?,?|\b(?:19|20)\d\d(?=\s*:)|\s\((?:19|20)\d\d\)",
    re.I,
)
"""A year that dates a figure."""
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_SIGN_WORDS = r"loss\w*|decreas\w+|declin\w+|fell|drop\w*|reduc\w+|deficit|shortfall|down|negative|credit|debit|cr|dr"
_OR_ELSE = lazy_pattern(
    rf"[?]|\s[-–—]\s*\Z|\A-?ish\b|\b(?:{_SIGN_WORDS}|wrong|ago|etc|exclud\w+|without|or|and|to|than|more|less|fewer|most|least|maximum|minimum|below|above|under|over|maybe|"
    r"perhaps|possibly|guess|think|est(?:imated?)?|each|plus|minus|und|oder|bis|mehr|weniger|et|ou|à|"
    r"moins|más|menos|più|meno|или|и|до)\b",
    re.I,
)
"""Suffixes that change or blur the amount before them."""
_UNSURE = lazy_pattern(
    r"[?~≈]|[.!;]\s|\b(?:or|maybe|perhaps|possibly|probably|likely|presumably|guess|think|believe|estimat\w+|assum\w+|"
    r"at\s(?:least|most)|more|less|fewer|than|up|over|under|above|below|nearly|almost|per|each|half|if|unless|"
    r"might|may|could|would|should|seems?|appears?|impl\w+|between|exclud\w+|except\w*|only|but|however|"
    rf"although|some|several|few|many|other|another|remaining|{_SIGN_WORDS}|prior|previous|last\syear)\b"
    r"|\b(?:page|line|note|footnote|option|confidence|error|status|code|step|table|section|chapter|item)\s*(?:\w+\s*)?[:=]",
    re.I,
)
"""Words in a sentence that may change, blur or turn around the number in it."""
_STATUSES = lazy_pattern(
    "|".join(rf"{int(status)}\s+{re.escape(status.phrase)}" for status in HTTPStatus), re.I
)


def _alone(said: str) -> str:
    """The single line that a reply of one value has, without marks around it."""
    if said.startswith("{"):
        said = _json_value(said)
    said = said.translate(_FULL_WIDTH)
    if tagged := re.fullmatch(r"<(answer|result|value)>([^<>]*)</\1>", said):
        said = tagged[2]
    rows = [row.strip() for row in said.split("\n") if row.strip()]
    if len(rows) == 2 and rows[0].rstrip("*_ ").endswith(":"):
        rows = rows[1:]
    if len(rows) == 2:
        rows = [row for row in rows if not _is_about(row)] or rows
    if len(rows) == 2 and re.fullmatch(r"\(in [a-z]+\)", rows[1]):
        rows = [" ".join(rows)]
    if len(rows) != 1 or len(rows[0]) > MAX_AMOUNT:
        raise _UnclearError(f"one short line is needed, with nothing else in {_short(said)}")
    line = _BOXED.sub(r"\1\2", plain(rows[0]).replace("\\$", "$"))
    return _SURE.sub("", line).strip(" \t*_`\"'“”")


_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}


def _is_about(line: str) -> bool:
    """Whether a line beside a number is a sentence that leaves the number as it is."""
    line = plain(line)
    doubts = (_NO, _BUT, _UNSURE, _OR_ELSE, _PARTLY, _NUMERIC)
    is_sentence = _SENTENCE.search(line) and not re.search(r"[.!?]\s", line)
    return bool(is_sentence) and not any(pattern.search(line.rstrip(".:!")) for pattern in doubts)


_NUMERIC = lazy_pattern(
    rf"\d|%|\b(?:{'|'.join(_NUMBER_WORDS)}|hundreds?|thousands?|millions?|billions?|trillions?|percent\w*|points?|units?|dollars?|euros?|"
    r"rounded|brackets?|parenthes[ei]s|signs?|scale|instead|corrected|restated|wrong|adjusted)\b",
    re.I,
)
"""Words that may change a number beside them."""
_BOXED = lazy_pattern(
    r"\${0,2}\\boxed\{([^{}]{0,200})\}\${0,2}|(?:\\\(|\$\$)(.{0,200}?)(?:\\\)|\$\$)"
)
_SURE = lazy_pattern(r"\A\W*(?:sure|certainly|of course)[!,.:]\s+", re.I)
_COURTESY = lazy_pattern(
    r"(?<=\S)[ \t\r]*+(?:\n[ \t\r]*+)++(?:[-*_]{3,}\s*+)?+(?:let me know if|is there anything else|(?:i )?hope (?:this|that) helps|feel free to)\b[^\n]*\Z",
    re.I,
)
"""The last line of a reply that offers more help."""


def _json_value(said: str) -> str:
    """The value of a JSON object that has one; else the text as it is."""
    try:
        values = json.loads(said, parse_int=str, parse_float=str, object_pairs_hook=_values)
    except (ValueError, RecursionError):
        return said
    if re.match(r"\{\s*\"(?:error|status|code|confidence|page)\"", said):
        return said
    if _DENYING_KEY.search(said):
        return said
    if len(values) == 2 and _WITH_UNIT.match(said) and all(isinstance(v, str) for v in values):
        return " ".join(values)
    if len(values) == 1 and isinstance(values[0], bool):
        return "yes" if values[0] else "no"
    return values[0] if len(values) == 1 and isinstance(values[0], str) else said


_DENYING_KEY = lazy_pattern(
    r"[{,]\s*+\"(?:\w*_|\w*[a-z](?=[A-Z])|is|are)?"
    r"(?i:yes|no[nt]?|none|without|un|in|dis|false\w*|wrong\w*|incorrect\w*|untrue|den(?:y|ied|ies)|reject\w*|refut\w*|"
    r"contradict\w*|dispro\w+|exclu\w+|except\w*|absent|missing|omit\w*|remov\w+|ignored?|irrelevant|discarded)"
    r"(?:_\w*|[A-Z]\w*)?\"\s*:"
)
"""A key of JSON that may turn its value around, or name what is no entry."""
_WITH_UNIT = lazy_pattern(
    r"\{\s*\"(?:value|amount|number|figure|result|answer)\"\s*:[^,{}\[\]]{1,60},\s*\"(?:units?|scale|currency)\"\s*:",
    re.I,
)


def _values(pairs: list[tuple[str, Any]]) -> tuple[Any, ...]:
    return tuple(value for _, value in pairs)


def _amount(said: str, source: str, is_second: bool) -> Value:
    """Parse a number with its unit, alone or at the end of a sentence."""
    said = re.sub(r"\A#{1,6}\s+", "", said)
    bullet = _BULLET.fullmatch(said.split("\n", 1)[0])
    if bullet and bullet["entry"] and "\n" not in said:  # "42." is a sentence
        if not _SURE_BULLET.match(said):
            raise _UnclearError(f"{_short(said)} begins with a bullet, which may be a minus")
        said = bullet["entry"]
    line = _alone(said)
    if line.endswith(("..", "…")) or re.match(r"0\d", line):
        raise _UnclearError(f"{_short(said)} is cut off, or a code")
    line = line.rstrip(". ")
    if IN_BRACKETS.fullmatch(line):
        quantity(line)
        return line
    text = _YEAR_NAMED.sub(" ", line).strip()
    figures = list(find_figures(text))
    if len(figures) != 1:
        raise _UnclearError(
            f"{'more than one' if figures else 'no'} number in digits in {_short(said)}"
        )
    ((start, end),) = figures
    before, after = text[:start], _AFTER.fullmatch(text, end)
    if not _LEAD.fullmatch(before) or after is None or _STATUSES.search(line):
        raise _UnclearError(f"{_short(said)} is not one number with its unit")
    doubt = (
        _NO.search(text)
        or _UNSURE.search(before)
        or _OR_ELSE.search(text[end : after.start("rest")])
    )
    if doubt:
        raise _UnclearError(f"{_short(doubt[0])} in {_short(said)} leaves the number open")
    about = re.search(rf"{_ABOUT}\Z", before, re.I)
    value = text[about.start() if about else 0 : after.start("rest")].strip()
    if _YEAR.fullmatch(value) and not is_second:
        raise _UnclearError(f"{_short(value)} may be a year; if it is the number, repeat it")
    quantity(value)
    return value


_SURE_BULLET = lazy_pattern(r"[*•▪●◦○‣∙■□]|[-–—] (?:\*\*\W*\d|(?=\D*[a-z]{3})(?!\W*minus)[^\W\d_])")
"""A bullet that is no minus: no dash, or a dash before bold digits or words."""


def may_take_back(remark: str) -> bool:
    """Whether the words after a value may qualify or deny it.

    Example:
        >>> may_take_back("the captain says so"), may_take_back("but not at night")
        (False, True)
    """
    return any(pattern.search(remark) for pattern in (_NO, _BUT, _PARTLY))


_VERDICT = lazy_pattern(
    r"(?:(?:so|therefore|thus|hence)\b,?\s*|(?:based on|according to|from) (?:the|this) (?:\w+ )?(?:text|document|passage|story|article|excerpt),\s*)?(?:(?:the\s)?(?:final\s)?(?:answer|result|verdict|value)\s*(?:is|:|=)\s*)?"
    r"[\"'“*_(\[]*(?P<verdict>yes|no|true|false)\b[\"'”*_)\]]*(?P<rest>(?:\Z|\s*[.,;:!–—]|\s+-\s|\s*\n).*)",
    re.I | re.S,
)
_PARTLY = lazy_pattern(
    r"[?]|\b(?:part(?:ly|ially|ial)?|mostly|mainly|largely|somewhat|sometimes|maybe|perhaps|possibly|probably|likely|"
    r"presumably|if|depend\w*|might|may|could|would|seems?|appears?|unclear|uncertain|impl\w+|infer\w*|suggest\w*|"
    r"assum\w+|arguabl\w+|technically|sort of|kind of|in a sense|not (?:sure|entirely|exactly|quite|really|fully)|"
    r"rather|or|on the other hand|while|whereas|despite|wait|actually|correction|at first|at (?:least|most)|initially|"
    r"originally|later|again|apparently|claim\w*|according|alleged\w*|reported\w*|almost|nearly|hardly|barely|scarcely|"
    r"rarely|seldom|(?:tried|tries|attempt\w*|fail\w*|refus\w*) to|den(?:y|ied|ies)|wrong|incorrect|false|untrue|contradict\w*|reject\w*|refut\w*|disput\w*|disprov\w*|contrary|opposite|exceptions?|some|certain|"
    r"extent|limited|i|me|please|sure|confiden\w+)\b|\A\W*(?:said|says|replied|answered)\b",
    re.I,
)
"""Words that qualify a yes or no."""
_SECOND_VERDICT = lazy_pattern(r"\n\W*(?:yes|no|true|false)\b|\b(?:yes|true)\b", re.I)


_TRUE = frozenset({"yes", "true", "oui", "ja", "sí", "sim", "да", "是", "是的", "はい", "네", "예"})
_FALSE = frozenset(
    {"no", "false", "non", "nein", "não", "nee", "нет", "否", "不是", "いいえ", "아니요"}
)


def _truth(said: str, source: str, is_second: bool) -> Value:
    """Yes or no, alone or with a reason that does not retract it."""
    text = plain(_json_value(said) if said.startswith("{") else said).translate(_FULL_WIDTH)
    word = text.strip(_EDGES + "。！").casefold()
    if word in _TRUE | _FALSE:
        return word in _TRUE
    match = _VERDICT.fullmatch(re.sub(r"\A[-*•]\s+", "", _BOXED.sub(r"\1\2", text)))
    if match is None:
        raise _UnclearError(f"{_short(said)} does not begin with yes or no")
    is_true, rest = match["verdict"].casefold() in ("yes", "true"), match["rest"]
    denial = _NO.search(rest)
    doubt = _BUT.search(rest) or _PARTLY.search(rest) or _SECOND_VERDICT.search(rest)
    if denial and (is_true or _ABSENT.search(rest)):
        doubt = denial
    if doubt:
        raise _UnclearError(f"{_short(doubt[0])} after {match['verdict']!r} may take it back")
    if not is_true and not denial and re.search(r"\w", rest):
        raise _UnclearError(f"{_short(said)} says no, and then something that may be so")
    return is_true


_READERS = {ValueType.LIST: _entries, ValueType.NUMBER: _amount, ValueType.BOOL: _truth}
_NAMES = {ValueType.LIST: "a list", ValueType.NUMBER: "a number", ValueType.BOOL: "yes or no"}


# ---------------------------------------------------------------------------------------------
# Constraints for decoders

_VALUES: Mapping[ValueType, str] = {
    ValueType.LIST: 'value: "- " TEXT (NEXT TEXT)*\nNEXT: "\\n- "',
    ValueType.NUMBER: "value: AMOUNT\nAMOUNT: /[-+]?[$€£¥]?[0-9][0-9.,]{0,20}%?(?: [^0-9\\n>]{1,40})?/",
    ValueType.BOOL: 'value: "yes" | "no"',
}

_MAX_ENTRIES = 1_000
_MAX_PASSAGES = 100


@cache
def reply_constraint(wanted: ValueType, max_text: int | None = None) -> Constraint | None:
    """The constraint on a reply; None if any text is valid."""
    if wanted not in _VALUES:
        return None
    text = terminal("TEXT").pattern
    if max_text is not None:
        text = text.removesuffix("*") + f"{{0,{max_text - 1}}}"
    grammar = "\n".join((
        "start: NOTHING | value (QUOTE TEXT)*",
        f'NOTHING: "{NOTHING}"',
        r"QUOTE: /\n\n?> /",
        _VALUES[wanted],
        f"TEXT: /{text}/",
    ))  # fmt: skip
    return Constraint(f"reply-{wanted.lower()}", grammar + "\n", _json_form(wanted, max_text))


def _json_form(wanted: ValueType, max_text: int | None) -> JsonForm:
    free: dict[str, Any] = {"type": "string"}
    if max_text is not None:
        free["maxLength"] = max_text
    value: dict[str, Any] = free
    if wanted is ValueType.LIST:
        value = {"type": "array", "items": free, "maxItems": _MAX_ENTRIES}
    elif wanted is ValueType.BOOL:
        value = {"enum": ["yes", "no", ""]}
    passages = {"type": "array", "items": free, "maxItems": _MAX_PASSAGES}
    schema = closed_object({"value": value, "passages": passages})

    def text_of(said: Any) -> str:
        require(said, schema)
        is_list = wanted is ValueType.LIST
        values = map(one_line, said["value"] if is_list else [said["value"]])
        rows = [f"- {one}" if is_list else one for one in values if one]
        quotes = [f"> {quote}" for quote in map(one_line, said["passages"]) if quote]
        return "\n".join([*(rows or [NOTHING]), *quotes])

    none = "[]" if wanted is ValueType.LIST else '""'
    hint = f'{{"value": {"[entries]" if wanted is ValueType.LIST else "..."}, "passages": [...]}}; {none} for nothing.'
    return JsonForm(schema, text_of, hint)


def follows_form(text: str, wanted: ValueType) -> bool:
    """Whether a reply satisfies the constraint of its type."""
    rows = [row for row in text.split("\n") if row.strip() and quoted_line(row) is None]
    match wanted:
        case ValueType.LIST:
            return all(row.startswith("- ") for row in rows) or rows == [NOTHING]
        case ValueType.NUMBER | ValueType.BOOL:
            return len(rows) == 1
    return True
