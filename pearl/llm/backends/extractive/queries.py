"""SUBQUERIES and REWRITE by rule: the parts of a question, and a question with those before it.

Every word is one that was given. What a pronoun stands for is not guessed: the earlier questions are
put beside the question that has it.
"""

from __future__ import annotations

from pearl.actions.operators import REWRITE, SUBQUERIES
from pearl.actions.values import items_of
from pearl.llm import ActionTask
from pearl.llm.backends.extractive.questions import parts

MAX_EARLIER = 6
"""Earlier questions that a question is put beside: the first, and the latest ones."""


def made_query(task: ActionTask) -> str | None:
    """What is searched for; None for other actions.

    Example:
        >>> task = ActionTask("a", SUBQUERIES, (("QUESTION", "Who sold the mill, and why?"),), None)
        >>> print(made_query(task))
        - Who sold the mill
        - why (Who sold the mill)
    """
    values = dict(task.arguments)
    if task.action.signature == SUBQUERIES.signature:
        found = parts(values["QUESTION"])
        return "\n".join(f"- {_asked(part.text, part.background)}" for part in found)
    if task.action.signature == REWRITE.signature:
        question = " ".join(values["QUESTION"].split())
        earlier = [text for text in items_of(values["HISTORY"]) if text != question]
        if len(earlier) > MAX_EARLIER:
            earlier = [earlier[0], *earlier[1 - MAX_EARLIER :]]
        return f"{question} ({'; '.join(earlier)})" if earlier else question
    return None


def _asked(text: str, background: str) -> str:
    shown = " ".join(text.split()).rstrip(" ,.?")
    return f"{shown} ({' '.join(background.split()).rstrip(' ,.?')})" if background else shown
