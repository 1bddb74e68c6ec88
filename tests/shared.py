"""The folder of shared data beside the checkout, which tests read and never copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skips import NO_SHARED


def shared(name: str) -> Path:
    """A file or folder of the shared data; without that data the test is skipped."""
    for folder in Path(__file__).parents:
        if (data := folder / "shared/data").is_dir():
            if not (data / name).exists():
                raise FileNotFoundError(f"the shared data is here, but not this: {data / name}")
            return data / name
    pytest.skip(NO_SHARED)
