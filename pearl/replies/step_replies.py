"""A model's reply to a step → its value and its quotes. The only parser of such replies.

A step asks for one JSON object, whose schema follows from the type of the result:

    text    {"answer": "because of the storm", "quote": "The storm ..."}
    list    {"entries": ["a dog", "a cat"], "quotes": ["The dog saw a cat."]}
    number  {"value": "12 mg", "quote": "12 mg at night"}
    date    {"value": "2 May 2021", "quote": "She left on 2 May 2021."}
    bool    {"quote": ["He turned back.", "She did not."], "verdict": "yes"}

`null`, no entry and "not stated" say that the text does not state it. The plain form is read as well,
because people script replies and some servers do not support schemas: the value, and below it the quotes,
each on a line that begins with "> ". After any other reply, the request is repeated.

No pattern looks for refusals, offers and errors in a text: they do not have the form of another type, and as texts
they have no quote, so that they are never taken as certain (`pearl.interpreter.model_calls`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from textwrap import dedent
from typing import Any, Literal, NamedTuple

from pearl.documents.dates import readings, why_unstated
from pearl.documents.evidence import quoted_line
from pearl.documents.lexicon import FOREIGN_SCALES, SCALE_WORDS, unit_named
from pearl.documents.numbers import (
    IN_BRACKETS,
    UnclearNumberError,
    find_figures,
    numbers_of,
    plain,
    quantity,
)
from pearl.dsl.decoding import constraint
from pearl.dsl.nodes import one_line
from pearl.dsl.signatures import NOTHING, ValueType
from pearl.errors.patterns import lazy_pattern
from pearl.replies.raw import EDGES, OBJECT, json_objects, says_not_stated, whole_part

Value = str | bool | list[str]

State = Literal["found", "nothing", "undecided", "refused", "not_needed"]
"""Whether a result has a value, is "nothing found", is ambiguous, is a refusal, or was not needed."""

MAX_AMOUNT = 200  # Maximum characters of a number with its unit; limits the time for matching
MAX_QUOTED, MAX_QUOTED_WORDS = 79, 7
"""Maximum characters and words of a reply quoted in a reason: a whole sentence would look like an echo."""
MAX_ENTRIES, MAX_QUOTES = 1_000, 8
"""Maximum entries and quotes that a decoder's schema allows."""
MAX_QUOTE = 600
"""Maximum characters of a quote if the schema limits texts: several sentences, because a quote that is cut off cannot be found."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The value and the quotes of a reply."""

    state: State
    value: Value
    quotes: tuple[str, ...] = ()
    why: str = ""
    plain: str = field(default="", compare=False)
    """The reply in its plain form, as prompts and readers of quotes expect it; other text is unchanged."""
    is_formed: bool = field(default=False, compare=False)
    """Whether the reply is the JSON object of its type."""


class _UnclearError(Exception):
    """The reply is ambiguous; the message says why."""


class _Form(NamedTuple):
    """The JSON object of a type: the key of its value, and its description in prompts."""

    key: str
    name: str
    text: str


_QUOTE = (
    '"quote": the sentence of the text that tells it, copied word for word; a list of sentences if one is not '
    "enough."
)
# Measured on a model of 1.5 billion parameters (experiments/reader): asked for a list of quotes,
# it rewords them; asked for pairs, it stops after the first entry; and its verdict is better
# after the quote than before it.
_FORMS = {
    ValueType.TEXT: _Form(
        "answer", "an answer",
        '{"answer": "...", "quote": "..."}\n"answer": the result, in a few words or sentences; null if '
        f"the text does not tell.\n{_QUOTE}",
    ),
    ValueType.LIST: _Form(
        "entries", "a list",
        '{"entries": ["...", "..."], "quotes": ["..."]}\n"entries": every entry once, and nothing else; [] if the '
        'text has none.\n"quotes": the sentences that tell them, copied word for word.',
    ),
    ValueType.NUMBER: _Form(
        "value", "a number",
        '{"value": "...", "quote": "..."}\n"value": one number in digits as the text has it, with its minus, '
        f'its unit and its scale, such as "million"; null if the text does not tell.\n{_QUOTE}',
    ),
    ValueType.DATE: _Form(
        "value", "a date",
        '{"value": "...", "quote": "..."}\n"value": one date as the text has it, with its year, never one that you '
        f"work out; null if the text does not tell.\n{_QUOTE}",
    ),
    ValueType.BOOL: _Form(
        "verdict", "yes or no",
        f'{{"quote": "...", "verdict": "..."}}\n{_QUOTE}\n"verdict": "yes", "no", or "not stated" if the text does '
        "not tell.",
    ),
}  # fmt: skip
_NOT_STATED = "not stated"
_FENCE = "```"


def _form(wanted: ValueType) -> _Form:
    return _FORMS.get(wanted, _FORMS[ValueType.TEXT])


def form_text(wanted: ValueType) -> str:
    """The description of a reply's form in a prompt."""
    return f"Reply with one JSON object and nothing else:\n{_form(wanted).text}"


def read_reply(
    text: str,  # In its JSON form or in plain text
    wanted: ValueType,
    *,
    # The text shown to the model. A value in plain text must occur there word for word if it
    # could be a remark. None for replies that no model wrote
    source: str | None = None,
    given: str = "",  # The arguments of the step, whose words a number may repeat: "12 animals"
    is_of_numbers: bool = False,  # Whether every entry of a list must be a number
) -> Reply:
    """Parse the reply to a step."""
    stated: _Stated | None = None
    try:
        stated = _of_json(text, wanted)
        value, quotes = _of_text(text, wanted) if stated is None else stated[:2]
        if value is None:
            read = Reply("nothing", NOTHING if wanted not in _READERS else [], quotes)
        elif wanted not in _READERS:
            read = Reply("nothing" if says_not_stated(str(value)) else "found", value, quotes)
        else:
            shown = None if source is None else "\n".join((source, *quotes))
            # A date must stand in its quotes, not elsewhere in the text.
            if shown is not None and wanted is ValueType.DATE and quotes:
                shown = "\n".join(quotes)
            read = Reply("found", _READERS[wanted](value, shown, given, stated is None), quotes)
        if is_of_numbers and isinstance(read.value, list):
            numbers_of(read.value)
    except (_UnclearError, UnclearNumberError) as unclear:
        why = f"the reply cannot be read as {_form(wanted).name}: {unclear}"
        read = Reply("undecided", f"undecided: {why}", why=why)
    in_plain_form = text if stated is None else _in_plain_form(stated)
    return replace(read, plain=in_plain_form, is_formed=stated is not None)


# ---------------------------------------------------------------------------------------------
# The JSON form

_Stated = tuple[Any, tuple[str, ...], tuple[tuple[str, str], ...]]
"""The value of an object (None for *not stated*), its quotes, and its entries, each with its quote."""


def _of_json(text: str, wanted: ValueType) -> _Stated | None:
    """The contents of the JSON object of a reply; None for a reply without one."""
    if "{" not in text:
        return None
    key = _form(wanted).key
    try:
        objects = [{k.strip().casefold(): v for k, v in one.items()} for one in json_objects(text)]
    except (ValueError, RecursionError) as error:
        if _begins_as_json(text):
            raise _UnclearError(f"its JSON is broken: {error}") from None
        return None
    objects = [one for one in objects if key in one]
    if not objects:
        if _begins_as_json(text):
            raise _UnclearError(f"its JSON has no '{key}'")
        return None
    if len(objects) > 1:
        raise _UnclearError("it has more than one JSON object")
    (found,) = objects
    if more := found.keys() - {key, "quotes", "quote"}:  # {"value": "138.0", "unit": "million"}
        raise _UnclearError(f"its JSON has '{min(more)}' beside '{key}'")
    quotes = [_quote(each) for each in _as_list(found.get("quotes", found.get("quote")), "quotes")]
    if wanted is ValueType.LIST:
        pairs = tuple(map(_entry, _as_list(found[key], key)))
        entries = [entry for entry, _ in pairs] or None
        quotes = [*(quote for _, quote in pairs), *quotes]
        return entries, tuple(filter(None, dict.fromkeys(quotes))), pairs
    value = _plain_value(found[key], key)
    if wanted is ValueType.BOOL and value and value.strip(EDGES).casefold() == _NOT_STATED:
        value = None
    return value, tuple(filter(None, quotes)), ()


def _begins_as_json(text: str) -> bool:
    """Whether a reply begins as JSON, perhaps in a fence; the object may be broken or have other keys."""
    said = text.lstrip()
    head, brace, _ = said.removeprefix(_FENCE).partition("{")
    is_language = said.startswith(_FENCE) and head.strip().isalnum()  # ```json
    return bool(brace) and (not head.strip() or is_language)


def _as_list(value: Any, key: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str | dict):
        return [value]
    if not isinstance(value, list):
        raise _UnclearError(f"its '{key}' is no list")
    return value


def _entry(value: Any) -> tuple[str, str]:
    quote = ""
    if isinstance(value, dict):
        fields = {k.strip().casefold(): v for k, v in value.items()}
        if "entry" not in fields:
            raise _UnclearError("an entry of its list has no 'entry'")
        value, quote = fields["entry"], _quote(fields.get("quote") or "")
    text = _plain_value(value, "entry")
    if text is None:
        raise _UnclearError("an entry of its list is null")
    return one_line(text), quote


def _quote(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnclearError("one of its quotes is no text")
    return one_line(value)


def _plain_value(value: Any, key: str) -> str | None:
    """A value as text, also numbers and `true`, which models write where text is asked for."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return repr(value)
    if key == "answer" and isinstance(value, list) and value:  # A list where text is asked for
        return "\n".join(f"- {_plain_value(entry, 'entry')}" for entry in value)
    if not isinstance(value, str):
        raise _UnclearError(f"its '{key}' is no text")
    if not value.strip(" .…\n\t"):
        raise _UnclearError(f"its '{key}' is empty")
    return value.strip()


def _in_plain_form(stated: _Stated) -> str:
    """The value, each entry followed by its quote, then the other quotes."""
    value, quotes, pairs = stated
    lines: list[str] = []
    for entry, quote in pairs:
        lines += [f"- {entry}", *([f"> {quote}"] if quote else [])]
    lines = lines or [NOTHING if value is None else str(value)]
    owned = {quote for _, quote in pairs}
    return "\n".join([*lines, *(f"> {quote}" for quote in quotes if quote not in owned)])


_MAX_ESCAPE = 6  # Characters of an escape such as `\\u00e9`


def begun(text: str, wanted: ValueType, kept: Callable[[str], str]) -> str:
    """The part of a cut-off reply that can be read like a whole one, "" for none; `kept` gives that part of a text."""
    start = OBJECT.search(text)
    body = text[start.start() :] if start else ""
    whole = whole_part(body)
    is_closed = not body or (whole and body.startswith(whole))
    if is_closed and not _begins_as_json(text):
        return kept(text)
    if wanted in _READERS and wanted is not ValueType.LIST:
        return ""  # What is missing may change it: {"value": "138", "unit": "mil
    read = read_reply(whole, wanted)
    if read.is_formed and read.state != "nothing":
        return whole
    if wanted is ValueType.LIST:
        return ""
    for end in range(len(body), len(body) - _MAX_ESCAPE, -1):  # The text may end within an escape
        read = read_reply(f'{body[:end]}"}}', wanted)
        if read.is_formed:
            said = kept(str(read.value)) if read.state == "found" else ""
            return json.dumps({_form(wanted).key: said}, ensure_ascii=False) if said else ""
    return ""


# ---------------------------------------------------------------------------------------------
# The plain form


def without_fences(text: str) -> list[str]:
    """The lines of a reply without code fences."""
    return [line for line in text.splitlines() if not line.lstrip().startswith(_FENCE)]


def _of_text(text: str, wanted: ValueType) -> tuple[str | list[str] | None, tuple[str, ...]]:
    """The value and quotes of a reply in plain text."""
    shown = [(line, quoted_line(line)) for line in without_fences(text)]
    quotes = tuple(quote.strip() for _, quote in shown if quote and quote.strip())
    said = dedent("\n".join(line for line, quote in shown if quote is None)).strip()
    if wanted not in _READERS:
        said = said or "\n\n".join(quotes) or text.strip()
        return said, quotes
    if says_not_stated(said):
        return None, quotes
    if not said:
        raise _UnclearError("there is nothing in it but quotes")
    if wanted is ValueType.LIST:
        lines = [line for line in said.split("\n") if line.strip()]
        if not all(line.startswith("- ") for line in lines):
            raise _UnclearError("not every line of it is an entry after '- '")
        return [plain(line[2:]).strip() for line in lines], quotes
    if "\n" in said:
        raise _UnclearError(f"one short line is needed, with nothing else in {_short(said)}")
    return said, quotes


def _short(text: str) -> str:
    words = text.split(maxsplit=MAX_QUOTED_WORDS)
    shown = " ".join(words[:MAX_QUOTED_WORDS])
    is_whole = len(words) <= MAX_QUOTED_WORDS and len(shown) <= MAX_QUOTED
    return repr(shown if is_whole else f"{shown[:MAX_QUOTED]}…")


# ---------------------------------------------------------------------------------------------
# Values


def _entries(value: Any, shown: str | None, given: str, is_plain: bool) -> Value:
    """The entries of a list; an error if one that is not an amount occurs twice."""
    names = set()
    for entry in value:
        name = one_line(entry).casefold()
        # An entry that begins with a figure, such as $5 or (5)
        is_amount = next(find_figures(plain(entry).lstrip("( ")), (1, 1))[0] == 0
        if name in names and not is_amount:
            raise _UnclearError(f"{_short(entry)} is named twice")
        names.add(name)
    if is_plain and shown is not None:
        # A line of plain text may be a remark ("- No animals"), so an entry must occur in the
        # text shown.
        known = _words(shown)
        for entry in value:
            if _words(entry) not in known:
                raise _UnclearError(f"{_short(entry)} may be a remark: the text does not have it")
    return list(value)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold().translate(_QUOTATION_MARKS)))} "


_WORD = lazy_pattern(r"\w+|[^\w\s]")  # Words, and each punctuation mark
_QUOTATION_MARKS = str.maketrans("‘’“”–—−", "''\"\"---")


def _amount(value: Any, shown: str | None, given: str, is_plain: bool) -> Value:
    """One number with its unit: alone, as in the text, or with words of the step's arguments."""
    line = plain(value).strip().rstrip(".")
    if len(line) > MAX_AMOUNT:
        raise _UnclearError(f"one short line is needed, with nothing else in {_short(value)}")
    quantity(line)  # An error if it has two readings
    if IN_BRACKETS.fullmatch(line):  # (1,250)
        return line
    places = list(find_figures(line))
    if len(places) != 1:
        raise _UnclearError(f"it is not one number in digits: {_short(value)}")
    ((start, end),) = places
    scales = {*SCALE_WORDS, *FOREIGN_SCALES}
    words = f"{line[:start]} {line[end:]}".split()
    rest = [word for word in words if not unit_named(word) and word.casefold() not in scales]
    if rest and not (
        (shown is not None and _words(line) in _words(shown))
        or _words(" ".join(rest)) in _words(given)
    ):
        raise _UnclearError(f"'{rest[0]}' in {_short(value)} makes the number uncertain")
    return line


def _date(value: Any, shown: str | None, given: str, is_plain: bool) -> Value:
    """One date, month, quarter, week or year, which its quotes state, or the text if there are no quotes."""
    line = plain(value).strip().rstrip(".")
    if not readings(line):
        raise _UnclearError(f"it is not one date with its year: {_short(value)}")
    if shown is not None and (why := why_unstated(shown, line)):
        raise _UnclearError(why)
    return line


_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}


def _truth(value: Any, shown: str | None, given: str, is_plain: bool) -> Value:
    """Yes or no, without other words."""
    truth = _TRUTHS.get(plain(value).strip(EDGES).casefold())
    if truth is None:
        raise _UnclearError(f"{_short(value)} is not just yes or no")
    return truth


_READERS: dict[ValueType, Callable[[Any, str | None, str, bool], Value]] = {
    ValueType.LIST: _entries, ValueType.NUMBER: _amount, ValueType.BOOL: _truth,
    ValueType.DATE: _date,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------
# Constraints for decoders


@cache
def reply_constraint(wanted: ValueType, max_text: int | None = None) -> constraint.Constraint:
    """The constraint on a reply."""
    text = {"type": "string", **({} if max_text is None else {"maxLength": max_text})}
    copied = text if max_text is None else {**text, "maxLength": MAX_QUOTE}
    quote = {"anyOf": [copied, {"type": "array", "items": copied, "maxItems": MAX_QUOTES}]}
    match wanted:
        case ValueType.LIST:
            many = {"type": "array", "maxItems": MAX_ENTRIES}
            lists = {"entries": {**many, "items": text}, "quotes": {**many, "items": copied}}
            schema = constraint.closed_object(lists)
        case ValueType.BOOL:
            verdict = {"type": "string", "enum": ["yes", "no", _NOT_STATED]}
            schema = constraint.closed_object({"quote": quote, "verdict": verdict})
        case _:
            null = {"anyOf": [text, {"type": "null"}]}
            schema = constraint.closed_object({_form(wanted).key: null, "quote": quote})

    form = constraint.JsonForm(schema, is_read_by_caller=True)
    return constraint.Constraint(f"reply-{wanted.lower()}", json_form=form)
