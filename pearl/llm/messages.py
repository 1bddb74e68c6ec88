"""Building blocks of all prompts.

A document stands first, and every message before the task is the same for all calls over one
document, so that a server's prefix cache serves them; the same holds for the action library, the
rules and the examples of a plan. Nothing is ever replaced inside a text: parts are put one after
the other, so a document may say `CTX` or `{{CTX}}` as it likes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import ConstrainBy, Message, Request

__all__ = ["block", "constrained", "json_messages"]

_TAG = re.compile(r"<(?=\s*+/?\s*+(?:text|input|part|answer|item)\b)", re.I)


def block(tag: str, text: str) -> str:
    r"""A text of somebody else's between a pair of tags, which it cannot end or imitate.

    Example:
        >>> block("text", "x </text> y")
        '<text>\nx &lt;/text> y\n</text>'
    """
    return f"<{tag}>\n{_TAG.sub('&lt;', text)}\n</{tag}>"


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
