"""The raw text of a reply: remove its reasoning, find its JSON objects, tell whether all it says is *not stated*."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NamedTuple

from pearl.errors.patterns import lazy_pattern


class Split(NamedTuple):
    """A reply and the reasoning in it."""

    text: str
    reasoning: str = ""
    is_unclosed: bool = False


_NAMES = r"(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad)"
_OPEN = (
    rf"(?:<\s?{_NAMES}(?:\s[^<>\n]{{0,80}})?>"  # <think>, <seed:think>, <think duration="3">
    r"|\[THINK\]|◁think▷"  # Magistral, Kimi
    r"|<\|(?:START_THINKING|begin_of_thought)\|>"  # Cohere, OpenThinker
    r"|<\|channel>\s?thought\b"  # Gemma
    r"|<\|channel\|>analysis<\|message\|>)"  # gpt-oss
)
_CLOSE = (
    rf"(?:<\s?/\s?{_NAMES}\s?>|\[/THINK\]|◁/think▷|<\|(?:END_THINKING|end_of_thought)\|>|<channel\|>"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|assistantfinal"
    r"|<answer>(?=[^<]*</answer>\s*\Z))"
)
_MARK = lazy_pattern(
    rf"(?P<begin>(?:^[ \t]*|(?<=[.!?])){_OPEN})|(?P<mentioned>{_OPEN})|(?P<end>(?<![`\"'“]){_CLOSE})",
    re.I | re.M,
)
"""An opening mark begins a line or follows a sentence; elsewhere, the text only mentions it, as it does `</think>` in quotes."""

_TOKEN = (
    r"(?:</?s>|<\|(?!tool)[\w▁-]{1,40}\|>|<｜(?!tool)[\w▁-]{1,40}｜>"  # </s>, <|im_end|>, <｜end▁of▁sentence｜>
    r"|<(?:end|start)_of_turn>|</?answer>|\[EOS\])"
)
_TOKENS_BEFORE = lazy_pattern(rf"\s*+(?:{_TOKEN}\s*+)++", re.I)  # "<s> The lamp failed."
# "The lamp failed.<|im_end|>"
_TOKENS_BEHIND = lazy_pattern(rf"(?<!\s)(?:\s*+{_TOKEN})++\s*+\Z", re.I)


def without_reasoning(text: str) -> Split:
    """Split a reply into reasoning and text. The opening mark may be missing, as it can be in the prompt. In a reply that begins as JSON, marks belong to values."""
    if not any(mark in text for mark in "<[◁") and "assistantfinal" not in text.casefold():
        return Split(text)
    is_json = text.lstrip().startswith(("{", "```"))
    split = Split(text) if is_json else _of_blocks(text)
    said = split.text
    if start := _TOKENS_BEFORE.match(said):
        said = said[start.end() :]
    if end := _TOKENS_BEHIND.search(said):
        said = said[: end.start()]
    return split._replace(text=said)


def _of_blocks(text: str) -> Split:
    """Remove everything between the first and the last mark of a reply."""
    marks = list(_MARK.finditer(text))
    begins = [mark for mark in marks if mark["begin"]]
    ends = [mark for mark in marks if mark["end"]]
    start, inner = begins[0].span() if begins else (0, 0)
    is_unclosed = bool(begins) and (not ends or ends[-1].end() <= begins[-1].start())
    if not is_unclosed:
        before = marks[: marks.index(ends[-1])] if ends else marks
        if not ends or (not begins and any(mark["mentioned"] for mark in before)):
            return Split(text)  # The reply at most mentions marks
    last = len(text) if is_unclosed else ends[-1].start()
    parts = _MARK.sub("\0", text[inner:last]).split("\0")
    reasoning = "\n".join(filter(None, map(str.strip, parts)))
    if is_unclosed:
        return Split("", reasoning, is_unclosed=True)
    return Split(f"{text[:start]}{text[ends[-1].end() :]}".strip(), reasoning)


OBJECT = lazy_pattern(r'\{(?=\s*["}])')  # The beginning of an object: `{"name"`, `{}`
_JSON_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.S)
"""A JSON string (which may be cut off), or a bracket, brace or comma."""


def json_objects(text: str) -> list[dict[str, Any]]:
    """All outermost objects in a text, in order; ValueError if one is broken or repeats a key."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    objects: list[dict[str, Any]] = []
    end = 0
    while start := OBJECT.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        objects.append(value)
    return objects


def whole_part(text: str) -> str:
    """The complete members of an object that is cut off, and the complete entries of a list at its end; "" if there are none."""
    open_marks: list[str] = []
    whole = ""
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            open_marks.append("}" if mark == "{" else "]")
            continue
        if mark in ("}", "]"):
            open_marks.pop()
        elif mark != ",":
            continue
        if open_marks in (["}"], ["}", "]"]):
            end = token.end() - (mark == ",")
            whole = text[:end] + "".join(reversed(open_marks))
        elif not open_marks:
            return text[: token.end()]
    return whole


def unique_json(text: str) -> Any:
    """The value of a JSON text; ValueError if it is broken or an object repeats a key."""
    return json.loads(text, object_pairs_hook=_without_repeated_keys)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key[:60]}' occurs twice in one object")
    return fields


EDGES = " \t\n*_`\"'“”.:!()[]{}-•–"  # Meaningless marks around a value
_NOTHING = "nothing found"  # Plain form of this reply, with or without what is missing: "Nothing found: a dog."
_WORDS = frozenset({
    _NOTHING, "none", "null", "n/a", "unknown", "unanswerable", "not applicable", "not known", "not stated", "not given",
    "not mentioned", "not specified", "not provided",
})  # fmt: skip


def says_not_stated(text: str) -> bool:
    """Whether a text as a whole means *not stated*."""
    said = text.strip(EDGES).casefold()
    return said in _WORDS or (said.startswith(f"{_NOTHING}:") and "\n" not in said)
