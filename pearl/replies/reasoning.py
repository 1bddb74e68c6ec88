"""A reply without its reasoning and the special tokens around it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from pearl.errors.patterns import lazy_pattern


class Split(NamedTuple):
    """A reply and the reasoning in it."""

    text: str
    reasoning: str = ""
    is_unclosed: bool = False


_NAMES = (
    r"(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|thought_process|reasoning|reflection|scratchpad)"
)
_OPEN = (
    rf"(?:<\s?{_NAMES}(?:\s[^<>\n]{{0,80}})?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>|<\|channel>\s?thought\b|<unused94>(?:thought\b)?)"
)
"""Marks of DeepSeek, Qwen, Magistral, Kimi, Cohere, Gemma, Seed, OpenThinker and their kin."""
_OPENS = lazy_pattern(_OPEN, re.I)
_TAG = lazy_pattern(
    rf"(?:^[ \t]*|(?<=[.!?]))(?P<open>{_OPEN})|<\s?/\s?{_NAMES}\s?>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>"
    r"|<\|end_of_thought\|>|<channel\|>|<unused95>",
    re.I | re.M,
)
_CHANNEL = lazy_pattern(
    r"\s*(?:(?:<\|start\|>(?:assistant)?)?<\|channel\|>|analysis(?=.*assistantfinal))", re.S
)
"""Channels of gpt-oss, also with their special tokens removed."""
_FINAL = lazy_pattern(
    r"<\|channel\|>\s*final\b[^<]{0,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>|assistantfinal"
)
_CHANNEL_MARKS = lazy_pattern(
    r"<\|[a-z]{1,20}\|>(?:assistant|analysis|commentary[^<]{0,80})?|\A\s*analysis"
)
_CHANNEL_END = lazy_pattern(r"<\|(?:end|return|call)\|>")
_QUOTES = frozenset("`\"'“”‘’«»()[]{}")
_MAX_TOKEN, _MAX_TOKENS = 80, 20
"""Maximum characters of a token with the blanks around it, and tokens at the end of a reply."""
_MAX_MARKS = 500

_TOKEN = (
    r"(?:</?s>|<\|(?!tool)[\w▁-]{1,40}\|>|<｜(?!tool)[\w▁-]{1,40}｜>|<(?:(?:end|start)_of_turn|eos|bos|pad|unk)>"
    r"|</?(?:final_)?answer>|\[(?:EOS|BOS|PAD|/INST|end of text)\])"
)
_ROLE = r"(?:<\|start_header_id\|>|<\|im_start\|>|<start_of_turn>)\s?(?:assistant|model)\b(?:<\|end_header_id\|>)?"
_TOKENS = lazy_pattern(rf"(?:\s*+(?:{_ROLE}|{_TOKEN}))++\s*+|\s*assistant[ \t]*\n\s*+", re.I)
_LAST_TOKEN = lazy_pattern(rf"\s*{_TOKEN}\s*\Z", re.I)
_NEXT_TURN = lazy_pattern(
    r"(?:</s>|<\|(?:im_end|eot_id|end|endoftext|end_of_text|return)\|>|<end_of_turn>)\s{0,20}"
    r"(?:<\|(?:im_start|start_header_id|user|assistant)\|>|<start_of_turn>|\[INST\]).*",
    re.S | re.I,
)
"""A turn that the model makes up after the end of its own."""


def without_reasoning(text: str) -> Split:
    """Separate the reasoning of a reply from it: a mark begins a line or follows a sentence, the first may be in the prompt; in a reply that begins as JSON, it is part of a value."""
    split = Split(text)
    if _CHANNEL.match(text):
        split = _of_channels(text)
    elif not text.lstrip().startswith(("{", "```")):
        split = _of_blocks(_NEXT_TURN.sub("", text))
    before, mark, said = split.text.rpartition("<answer>")
    if mark and said.rstrip().endswith("</answer>"):
        split = split._replace(text=said.strip(), reasoning=_joined((split.reasoning, before)))
    return split._replace(text=_without_tokens(split.text))


def _without_tokens(text: str) -> str:
    """A text without special tokens at its ends."""
    start = _TOKENS.match(text)
    at, end = start.end() if start else 0, len(text.rstrip())
    for _ in range(_MAX_TOKENS):
        last = _LAST_TOKEN.search(text, max(at, end - _MAX_TOKEN), end)
        if last is None:
            break
        end = last.start()
    return text[at:end] if (at, end) != (0, len(text.rstrip())) else text


def _of_channels(text: str) -> Split:
    """A reply whose channels have names: the last one is the reply."""
    before, *final = _FINAL.split(text, maxsplit=1)
    said = _CHANNEL_END.split(final[0], maxsplit=1)[0].strip() if final else ""
    return Split(said, _joined(_CHANNEL_MARKS.split(before)), is_unclosed=not final)


def _of_blocks(text: str) -> Split:
    """A reply with blocks between marks."""
    kept: list[str] = []
    reasoning: list[str] = []
    at, is_open = 0, False
    for mark in islice(_TAG.finditer(text), _MAX_MARKS):
        if is_open:
            if not mark["open"] and not _is_mentioned(text, mark):
                reasoning.append(text[at : mark.start()])
                at, is_open = mark.end(), False
        elif mark["open"]:
            kept.append(text[at : mark.start()])
            at, is_open = mark.end(), True
        # Without an opening mark, all before it is reasoning; at the end of a reply with a block it is a slip.
        elif not _OPENS.search(text, at, mark.start()):
            kept.append(text[at : mark.start()])
            at = mark.end()
            if text[at:].strip() or not reasoning:
                reasoning += kept
                kept = []
    if is_open:
        return Split("", _joined([*reasoning, text[at:]]), is_unclosed=True)
    return Split("".join((*kept, text[at:])).strip(), _joined(reasoning)) if at else Split(text)


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in map(str.strip, parts) if part)


def _is_mentioned(text: str, mark: re.Match[str]) -> bool:
    """Whether a mark is between quotation marks."""
    return text[mark.start() - 1 : mark.start()] in _QUOTES and text[mark.end() : mark.end() + 1] in _QUOTES  # fmt: skip
