"""Where the data is that is read here and never copied: `shared/` beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared(name: str) -> Path:
    """A file of the shared data; the test is skipped where it is not."""
    for folder in Path(__file__).parents:
        if (path := folder / "shared/data" / name).exists():
            return path
    pytest.skip(f"the data is not here: shared/data/{name}")
