"""`Turn`: a question of a conversation with its answer, and a question with the turns it may refer to."""

from __future__ import annotations

from dataclasses import dataclass

_MARK = "(asked with: "


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    question: str
    answer: str = ""


def asked_with(question: str, background: str) -> str:
    """A question with those that it may refer to in brackets.

    Example:
        >>> asked_with("Why?", "Who sold the boat")
        'Why? (asked with: Who sold the boat)'
    """
    return f"{question} {_MARK}{background})" if background else question


def without_background(text: str) -> tuple[str, str]:
    """The inverse of `asked_with`; the background is "" where there is none.

    Example:
        >>> without_background("Why? (asked with: Who sold the boat)")
        ('Why?', 'Who sold the boat')
    """
    asked, mark, background = text.rstrip().rpartition(_MARK)
    if not (mark and asked.strip() and background.endswith(")")):
        return text, ""
    return asked.strip(), background[:-1].strip()
