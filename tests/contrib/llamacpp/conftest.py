"""A file of random weights, for tests that are skipped where no program can run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gguf_models import write_random_model
from tests.skips import NO_LARGE


@pytest.fixture(autouse=True)
def _runs() -> None:
    pytest.importorskip("xllamacpp", reason=NO_LARGE)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_model(tmp_path_factory.mktemp("models") / "random.gguf")
