"""The modules of experiments/, imported as a script imports its neighbours."""

from __future__ import annotations

import importlib
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from tests.root import ROOT


@cache
def experiment(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments/retrieval")
        patch.syspath_prepend(ROOT / "experiments")
        return importlib.import_module(name)


parts = SimpleNamespace(**{
    name: experiment(f"aggregation.{name}")
    for name in ("bars", "forecasting", "oracle", "queries", "questions", "running", "windows")
})  # fmt: skip
"""The modules of `experiments/aggregation`."""
