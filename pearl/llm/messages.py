"""Building blocks of all prompts.

A document, or the action library, rules and examples of a plan, come first, so that a server's
prefix cache serves all calls over them. Nothing is replaced inside a text: parts are concatenated,
so a document may contain `CTX` or `{{CTX}}`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import ConstrainBy, Message, Request

__all__ = ["block", "constrained", "json_messages"]

_TAG = re.compile(r"<(?=\s*+/?\s*+(?:text|input|part|answer)\b)", re.I)


def block(tag: str, text: str) -> str:
    r"""An untrusted text between a pair of tags, which it cannot close or imitate.

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
