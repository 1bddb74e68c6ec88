"""Rerankers: what each dialect sends, and what replies are no ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pearl.errors import ModelError, UsageError
from pearl.llm import rerankers
from pearl.llm.rerankers import create_reranker
from tests.server import Canned, Seen, Server

TEXTS = ("iron", "salt", "lead")
SCORES = (0.1, 0.9, 0.4)
ORDER = (1, 2, 0)
"""Servers send the best first."""


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerankers, "FIRST_WAIT_S", 0.0)
    for name in ("PEARL_RERANKER_API_KEY", "COHERE_API_KEY", "PEARL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def entries(name: str = "relevance_score", indices: Sequence[Any] = ORDER) -> list[dict[str, Any]]:
    return [{"index": i, name: SCORES[i], "document": {"text": "not read"}} for i in indices]


def rerank(url: str, spec: str = "cohere:m", texts: Sequence[str] = TEXTS) -> list[float]:
    async def asked() -> list[float]:
        reranker = create_reranker(spec, url=url)
        try:
            return await reranker.rerank("what is salt?", texts)
        finally:
            await reranker.aclose()

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("spec", "reply", "body"),
    [
        (
            "cohere:rerank-v3.5",
            {"id": "x", "results": entries()},
            {
                "model": "rerank-v3.5",
                "query": "what is salt?",
                "documents": list(TEXTS),
                "top_n": 3,
            },
        ),
        (
            "tei",
            entries("score"),
            {"query": "what is salt?", "texts": list(TEXTS), "truncate": True},
        ),
        (
            "voyage:rerank-2.5",
            {"object": "list", "data": entries()},
            {"model": "rerank-2.5", "query": "what is salt?", "documents": list(TEXTS), "top_k": 3},
        ),
    ],
)
def test_dialects(openai_server: Server, spec: str, reply: Any, body: dict[str, Any]) -> None:
    openai_server.answer = lambda _: Canned(reply)
    assert rerank(f"{openai_server.url}/rerank", spec) == list(SCORES)
    (seen,) = openai_server.requests
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/rerank", body)


def test_the_address_is_taken_whole_with_its_query(openai_server: Server) -> None:
    openai_server.answer = lambda _: Canned(entries("score"))
    root = openai_server.url.removesuffix("/v1")
    rerank(f"{root}/api/v2/rerank?version=7")
    rerank(f"{root}/rerank")
    assert [seen.path for seen in openai_server.requests] == ["/api/v2/rerank?version=7", "/rerank"]


def test_many_texts_go_in_batches_and_come_back_in_order(openai_server: Server) -> None:
    def answer(seen: Seen) -> Canned:
        texts = seen.body["texts"]
        return Canned([{"index": i, "score": float(texts[i])} for i in reversed(range(len(texts)))])

    openai_server.answer = answer
    texts = [str(n) for n in range(70)]
    assert rerank(f"{openai_server.url}/rerank", "tei", texts) == [float(n) for n in range(70)]
    assert [len(seen.body["texts"]) for seen in openai_server.requests] == [32, 32, 6]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"results": entries(indices=(1, 2))}, "scores for the texts 1, 2 in place of 0 to 2"),
        ({"results": [*entries(), *entries(indices=(1,))]}, "scores for the texts 1, 2, 0"),
        ({"results": [*entries(indices=(0, 1)), {"index": 3, "score": 1.0}]}, "texts 0, 1, 3"),
        ({"results": [{"index": 10**4_000, "score": 1.0}]}, "scores for the texts 1000"),
        ({"results": [{"index": True, "score": 1.0}]}, "'0.index' is missing or of the wrong type"),
        ({"results": [7]}, "'0' is missing or of the wrong type"),
        ({"results": [{"index": 0, "relevance_score": None}]}, "'0.relevance_score' is missing"),
        ('[{"index": 0, "score": NaN}]', "'0.score' is missing or of the wrong type"),
        (f'[{{"index": 0, "score": 1{"0" * 400}}}]', "'0.score' is missing or of the wrong type"),
        ({"results": [{"index": 0, "score": "0.5"}]}, "'0.score' is missing or of the wrong type"),
        ({"ranking": []}, "is not a list of results"),
        ("[" * 100_000, "is not complete JSON"),
        ({"error": "the model is not loaded"}, "the model is not loaded"),
    ],
)
def test_a_reply_without_one_score_for_each_text_is_an_error(
    openai_server: Server, reply: Any, why: str
) -> None:
    openai_server.answer = lambda _: Canned(reply)
    with pytest.raises(ModelError) as failed:
        rerank(f"{openai_server.url}/rerank")
    assert why in failed.value.message
    assert len(failed.value.message) < 500
    assert failed.value.kind == "malformed"


def test_transient_failures_are_retried(openai_server: Server) -> None:
    openai_server.answer = lambda _: Canned(entries())
    openai_server.next("503", "reset")
    assert rerank(f"{openai_server.url}/rerank") == list(SCORES)
    assert len(openai_server.requests) == 3


def test_an_unreachable_server_is_named() -> None:
    with pytest.raises(ModelError) as failed:
        rerank("http://127.0.0.1:9/v1/rerank")
    assert failed.value.message == "reranker: no server at http://127.0.0.1:9/v1"
    assert failed.value.help == "start it, or give its address with --reranker-url"


def test_a_wrong_path_is_reported(openai_server: Server) -> None:
    openai_server.next("404")
    with pytest.raises(ModelError) as failed:
        rerank(f"{openai_server.url}/nowhere")
    assert "/v1/nowhere answered 404" in failed.value.message
    assert failed.value.help == (
        "check the whole address, path included, and the model: --reranker-url"
    )


# --- keys -------------------------------------------------------------------------------------


def authorization(server: Server, **options: Any) -> str | None:
    server.answer = lambda _: Canned(entries())

    async def asked() -> None:
        await create_reranker("cohere:m", url=f"{server.url}/rerank", **options).rerank("q", TEXTS)

    asyncio.run(asked())
    headers = {name.lower(): value for name, value in server.requests[-1].headers.items()}
    return headers.get("authorization")


def test_the_key_of_the_reranker_is_sent(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_RERANKER_API_KEY", "rk-0123456789abcdef")
    assert authorization(openai_server) == "Bearer rk-0123456789abcdef"
    monkeypatch.setenv("MINE", "mk-0123456789abcdef")
    assert authorization(openai_server, api_key_env="MINE") == "Bearer mk-0123456789abcdef"


def test_keys_of_models_and_vendors_are_not_sent_elsewhere(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "PEARL_API_KEY", "COHERE_API_KEY"):
        monkeypatch.setenv(name, "sk-0123456789abcdef")
    assert "0123456789abcdef" not in (authorization(openai_server) or "")


def test_keys_are_never_shown(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "rk-0123456789abcdef"
    monkeypatch.setenv("PEARL_RERANKER_API_KEY", key)
    url = f"{openai_server.url}/rerank?token=tk-0123456789"
    openai_server.answer = lambda _: Canned({"error": f"bad {key} tk-0123456789"}, 400)
    with pytest.raises(ModelError) as failed:
        rerank(url)
    reranker = create_reranker("cohere:m", url=url)
    for said in (str(failed.value), repr(reranker), reranker.name):
        assert key not in said
        assert "tk-0123456789" not in said


# --- what cannot be set up --------------------------------------------------------------------


def test_unknown_rerankers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="did you mean 'cohere'"):
        create_reranker("coher:m")
    with pytest.raises(UsageError, match="needs the name of a model"):
        create_reranker("cohere")
    with pytest.raises(UsageError, match="needs the address of its server"):
        create_reranker("tei")
    with pytest.raises(UsageError, match="not the address of a server"):
        create_reranker("tei", url="localhost/rerank")
    monkeypatch.delenv("MINE", raising=False)
    with pytest.raises(ModelError, match="MINE, the key of the reranker, is not set"):
        create_reranker("cohere:m", api_key_env="MINE")
