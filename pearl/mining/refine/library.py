"""`Refinement` → the text of an action file, each action preceded by a comment with its drafts."""

from __future__ import annotations

import textwrap
from collections import Counter
from pathlib import PurePath

from pearl.mining.refine.refinement import RefinedAction, Refinement

_WIDTH = 100


def library_text(refinement: Refinement) -> str:
    """The library in canonical form, unchanged by `pearl fmt`."""
    n_in, n_left = len(refinement.drafts), sum(len(a.drafts) for a in refinement.actions)
    source = " ".join(PurePath(refinement.source).name.split())
    head = (
        f"Refined by {refinement.model}: {len(refinement.actions)} actions stand for {n_left} of "
        f"{n_in} drafts of {source}."
    )
    blocks = [_comment(head, "# ")]
    for action in refinement.actions:
        stands_for = _comment(f"stands for: {', '.join(lineage(refinement, action))}", "#   ")
        blocks.append(f"{stands_for}\n{action.text}")
    return "\n\n".join(blocks) + "\n"


def lineage(refinement: Refinement, action: RefinedAction) -> list[str]:
    """The names of the drafts of an action: `FIND_REASON`, `FIND_REASONS x3`."""
    names = Counter(refinement.drafts[number].name for number in action.drafts)
    seeds = {refinement.drafts[n].name for n in action.drafts if refinement.drafts[n].is_seed}
    return [
        f"{name}{f' x{n}' if n > 1 else ''}{' (seed)' if name in seeds else ''}"
        for name, n in sorted(names.items(), key=lambda item: str(item[0]))
    ]


def _comment(text: str, further: str) -> str:
    """The text as comment lines."""
    return textwrap.fill(
        text, _WIDTH, initial_indent="# ", subsequent_indent=further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
