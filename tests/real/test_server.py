"""llama.cpp's own server over SmolLM2, as one that users start, by `openai:` and its address."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import Completion, Message, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.trace import read_trace
from tests.cli.terminal import child
from tests.models import answer_task
from tests.real.smollm2 import LIBRARY, QUESTION, STORY

pytestmark = pytest.mark.slow

WINDOW = 4_096
COLOURS = Constraint("colours", 'start: "mauve, " ("teal" | "ochre") "."\n')


@pytest.mark.parametrize("kind", [None, "llamacpp", "llguidance"])
def test_it_is_recognised_and_held_to_a_grammar(server_url: str, kind: str | None) -> None:
    model = create_model("openai:smollm2", ModelSettings(server_url, window=WINDOW, server=kind))
    asked = Request(
        (Message("user", "Which weekday is it?"),), answer_task("Which weekday is it?", ""), 40,
        constraint=COLOURS, constrain_by="grammar",
    )  # fmt: skip

    async def main() -> Completion:
        try:
            return await model.complete(asked)
        finally:
            await model.aclose()

    completion = asyncio.run(main())
    assert completion.text in {"mauve, teal.", "mauve, ochre."}
    assert completion.model == "smollm2"
    assert completion.usage.n_input_tokens > 0 < completion.usage.n_output_tokens


def test_a_command_asks_it(server_url: str, tmp_path: Path) -> None:
    story, trace = tmp_path / "skarvik.txt", tmp_path / "trace.jsonl"
    story.write_text(STORY, encoding="utf-8")
    plan = tmp_path / "why.plan"
    plan.write_text(f'1. why = FIND(CTX, "{QUESTION}") : Find it\n', encoding="utf-8")
    done = child(
        "execute", str(plan), str(story), "--model", "openai:smollm2", "--base-url", server_url,
        "--window", str(WINDOW), "--library", str(LIBRARY), "--max-output-tokens", "60",
        "--trace", str(trace),
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout.strip()
    assert f"openai: smollm2 at {server_url}, without a key".encode() in done.stderr
    (read,) = read_trace(trace)
    assert read.usage.n_input_tokens > 0 < read.usage.n_output_tokens
