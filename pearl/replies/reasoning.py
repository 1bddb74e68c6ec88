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
_OPENS = lazy_pattern(_OPEN, re.I)
_BEGIN = lazy_pattern(rf"(?:^[ \t]*|(?<=[.!?])){_OPEN}", re.I | re.M)
"""An opening mark at the beginning of a line or after a sentence; elsewhere, the text only mentions it."""
_END = lazy_pattern(rf"(?<![`\"'“]){_CLOSE}", re.I)  # Not a mention such as `</think>` in quotes
_MARKS = lazy_pattern(rf"{_OPEN}|(?<![`\"'“]){_CLOSE}", re.I)

_ANY = lazy_pattern(r"[<\[◁]|assistantfinal", re.I)
"""What each mark and token contains; most replies have none."""

_TOKEN = (
    r"(?:</?s>|<\|(?!tool)[\w▁-]{1,40}\|>|<｜(?!tool)[\w▁-]{1,40}｜>"  # </s>, <|im_end|>, <｜end▁of▁sentence｜>
    r"|<(?:end|start)_of_turn>|</?answer>|\[EOS\])"
)
_TOKENS_BEFORE = lazy_pattern(rf"\s*+(?:{_TOKEN}\s*+)++", re.I)  # "<s> The lamp failed."
# "The lamp failed.<|im_end|>"
_TOKENS_BEHIND = lazy_pattern(rf"(?<!\s)(?:\s*+{_TOKEN})++\s*+\Z", re.I)


def without_reasoning(text: str) -> Split:
    """Split a reply into reasoning and text. The opening mark may be missing, as it can be in the prompt. In a reply that begins as JSON, marks belong to values."""
    if not _ANY.search(text):
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
    begins, ends = list(_BEGIN.finditer(text)), list(_END.finditer(text))
    first = begins[0] if begins else None
    start, inner = (first.start(), first.end()) if first else (0, 0)
    if begins and (not ends or ends[-1].end() <= begins[-1].start()):
        return Split("", _joined(text[inner:]), is_unclosed=True)
    if not ends or (first is None and _OPENS.search(text, 0, ends[-1].start())):
        return Split(text)  # The reply at most mentions marks
    last = ends[-1]
    said = f"{text[:start]}{text[last.end() :]}"
    return Split(said.strip(), _joined(text[inner : last.start()]))


def _joined(reasoning: str) -> str:
    return "\n".join(filter(None, map(str.strip, _MARKS.split(reasoning))))
