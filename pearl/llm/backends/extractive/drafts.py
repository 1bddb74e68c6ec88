"""Drafts of new actions: proposed for a question, and merged, by rule."""

from __future__ import annotations

import re
from dataclasses import replace

from pearl.actions.likeness import by_words, may_merge
from pearl.dsl.nodes import print_action, print_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType
from pearl.llm import RefineTask
from pearl.llm.backends.extractive.planning import build_plan, missing_role
from pearl.llm.backends.extractive.questions import Part, parts

_PARAMETERS = (Parameter(CTX, ValueType.CONTEXT), Parameter("X"))
_LEAST = 0.25
"""Minimum likeness of drafts that are merged."""
_DOING = re.compile(r"\s\w+ing\Z")
"""`the ship hiding`, in "What is the captain of the ship hiding": what is asked for is no captain."""
_NOUN = re.compile(r"the ([a-z]{3,}(?: [a-z]{3,})?)")


def propose(question: str, library: ActionLibrary) -> str:
    """A plan for the question that declares the new actions it calls.

    An action is named after the thing that is asked for or, if the library has none for the form of
    the question, after the form.

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
    thing, of = part.thing_of if part.form in ("thing", "effect") else ("", "")
    if not _DOING.search(of) and (noun := _NOUN.fullmatch(thing.strip().lower())):
        name = f"FIND_{noun[1].replace(' ', '_').upper()}"
        definition = f"Find the {noun[1]} of X in CTX"
    elif missing := missing_role(part, library):
        name, explanation = missing
        definition = f"{explanation}, for X, in CTX"
    else:
        return None
    return None if name in library else Action(name, _PARAMETERS, definition)


def refine(task: RefineTask) -> str:
    """Merge the two most similar drafts, repeatedly: an action a line, with the numbers of its drafts.

    Drafts are compared by their words. Unlike drafts stay apart, even if that leaves more than
    `task.max_actions`.
    """
    import numpy as np

    drafts = task.drafts
    close = np.triu(by_words(drafts), 1)
    groups = {i: [i] for i in range(len(drafts))}
    while len(groups) > task.max_actions and close.max(initial=0) >= _LEAST:
        i, j = (int(at) for at in np.unravel_index(close.argmax(), close.shape))
        close[i, j] = 0
        if not may_merge(drafts[i], drafts[j]):
            continue
        keep, fold = sorted((i, j), key=lambda k: (*_specificity(drafts[k]), k))
        groups[keep] += groups.pop(fold)
        close[fold, :] = close[:, fold] = 0
    return "\n".join(
        f"{print_action(drafts[i])} {[number + 1 for number in sorted(group)]}"
        for i, group in sorted(groups.items())
    )


def _specificity(action: Action) -> tuple[int, int]:
    """Lower for a more general action: words of its name, characters of its definition."""
    return action.name.count("_"), len(action.definition)
