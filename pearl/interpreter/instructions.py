"""An action and the arguments of a call → the instruction in words."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from pearl.dsl.signatures import CTX, ROWS, Action
from pearl.llm.messages import block

_SHOWN = {CTX: "the text", ROWS: "the items", "LABELS": "the labels", "K": "few"}
"""What a definition calls by a parameter that is not among the arguments: it stands elsewhere in the prompt."""

_ASKED = ("QUESTION", "QUERY")
"""Parameters whose argument is a question by their name."""


def filled_in(
    action: Action, arguments: Sequence[tuple[str, str]], inputs: Set[str] = frozenset()
) -> str:
    """The definition of an action with its arguments in place of its parameters, and results of steps below it.

    A question in place of a thing makes it the instruction to answer that question, except where
    the definition has the parameter in quotation marks, and thus takes any text.

    Example:
        >>> from pearl.dsl.signatures import Parameter
        >>> find = Action("FIND_REASON", tuple(map(Parameter.named, ("CTX", "X"))), "Find the reason for X in CTX")
        >>> filled_in(find, [("X", "the sale of the boat")])
        'Find the reason for "the sale of the boat" in the text.'
    """
    given = dict(arguments)
    below = {name for name, value in arguments if name in inputs or "\n" in value}
    numbers = {parameter.name for parameter in action.parameters if parameter.reads == "number"}
    definition = action.definition or action.name.replace("_", " ").capitalize()
    told: set[str] = set()

    def shown(name: str) -> str:
        if name not in given:
            return _SHOWN.get(name, name)
        if name in below:
            return name if name in told else f"{name} (below)"
        return given[name] if name in numbers else quoted(given[name])

    def words(match: re.Match[str]) -> str:
        text = shown(match["name"])
        told.add(match["name"])
        return text

    if action.reads_context or action.reads_rows:
        place = f"for each of {ROWS}, on its own" if action.reads_rows else f"from {CTX}"
        things = (n for n in given if n not in below and n not in _ASKED)
        asked = (n for n in things if f'"{n}"' not in definition and _is_question(given[n]))
        if (name := next(asked, None)) is not None:
            definition = f"Answer the question {name} {place}"
    names = {*given, *(parameter.name for parameter in action.parameters)}
    any_name = "|".join(map(re.escape, sorted(names))) or "(?!)"
    pattern = rf'(?<![\w-])(?P<mark>"?)(?P<name>{any_name})(?P=mark)(?![\w-])'
    sentence = re.sub(pattern, words, definition)
    parts = [sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."]
    parts += [f"{name}: {shown(name)}" for name in given if name not in told | below]
    parts += [f"{name}:\n{block('input', given[name])}" for name in given if name in below]
    return "\n\n".join(parts)


def _is_question(text: str) -> bool:
    return text.rstrip().endswith(("?", "？", "؟"))


def quoted(text: str) -> str:
    """A text on one line between quotation marks, none of which is its own."""
    return '"{}"'.format(" ".join(text.split()).replace('"', "'"))
