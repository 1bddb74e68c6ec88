"""A scripted `Pearl` that other processes can build, and its plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pearl import Pearl

PLAN = '1. hero = FIND(CTX, "the hero of the story") : Who\n2. why = FIND(CTX, hero) : Why'
RULES = [
    {"match": r"the hero of the story.*This is (\w+),", "reply": r"The hero of \1"},
    {"match": r"This is (\w+),", "reply": r'"It is short, says \1."'},
]
CONCURRENCY = 16


def pearl_in(folder: Path, concurrency: int = CONCURRENCY) -> Pearl:
    """A scripted one that can be built elsewhere, too."""
    rules = folder / "rules.json"
    if not rules.exists():  # one that is written again is another model
        rules.write_text(json.dumps(RULES))
    return with_settings(model=f"scripted:{rules}", concurrency=concurrency)


def with_settings(**settings: Any) -> Pearl:
    return Pearl(**settings)
