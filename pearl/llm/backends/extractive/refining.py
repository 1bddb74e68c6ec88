"""Drafts of actions → fewer, by rule: the two most alike are folded into one, and again.

It reads words, not meanings: what it folds has a shape and words in common. It writes no action of
its own, so drafts that only a more general action could join stay apart.
"""

from __future__ import annotations

from pearl.actions.likeness import by_words, may_merge
from pearl.dsl.printer import print_action
from pearl.dsl.signatures import Action
from pearl.llm import RefineTask

__all__ = ["refine"]

_LEAST = 0.25
"""Likeness below which two drafts share a word, hardly a purpose."""


def _specificity(action: Action) -> tuple[int, int]:
    """The more general action has the shorter name, in words, and the shorter definition."""
    return action.name.count("_"), len(action.definition)


def refine(task: RefineTask) -> str:
    """The reply to a request to merge drafts: an action a line, with the numbers of its drafts.

    Args:
        task: Where more drafts than wanted are unlike all others, more than wanted are left.
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
