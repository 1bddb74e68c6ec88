"""`Refinement` → one HTML page: figures, library with lineage, rounds, every draft, comparison."""

from __future__ import annotations

from pearl.evals.view.page import render_page
from pearl.mining.refine.library import lineage
from pearl.mining.refine.refinement import Refinement

__all__ = ["refinement_page"]

_STAGES = {
    "exact": "same text",
    "name": "same name",
    "definition": "same meaning",
    "model": "by the model",
    "room": "to make room",
    "malformed": "malformed",
}


def refinement_page(refinement: Refinement) -> str:
    """The page."""
    return render_page(
        "refinement",
        f"{len(refinement.actions)} actions from {len(refinement.drafts)} drafts",
        it=refinement,
        figures=_figures(refinement),
        lineage=lineage,
        stages=_STAGES,
    )


def _figures(refinement: Refinement) -> list[tuple[str, int, str]]:
    count, calls, usage = refinement.count, refinement.calls, refinement.usage
    limit = f"at most {refinement.max_tokens:,}" if refinement.max_tokens else "no limit"
    faults = f"{calls('failed')} failed, {calls('unusable')} with a reply that is not usable"
    return [
        ("Drafts in", len(refinement.drafts), ""),
        *((f"Merged: {_STAGES[s]}", count("merged", s), "") for s in list(_STAGES)[:5]),
        ("Dropped: malformed", count("dropped", "malformed"), ""),
        ("Dropped: by the model", count("dropped", "model"), ""),
        ("Dropped: no room, or the name was taken", count("dropped", "room"), ""),
        ("Kept as they are", count("kept"), ""),
        ("Actions out", len(refinement.actions), f"at most {refinement.max_actions}"),
        ("Tokens of the library", refinement.n_tokens, f"{limit}; {refinement.token_count}"),
        ("Calls to the model", calls(), faults),
        ("Tokens to the model", usage.n_input_tokens, f"{usage.n_output_tokens:,} from it"),
    ]
