"""Whole replies that say nothing: a few words over and over, or the beginning of the document."""

from __future__ import annotations

import re

from pearl.llm import ActionTask, CombineTask, Request

MIN_WORDS = 8
"""Minimum words of such a reply."""

MIN_TIMES = 4

MIN_COPIED = 60
"""Minimum words of a copy of the document's beginning."""

_WORD = re.compile(r"\w+")


def why_hollow(text: str, request: Request) -> str:
    """Why the reply to a step says nothing; "" if it may."""
    words = _words(text)
    if len(words) < MIN_WORDS or not isinstance(request.task, ActionTask | CombineTask):
        return ""
    if any(words[period:] == words[:-period] for period in range(1, len(words) // MIN_TIMES + 1)):
        return "the reply is the same words over and over"
    task = request.task.step if isinstance(request.task, CombineTask) else request.task
    if len(words) >= MIN_COPIED and task.document and len(task.document) > 2 * len(text):
        beginning = " ".join(task.document[: 2 * len(text)].split())
        if beginning.startswith(" ".join(text.split())):
            return "the reply is the beginning of the document"
    return ""


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
