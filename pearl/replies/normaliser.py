"""A reply as a server sends it → the reply proper, in front of every reader.

`without_reasoning` is applied once, where a reply arrives; `plain` by each reader, to a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice, zip_longest
from typing import NamedTuple


class Split(NamedTuple):
    """A reply and the reasoning in it."""

    text: str
    reasoning: str = ""
    is_unclosed: bool = False


_NAMES = (
    r"(?:[\w-]{1,20}:)?(?:think|thinking|thoughts?|thought_process|reasoning|reflection|scratchpad)"
)
_TAG = re.compile(
    rf"(?P<open><\s?{_NAMES}(?:\s[^<>\n]{{0,80}})?>|\[THINK\]|◁think▷|<\|START_THINKING\|>"
    r"|<\|begin_of_thought\|>|<\|channel>\s?thought\b|<unused94>(?:thought\b)?)"
    rf"|(?P<close><\s?/\s?{_NAMES}\s?>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>"
    r"|<\|end_of_thought\|>|<channel\|>|<unused95>)",
    re.I,
)
"""Marks of DeepSeek, Qwen, Magistral, Kimi, Cohere, Gemma, Seed, OpenThinker and their kin."""
_BEFORE_BLOCK = re.compile(r"\s*+(?:(?:\d{1,4}\s?[.:)]|[-*•]|(?:final )?answer\s?:)\s*)?", re.I)
"""What may stand on the line before a block."""
_CHANNEL = re.compile(
    r"(?:<\|start\|>(?:assistant)?)?<\|channel\|>\s*(?P<name>\w{1,20})[^<]{0,80}"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
    r"|\Aanalysis(?=.*assistantfinal)|assistant(?P<last>final)",
    re.S,
)
"""Channels of gpt-oss, also with their special tokens removed."""
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>")
_MAY_HAVE_MARKS = re.compile(r"[<◁\[]|assistantfinal|\A\s*(?:assistant|Thinking\.\.\.)\s")
_LINE_END = re.compile(r"[ \t\r]*+(?:\n|\Z)")
_QUOTES = frozenset("`\"'“”‘’«»()[]{}")
_SENTENCE_ENDS = ".!?…。！？"
_CONTEXT = 24
"""Characters on both sides of a mark that tell whether it is copied from the source."""
_BULLETS = ("-", "*", "•")
_MAX_LINE = 200
_MAX_MARKS = 500

_TOKEN = (
    r"(?:</?s>|<\|(?!tool)[\w▁-]{1,40}\|>|<｜(?!tool)[\w▁-]{1,40}｜>|<(?:(?:end|start)_of_turn|eos|bos|pad|unk)>"
    r"|\[(?:EOS|BOS|PAD|/INST|end of text)\])"
)
_ROLE = r"(?:<\|start_header_id\|>|<\|im_start\|>|<start_of_turn>)\s?(?:assistant|model)\b(?:<\|end_header_id\|>)?"
_TOKENS = re.compile(rf"(?:\s*+(?:{_ROLE}|{_TOKEN}))++\s*+|\s*assistant[ \t]*\n\s*+", re.I)
_FOLDED = re.compile(
    r"\s*(?:<details[^>]{0,60}>\s*<summary>[^<]{0,30}(?:think|reason|thought)[^<]{0,60}</summary>(?P<details>.*?)</details>"
    r"|Thinking\.\.\.[ \t]*\n(?P<told>.*?)\n\.\.\.done thinking\.)",
    re.S | re.I,
)
"""Reasoning as pages and the terminal of Ollama show it."""
_LAST_TOKEN = re.compile(rf"\s*{_TOKEN}\s*\Z", re.I)
_NEXT_TURN = re.compile(
    r"(?:</s>|<\|(?:im_end|eot_id|end|endoftext|end_of_text|return)\|>|<end_of_turn>)\s{0,20}"
    r"(?:<\|(?:im_start|start_header_id|user|assistant)\|>|<start_of_turn>|\[INST\]).*",
    re.S | re.I,
)
"""A turn that the model makes up after the end of its own."""
_ANSWER = re.compile(r"^[ \t]*+<(answer|final_answer|final|response|output|result)>", re.M | re.I)


def without_reasoning(text: str, source: str = "") -> Split:
    r"""Separate the reasoning of a reply from the reply.

    A mark in the middle of a sentence or on a quoted line ("> ") is text, as is one that is copied
    from the source.

    Example:
        >>> without_reasoning("<think>Hm, 3?</think>\n\n2</s>")
        Split(text='2', reasoning='Hm, 3?', is_unclosed=False)
        >>> without_reasoning("The tags <think> and </think> enclose it.").reasoning
        ''
    """
    if not _MAY_HAVE_MARKS.search(text):
        return Split(text)
    if folded := _FOLDED.match(text):
        thoughts = (folded["details"] or folded["told"] or "").strip()
        return Split(text[folded.end() :].strip(), thoughts)
    split = _of_channels(text, source) or _of_blocks(_NEXT_TURN.sub("", text), source)
    return _unwrapped(split._replace(text=_without_tokens(split.text)))


def _unwrapped(split: Split) -> Split:
    """A reply without the tag around its answer; what stands before the tag is reasoning."""
    text = split.text.rstrip()
    start = _ANSWER.search(text)
    end = f"</{start[1]}>" if start else ""
    if start is None or not text.endswith(end):
        return split
    before = text[: start.start()].strip()
    if before and "answer" not in end.casefold():
        return split
    answer = text[start.end() : -len(end)].strip()
    return split._replace(text=answer, reasoning=_joined((split.reasoning, before)))


def _without_tokens(text: str) -> str:
    """A text without special tokens at its ends."""
    if "<s>" in text and "</s>" in text[:-4]:  # struck-out text
        return text
    start = _TOKENS.match(text)
    at, end = start.end() if start else 0, len(text.rstrip())
    while (last := _LAST_TOKEN.search(text, max(at, end - _MAX_LINE), end)) is not None:
        if text[max(0, last.start() - 1) : last.start()] in _BULLETS:
            break  # an entry of a list: the reader of lists decides
        end = last.start()
    return text[at:end] if (at, end) != (0, len(text.rstrip())) else text


def _of_channels(text: str, source: str) -> Split | None:
    """A reply whose channels have names; None for another one."""
    marks = [mark for mark in _CHANNEL.finditer(text) if not _is_copied(text, mark, source)]
    if not marks:
        return None
    parts, final = [text[: marks[0].start()]], None
    for mark, after in zip_longest(marks, marks[1:]):
        part = text[mark.end() : after.start() if after else len(text)]
        part = _CHANNEL_END.split(part, maxsplit=1)[0].strip()
        if "final" in (mark["name"], mark["last"]):
            final = part
        else:
            parts.append(part)
    return Split(final or "", _joined(parts), is_unclosed=final is None)


def _of_blocks(text: str, source: str) -> Split:
    """A reply with blocks between marks."""
    kept: list[str] = []
    reasoning: list[str] = []
    at, end, is_open, mentioned = 0, len(text.rstrip()), False, -1
    for mark in islice(_TAG.finditer(text), _MAX_MARKS):
        before = _line_before(text, mark)
        if is_open:
            if mark["close"] and not _is_mentioned(text, mark):
                reasoning.append(text[at : mark.start()])
                at, is_open = mark.end(), False
        elif _is_copied(text, mark, source):
            continue
        elif mark["open"]:
            is_end = before[-1:] in _SENTENCE_ENDS and bool(before)
            if is_end or _BEFORE_BLOCK.fullmatch(before) or _LINE_END.match(text, mark.end()):
                kept.append(text[at : mark.start()])
                at, is_open = mark.end(), True
            else:
                mentioned = mark.end()
        elif mentioned >= 0 and "\n" not in text[mentioned : mark.start()]:
            mentioned = -1
        elif _closes_alone(text, mark, before, end):
            kept.append(text[at : mark.start()])
            at = mark.end()
            if at < end or not reasoning:
                reasoning += kept
                kept = []
    if is_open:
        return Split("", _joined([*reasoning, text[at:]]), is_unclosed=True)
    return Split("".join((*kept, text[at:])).strip(), _joined(reasoning)) if at else Split(text)


def _joined(parts: Iterable[str]) -> str:
    return "\n".join(part for part in map(str.strip, parts) if part)


def _line_before(text: str, mark: re.Match[str]) -> str:
    """The line before a mark, or its end."""
    start = max(0, mark.start() - _MAX_LINE)
    return text[text.rfind("\n", start, mark.start()) + 1 or start : mark.start()]


def _is_copied(text: str, mark: re.Match[str], source: str) -> bool:
    """Whether a mark is on a quoted line, or in the source with the same text beside it."""
    beside = text[max(0, mark.start() - _CONTEXT) : mark.end() + _CONTEXT].strip()
    is_quoted = _line_before(text, mark).lstrip().startswith(">")
    return is_quoted or (beside != mark[0] and beside in source)


def _is_mentioned(text: str, mark: re.Match[str]) -> bool:
    """Whether a mark is between quotation marks."""
    return text[mark.start() - 1 : mark.start()] in _QUOTES and text[mark.end() : mark.end() + 1] in _QUOTES  # fmt: skip


def _closes_alone(text: str, mark: re.Match[str], before: str, end: int) -> bool:
    """Whether a closing mark without an opening one ends reasoning, and is not talked about."""
    if not before.strip():
        return True
    last = before[-1]
    if not last.isspace():
        return last not in _QUOTES
    ends_sentence = before.rstrip()[-1] in _SENTENCE_ENDS
    return ends_sentence or (mark.end() < end and bool(_LINE_END.match(text, mark.end())))
