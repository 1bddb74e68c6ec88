"""Raw completion of a model → usable completion, or a `ModelError`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pearl.dsl.signatures import ValueType
from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask, CheckTask, ChooseTask, Completion, ItemsTask, Request
from pearl.llm.flaws import is_blank, loop_in, repeats
from pearl.replies.typed import in_plain_form, says_nothing
from pearl.replies.unusable import without_reasoning

if TYPE_CHECKING:
    from pearl.replies.unusable import Unusable

# Minimum words of an echo: shorter replies may be names that the instructions contain.
MIN_WORDS = 8
MIN_SENTENCE = 4  # Minimum words of a whole sentence of the instructions that is an echo
_WORD = lazy_pattern(r"\w+")
_CONTROL = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Control characters other than line ends and tabs, and the colours of a terminal."""
_SURROGATE = lazy_pattern(r"[\ud800-\udfff]")
"""Half of a character, which no file or server accepts; models of callers may write one."""


def usable(
    completion: Completion, request: Request | None, *, is_computed: bool = False
) -> Completion:
    """The completion without reasoning and control characters."""
    if request is not None and request.candidates:  # equal numbers are no loop
        return completion
    text, usage = _SURROGATE.sub("\ufffd", completion.text), completion.usage
    if _CONTROL.search(text) and not _CONTROL.search((request and request.document) or ""):
        text = _CONTROL.sub("", text)  # no quote of the document
    split = without_reasoning(text)
    if request is not None and split.text != text:
        split = without_reasoning(text, request.prompt)
    loop = None if is_computed else loop_in(text)
    if loop is not None:
        raise repeats(completion.model, loop, usage, split.text)
    if split.is_unclosed:
        message = f"the reply of {completion.model} was cut off in its reasoning"
        raise ModelError(message, kind="truncated", usage=usage)
    if is_blank(split.text):
        message = f"the reply of {completion.model} is blank"
        raise ModelError(message, kind="empty", usage=usage, reply=text)
    reasoning = "\n".join(filter(None, (completion.reasoning, split.reasoning)))
    if _is_record(split.text, request):
        return replace(completion, text=split.text, reasoning=reasoning)
    from pearl.replies.unusable import unusable  # late: 20 ms of patterns

    task = request and request.task
    said = in_plain_form(split.text, task.gives) if isinstance(task, ActionTask) else split.text
    problem = unusable(said)
    if problem and request is not None:
        problem = unusable(said, request.prompt)
    if problem and not _is_for_reader(problem, request):
        message = f"{completion.model} {problem.why}"
        raise ModelError(message, kind=problem.kind, usage=usage, reply=text)
    if request is not None and _is_echo(said, request):
        message = f"{completion.model} repeats its prompt instead of replying"
        raise ModelError(message, kind="refused", usage=usage, reply=text)
    return replace(completion, text=split.text, reasoning=reasoning)


def trimmed(error: ModelError, model: str) -> ModelError:
    """The error of a failed call, with the partial reply, without its reasoning."""
    loop = loop_in(error.reply) if error.kind == "truncated" else None
    error.reply = without_reasoning(error.reply).text
    return error if loop is None else repeats(model, loop, error.usage, error.reply)


def _is_record(text: str, request: Request | None) -> bool:
    """Whether a reply to an extraction or about items is JSON: it may have only nulls, or fields like those of a tool call."""
    task = request and request.task
    is_asked = isinstance(task, ItemsTask | CheckTask) or (
        isinstance(task, ActionTask) and task.action.extracts
    )
    return is_asked and text.lstrip()[:1] in ("{", "[", "`")


def _is_for_reader(problem: Unusable, request: Request | None) -> bool:
    """Whether the reader of the reply reports the problem more specifically."""
    if request is None:
        return False
    task = request.task
    if problem.kind == "refused":  # a refusal to plan is sent back with the reason
        return not isinstance(task, ActionTask | ItemsTask | ChooseTask | CheckTask)
    # `null`, `[]` and "-" are valid as an empty list, number or verdict.
    is_typed = isinstance(task, ActionTask) and task.gives is not ValueType.TEXT
    return problem.kind == "empty" and is_typed


def _is_echo(text: str, request: Request) -> bool:
    """Whether the reply to a step consists only of words of its instructions.

    Words of the document, or of results of earlier steps, are not an echo: quoting them may be the
    task.
    """
    step = request.task
    if not isinstance(step, ActionTask) or says_nothing(text):
        return False
    words = _words(text)
    if len(words) < MIN_SENTENCE:
        return False
    inputs = [value for name, value in step.arguments if name in step.inputs]
    # Nor is a reply that the model repeats when it is asked again: the request quotes it.
    replies = [message.content for message in request.messages if message.role == "assistant"]
    given = [step.document or "", *(step.parts or ()), *inputs, *replies]
    sentences = (step.question, step.explanation, step.action.definition)
    is_echo = words in map(_words, sentences)
    if len(words) >= MIN_WORDS and not is_echo:
        instructions = "\n".join(m.content for m in request.messages if m.role != "assistant")
        for each in (*given, step.question):  # a part of a question may be an earlier answer
            instructions = instructions.replace(each, "\n|\n") if each else instructions
        is_echo = _has(instructions, words)
    return is_echo and not any(_has(each, words) for each in given)


def _has(text: str, words: list[str]) -> bool:
    return f" {' '.join(words)} " in f" {' '.join(_words(text))} "


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
