"""Whether a reply to a step has content of its own, as far as Python can decide it."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.evidence.finding import find_quotes, is_passage
from pearl.dsl.signatures import ValueType
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask, Request
from pearl.replies.typed import Reply

MIN_WORDS = 8
"""Minimum words of a reply that is checked: shorter ones may be names that the instructions contain."""
MIN_SENTENCE = 4
"""Minimum words of a whole sentence of the instructions that is an echo."""
MIN_TIMES = 4
MIN_COPIED = 60
"""Minimum words of a reply that counts as a copy of the document's beginning."""
UNQUOTED = "the reply quotes no passage"

_WORD = lazy_pattern(r"\w+")


def is_unproven(reply: Reply, wanted: ValueType) -> bool:
    """Whether a reply has words of the model's own without a quote, as a refusal, a question or an error would.

    Of the other forms, only numbers and verdicts have a value; entries in plain text stand in the document.
    """
    is_free = wanted is ValueType.TEXT or (wanted is ValueType.LIST and reply.is_formed)
    if not is_free or reply.state != "found" or reply.quotes:
        return False
    return not any(map(is_passage, find_quotes(reply.plain)))


def why_hollow(text: str, request: Request) -> str:
    """Why a reply to a step has no content of its own; "" if it has content."""
    words = _words(text)
    task = request.task
    if len(words) < MIN_SENTENCE or not isinstance(task, ActionTask):
        return ""
    if _is_echo(words, request, task):
        return "the reply repeats its instructions"
    if len(words) < MIN_WORDS:
        return ""
    if MIN_TIMES * _period(words) <= len(words):
        return "the reply is the same words over and over"
    if len(words) >= MIN_COPIED and task.document and len(task.document) > 2 * len(text):
        beginning = " ".join(task.document[: 2 * len(text)].split())
        if beginning.startswith(" ".join(text.split())):
            return "the reply is the beginning of the document"
    return ""


def _is_echo(words: list[str], request: Request, task: ActionTask) -> bool:
    """Whether the reply to a step consists only of words of its instructions.

    Words of the document, or of results of earlier steps, are not an echo: quoting them may be the
    task.
    """
    inputs = [value for name, value in task.arguments if name in task.inputs]
    # Nor is a reply that the model repeats when it is asked again: the request quotes it.
    replies = [message.content for message in request.messages if message.role == "assistant"]
    given = [task.document or "", *(task.parts or ()), *inputs, *replies]
    sentences = (task.question, task.explanation, task.action.definition)
    is_echo = words in map(_words, sentences)
    if len(words) >= MIN_WORDS and not is_echo:
        instructions = "\n".join(m.content for m in request.messages if m.role != "assistant")
        for each in (*given, task.question):  # a part of a question may be an earlier answer
            instructions = instructions.replace(each, "\n|\n") if each else instructions
        is_echo = _has(instructions, words)
    return is_echo and not any(_has(each, words) for each in given)


def _has(text: str, words: list[str]) -> bool:
    return f" {' '.join(words)} " in f" {' '.join(_words(text))} "


def _period(words: Sequence[str]) -> int:
    """The shortest distance by which words are their own repetition, by the failure function."""
    borders = [0] * len(words)
    border = 0
    for i in range(1, len(words)):
        while border and words[i] != words[border]:
            border = borders[border - 1]
        border += words[i] == words[border]
        borders[i] = border
    return len(words) - borders[-1]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
