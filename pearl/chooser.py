r"""An answer in words, or a document → the option that is meant; what names no option is unmapped.

A reply is read strictly: `C`, `(C)`, `C. its text`, `Answer: C` or the option's own text. The first
letter of whatever was said ("The ..." for T) is not an option.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pearl.context import Context, fit
from pearl.errors import UsageError
from pearl.interpreter import Limits
from pearl.llm import ChooseTask, Model, Request, Usage
from pearl.prompts.choosing import choose_messages

__all__ = ["Choice", "choose", "fit_choice", "read_choice"]

MAX_OPTIONS = 26

_MARKS = re.compile(r"[*_`]+")
_QUOTES = "\"'“”‘’«»"
_BLANKS = r"[^\S\n]*+"
_SAYS = re.compile(  # "option" alone says nothing: "Option A: it rained" weighs it
    rf"(?:^|(?<=[\s.,:;!?]))(?:the |my )?(?:final |best |correct )?(?:answer\b{_BLANKS}(?:(?:is|would be)\b)?+|(?:option|choice)\b{_BLANKS}(?:(?:is|would be)\b|(?=[:=])))"
    rf"{_BLANKS}[:=]?+{_BLANKS}(?=(?P<rest>\S.*)$)",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = re.compile(
    rf"(?:option\s+)?(?P<open>[(\[])?(?P<letter>[A-Z])(?(open)[)\]])(?:[.):]?$|[.):]{_BLANKS}(?P<text>\S.*)$|\s+[-–—]\s+(?P<dash>\S.*)$)",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[](?P<letter>[A-Z])[)\]]\s*(?P<text>\S.*)$", re.IGNORECASE)
_ANOTHER = re.compile(  # what stands after a letter: "A) or B)", "(A) (B)", "A - B"
    r"(?:(?:and|or)\b|[&,/+])?\s*(?:option\s+)?[(\[]?(?P<letter>[A-Z])(?:[)\].:]|$)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen.

    Attributes:
        index: The option, counted from 0; None where the reply names none, or several.
        reply: What the model said; the answer itself where no model was asked.
        n_calls: 1, or 0 where no model was asked.
    """

    index: int | None
    reply: str
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 1


def read_choice(reply: str, options: Sequence[str]) -> int | None:
    """The option that a reply names, counted from 0; None if it names none, or several.

    The whole reply is read first, then what it says last after "Answer:", then its first and its
    last line; no line may name another option.

    Example:
        >>> options = ["a boat", "a mill", "Two dogs"]
        >>> [read_choice(r, options) for r in ("C", "(B)", "Answer: A", "two dogs.", "The mill")]
        [2, 1, 0, 2, None]
    """
    text = unicodedata.normalize("NFKC", reply).strip()
    whole = _read(text, options)
    if whole is not None:
        return whole
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(">")]  # quoted, not said
    said = [rest for line in lines if (rest := _said(line))]
    if said:
        return _read(said[-1], options)
    ends = {_read(line, options) for line in (lines[:1] + lines[-1:])} - {None}
    named = {_read(line, options) for line in lines} - {None}
    return ends.pop() if len(ends) == 1 and ends == named else None


def _said(text: str) -> str | None:
    """What stands after the last "Answer:" of a text."""
    found = list(_SAYS.finditer(_MARKS.sub("", text)))
    return found[-1]["rest"] if found else None


def _read(text: str, options: Sequence[str]) -> int | None:
    """The option that a text is, by its letter or its own words; None where the two disagree."""
    named = set(_named(text, options))
    return named.pop() if len(named) == 1 else None


def _named(text: str, options: Sequence[str]) -> Iterator[int]:
    folded = [_folded(option) for option in options]
    yield from (i for i, option in enumerate(folded) if option and option == _folded(text))
    index, rest = _lettered(text)
    if index is None or index >= len(options):
        return
    yield index
    own, added = folded[index], _folded(rest)
    if not rest or added == own:
        return
    # Its text may go along, also cut short or explained, but not another option.
    is_own = own.startswith(added) or bool(own and added.startswith(own))
    for words in filter(None, (rest, _said(rest))):
        yield from (i for i, option in enumerate(folded) if option and option == _folded(words))
        another = None if is_own else _ANOTHER.match(words)
        if another and _index(another) < len(options):
            yield _index(another)


def _lettered(text: str) -> tuple[int | None, str]:
    """The letter that a text begins with, counted from 0, and what goes along with it."""
    bare = _MARKS.sub("", text).strip(_QUOTES + " \t")
    found = _LETTER.fullmatch(bare) or _IN_BRACKETS.fullmatch(bare)
    if found is None:
        return None, ""
    groups = found.groupdict()
    return _index(found), groups.get("text") or groups.get("dash") or ""


def _index(found: re.Match[str]) -> int:
    return ord(found["letter"].upper()) - ord("A")


def _folded(text: str) -> str:
    """A text without what does not tell options apart: case, blanks, quote marks, the last stop."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip(_QUOTES + " ").rstrip(".").strip(_QUOTES + " ")


async def choose(
    question: str,
    options: Sequence[str],
    model: Model,
    *,
    answer: str | None = None,
    document: str | None = None,
    is_reasoned: bool = False,
    max_output_tokens: int | None = None,
) -> Choice:
    """Have an option chosen, by an answer in words or by a document.

    An answer that is an option already, by its letter or word for word, is not asked about.

    Args:
        question: What was asked.
        options: 2 to 26.
        model: Who chooses.
        answer: The answer in words.
        document: The text of the document, as much of it as fits.
        is_reasoned: Have the model reason before it chooses.
        max_output_tokens: Tokens of the reply at most.

    Raises:
        UsageError: There are too few or too many options, or not one thing to choose by.
        ModelError: The model gave no usable reply.
    """
    if not 2 <= len(options) <= MAX_OPTIONS:
        raise UsageError(f"a choice has 2 to {MAX_OPTIONS} options, not {len(options)}")
    if (answer is None) == (document is None):
        raise UsageError("an option is chosen by an answer or by a document")
    if answer is not None:
        found = _given(answer, options)
        if found is not None or not answer.strip():
            return Choice(found, answer, n_calls=0)
    task = ChooseTask(question, tuple(options), document, answer, is_reasoned)
    request = Request(choose_messages(task), task, max_output_tokens)
    completion = await model.complete(request)
    index = read_choice(completion.text, options)
    return Choice(index, completion.text, completion.usage)


def _given(answer: str, options: Sequence[str]) -> int | None:
    """The option that an answer in words is; "A. Smith did it" is a name, not the option A."""
    text = unicodedata.normalize("NFKC", answer).strip()
    index = _read(text, options)
    _, rest = _lettered(text)
    return index if index is None or not rest or _folded(rest) == _folded(options[index]) else None


def fit_choice(
    question: str, options: Sequence[str], text: str, limits: Limits, is_reasoned: bool = False
) -> Context:
    """What to show of a document to choose by: all of it, or the passages that match best.

    Results over parts cannot be merged to one letter, so a long document is never read part by part.

    Raises:
        ExecutionError: Nothing of it fits.
    """
    frame = choose_messages(ChooseTask(question, tuple(options), "", None, is_reasoned))
    count = limits.counter.count
    around = sum(count(message.content) for message in frame)
    room = None if limits.window is None else limits.window - limits.reply_tokens - around - 64
    fits = room is None or count(text) <= room
    return fit(
        text,
        strategy="full" if fits else "retrieve",
        budget=room,
        count=count,
        query=" ".join([question, *options]),
        max_retrieved=limits.max_retrieved,
    )
