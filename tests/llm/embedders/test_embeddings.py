"""Embeddings of a real server on loopback: what it sends is used as it was asked for, or not at all."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pearl.errors import ModelError
from pearl.llm.embedders import EmbedderSettings, create_embedder, openai
from pearl.llm.embedders.openai import BATCH_CHARACTERS, BATCH_TEXTS, prefix_of
from pearl.retrieval import TextKind
from tests.server import FAULTS, Canned, Seen, Server, embeddings, error

KEY = "sk-0123456789abcdef0123"


def embed(
    server: Server, *texts: str, kind: TextKind = "passage", model: str = "m", attempts: int = 1,
    timeout_s: float = 120.0, **settings: Any,
) -> np.ndarray:  # fmt: skip
    """Vectors that nothing keeps."""

    async def run() -> np.ndarray:
        embedder = openai.create(model, EmbedderSettings(server.url, **settings))
        try:
            return await embedder.embed(texts, kind)
        finally:
            await embedder.aclose()

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("ATTEMPTS", attempts),
            ("FIRST_WAIT_S", 0.01),
            ("TIMEOUT_S", timeout_s),
        ):
            patch.setattr(openai, name, value)
        return asyncio.run(run())


def vector_of(text: str) -> np.ndarray:
    vector = np.array(embeddings([text])["data"][0]["embedding"])
    return vector / np.linalg.norm(vector)


def test_texts_go_as_strings_and_vectors_come_as_floats(openai_server: Server) -> None:
    vectors = embed(openai_server, "the lamp failed", "the ship")
    np.testing.assert_allclose(
        vectors, [vector_of("the lamp failed"), vector_of("the ship")], atol=1e-7
    )
    assert vectors.dtype == np.float32
    (seen,) = openai_server.requests
    assert (seen.method, seen.path) == ("POST", "/v1/embeddings")
    assert seen.body == {
        "model": "m", "input": ["the lamp failed", "the ship"], "encoding_format": "float",
    }  # fmt: skip


def test_no_texts_are_no_call(openai_server: Server) -> None:
    assert embed(openai_server).shape == (0, 0)
    assert not openai_server.requests


def test_many_texts_go_in_batches_and_keep_their_order(openai_server: Server) -> None:
    texts = [f"ship {n}" for n in range(2 * BATCH_TEXTS + 3)] + [
        "long " * (BATCH_CHARACTERS // 6)
    ] * 3
    openai_server.delay_s, openai_server.n_together = 5.0, 2
    vectors = embed(openai_server, *texts, concurrency=2)
    np.testing.assert_allclose(vectors, [vector_of(text) for text in texts], atol=1e-7)
    sizes = sorted(len(seen.body["input"]) for seen in openai_server.requests)
    assert sizes == [1, 1, 4, BATCH_TEXTS, BATCH_TEXTS]
    assert openai_server.n_at_once == 2


def test_vectors_are_put_in_the_order_of_their_indices(openai_server: Server) -> None:
    reply = embeddings(["a b", "c", "d e f"])
    reply["data"].reverse()
    openai_server.next(Canned(reply))
    vectors = embed(openai_server, "a b", "c", "d e f")
    np.testing.assert_allclose(vectors, [vector_of(t) for t in ("a b", "c", "d e f")], atol=1e-7)


def changed(change: Callable[[list[dict[str, Any]]], object]) -> dict[str, Any]:
    reply = embeddings(["a", "b", "c"])
    change(reply["data"])
    return reply


BROKEN: dict[str, dict[str, Any]] = {
    "its indices are not those of 3 texts": changed(lambda data: data.pop()),
    "not those of 3 texts": changed(lambda data: data[1].update(index=0)),
    "those of 3 texts": changed(lambda data: data[2].update(index=3)),
    "vectors of 15, 16 dimensions": changed(lambda data: data[0]["embedding"].pop()),
    "a vector is zero": changed(lambda data: data[1].update(embedding=[0.0] * 16)),
    "that are not finite": changed(lambda data: data[1].update(embedding=[1e308] * 16)),
    "not finite": changed(lambda data: data[1].update(embedding=[float("nan")] * 16)),
    "not complete JSON": changed(lambda data: data[0].update(more="DEEP")),
    r"embedding\.3": changed(lambda data: data[1]["embedding"].__setitem__(3, "1.0")),
}


@pytest.mark.parametrize("said", BROKEN)
def test_malformed_replies_are_refused(openai_server: Server, said: str) -> None:
    body = json.dumps(BROKEN[said]).replace('"DEEP"', "[" * 100_000 + "]" * 100_000)
    openai_server.next(Canned(body))
    with pytest.raises(ModelError, match=said) as failed:
        embed(openai_server, "a", "b", "c")
    assert failed.value.kind == "malformed"
    assert len(str(failed.value).splitlines()) <= 3
    assert not re.search("--base-url|--timeout-s", failed.value.help or "")  # options of models


def test_a_malformed_reply_is_requested_again(openai_server: Server) -> None:
    openai_server.next("half JSON", "500", Canned(BROKEN["a vector is zero"]), "reset")
    np.testing.assert_allclose(embed(openai_server, "a", attempts=5), [vector_of("a")], atol=1e-7)
    assert len(openai_server.requests) == 5


def test_batches_of_different_dimensions_are_refused(openai_server: Server) -> None:
    openai_server.answer = lambda seen: Canned(
        embeddings(seen.body["input"], dimension=16 if "ship 0" in seen.body["input"] else 8)
    )
    with pytest.raises(ModelError, match="vectors of 8, 16 dimensions"):
        embed(openai_server, *(f"ship {n}" for n in range(100)))


@pytest.mark.parametrize("fault", ["401", "reset", "hang", "page"])
def test_every_fault_of_a_server_is_a_model_error(openai_server: Server, fault: str) -> None:
    openai_server.answer = lambda seen: FAULTS[fault]
    with pytest.raises(ModelError) as failed:
        embed(openai_server, "a", timeout_s=0.5)
    assert len(str(failed.value).splitlines()) <= 3
    assert ("cut passages shorter" in (failed.value.help or "")) is (fault == "hang")


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_batch_that_is_too_large_is_halved_and_stays_so(
    openai_server: Server, status: int
) -> None:
    def answer(seen: Seen) -> Canned:
        texts = seen.body["input"]
        if len(texts) > 32:
            return Canned(error("batch size 64 > maximum allowed batch size 32"), status)
        return Canned(embeddings(texts))

    openai_server.answer = answer
    texts = [f"ship {n}" for n in range(200)]
    vectors = embed(openai_server, *texts, concurrency=1)
    np.testing.assert_allclose(vectors, [vector_of(text) for text in texts], atol=1e-7)
    assert [len(seen.body["input"]) for seen in openai_server.requests].count(64) == 1


def test_other_refusals_end_the_halving(openai_server: Server) -> None:
    openai_server.answer = lambda seen: Canned(error("no such parameter: encoding_format"), 400)
    with pytest.raises(ModelError, match="encoding_format"):
        embed(openai_server, *(f"ship {n}" for n in range(64)), model="test-model", attempts=4)
    assert len(openai_server.requests) == 7  # 64, 32, 16, 8, 4, 2, 1


def test_a_key_is_sent_and_never_shown(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    settings = EmbedderSettings(openai_server.url, api_key_env="MY_KEY")
    embedder = create_embedder("openai:m", settings)
    assert KEY not in f"{embedder.name} {embedder.notice} {embedder!r} {settings!r}"
    assert "MY_KEY" in embedder.notice
    openai_server.next(Canned(error(f"bad key {KEY}"), 400), Canned({"data": [{"index": KEY}]}))
    for _ in range(2):
        with pytest.raises(ModelError) as failed:
            embed(openai_server, "a", api_key_env="MY_KEY")
        assert KEY not in str(failed.value)
    assert {seen.headers["authorization"] for seen in openai_server.requests} == {f"Bearer {KEY}"}


def test_embeddings_may_have_a_server_and_a_key_of_their_own(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("PEARL_API_KEY", "of-the-model")
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", openai_server.url)
    embedder = create_embedder("openai:m")
    assert "the key in PEARL_API_KEY" in embedder.notice
    monkeypatch.setenv("PEARL_EMBEDDINGS_API_KEY", KEY)

    async def once() -> None:
        embedder = create_embedder("openai:m")
        await embedder.embed(["a"], "query")
        await embedder.aclose()

    asyncio.run(once())
    assert openai_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_openai_itself_asks_for_a_key() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        create_embedder("openai:text-embedding-3-small")
    create_embedder("openai:text-embedding-3-small", EmbedderSettings(is_asked=False))


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("text-embedding-3-small", "", ""),
        ("intfloat/e5-large-v2", "query: ", "passage: "),
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-m3", "", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("multilingual-e5-large-instruct", prefix_of("e5-instruct", "query"), ""),
    ],
)
def test_texts_begin_as_the_model_was_trained(
    openai_server: Server, model: str, query: str, passage: str
) -> None:
    embed(openai_server, "a", kind="query", model=model)
    embed(openai_server, "a", kind="passage", model=model)
    sent = [seen.body["input"][0] for seen in openai_server.requests]
    assert sent == [f"{query}a", f"{passage}a"]


def test_whatever_changes_vectors_changes_the_name(openai_server: Server) -> None:
    settings = [
        ("openai:m", EmbedderSettings(openai_server.url)),
        ("openai:n", EmbedderSettings(openai_server.url)),
        ("openai:m", EmbedderSettings("http://localhost:1/v1")),
        ("openai:e5-m", EmbedderSettings(openai_server.url)),
    ]
    assert len({create_embedder(spec, each).name for spec, each in settings}) == len(settings)
