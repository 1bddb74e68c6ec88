"""One SmolLM2 for all tests of a process, and one server; tests are skipped where it is not here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pearl.llm.backends import ModelSettings, create_model
from tests.real.smollm2 import FILE, IS_THERE, Watched, llama_server
from tests.skips import NO_LARGE, NO_SMOLLM2


@pytest.fixture(scope="session", autouse=True)
def _weights() -> None:
    if not IS_THERE:
        pytest.skip(NO_SMOLLM2)
    pytest.importorskip("xllamacpp", reason=NO_LARGE)


@pytest.fixture(scope="session")
def smollm2(_weights: None) -> Iterator[Watched]:
    """The model in a file, watched."""
    model = create_model(f"llamacpp:{FILE}", ModelSettings())
    yield Watched(model)
    asyncio.run(model.aclose())


@pytest.fixture(scope="session")
def server_url(_weights: None) -> Iterator[str]:
    """Address of llama.cpp's server."""
    with llama_server() as url:
        yield url
