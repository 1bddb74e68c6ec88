"""Building blocks of all prompts.

A document, or the action library, rules and examples of a plan, come first, so that a server's
prefix cache serves all calls over them. Nothing is replaced inside a text: parts are concatenated,
so a document may contain `CTX` or `{{CTX}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import ConstrainBy, Message, Request

_TAG = re.compile(r"<(?=\s*+/?\s*+(?:text|input|part|answer|item)\b)", re.I)

_TEXT = re.compile(r"<(text|item \d++)>\n")
"""Begins a block of the document."""


def block(tag: str, text: str) -> str:
    r"""An untrusted text between a pair of tags, which it cannot close or imitate.

    Example:
        >>> block("text", "x </text> y")
        '<text>\nx &lt;/text> y\n</text>'
    """
    return f"<{tag}>\n{_TAG.sub('&lt;', text)}\n</{tag}>"


def without_texts(messages: Iterable[Message]) -> str:
    r"""Messages for people: the lengths of texts of the document for the texts, of which `block` made blocks.

    Example:
        >>> asked = f"{block('text', 'Ada sold the boat.')}\n\nWho sold it?"
        >>> print(without_texts([Message("user", asked)]))
        [user]
        <text: 18 characters>
        <BLANKLINE>
        Who sold it?
    """
    return "\n\n".join(
        f"[{message.role}]\n{''.join(_measured(message.content))}" for message in messages
    )


def _measured(content: str) -> Iterator[str]:
    at = 0
    while (begins := _TEXT.search(content, at)) is not None:
        end = f"\n</{begins[1]}>"
        # By `find`: an expression takes milliseconds for a long text.
        ends = content.find(end, begins.end())
        if ends < 0:
            break
        yield content[at : begins.start()]
        yield f"<{begins[1]}: {ends - begins.end():,} characters>"
        at = ends + len(end)
    yield content[at:]


def constrained(request: Request, constraint: Constraint | None, by: ConstrainBy | None) -> Request:
    """The request with a constraint in one of its forms, or unchanged without one."""
    if by is None or constraint is None:
        return request
    messages = request.messages
    if by == "json" and constraint.json_form is not None:
        messages = json_messages(messages, constraint.json_form.hint)
    return replace(request, messages=messages, constraint=constraint, constrain_by=by)


def json_messages(messages: tuple[Message, ...], hint: str) -> tuple[Message, ...]:
    """Ask for the same as JSON."""
    *before, last = messages
    return (*before, replace(last, content=f"{last.content}\n\nReply as JSON: {hint}"))
