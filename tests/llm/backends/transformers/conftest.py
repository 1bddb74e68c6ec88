"""A tiny model in a folder."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from pearl.llm.backends import ModelSettings
from pearl.llm.backends.transformers import TransformersModel, create
from tests.llm.backends.transformers.tiny_models import (
    save_model,
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    if find_spec("torch") is None:  # nothing here needs it then
        return
    import torch

    torch.set_num_threads(1)  # tests run beside one another


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random")
    save_model(folder)
    return folder


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """The same, to be broken."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.fixture
def model(folder: Path) -> TransformersModel:
    return create(str(folder), ModelSettings())
