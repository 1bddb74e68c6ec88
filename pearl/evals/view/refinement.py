"""`Refinement` → one HTML page: figures, library with lineage, rounds, every draft, comparison."""

from __future__ import annotations

from pathlib import Path

from pearl.mining.refine.library import lineage
from pearl.mining.refine.refinement import Refinement
from pearl.view.page import render_page

TEMPLATES = Path(__file__).with_name("templates")

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
        folder=TEMPLATES,
        style="report",
        it=refinement,
        lineage=lineage,
        stages=_STAGES,
    )
