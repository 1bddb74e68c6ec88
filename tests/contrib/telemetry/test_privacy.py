"""Spans have no content of documents, questions, plans, replies or errors unless it is requested."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest
from jsonschema import validate
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import pearl
from pearl.contrib.telemetry import Telemetry
from pearl.contrib.telemetry.conventions import MAX_CHARACTERS, text_of
from pearl.errors import PearlError
from pearl.llm import Message
from pearl.trace import ModelAttempted
from tests.contrib.telemetry.spans import Spans
from tests.server import Canned, Server, completion, error

CANARIES = (
    "canary_question", "canary_step", "canary_argument", "canary_explanation", "canary_document",
    "canary_reply", "canary_file", "canary_diagnosed",
)  # fmt: skip

PLAN = """\
New actions:
- None

1. canary_step = FIND(CTX, "canary_argument") : canary_explanation
2. ans = COMPARE(CTX, canary_step, canary_step) : Compare
"""

MESSAGES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["role", "parts"],
        "properties": {
            "role": {"type": "string"},
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "content"],
                    "properties": {"type": {"const": "text"}, "content": {"type": "string"}},
                },
            },
            "finish_reason": {"type": "string"},
        },
    },
}
"""What the published schema of messages asks of those with text alone."""


def sent(server: Server, folder: Path, content: bool | None, *faults: Canned) -> bytes:
    """All spans of a question, as they are sent."""
    (folder / "canary_file.txt").write_text("canary_document. It rained.")
    server.on("", "canary_reply")
    server.next(Canned(completion("canary_diagnosed")), Canned(completion(PLAN)), *faults)
    spans = Spans()

    async def ask() -> None:
        telemetry = Telemetry(spans.provider, content=content)
        async with pearl.Pearl(
            "openai:test-model", base_url=server.url, first_wait_s=0.01
        ) as asked:
            path = str(folder / "canary_file.txt")
            await pearl.Session(asked, telemetry=telemetry).run(
                pearl.over_files([path], question="canary_question, who?")
            )

    asyncio.run(ask())
    assert len(spans.all) > 4
    return encode_spans(spans.all).SerializeToString()


@pytest.mark.parametrize("fault", ["none", "refused", "cut off"])
def test_spans_have_no_content_by_default(
    fault: str, openai_server: Server, tmp_path: Path
) -> None:
    faults = {
        "none": (),
        "refused": (Canned(error("canary_reply was refused"), 400),),
        "cut off": (Canned(completion("canary_reply", finish_reason="length")),),
    }[fault]
    told = sent(openai_server, tmp_path, None, *faults)
    assert [canary for canary in CANARIES if canary.encode() in told] == []
    assert str(tmp_path).encode() not in told


@pytest.mark.parametrize(("said", "is_captured"), [("EVENT_ONLY", False), ("span_and_event", True)])
def test_a_variable_requests_content(
    said: str, is_captured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", said)
    assert Telemetry().has_content == is_captured
    assert Telemetry(content=not is_captured).has_content != is_captured


@pytest.mark.parametrize("content", [False, True])
def test_name_of_a_new_action_is_content(content: bool, openai_server: Server) -> None:
    openai_server.on("", "it rained")
    plan = "New actions:\n- CANARY(CTX) : Find the canary\n\n1. ans = CANARY(CTX) : Find it\n"
    spans = Spans()

    async def ask() -> None:
        async with pearl.Pearl("openai:test-model", base_url=openai_server.url) as asked:
            with Telemetry(spans.provider, content=content).tracing() as trace:
                await asked.execute(plan, pearl.Document("It rained."), trace=trace)

    asyncio.run(ask())
    assert (b"CANARY" in encode_spans(spans.all).SerializeToString()) == content
    assert len(spans.named("execute_tool CANARY" if content else "execute_tool NEW_ACTION")) == 1


@pytest.mark.parametrize("executor", ["rows", "search", "table"])
def test_spans_of_rows_searches_and_tables_have_no_content(
    executor: str, openai_server: Server, tmp_path: Path
) -> None:
    steps = {
        "rows": '1. r = SPLIT(CTX, "line") : x\n2. ans = FILTER(r, "canary") : y',
        "search": '1. ans = RETRIEVE(CTX, "canary", 2) : x',
        "table": '1. ans = LOOKUP(CTX, "Which canary?") : x',
    }
    (tmp_path / "canary.csv").write_text("canary,price\nyellow_canary,3\ngreen_canary,4\n")
    openai_server.on("", "1. yes\n2. canary")
    spans = Spans()

    async def ask() -> None:
        async with pearl.Pearl("openai:test-model", base_url=openai_server.url) as asked:
            with suppress(PearlError), Telemetry(spans.provider).tracing() as trace:
                plan = f"New actions:\n- None\n\n{steps[executor]} : canary\n"
                await asked.execute(plan, pearl.load(tmp_path / "canary.csv"), trace=trace)

    asyncio.run(ask())
    assert len([span for span in spans.all if span.name.startswith("execute_tool ")]) >= 1
    assert b"canary" not in encode_spans(spans.all).SerializeToString()


def test_content_has_the_published_form(openai_server: Server) -> None:
    spans = Spans()
    openai_server.on("", "a lone surrogate: \ud800")
    run = Telemetry(spans.provider, content=True).run()
    run.listening()(
        "a", attempt("openai:m", messages=(Message("system", "s"), Message("user", "u\ud800")))
    )
    run.finished("a")
    (call,) = spans.named("chat m")
    told = call.attributes or {}
    for what in ("input", "output"):
        messages = json.loads(str(told[f"gen_ai.{what}.messages"]))
        validate(messages, MESSAGES)
        assert len(messages) == 1
    assert json.loads(str(told["gen_ai.system_instructions"])) == [{"type": "text", "content": "s"}]
    encode_spans(spans.all).SerializeToString()


def test_long_texts_are_truncated_in_spans(openai_server: Server) -> None:
    spans = Spans()
    run = Telemetry(spans.provider, content=True).run()
    run.listening()("a", attempt("openai:m", messages=(Message("user", "x" * 10_000_000),)))
    run.finished("a")
    (call,) = spans.named("chat m")
    told = str((call.attributes or {})["gen_ai.input.messages"])
    assert len(told) < MAX_CHARACTERS + 200
    validate(json.loads(told), MESSAGES)
    assert text_of("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS


def test_folder_of_a_model_file_is_not_in_spans() -> None:
    model = "llamacpp:/home/canary/m.gguf"
    spans = Spans()
    run = Telemetry(spans.provider).run()
    run.listening()("a", attempt(model, replied_by=model))
    run.finished("a")
    (call,) = spans.named("chat m.gguf")
    assert call.kind.name == "INTERNAL"
    assert (call.attributes or {})["gen_ai.response.model"] == "m.gguf"
    assert b"canary" not in encode_spans(spans.all).SerializeToString()


def attempt(model: str, **details: object) -> ModelAttempted:
    told = {"messages": (Message("user", "u"),), "reply": "r", **details}
    return ModelAttempted(purpose="choose", model=model, number=0, duration_s=0.1, **told)  # type: ignore[arg-type]
