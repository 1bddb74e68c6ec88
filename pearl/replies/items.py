"""A model's reply about numbered items → the value of each. The only parser of such replies."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Literal, TypeVar

from pearl.documents.evidence import quoted_line
from pearl.documents.numbers import plain
from pearl.dsl.decoding.constraint import Constraint, JsonForm, closed_object, require
from pearl.dsl.literals import terminal
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.errors.patterns import lazy_pattern
from pearl.replies.typed import may_take_back, read_reply, says_nothing

_T = TypeVar("_T")

_FENCE = lazy_pattern(r"\s*```")
_LINE = lazy_pattern(
    r"(?P<indent>[ \t]*+)(?P<bullet>[-*•–+][ \t]++)?+[*_`\[(]{0,4}"
    r"(?P<word><[ \t]*+item[ \t]++|(?:item|entry|row)[ \t]*+(?:\#[ \t]*+)?+|\#[ \t]*+)?(?P<id>[0-9]{1,7})[*_`]{0,4}"
    r"(?P<mark>[ \t]*+>[ \t]*+[:：]?|[\])]?[ \t]*+[:：=|]|[.)\]](?=[ \t]|\Z)|[ \t]++[-–—](?=[ \t]))"
    r"[*_`]{0,4}(?P<value>.*)",
    re.I,
)  # fmt: skip
"""An item's number, in the ways that models write it, and its value."""
_PIPES = lazy_pattern(r"\A\s*\|[ \t]*|(?<=\S)[ \t]*\|\s*\Z")
"""The outer marks of a line of a table."""
_END_TAG = lazy_pattern(r"</\s*+item\s++[0-9]{1,7}\s*+>\Z", re.I)
_ID = lazy_pattern(r"\s*+(?:<?\s*+item\s*+\#?\s*+)?+([0-9]{1,7})\s*+>?\s*+", re.I)
_NESTED = 2
"""Characters of indent from which a line belongs to the item above it."""
_JSON_START = lazy_pattern(r"^[ \t]*+(?=[{\[])", re.M)
_JSON_END = lazy_pattern(r"[ \t]*+(?:,[ \t]*+)?+(?:\n|\Z)")
_MAX_TRIES = 8
"""Maximum failed attempts to parse JSON before the rest is read as lines."""
_ID_KEYS = ("id", "item", "number", "n", "item_id")
_VALUE_KEYS = ("value", "label", "answer", "result", "rating", "score", "category", "reply")
_PICK = lazy_pattern(
    r"(?:[-*•–+]\s++)?+[*_`\[(]*+(?:<?\s*+item\s*+(?:\#\s*+)?+)?+([0-9]{1,7})[*_`\])>.:]*+", re.I
)
_PICKS_ON_A_LINE = lazy_pattern(r"\[?\s*[0-9]{1,7}(?:\s*[,>]\s*[0-9]{1,7})+\s*\]?\.?")


@dataclass(frozen=True, slots=True)
class Claim:
    """The value that one line, or one entry of JSON, gives an item; None if it cannot be read."""

    id: int
    value: str | None
    is_last: bool = False
    is_barred: bool = False


# ---------------------------------------------------------------------------------------------
# Lines


def claims(text: str, *, is_free: bool) -> Iterator[Claim]:
    """All values of items in a reply, in JSON or in lines."""
    found, text = _taken_json(text)
    for value in found:
        yield from _json_claims(value)
    lines = [_PIPES.sub("", line) for line in text.split("\n")]
    matches = [_numbered(line, is_free) for line in lines]
    styles = Counter(_style(match) for match in matches if match)
    if not styles:
        return
    # Lists within an item have numbers, too, but seldom in the way of the items themselves.
    style = max(styles, key=lambda s: (is_free and _is_as_asked(s), styles[s], _is_as_asked(s)))
    last = max(i for i, line in enumerate(lines) if line.strip())
    for i, match in enumerate(matches):
        if match is None or _style(match) != style:
            continue
        value = _END_TAG.sub("", match["value"].rstrip()).strip()
        if value.endswith("**") and value.count("**") % 2:
            value = value.removesuffix("**").rstrip()
        goes_on = is_free and i < last and _goes_on(lines[i + 1], matches[i + 1], style)
        is_last, is_barred = i == last == len(lines) - 1, match["mark"].endswith("|")
        yield Claim(int(match["id"]), None if goes_on else value, is_last, is_barred)


def _whole(text: str) -> str | None:
    """The value in a reply about a single item that has no number."""
    found, rest = _taken_json(text)
    if len(found) == 1 and isinstance(found[0], _Object):
        return _one_of(found[0], _VALUE_KEYS, _scalar)
    return "\n".join(line for line in rest.strip().split("\n") if not _FENCE.match(line)).strip()


def _numbered(line: str, is_free: bool) -> re.Match[str] | None:
    """The match of a line that begins with the number of an item; `12:30` in free text does not."""
    match = _LINE.fullmatch(line)
    if match is None or not is_free or re.search("[>|]", match["mark"]):
        return match
    return match if match["value"][:1] in ("", " ", "\t") else None


_Style = tuple[bool, bool, str, str]


def _style(match: re.Match[str]) -> _Style:
    """The notation of an item's number in a line."""
    is_nested = len(match["indent"].expandtabs()) >= _NESTED
    word, mark = (" ".join((match[name] or "").split()) for name in ("word", "mark"))
    return is_nested, bool(match["bullet"]), word.casefold(), mark.replace("：", ":")


def _is_as_asked(style: _Style) -> bool:
    is_nested, _, _, mark = style
    return not is_nested and mark in (":", "|")


def _goes_on(line: str, match: re.Match[str] | None, style: _Style) -> bool:
    """Whether a line belongs to the item above it."""
    if not line.strip() or _FENCE.match(line) or quoted_line(line) is not None:
        return False
    return match is None or _style(match) != style


# ---------------------------------------------------------------------------------------------
# JSON


class _Object(list[tuple[str, Any]]):
    """The pairs of a JSON object, repeated keys included."""


def _taken_json(text: str) -> tuple[list[Any], str]:
    """The JSON values that begin a line, and the text without them."""
    decoder = json.JSONDecoder(object_pairs_hook=_Object)
    found: list[Any] = []
    rest: list[str] = []
    at = n_tries = 0
    for start in _JSON_START.finditer(text):
        if start.end() < at or n_tries == _MAX_TRIES:
            continue
        try:
            value, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            n_tries += 1
            continue
        if not _JSON_END.match(text, end):
            n_tries += 1
            continue
        found.append(value)
        rest.append(text[at : start.start()])
        at = end
    return found, "".join([*rest, text[at:]])


def _json_claims(value: Any, depth: int = 0) -> Iterator[Claim]:
    """The pairs of number and value in JSON; entries without a number are skipped."""
    if depth > 2 or not isinstance(value, list):
        return
    if not isinstance(value, _Object):
        for entry in value:
            yield from _json_claims(entry, depth + 1) if isinstance(entry, _Object) else ()
        return
    if (id := _one_of(value, _ID_KEYS, _number)) is not None:
        yield Claim(id, _one_of(value, _VALUE_KEYS, _scalar))
        return
    numbered = [(id, one) for key, one in value if (id := _number(key)) is not None]
    for id, one in numbered:
        read = _one_of(one, _VALUE_KEYS, _scalar) if isinstance(one, _Object) else _scalar(one)
        yield Claim(id, read)
    if len(value) == 1 and not numbered:
        yield from _json_claims(value[0][1], depth + 1)


def _one_of(pairs: _Object, keys: Sequence[str], read: Callable[[Any], _T | None]) -> _T | None:
    """The common value of all present keys; None for no value or different values."""
    found = {read(value) for key, value in pairs if key.casefold() in keys} - {None}
    return found.pop() if len(found) == 1 else None


def _number(value: Any) -> int | None:
    """The number of an item."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _ID.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def _scalar(value: Any) -> str | None:
    match value:
        case str():
            return value
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            return None


# ---------------------------------------------------------------------------------------------
# Choices among items


def picks(text: str) -> list[int] | None:
    """The item numbers in a reply, in order; None if the reply contains anything else."""
    found, rest = _taken_json(text)
    if len(found) == 1:
        value = found[0]
        if isinstance(value, _Object) and len(value) == 1:
            value = value[0][1]
        if isinstance(value, list) and not isinstance(value, _Object):
            ids = [_number(one) for one in value]
            return [id for id in ids if id is not None] if None not in ids else None
    picked: list[int] = []
    for line in (rest if not found else text).split("\n"):
        if _FENCE.match(line) or not any(c.isdecimal() for c in line):
            continue
        if _PICKS_ON_A_LINE.fullmatch(line.strip()):
            picked += map(int, re.findall("[0-9]+", line))
        elif match := _PICK.fullmatch(line.strip()):
            picked.append(int(match[1]))
        else:
            return None
    return picked


ItemKind = Literal["yes_no", "label", "line", "rating", "pick"]
"""The question about every item; `pick` chooses among them."""

MAX_ITEM_TOKENS = 64
"""Maximum tokens of a free line about one item."""
RATINGS = (0, 10)
"""The smallest and the largest rating, unless a step names others."""
_CHARACTERS_A_TOKEN = 4

NOT_STATED = "not stated"
"""The third verdict on a condition: the item does not decide it."""

_YES_NO = ("yes", "no", NOT_STATED)
_EDGES = " \t*_`\"'“”‘’«»„.,;:!()[]{}"
"""Meaningless marks around a value."""
_UNDECIDED = frozenset(
    {"undecided", "undecidable", "unclear", "unsure", "uncertain", "not sure", "n/a", "n.a", "null",
     "cannot tell", "can't tell", "cannot say", "cannot be determined", "not applicable",
     "both", "either", "all of the above", "none of the above", "same", "as above", "see above", "ditto", "idem", "tbd"}
)  # fmt: skip
_NO_VALUE = lazy_pattern(
    r"(?:i'm|i am|we are|i) (?:so |very |really |truly )?(?:sorry|afraid|apologi[sz]e|unable|not able|not sure|unsure)\b.*"
    r"|sorry\b.*|as an ai\b.*|(?:i|we) (?:do not|don't) (?:know|have)\b.*"
    r"|(?:i|we) (?:cannot|can't|can not|could not|couldn't|won't) "
    r"(?:help|assist|comply|provide|answer|determine|tell|say|do that|process|fulfil+|see|access)\b.*"
    r"|(?:http )?error\b.{0,20}(?:filter|timeout|timed out|upstream|rate limit|[45][0-9]{2}).*"
    r"|[45][0-9]{2} (?:bad gateway|too many requests|service unavailable|internal server error|gateway timeout)"
    r"|(?:same|identical) (?:as|to) .*|see (?:item |row )?[0-9]+|.*\bno,? wait\b.*|not(?: an?| the)? [^\W\d]+|(?:item|entry|row) *#? *[0-9]+|.*(?:\.\.\.|…)",
    re.S,
)
"""Refusals, errors, references to other lines, denials and cut-off texts in place of a value."""
_NOT_STATED = lazy_pattern(
    r"(?:it is |is )?(?:not (?:stated|mentioned|specified|given|reported|documented|recorded|provided|known)|unspecified|unstated)"
    r"(?: (?:in|by) the \w+)?|no (?:information|mention)(?: of \w+| given| available)?"
    r"|(?:the |this )?(?:item|text|entry|row|record) (?:does not|doesn't) (?:say|state|mention|specify)(?: \w++){0,8}"
)
_PLACEHOLDER = lazy_pattern(r"<[^<>]*>|\[[^][]*\]|\{[^{}]*\}")
_TAG = lazy_pattern(r"</?(?:think|thinking|thought|reasoning|result|value|item|text|input)\b", re.I)
_SPECIAL = lazy_pattern(r"<\|\w{1,30}\|>|</?s>|<end_of_turn>|\[/?(?:EOS|INST)\]")
"""Tokens of chat formats."""
_INVISIBLE = lazy_pattern("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_RATING = lazy_pattern(
    r"([-−]?[0-9]{1,6}(?:\.[0-9]{1,3})?)(?:\s*(?:/|out of)\s*([0-9]{1,6}))?", re.I
)

_SEPARATOR = lazy_pattern(r"[:：|]")
_MARKS = lazy_pattern(r"[\W_]+")
_MAX_SEPARATORS = 12
_KEY_LENGTH = 200
"""Characters of an item that its first words are compared with."""
_MAX_WORDS = 8
"""Maximum first words of an item in a reply line."""
_MAX_WORD = 16
"""Maximum average characters of a first word: some scripts have no blanks."""
_LEAST_ECHOED = 6
"""Minimum words of an item for which a repetition of the item is not a value."""

_OUTSIDE = "the numbers were not those of the items"
_ENDED = "the last numbers were missing, so the others may be of the wrong items"
_SHIFTED = "the words of an item stood beside the number of another"
_NO_WORDS = "the first words of the item were missing beside its number"
_CORRECTED = "a remark took values back"
_CORRECTION = lazy_pattern(
    r"^(?![^\w\n]*\d)[^\n]{0,40}\b(?:actually|correction|wait|on second thought|scratch that)\b"
    r"|^(?![^\w\n]*+(?:(?:item|entry|row)[ \t#]*+)?\d+[*_` \t]*+[:：=|\])>.–—-])"
    r"(?=[^\n]*\b(?:items?|entry|row|line|number)[ \t#]{0,3}\d)"
    r"[^\n]*\b(?:should|could|might|may|must|mean[st]?|wrong|incorrect|mistake\w*|swap\w*|changed?|unsure|uncertain)\b",
    re.I | re.M,
)
"""A line beside the items that may take their values back."""
_NOT_CHOSEN = "it did not name so many different items"
_NOT_ALLOWED = "some values were missing, or not of the form"


@dataclass(frozen=True, slots=True)
class ItemReplies:
    """The values of the items in a reply."""

    values: tuple[str | None, ...]
    why: str = ""


def read_items(
    text: str,
    n: int,
    kind: ItemKind,
    labels: Sequence[str] = (),
    n_picks: int = 0,
    max_length: int | None = None,
    *,
    items: Sequence[str] = (),
    is_echoed: bool = False,
    is_cut: bool = False,
) -> ItemReplies:
    r"""Parse the reply about `n` items.

    Example:
        >>> read_items("2: Spam\n**1**: no spam\n3: ham", 3, "label", ["spam", "ham"])
        ItemReplies(values=(None, 'spam', 'ham'), why='some values were missing, or not of the form')
        >>> read_items("0: spam\n1: ham", 2, "label", ["spam", "ham"]).values
        (None, None)
        >>> read_items("1 | Buy now: spam\n2 | Hi: ham", 2, "label", ["spam", "ham"], items=("Buy now!", "Hi, Al"), is_echoed=True).values
        ('spam', 'ham')
        >>> read_items("4\n2", 4, "pick", n_picks=2).values
        ('', '2', '', '1')
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if kind == "pick":
        return _read_picks(text, n, n_picks)
    allowed = tuple(_allowed(n, kind, labels)) if kind in ("yes_no", "rating") else tuple(labels)
    if _CORRECTION.search(text):
        return ItemReplies((None,) * n, _CORRECTED)
    keys = [_key(item[: 2 * _KEY_LENGTH])[:_KEY_LENGTH] for item in items]
    given: dict[int, list[str | None]] = {}
    wordless: set[int] = set()  # without the first words of their item
    shared: set[int] = set()  # with words that other items begin with, too
    is_shifted = False
    last = 0
    in_order = True
    cut: int | None = None
    listed = list(claims(text, is_free=kind == "line"))
    if n == 1 and not listed and kind != "line":
        listed = [Claim(1, _whole(text), is_last=True)]
    for claim in listed:
        i, value = claim.id, claim.value
        if not 1 <= i <= n:
            return ItemReplies((None,) * n, _OUTSIDE)
        if keys and value is not None and (is_echoed or claim.is_barred):
            words, value = _behind_words(value, keys[i - 1])
            n_fitting = sum(_begins(key, words) for key in keys)
            if value is None:
                wordless.add(i)
                is_shifted |= bool(words) and n_fitting > 0
            elif n_fitting > 1:
                asked = first_words(items[i - 1], n_first_words(items))
                is_whole = len(words) >= len(_key(asked))
                (shared if is_whole else wordless).add(i)
        in_order, last = in_order and i > last, i
        cut = i if claim.is_last else None
        given.setdefault(i, []).append(value)
    n_last = max(given, default=0)
    is_repeated = any(len(values) > 1 for values in given.values())
    is_short = n_last < n or (is_repeated and len(given) < n)
    if given and is_short and not (is_cut or (is_echoed and keys)):
        return ItemReplies((None,) * n, _ENDED)
    if len(given) == n or (in_order and last == n):
        cut = None  # the reply is complete
    values: list[str | None] = []
    for i in range(1, n + 1):
        replied = given.get(i, [])
        value = _value(replied, kind, allowed)
        is_unsure = i in wordless or (is_shifted and i in shared)
        if value is not None and not is_unsure:
            is_full = kind == "line" and any(_is_full(one, max_length) for one in replied)
            may_go_on = i == cut and _may_go_on(value, kind, allowed)
            is_unsure = is_full or may_go_on or (bool(items) and _is_whole(value, items[i - 1]))
        values.append(None if is_unsure else value)
    why = _NOT_ALLOWED if None in values else ""
    return ItemReplies(tuple(values), _SHIFTED if is_shifted else _NO_WORDS if wordless else why)


# ---------------------------------------------------------------------------------------------
# First words


def first_words(item: str, n: int) -> str:
    r"""The first words of an item, as a line of a reply gives them.

    Example:
        >>> first_words("Buy now,\nor never", 3)
        'Buy now, or'
    """
    return " ".join(item[: 40 * n].split()[:n])[: _MAX_WORD * n]


def n_first_words(items: Sequence[str]) -> int:
    """The number of first words that distinguish the most items from their successors."""
    best, most = 2, 0
    for n in range(2, _MAX_WORDS + 1):
        words = [_key(first_words(item, n)) for item in items]
        n_different = sum(word != after for word, after in pairwise(words))
        if n_different > most:
            best, most = n, n_different
        if most >= len(items) - 1:
            break
    return best


def _key(text: str) -> str:
    """The letters and digits of a text."""
    return _MARKS.sub("", unicodedata.normalize("NFKC", text).casefold())


def _behind_words(text: str, key: str) -> tuple[str, str | None]:
    """The first words of a line and the value after them; None if the words are not the item's."""
    separators = [*islice(_SEPARATOR.finditer(text), _MAX_SEPARATORS)]
    words = ""
    for separator in reversed(separators):
        words = _key(text[: separator.start()])
        if _begins(key, words):
            return words, text[separator.end() :].strip()
    return words, None


def _begins(key: str, words: str) -> bool:
    """Whether an item begins with words; a number before its text may be left out."""
    if not words:
        return not key
    return key.startswith(words) or key.lstrip("0123456789").startswith(words)


def _is_whole(value: str, item: str) -> bool:
    """Whether a value repeats a long item."""
    return len(value.split()) >= _LEAST_ECHOED and _key(value) == _key(item[: 2 * len(value)])


def label_line(label: str) -> str:
    """A label as prompts and constraints show it: on one line."""
    return " ".join(one_line(label).split())


def _value(given: Sequence[str | None], kind: ItemKind, allowed: Sequence[str]) -> str | None:
    """The value of an item, if all its values in the reply are the same one."""
    values = {None if one is None else _read(one, kind, allowed) for one in given}
    return values.pop() if len(values) == 1 else None


def _read(text: str, kind: ItemKind, allowed: Sequence[str]) -> str | None:
    """A value in the form of its kind, or None."""
    if kind == "label" and (label := _same_label(" ".join(one_line(text).split()), tuple(allowed))):
        return label
    text = " ".join(one_line(_INVISIBLE.sub("", _SPECIAL.sub(" ", text))).split())
    text = text if kind == "line" else plain(text)
    if kind == "rating":
        text = _without_remark(text, ())
    if kind == "label" and _same_label(text, tuple(allowed)) is None:
        text = _without_remark(text, allowed)
    match kind:
        case "rating":
            rating = _RATING.fullmatch(_bare(text))
            if rating is None or rating[2] not in (None, allowed[-1]):
                return None
            number = float(rating[1].replace("−", "-"))
            return f"{number:.10g}" if float(allowed[0]) <= number <= float(allowed[-1]) else None
        case "line":
            if says_nothing(text) or _NOT_STATED.fullmatch(_bare(text)):
                return NOTHING
            return text.strip("*` ") if _is_value(text) else None
        case "yes_no":
            if says_nothing(text) or _NOT_STATED.fullmatch(_bare(text)):
                return NOT_STATED
            reply = read_reply(text, ValueType.BOOL)
            return ("yes" if reply.value else "no") if reply.state == "found" else None
        case _:
            return _same_label(text, tuple(allowed))


_LEAD = lazy_pattern(
    r"(?:(?:the|its|final)\s){0,2}(?:label|category|class|classification|answer|result|value|rating|score)\s*(?:is|:|=)\s*"
    r"|<(?:label|answer|value|result|category)>(?=[^<>]*</\w+>\Z)|\\boxed\{(?=[^{}]*\}\Z)",
    re.I,
)
_REMARK = lazy_pattern(r"\s+[-–—]\s+|\s*[(;]|\.\s+|,\s+(?=(?:because|since|as)\b)|</\w+>\Z|\}\Z")


def _without_remark(text: str, allowed: Sequence[str]) -> str:
    """A value without a label before it and an explanation after it that leaves it as it is."""
    lead = _LEAD.match(text)
    text = text[lead.end() :] if lead else text
    end = _REMARK.search(text)
    if end is None:
        return text
    value, remark = text[: end.start()], text[end.end() :]
    key = f" {' '.join(_WORD.findall(value.casefold()))} "
    others = [f" {' '.join(_WORD.findall(label.casefold()))} " for label in allowed]
    in_remark = f" {' '.join(_WORD.findall(remark.casefold()))} "
    is_sure = not remark or (len(remark.split()) > 1 and not may_take_back(remark))
    is_other = any(other != key and (other in in_remark or key in other) for other in others)
    has_digits = not allowed and re.search(r"\d", remark)
    return text if is_other or has_digits or not is_sure else value


_WORD = lazy_pattern(r"\w+")


def _is_value(text: str) -> bool:
    """Whether a free line is a value, rather than a refusal, a placeholder or a leftover."""
    bare = _bare(text).replace("’", "'")
    return not (
        not bare
        or bare in _UNDECIDED
        or _NO_VALUE.fullmatch(text.replace("’", "'").strip(_EDGES.replace(".", "")).casefold())
        or _PLACEHOLDER.fullmatch(text)
        or _TAG.search(text)
        or "\ufffd" in text
        or any(_is_mixed(word) for word in text.split())
    )


def _is_mixed(word: str) -> bool:
    """Whether a word has Latin and Cyrillic letters, which look alike."""
    if word.isascii():
        return False
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in word if c.isalpha()}
    return {"LATIN", "CYRILLIC"} <= scripts


def _bare(text: str) -> str:
    return text.strip(_EDGES).casefold()


@lru_cache(maxsize=1_024)
def _same_label(text: str, labels: tuple[str, ...]) -> str | None:
    """The label that equals a text; None for no label or several."""
    shown = {label: label_line(label) for label in dict.fromkeys(labels)}
    ways = (
        [label for label, line in shown.items() if line == text],
        [label for label, line in shown.items() if line.casefold() == text.casefold()],
        [label for label, line in shown.items() if line.casefold() == _bare(text)],
        [label for label, line in shown.items() if _bare(line).strip("?") == _bare(text)],
    )
    found = next((labels for labels in ways if labels), []) if _bare(text) else ways[0]
    return found[0] if len(found) == 1 else None


def _is_full(text: str | None, max_length: int | None) -> bool:
    """Whether a line has the maximum length; a trailing blank may be lost."""
    return text is not None and max_length is not None and len(text) - max_length in (-1, 0)


def _may_go_on(value: str, kind: ItemKind, allowed: Sequence[str]) -> bool:
    """Whether a value may be a truncated longer value."""
    start = value.casefold()
    longer = (other.casefold() for other in allowed if other != value)
    return kind == "line" or any(other.startswith(start) for other in longer)


def _read_picks(text: str, n: int, n_picks: int) -> ItemReplies:
    """The chosen items; all or none, because only their order ranks them."""
    picked = picks(text)
    is_valid = picked is not None and all(1 <= id <= n for id in picked)
    if picked is None or not is_valid or not len(picked) == len(set(picked)) == n_picks:
        return ItemReplies((None,) * n, _NOT_CHOSEN)
    places = {id: str(place) for place, id in enumerate(picked, start=1)}
    return ItemReplies(tuple(places.get(i, "") for i in range(1, n + 1)))


# ---------------------------------------------------------------------------------------------
# Constraints for decoders


def line_length(max_item_tokens: int, max_text: int | None = None) -> int:
    """Maximum characters of a free line under a constraint."""
    length = max_item_tokens * _CHARACTERS_A_TOKEN
    return length if max_text is None else min(length, max_text)


@lru_cache(maxsize=32)
def items_constraint(
    n: int,
    kind: ItemKind,
    labels: tuple[str, ...] = (),
    *,
    n_picks: int = 0,
    max_item_tokens: int = MAX_ITEM_TOKENS,
    max_text: int | None = None,
) -> Constraint:
    """The language of the replies to an `ItemsTask`, as `read_items` accepts them."""
    allowed = _allowed(n, kind, labels)
    if kind == "line":
        text = terminal("TEXT").pattern.removesuffix("*")
        value = f"/{text}{{0,{line_length(max_item_tokens, max_text) - 1}}}/"
    else:
        escaped = (one.replace("\\", r"\\").replace('"', r"\"") for one in allowed)
        value = " | ".join(f'"{one}"' for one in escaped)
    if kind == "pick":
        start = ' "\\n" '.join(["VALUE"] * n_picks)
    else:
        start = '"' + ' "\\n'.join(f'{i}: " VALUE' for i in range(1, n + 1))
    form = _json_form(n, kind, allowed, n_picks, max_text)
    return Constraint(f"items-{kind}", f"start: {start}\nVALUE: {value}\n", form)


def form_flaw(
    text: str, n: int, kind: ItemKind, labels: Sequence[str] = (), n_picks: int = 0
) -> str | None:
    """How a reply violates its constraint; None if it does not."""
    ids = [""] * n_picks if kind == "pick" else [f"{i}: " for i in range(1, n + 1)]
    lines = text.strip("\n").split("\n")
    if len(lines) != len(ids):
        return f"it has {len(lines)} lines, not {len(ids)}"
    allowed = _allowed(n, kind, labels)
    for id, line in zip(ids, lines, strict=True):
        # Blanks at its end are lost where a line is empty.
        value = f"{line} ".removeprefix(id).strip() if f"{line} ".startswith(id) else None
        if value is None or (kind != "line" and value not in allowed):
            return f"{line[:60]!r} is not of the form"
    return None


def _allowed(n: int, kind: ItemKind, labels: Sequence[str]) -> list[str]:
    """The values that are allowed, on one line each; any text for `line`."""
    return {
        "yes_no": list(_YES_NO),
        "label": list(dict.fromkeys(map(label_line, labels))),
        "rating": list(labels) or [str(i) for i in range(RATINGS[0], RATINGS[1] + 1)],
        "pick": [str(i) for i in range(1, n + 1)],
        "line": [],
    }[kind]


def _json_form(
    n: int, kind: ItemKind, allowed: Sequence[str], n_picks: int, max_text: int | None
) -> JsonForm:
    """The same language in JSON: an object of number and value pairs, or an array of the chosen numbers."""
    ids = [str(i) for i in range(1, n + 1)]
    one: dict[str, Any] = {"type": "string"}
    if kind in ("rating", "pick"):
        one = {"type": "integer", "enum": [int(value) for value in allowed]}
    elif kind != "line":
        one["enum"] = list(allowed)
    elif max_text is not None:
        one["maxLength"] = max_text
    if kind == "pick":
        values = {"type": "array", "items": one, "minItems": n_picks, "maxItems": n_picks}
        schema = closed_object({"items": values})
        hint = '{"items": [...]}, the numbers of the items chosen, best first.'
    else:
        # Values are references: repeating the labels for each of a hundred items makes a long schema.
        schema = closed_object({i: {"$ref": "#/$defs/value"} for i in ids}) | {
            "$defs": {"value": one}
        }
        hint = f'an object with the value of every item by its number, "1" to "{n}".'

    def text_of(data: Any) -> str:
        require(data, schema)
        if kind == "pick":
            return "\n".join(map(str, data["items"]))
        return "\n".join(f"{i}: {one_line(str(data[i]))}" for i in ids)

    return JsonForm(schema, text_of, hint)
