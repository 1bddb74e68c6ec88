"""Replies, refusals and listings of local servers, field by field as these send them.

Written from what vLLM, Ollama and llama.cpp's server document and send, not from our client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from pearl import Pearl
from pearl.documents.document import Document
from pearl.errors import ModelError
from pearl.interpreter.answer import Answer
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends import ModelSettings, create_model
from tests.llm.backends.openai.kinds import KINDS
from tests.models import answer_task
from tests.server import Canned, Seen, Server


@dataclass(frozen=True)
class Local:
    """How one server writes.

    Attributes:
        reply: The fields of a response beside its choices.
        choice: Those of a choice beside its message and its end.
        message: Those of a message beside its text.
        too_long: What it answers to a prompt longer than its window; None where it cuts it in silence.
        n_cached: Tokens that `reply` says were cached.
    """

    reply: dict[str, Any]
    choice: dict[str, Any]
    message: dict[str, Any]
    too_long: Canned | None
    n_cached: int

    def completion(self, text: str, finish_reason: str = "stop") -> Canned:
        """A whole response."""
        message = {"role": "assistant", "content": text, **self.message}
        choice = {"index": 0, "message": message, "finish_reason": finish_reason, **self.choice}
        return Canned({"choices": [choice], **self.reply})


SERVERS = {
    "vllm": Local(
        {
            "id": "chatcmpl-7c1", "object": "chat.completion", "created": 1_790_000_000, "model": "smollm2",
            "service_tier": None, "system_fingerprint": None, "prompt_logprobs": None,
            "prompt_token_ids": None, "kv_transfer_params": None,
            "usage": {
                "prompt_tokens": 90, "total_tokens": 97, "completion_tokens": 7,
                "prompt_tokens_details": None,
            },
        },
        {"logprobs": None, "stop_reason": None, "token_ids": None},
        {
            "refusal": None, "annotations": None, "audio": None, "function_call": None,
            "tool_calls": [], "reasoning": None, "reasoning_content": None,
        },
        Canned(
            {
                "error": {
                    "message": "This model's maximum context length is 512 tokens. However, your request has 900 input tokens. Please reduce the length of the input messages.",
                    "type": "BadRequestError", "param": "input_tokens", "code": 400,
                }
            },
            400,
        ),
        0,
    ),
    "ollama": Local(
        {
            "id": "chatcmpl-558", "object": "chat.completion", "created": 1_790_000_000, "model": "smollm2",
            "system_fingerprint": "fp_ollama",
            "usage": {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97},
        },
        {},
        {},
        None,
        0,
    ),
    "llamacpp": Local(
        {
            "created": 1_790_000_000, "model": "smollm2", "system_fingerprint": "b6900-unknown",
            "object": "chat.completion", "id": "chatcmpl-xIdK",
            "usage": {
                "completion_tokens": 7, "prompt_tokens": 90, "total_tokens": 97,
                "prompt_tokens_details": {"cached_tokens": 60},
            },
            "timings": {
                "cache_n": 60, "prompt_n": 30, "prompt_ms": 377.0, "predicted_n": 7,
                "predicted_ms": 152.0, "predicted_per_second": 46.0,
            },
        },
        {},
        {},
        Canned(
            {
                "error": {
                    "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 900, "n_ctx": 512,
                    "message": "request (900 tokens) exceeds the available context size (512 tokens), try increasing it",
                }
            },
            400,
        ),
        60,
    ),
}  # fmt: skip

REQUEST = Request((Message("user", "Who?"),), answer_task("Who?", ""), 40)


@pytest.fixture(params=SERVERS)
def local(request: pytest.FixtureRequest, openai_server: Server) -> Local:
    openai_server.models = ["smollm2"]
    openai_server.owned_by = KINDS[request.param].owned_by
    return SERVERS[request.param]


def ask(server: Server, answer: Canned) -> Completion:
    server.next(answer)
    model = create_model("openai:smollm2", ModelSettings(server.url, 20.0))

    async def main() -> Completion:
        try:
            return await model.complete(REQUEST)
        finally:
            await model.aclose()

    return asyncio.run(main())


def test_a_reply_is_read_with_what_it_took(local: Local, openai_server: Server) -> None:
    found = ask(openai_server, local.completion("Ada did."))
    assert found == Completion("Ada did.", "smollm2", Usage(90, 7, local.n_cached))


def test_a_reply_that_is_cut_off_is_kept_with_what_it_took(
    local: Local, openai_server: Server
) -> None:
    with pytest.raises(ModelError) as caught:
        ask(openai_server, local.completion("Ada did. And th", "length"))
    assert (caught.value.kind, caught.value.reply) == ("truncated", "Ada did. And th")
    assert caught.value.usage == Usage(90, 7, local.n_cached)


@pytest.mark.parametrize("too_long", [one.too_long for one in SERVERS.values() if one.too_long])
def test_a_prompt_beyond_its_window_is_told_and_not_sent_again(
    too_long: Canned, openai_server: Server
) -> None:
    with pytest.raises(ModelError) as caught:
        ask(openai_server, too_long)
    assert (caught.value.kind, caught.value.is_retryable) == ("bad_request", False)
    assert "--window" in str(caught.value)
    assert len(openai_server.requests) == 1


def test_a_question_is_answered_over_it(local: Local, openai_server: Server) -> None:
    def answer(seen: Seen) -> Canned:
        assert "Ada keeps bees." in seen.prompt
        return local.completion("Ada.\n“Ada keeps bees.”")

    openai_server.answer = answer
    document = Document("Ada keeps bees. Ben keeps goats.")

    async def main() -> Answer:
        settings: dict[str, Any] = {"base_url": openai_server.url, "window": 4_096}
        async with Pearl("openai:smollm2", planned_by="rule", **settings) as pearl:
            return await pearl.ask("Who keeps bees?", document)

    answered = asyncio.run(main())
    assert (answered.status, answered.usage.n_output_tokens) == ("answered", 7)
    assert [one.text for one in answered.evidence] == ["Ada keeps bees."]
