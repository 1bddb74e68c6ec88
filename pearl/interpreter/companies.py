"""A figure and its sources → whether it may belong to another company than the one that the step names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pearl.actions.searching import SearchedDocument
from pearl.documents.evidence import quoted_line
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask
from pearl.replies.typed import Reply

_N_FIRST = 1_000
"""Characters at the beginning of a document in which reports name their company."""

_CAPITAL = r"[A-Z0-9][\w.-]*+"
_NAME = rf"(?P<name>[A-Z][\w.-]*+(?: (?:(?:and|of|de|&) )?{_CAPITAL}){{0,6}}+)"
_NAMED = (
    lazy_pattern(rf"\b(?:of|for|at|by) (?:the )?{_NAME}(?:'s)?$"),
    lazy_pattern(rf"\b{_NAME}['’]s\b"),
    lazy_pattern(rf"^(?:the )?{_NAME} (?=[a-z(])"),
)
_LAST_OF = lazy_pattern(r".*\bof (?:the )?(?P<name>[^\W_]+)")
_WORD = lazy_pattern(r"[^\W_]+")
_FIGURE = lazy_pattern(r"\d[\d.,]*+(?<![.,])")
_METRIC = frozenset(
    re.findall(
        r"\w+",
        "accounts amount annual average basic capital cash cost current debt deferred diluted dividend dividends"
        " earnings effective equity expense fair free general gross income interest long net number operating"
        " other percentage profit provision research revenue sales selling share shares short stock tax total"
        " value weighted working year january february march april may june july august september october"
        " november december",
    )
)
"""First words of figures that do not name a company."""
_FORMS = {"inc", "corp", "corporation", "co", "company", "ltd", "limited", "plc", "llc", "ag", "sa"}


class ShownPassage(NamedTuple):
    """A passage of a prompt and its document."""

    document: str
    text: str


def why_of_another(
    task: ActionTask, reply: Reply, shown: Sequence[ShownPassage], searched: SearchedDocument
) -> str:
    """Why a figure may belong to another company than the one requested; "" if it does not seem to."""
    what = " ".join(task.arguments[0][1].split()) if task.arguments else ""
    if reply.state != "found" or len(searched.document.parts) < 2 or not what:
        return ""

    def labels(n_first: int) -> dict[str, str]:
        """The name of each document, its metadata and its first characters."""
        return {
            name: " | ".join([
                name, *searched.metadata_of(name).values(), searched.text_of(name)[:n_first]
            ])
            for name in searched.names
        }  # fmt: skip

    def is_unknown(name: str) -> bool:
        first = _words(name)[0].removesuffix("s")
        texts = (searched.document.text, *labels(0).values())
        return not any(first in text.lower() for text in texts)

    unknown = "no passage of the corpus names '{}'"
    name = _company(what)
    if not name:
        # A name in lower case counts only if its first word occurs nowhere.
        tail = _LAST_OF.match(what)
        name = tail["name"] if tail and tail["name"].lower() not in _METRIC else ""
        return unknown.format(name) if name and is_unknown(name) else ""
    words = _words(name)
    while len(words) > 1 and words[-1] in _FORMS:
        words.pop()
    every = [ShownPassage(each, searched.text_of(each)) for each in searched.names]
    sources = _sources(reply, shown or every)
    known = labels(_N_FIRST)
    if any(_has(one.text, words) or _has(known.get(one.document, ""), words) for one in sources):
        return ""
    if is_unknown(name):
        return unknown.format(name)
    return f"the figure is from '{sources[0].document}', which does not name '{name}'"


def _company(what: str) -> str:
    """The company named in a figure's description; "" if unclear.

    Example:
        >>> _company("net sales of Norfolk Lines"), _company("Contoso's net income"), _company("Net sales")
        ('Norfolk Lines', 'Contoso', '')
    """
    for pattern in _NAMED:
        match = pattern.search(what)
        if match and match["name"].split()[0].lower() not in _METRIC:
            return match["name"].removesuffix("'s")
    return ""


def _sources(reply: Reply, passages: Sequence[ShownPassage]) -> Sequence[ShownPassage]:
    """The passages that contain a quote of the reply, else those that contain its figure, else all."""
    quotes = [words for line in reply.quotes if (words := _words(quoted_line(line) or line))]
    having = [each for each in passages if any(_has(each.text, quote) for quote in quotes)]
    if not having and (figure := _FIGURE.search(str(reply.value))):
        having = [each for each in passages if figure[0] in each.text]
    return having or passages


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has(text: str, words: Sequence[str]) -> bool:
    """Whether a text contains the words consecutively."""
    return f" {' '.join(words)} " in f" {' '.join(_words(text))} "
