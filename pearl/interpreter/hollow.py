"""Whole replies that say nothing: a few words over and over, or the instructions that they reply to."""

from __future__ import annotations

import re

from pearl.llm import ActionTask, CombineTask, Request

__all__ = ["why_hollow"]

MIN_WORDS = 8
"""Minimum words of such a reply: shorter ones may be names, which the instructions have, too."""

MIN_TIMES = 4

_WORD = re.compile(r"\w+")


def why_hollow(text: str, request: Request) -> str:
    """Why the reply to a step says nothing; "" if it may.

    What it has of the document, or of the results of earlier steps, is no echo: to quote them may be
    its task.

    Args:
        text: The reply.
        request: What it replies to.
    """
    words = _words(text)
    if len(words) < MIN_WORDS or not isinstance(request.task, ActionTask | CombineTask):
        return ""
    if any(words[period:] == words[:-period] for period in range(1, len(words) // MIN_TIMES + 1)):
        return "the reply is the same words over and over"
    if f" {' '.join(words)} " in f" {' '.join(_words(_instructions(request)))} ":
        return "the reply only has words of its instructions"
    return ""


def _instructions(request: Request) -> str:
    """A prompt without what it is about."""
    task = request.task
    assert isinstance(task, ActionTask | CombineTask)
    step, parts = (task.step, task.parts) if isinstance(task, CombineTask) else (task, ())
    inputs = (value for name, value in step.arguments if name in step.inputs)
    text = request.prompt
    for given in (step.document or "", *parts, *inputs):
        text = text.replace(given, "\n|\n") if given else text
    return text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
