"""A file of random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.llm.backends.llamacpp.gguf_models import write_random_model


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_model(tmp_path_factory.mktemp("models") / "random.gguf")
