"""Raw completion of a model → usable completion, or a `ModelError`."""

from __future__ import annotations

import re
from dataclasses import replace

from pearl.documents.rows import shortened
from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Request
from pearl.llm.flaws import is_blank, loop_in, repeats
from pearl.replies.reasoning import without_reasoning

_CONTROL = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters other than line ends and tabs, and the colours of a terminal."""
_HEAD, _TAIL = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = lazy_pattern(rf"[\ud800-\udfff]|(?<!\\)(?:{_HEAD}(?!{_TAIL})|(?<!{_HEAD}){_TAIL})")
"""Half of a character, which no file or server accepts, also as an escape of JSON."""

_PAGE = lazy_pattern(r"\s*<(?:!doctype html|html)\b", re.I)
"""The page of a gateway in place of a reply."""


def usable(
    completion: Completion, request: Request | None, *, is_computed: bool = False
) -> Completion:
    """The completion without reasoning and control characters."""
    text, usage = _SURROGATE.sub("\ufffd", completion.text), completion.usage
    if _CONTROL.search(text) and not _CONTROL.search((request and request.document) or ""):
        text = _CONTROL.sub("", text)  # no quote of the document
    split = without_reasoning(text)
    loop = None if is_computed else loop_in(text)
    if loop is not None:
        raise repeats(completion.model, loop, usage, split.text)
    if split.is_unclosed:
        message = f"the reply of {completion.model} was cut off in its reasoning"
        raise ModelError(message, kind="truncated", usage=usage)
    if is_blank(split.text):
        message = f"the reply of {completion.model} is blank"
        raise ModelError(message, kind="empty", usage=usage, reply=text)
    if _PAGE.match(split.text):
        message = f"{completion.model} sent a web page: {shortened(split.text, 80)}"
        raise ModelError(message, kind="transport", usage=usage, reply=text)
    reasoning = "\n".join(filter(None, (completion.reasoning, split.reasoning)))
    return replace(completion, text=split.text, reasoning=reasoning)


def trimmed(error: ModelError, model: str) -> ModelError:
    """The error of a failed call, with the partial reply, without its reasoning."""
    loop = loop_in(error.reply) if error.kind == "truncated" else None
    error.reply = without_reasoning(error.reply).text
    return error if loop is None else repeats(model, loop, error.usage, error.reply)
