"""Question + library → the actions that answering it would need besides, by rule.

A draft is named after the form of the question, where the library has no action for the form, or
after the kind of thing that is asked for ("the symptoms of X": `FIND_SYMPTOMS`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from pearl.dsl.nodes import CTX
from pearl.dsl.printer import print_plan
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.llm.backends.extractive.planning import build_plan, missing_role
from pearl.llm.backends.extractive.questions import Part, parts

__all__ = ["propose"]

_PARAMETERS = (Parameter(CTX, ValueType.CONTEXT), Parameter("X"))
_NOUN = re.compile(r"(?:the |some |any )?([a-z]{3,}(?: [a-z]{3,})?)")


def propose(question: str, library: ActionLibrary) -> str:
    """A plan for the question that declares the new actions it calls.

    Example:
        >>> find = Action("FIND", _PARAMETERS, "Find X")
        >>> print(propose("What are the symptoms of gout?", ActionLibrary("mine", [find])))
        New actions:
        - FIND_SYMPTOMS(CTX, X) : Find the symptoms of X in CTX
        <BLANKLINE>
        1. answer = FIND_SYMPTOMS(CTX, "gout") : Find what the text says about it
    """
    drafts = [action for part in parts(question) if (action := _draft(part, library))]
    plan = build_plan(question, library.extended(drafts))
    called = {step.action for step in plan.steps}
    new = [action for action in dict.fromkeys(drafts) if action.name in called]
    return print_plan(replace(plan, new_actions=(*new, *plan.new_actions)))


def _draft(part: Part, library: ActionLibrary) -> Action | None:
    """The new action for a part of a question, if its library lacks one."""
    if part.of and (noun := _NOUN.fullmatch(part.thing.strip().lower())):
        name = f"FIND_{noun[1].replace(' ', '_').upper()}"
        definition = f"Find the {noun[1]} of X in CTX"
    elif missing := missing_role(part, library):
        word, explanation = missing
        name, definition = f"FIND_{word}", f"{explanation}, for X, in CTX"
    else:
        return None
    return None if name in library else Action(name, _PARAMETERS, definition)
