"""Loops at the end of a text are found, and nothing else; replies that are loops are refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.flaws import MAX_PERIOD, MIN_CHARACTERS, MIN_TIMES, Watch, loop_in
from pearl.pipeline import Pearl
from tests.models import answer_task
from tests.root import ROOT
from tests.server import Canned, Server, completion

PLAN_LOOP = """1. captain = FIND_EVENT(CTX, "the captain", "the council turning back")
2. vote = FIND_EVENT(CTX, "the captain turning back", "the council turning back")

Question: What is the name of the proposal?

Plan:
"""

units = st.text(st.characters(codec="utf-8"), min_size=1, max_size=400)


@given(units, st.text(max_size=50), st.data())
def test_a_loop_is_found_wherever_it_is_cut(unit: str, before: str, data: st.DataObject) -> None:
    n = max(MIN_TIMES, MIN_CHARACTERS // len(unit) + 1) + 1
    cut = data.draw(st.integers(0, len(unit) - 1))
    assert loop_in(before + unit * n + unit[:cut]) is not None


@pytest.mark.parametrize(
    "text",
    [
        PLAN_LOOP * 6,
        "\n".join(f"{n}. None" for n in range(300)),
        "\n".join(f"- {word}" for word in ["the same"] * 200),
        "{" + " " * 2_000,
        "I think that " * 100,
        "the end\n" * 200,
        "x" * (MAX_PERIOD - 1) + ("y" + "x" * (MAX_PERIOD - 1)) * (MIN_TIMES + 1),
    ],
)
def test_loops_of_models(text: str) -> None:
    assert loop_in(text)


@pytest.mark.parametrize(
    ("text", "loop"),
    [("and so on, " * 200 + "and s", "so on, and "), ("the end\n" * 200 + "th", "the end\n")],
)
def test_a_loop_is_shown_from_the_beginning_of_a_line_or_word(text: str, loop: str) -> None:
    assert loop_in(text) == loop


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It leaked.",
        "Row, row, row your boat,\nGently down the stream.\n" * 4,
        "-" * 200,
        "| - | - | - |\n" * 40,
        "\n".join(f"2019-03-{n:02}: {n * 37 % 101} mmHg" for n in range(1, 200)),
        "\n".join(f"{n}. Line {n} of {n * 7 % 13}" for n in range(200)),
        "the end\n" * 200 + "and then he said why.",
        PLAN_LOOP * (MIN_TIMES - 1) + "1. x = FIND(CTX)",
    ],
)
def test_texts_without_a_loop(text: str) -> None:
    assert loop_in(text) is None


def shipped() -> Iterator[Path]:
    for folder in ("docs", "fewshot", "actions"):
        yield from (p for p in (ROOT / folder).rglob("*") if p.suffix in (".md", ".txt", ".plan", ".actions"))  # fmt: skip


def test_no_text_of_ours_is_a_loop_anywhere() -> None:
    texts = [path.read_text(encoding="utf-8") for path in shipped()]
    assert len(texts) > 50
    for text in texts:
        watch = Watch()
        assert not [piece for piece in text.splitlines(keepends=True) if watch.add(piece)]


def ask(server: Server) -> Completion:
    """One step over a server, with retries."""

    async def once() -> Completion:
        pearl = Pearl(OpenAIModel(Endpoint(server.url, "test-model", ""), 10.0, 128_000))
        async with pearl:
            request = Request((Message("user", "who?"),), answer_task("who?", ""), 2_000)
            return await pearl.calls().complete(request)

    return asyncio.run(once())


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
def test_a_finished_reply_that_is_a_loop_is_refused_once(
    finish_reason: str, openai_server: Server
) -> None:
    openai_server.next(Canned(completion("He slept. " * 300, finish_reason=finish_reason)))
    with pytest.raises(ModelError, match="He slept") as caught:
        ask(openai_server)
    assert caught.value.kind == "repetition"
    assert caught.value.usage is not None
    assert caught.value.usage.n_output_tokens == 600
    assert len(openai_server.requests) == 1, "the same request brings the same"
