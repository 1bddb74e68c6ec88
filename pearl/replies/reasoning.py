"""Remove the reasoning and special tokens from a reply."""

from __future__ import annotations

import re
from typing import NamedTuple

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
