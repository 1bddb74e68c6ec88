"""A figure of a named company, read from several documents → why it may be that of another company.

The name has to stand in what was shown of the document that has the figure, or in its name, its metadata or its
first lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pearl.actions.searching import SearchedDocument
from pearl.documents.evidence import quoted_line
from pearl.llm import ActionTask
from pearl.replies.typed import Reply

ACTION = "FIND_FIGURE"

_N_FIRST = 1_000
"""Characters of a document's beginning, where reports say whose they are."""

_CAPITAL = r"[A-Z0-9][\w.-]*+"
_NAME = rf"(?P<name>[A-Z][\w.-]*+(?: (?:(?:and|of|de|&) )?{_CAPITAL}){{0,6}}+)"
_NAMED = (
    re.compile(rf"\b(?:of|for|at|by) (?:the )?{_NAME}(?:'s)?$"),
    re.compile(rf"\b{_NAME}['’]s\b"),
    re.compile(rf"^(?:the )?{_NAME} (?=[a-z(])"),
)
_LAST_OF = re.compile(r".*\bof (?:the )?(?P<name>[^\W_]+)")
_WORD = re.compile(r"[^\W_]+")
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
"""First words of what a figure is of, which name no company."""
_FORMS = {"inc", "corp", "corporation", "co", "company", "ltd", "limited", "plc", "llc", "ag", "sa"}


class ShownPassage(NamedTuple):
    """A passage that was shown, and the document that it is from."""

    document: str
    text: str


def why_of_another(
    task: ActionTask, reply: Reply, shown: Sequence[ShownPassage], searched: SearchedDocument
) -> str:
    """Why a figure may be of another company than the one it is asked of; "" if nothing says so."""
    what = " ".join(task.arguments[0][1].split()) if task.arguments else ""
    if reply.state != "found" or len(searched.document.parts) < 2 or not what:
        return ""
    name = _company(what)
    if not name:
        # Without capitals a name is known by its first word, if that stands nowhere.
        tail = _LAST_OF.match(what)
        name = tail["name"] if tail and tail["name"].lower() not in _METRIC else ""
        return _absent(name, searched) if name else ""
    words = _words(name)
    while len(words) > 1 and words[-1] in _FORMS:
        words.pop()
    every = (ShownPassage(each, searched.text_of(each)) for each in searched.names)
    having = _having(reply, shown or list(every))
    if any(_has(one.text, words) or _has(_label(one.document, searched), words) for one in having):
        return ""
    return _absent(name, searched) or (
        f"the figure is from '{having[0].document}', which does not name '{name}'"
    )


def _label(document: str, searched: SearchedDocument) -> str:
    """The name of a document, its metadata and its first lines."""
    metadata = " | ".join(searched.metadata_of(document).values())
    return f"{document} | {metadata} | {searched.text_of(document)[:_N_FIRST]}"


def _company(what: str) -> str:
    """The name in what a figure is of; "" if none is sure.

    Example:
        >>> _company("net sales of Norfolk Lines"), _company("Contoso's net income"), _company("Net sales")
        ('Norfolk Lines', 'Contoso', '')
    """
    for pattern in _NAMED:
        match = pattern.search(what)
        if match and match["name"].split()[0].lower() not in _METRIC:
            return match["name"].removesuffix("'s")
    return ""


def _absent(name: str, searched: SearchedDocument) -> str:
    """That the first word of a name stands nowhere; "" if it does."""
    first = _words(name)[0].removesuffix("s")
    labels = (f"{each} {' '.join(searched.metadata_of(each).values())}" for each in searched.names)
    is_there = any(first in text.lower() for text in (searched.document.text, *labels))
    return "" if is_there else f"no passage of the corpus names '{name}'"


def _having(reply: Reply, sources: Sequence[ShownPassage]) -> list[ShownPassage]:
    """The passages that have the quotes of a reply, or else its figure; all of them if none has."""
    quotes = [
        quote for line in reply.quotes for quote in [_words(quoted_line(line) or line)] if quote
    ]
    having = [each for each in sources if any(_has(each.text, quote) for quote in quotes)]
    if not having and (figure := _FIGURE.search(str(reply.value))):
        having = [each for each in sources if figure[0] in each.text]
    return having or list(sources)


_FIGURE = re.compile(r"\d[\d.,]*+(?<![.,])")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has(text: str, words: Sequence[str]) -> bool:
    """Whether the words stand in a text one after another."""
    return f" {' '.join(words)} " in f" {' '.join(_words(text))} "
