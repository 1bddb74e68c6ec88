"""Corpora with embeddings of a server: as it answers, and as it is down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.cli.test_corpora import corpus
from tests.server import Server, serving

__all__ = ["corpus"]

ASKED = (
    "ask",
    "Who sold the boat?",
    "reports",
    "--together",
    "--window",
    "2000",
    "--max-output-tokens",
    "100",
)
HYBRID = ("--ranker", "hybrid", "--embeddings", "openai:e")

DOWN = "http://127.0.0.1:9/v1"


@pytest.fixture
def embeddings(corpus: Path, openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", openai_server.url)
    return openai_server


def test_a_server_of_embeddings_gets_no_key_of_the_models(
    pearl: Terminal, embeddings: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELS_KEY", "sk-of-the-model")
    with serving() as model:
        options = ("--model", "openai:m", "--base-url", model.url, "--api-key-env", "MODELS_KEY")
        Path("boat.plan").write_text('1. found = RETRIEVE(CTX, "boat", 5) : Search')
        pearl("execute", "boat.plan", "reports", "--together", *HYBRID, *options)
        assert not model.requests
    keys = {seen.headers["authorization"] for seen in embeddings.requests}
    assert keys == {"Bearer none"}


@pytest.mark.usefixtures("_no_waits")
def test_the_embedded_model_says_that_its_vectors_cannot_be_had(
    pearl: Terminal, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", DOWN)
    pearl(*ASKED, *HYBRID, code=5)  # not an answer by words under the name of one with vectors
    assert "no server at http://127.0.0.1:9" in pearl.talk
