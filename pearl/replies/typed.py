r"""A model's reply to a step → its value and its quotes. The only parser of such replies.

A reply has up to three parts: the value, in the type that is wanted; below it the supporting
passages, on lines that begin with "> "; or, instead of a value, the line `Nothing found.` An
ambiguous reply is `undecided`, never a guessed number or entry.

    List     one entry a line, each with a bullet or a number before it
    Number   one number in digits, with its unit if it has one
    Bool     yes or no
    Text     anything
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pearl.documents.evidence import quoted_line
from pearl.documents.numbers import numbers
from pearl.dsl.cursor import terminal
from pearl.dsl.decoding.constraint import Constraint, JsonForm
from pearl.dsl.decoding.schema import closed_object, require
from pearl.dsl.printer import one_line
from pearl.dsl.signatures import NOTHING, ValueType

__all__ = ["Reply", "State", "follows_form", "read_reply", "reply_constraint", "says_nothing"]

Value = str | bool | list[str]

State = Literal["found", "nothing", "undecided", "refused"]
"""Whether a reply has a value, says that there is none, is ambiguous, or refuses one."""

MAX_AMOUNT = 200
"""Maximum characters of a number with its unit; bounds the time of the pattern."""
MAX_PLAIN_WORDS = 12
"""A longer line without a bullet is a sentence, not an entry."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a reply says.

    Attributes:
        state: Whether it has a value.
        value: In the wanted type. If nothing was found, an empty list, or for text the reply's own
            words; if undecided, "undecided" and the reason.
        quotes: The supporting passages, a line each.
        why: The reason for `undecided`, else "".
    """

    state: State
    value: Value
    quotes: tuple[str, ...] = ()
    why: str = ""


class _UnclearError(Exception):
    """The reply is ambiguous; the message says why."""


def read_reply(text: str, wanted: ValueType, *, source: str = "", is_second: bool = False) -> Reply:
    r"""Parse the reply to a step.

    Args:
        text: The reply.
        wanted: The type in which the step is read.
        source: The text that the step was shown. A single line without a bullet is an entry if it
            occurs there, else it may be a remark.
        is_second: Whether this reply follows the request that says every bullet counts as an entry.

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
    said = "\n".join(line for line, quote in lines if quote is None).strip()
    if wanted not in _READERS:
        from pearl.replies.not_stated import says_not_stated  # late: 20 ms of patterns

        if says_nothing(said) or says_not_stated(said):
            return Reply("nothing", said, quotes)
        return Reply("found", said or "\n\n".join(quotes) or text.strip(), quotes)
    if says_nothing(said) or (said and said.strip(_EDGES).casefold() in _NONE):
        return Reply("nothing", [], quotes)
    try:
        if not said:
            raise _UnclearError("there is nothing in it but quotes")
        shown = "\n".join((source, *quotes))
        return Reply("found", _READERS[wanted](said, shown, is_second), quotes)
    except _UnclearError as unclear:
        why = f"the reply cannot be read as {_NAMES[wanted]}: {unclear}"
        return Reply("undecided", f"undecided: {why}", quotes, why)


_FENCE = re.compile(r"\s*```")
_NOTHING = re.compile(r"[\s*_`(\[]*nothing(?: was| is)? found(?:[\s*_`)\].]*|[.:;,–—].*)", re.I)
"""The requested line, with what models add on the same line."""
_BUT = re.compile(
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
"""Ways to say "nothing" that are unambiguous where a list, a number or yes or no is wanted."""

_BULLET = re.compile(
    r"(?P<indent>[ \t]*)(?:[-*+•–—▪●◦○‣∙■□]|(?P<ordinal>\(?\d{1,4}[.)]|\(?[a-zA-Z]\)))"
    r"(?:[ \t]+(?P<entry>.*)|\Z)"
)
_SENTENCE = re.compile(r"[.!?。！？…:]['\"”’)\]*_]*\Z")
_REMARK = re.compile(
    r"\W*(?:sure|here|there|the (?:text|document|passage|story|author|following)|this|these|those|it|"
    r"i|we|you|based|according|in (?:the|this)|from the|unfortunately|sorry|note|however|only|yes|"
    r"so|thus|therefore|and|or|plus|also|others?|etc|total|sum|altogether|overall)\b",
    re.I,
)
"""Beginnings of sentences about a list; an entry that begins like this needs a bullet."""
_MARKUP = re.compile(
    r"[-–—*•_=~#|<>{}\[\]\\]|.*(?:\||[\[{}\]],?|<[/\w][^<>]*>)\s*\Z|.*\b(?:found|mentioned|listed|identified)\W*\Z"
)
"""Tables, JSON, HTML, headings and marks that may be bullets or signs: not a plain entry."""
_NO_ENTRY = re.compile(
    r"(?-i:and|or|plus|as well as|etc)\b.*|[\W_]*"
    r"|\W*(?:\d+|several|some|many|various|two|three)\s+(?:more|others?)\W*"
    r"|\W*(?:(?:in|grand)\s+)?(?:sub)?(?:total|sum|altogether|overall|insgesamt|gesamt|summe|somme|suma|totale|итого)\b"
    r"\W*(?:\Z|[:=(–-]|[$€£¥]?\d|of\b|number\b|amount\b|count\b|sum\b).*"
    r"|.+\b(?:(?:in|grand)\s+)?(?:sub)?total\W*"
    r"|.*\b(?:etc|and (?:so on|so forth|others|(?:\w+ )?more))\W*"
    r"|(?:here (?:are|is)|that(?:['’]s| is) (?:all|it)|these are|those are|i (?:found|hope|could)|let me know|the list)\b.*"
    r"|.*:[\s*_]*",
    re.I | re.S,
)
"""Lines that may not be entries: totals, "and so on", headings, remarks."""
_SEVERAL = re.compile(r"[,;/&、，；،]|\b(?:and|or|und|oder|et|ou|y|e|o)\b|<br|\s[•|]\s", re.I)
"""Separators of several entries on one line."""
_WRITTEN_AS_ONE = re.compile(r"<br|\s[•●▪]\s|\s\(?\d{1,2}\)\s")

_NO = re.compile(
    r"\b(?:no|not|none|nothing|neither|nor|never|without|cannot|unknown|unclear|unspecified|\w+n['’]t|"
    r"kein\w*|nicht\w*|weder|aucune?|rien|pas|ni|ning[uú]n\w*|nada|nessun\w*|niente|nenhum\w*|geen|niets|"
    r"ingen|inget|brak|nie|нет|не|ни|sin|sem|senza|sans|ohne|zonder|utan|nihil|nil|zilch|yok|değil|"
    r"tidak|tiada|không|ei|eivät|δεν|κανέν\w*|لا|لم|ليس|नहीं|אין|לא)(?!\w)"
    r"|没有|沒有|無|无|未|なし|ない|ません|없|ไม่",
    re.I,
)
_ABSENT = re.compile(
    r"\b(?:mention\w*|found|stated|listed|specified|described|identified|indicated|noted|information|"
    r"evidence|text|document|passage|erwähnt|genannt|gefunden|mentionn\w*|mencion\w*|trouv\w*|"
    r"encontr\w*|menzion\w*|vermeld)\b|提|言及|記載|언급",
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
    words = " ".join(text.split())
    return repr(words if len(words) <= 80 else f"{words[:79]}…")


def _entries(said: str, source: str, is_second: bool) -> Value:
    """The entries of a list.

    Raises:
        _UnclearError: A line may not be an entry, or may be several.
    """
    rows = [row for row in said.split("\n") if row.strip()]
    if any(_BULLET.fullmatch(row) for row in rows):
        entries = _bulleted(rows)
        _refuse_denials(entries, is_second)
        _refuse_others(entries)
        if len(entries) == 1 and not is_second:
            _refuse_several(entries[0])
        return entries
    if len({len(row) - len(row.lstrip()) for row in rows}) > 1:
        raise _UnclearError("some lines are indented, and may be entries within entries")
    if len(rows) > 1 and rows[0].rstrip(" *_").endswith(":"):
        rows = rows[1:]
    entries = [row.strip() for row in (rows[0].split(";") if len(rows) == 1 else rows)]
    entries = [entry for entry in entries if entry]
    _refuse_others(entries)
    for entry in entries:
        if _is_remark(entry) or _MARKUP.match(entry):
            raise _UnclearError(f"{_short(entry)} may be a remark")
    if len(entries) == 1 and _key(entries[0]) not in _key(source):
        raise _UnclearError(f"{_short(entries[0])} may be a remark")
    if len(entries) == 1:
        _refuse_several(entries[0])
    return entries


def _bulleted(rows: Sequence[str]) -> list[str]:
    entries: list[str] = []
    indent = -1
    kinds = set()
    for row in rows:
        bullet = _BULLET.fullmatch(row)
        width = len(
            (bullet["indent"] if bullet else row[: len(row) - len(row.lstrip())]).expandtabs()
        )
        if bullet is None and entries and width > indent:
            entries[-1] = f"{entries[-1]} {row.strip()}"  # continuation line
        elif bullet is None:
            if entries or not row.rstrip(" *_").endswith(":"):
                raise _UnclearError(f"{_short(row)} may be a remark or an entry")
        elif indent >= 0 and width > indent:
            raise _UnclearError(f"{_short(row)} is an entry within an entry")
        else:
            indent = width  # numbers may be aligned at their right
            kinds.add(bullet["ordinal"] is None)
            if len(kinds) > 1:
                raise _UnclearError(f"{_short(row)} may be an entry within an entry")
            entries.append((bullet["entry"] or "").strip())
    return [entry for entry in entries if entry]


def _refuse_denials(entries: Sequence[str], is_second: bool) -> None:
    """Reject entries that say there is none.

    Raises:
        _UnclearError: There may be one.
    """
    denials = [entry for entry in entries if _NO.search(entry)]
    for entry in denials:
        bare = entry.strip(_EDGES).casefold()
        if _NOTHING.fullmatch(entry) or bare in _NONE or _ABSENT.search(entry):
            raise _UnclearError(f"{_short(entry)} may say that there is none")
    # Several denials after a clarified request are intended: no fever, no cough.
    if denials and len(denials) == len(entries) and (len(entries) == 1 or not is_second):
        raise _UnclearError(f"{_short(denials[0])} may say that there is none")


def _refuse_others(entries: Sequence[str]) -> None:
    """Reject totals, headings and placeholders for unnamed entries.

    Raises:
        _UnclearError: There may be one.
    """
    for entry in entries:
        if _NO_ENTRY.fullmatch(entry) and not (
            len(entries) == 1 and entry.strip(_EDGES)[:1].isdigit()
        ):
            raise _UnclearError(f"{_short(entry)} may be no entry")
        if _WRITTEN_AS_ONE.search(entry):
            raise _UnclearError(f"{_short(entry)} may be several entries")


def _refuse_several(entry: str) -> None:
    """Reject a single line that may list several entries.

    Raises:
        _UnclearError: It may be more than one.
    """
    if _SEVERAL.search(entry) and not _SENTENCE.search(entry):
        raise _UnclearError(f"{_short(entry)} may be several entries")


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


_AMOUNT = re.compile(
    r"(?:(?:about|around|approximately|approx\.|circa|ca\.|roughly|[~≈])\s*)?"
    r"(?P<amount>[-+−]?(?:[$€£¥]\s?)?[\d.,]*\d[\d.,]*)\s?(?P<unit>[^\W\d_.%‰°][^\s\d]*|[%‰°$€£¥][^\s\d]*)?"
    r"(?:\s[^\s\d]+){0,3}",
    re.I,
)


_OR_ELSE = re.compile(
    r"[?]|\b(?:or|and|to|than|more|less|fewer|most|least|maximum|minimum|below|above|under|over|maybe|"
    r"perhaps|possibly|guess|think|estimated?|each|plus|minus|und|oder|bis|mehr|weniger|et|ou|à|"
    r"moins|más|menos|più|meno|или|и|до)\b",
    re.I,
)
"""Suffixes that change or blur the amount before them."""


def _amount(said: str, source: str, is_second: bool) -> Value:
    """Parse a number with its unit.

    Raises:
        _UnclearError: It is not exactly one number.
    """
    line = said.strip(" \t*_`.")
    match = None if "\n" in line or len(line) > MAX_AMOUNT else _AMOUNT.fullmatch(line)
    if match is None or _NO.search(line) or _OR_ELSE.search(line, match.end("amount")):
        raise _UnclearError(_short(said))
    try:
        numbers([line])
    except ValueError as error:
        raise _UnclearError(str(error)) from None
    return line


def _truth(said: str, source: str, is_second: bool) -> Value:
    """Yes or no.

    Raises:
        _UnclearError: It is neither.
    """
    word = said.strip(_EDGES).casefold()
    if word not in ("yes", "no", "true", "false"):
        raise _UnclearError(_short(said))
    return word in ("yes", "true")


_READERS = {ValueType.LIST: _entries, ValueType.NUMBER: _amount, ValueType.BOOL: _truth}
_NAMES = {ValueType.LIST: "a list", ValueType.NUMBER: "a number", ValueType.BOOL: "yes or no"}


# ---------------------------------------------------------------------------------------------
# Constraints for decoders

_VALUES: Mapping[ValueType, str] = {
    ValueType.LIST: 'value: "- " TEXT (NEXT TEXT)*\nNEXT: "\\n- "',
    ValueType.NUMBER: "value: AMOUNT\nAMOUNT: /[-+]?[0-9][0-9.,]{0,20}(?: [^0-9\\n>]{1,40})?/",
    ValueType.BOOL: 'value: "yes" | "no"',
}

_MAX_ENTRIES = 1_000
_MAX_PASSAGES = 100


@cache
def reply_constraint(wanted: ValueType, max_text: int | None = None) -> Constraint | None:
    r"""The constraint on a reply; None if any text is valid.

    Args:
        wanted: The type in which the step is read.
        max_text: Maximum characters of a line.

    Example:
        >>> print(reply_constraint(ValueType.BOOL).lark.partition("\nTEXT")[0])
        start: NOTHING | value (QUOTE TEXT)*
        NOTHING: "Nothing found."
        QUOTE: /\n\n?> /
        value: "yes" | "no"
    """
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
