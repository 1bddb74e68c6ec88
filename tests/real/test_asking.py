"""Answers by SmolLM2: the document is read once, every reply ends, what is cut off is told."""

from __future__ import annotations

import asyncio
import json
import typing
from pathlib import Path

import pytest

from pearl import Pearl
from pearl.errors import ExecutionError
from pearl.trace import AnswerStatus, CallFailed, ModelCalled, RunFinished, Trace, read_trace
from tests.cli.terminal import child
from tests.models import MemoryReplies
from tests.real.smollm2 import DOCUMENT, FILE, LIBRARY, QUESTION, STORY, Watched

pytestmark = pytest.mark.slow

TWO = """\
New actions:
- None

1. who = IDENTIFY(CTX, "the mate") : Who he is
2. ans = FIND(CTX, who) : What is said about him
"""

SHORT = '1. ans = FIND(CTX, "the smith") : What is said about him'

SHARE_CACHED = 0.65
"""Of the prompt of a second step: what comes before the task and the form of its reply."""


def test_a_second_step_reads_little_but_its_task(smollm2: Watched) -> None:
    trace = Trace()
    pearl = Pearl(smollm2, library=LIBRARY, max_output_tokens=8)
    asyncio.run(pearl.execute(TWO, DOCUMENT, trace=trace))
    usages = {
        event.step: event.usage for event in trace if isinstance(event, ModelCalled | CallFailed)
    }
    assert set(usages) == {"who", "ans"}
    second = usages["ans"]
    assert second.n_cached_tokens >= SHARE_CACHED * second.n_input_tokens


def test_a_reply_that_is_cut_off_is_told_and_not_kept(smollm2: Watched) -> None:
    replies, trace = MemoryReplies(), Trace()
    pearl = Pearl(smollm2, library=LIBRARY, max_output_tokens=3, replies=replies)
    answer = asyncio.run(pearl.execute(SHORT, DOCUMENT, trace=trace))
    assert (answer.status, answer.steps[0].state) in {
        ("degraded", "found"), ("undecided", "undecided"),
    }  # fmt: skip
    assert "was cut off at its limit" in answer.why
    assert replies.replies == {}, "it would be taken for a whole one"
    (failed,) = (event for event in trace if isinstance(event, CallFailed))
    assert failed.kind == "truncated"
    assert failed.usage.n_output_tokens == 3
    assert failed.reply
    strict = Pearl(smollm2, library=LIBRARY, max_output_tokens=3, strict=True)
    with pytest.raises(ExecutionError, match="cut off after 3 tokens"):
        asyncio.run(strict.execute(SHORT, DOCUMENT))


def test_a_command_ends_with_an_answer(tmp_path: Path) -> None:
    story, trace = tmp_path / "skarvik.txt", tmp_path / "trace.jsonl"
    story.write_text(STORY, encoding="utf-8")
    plan = tmp_path / "why.plan"
    plan.write_text(f'1. why = FIND(CTX, "{QUESTION}") : Find it\n', encoding="utf-8")
    done = child(
        "execute", str(plan), str(story), "--model", f"llamacpp:{FILE}", "--library", str(LIBRARY),
        "--max-output-tokens", "40", "--trace", str(trace), "--json",
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] in typing.get_args(AnswerStatus)
    assert (done.returncode == 0) == (answer["status"] in {"answered", "nothing_found"})
    (read,) = read_trace(trace)
    (finished,) = (event for event in read if isinstance(event, RunFinished))
    assert finished.status == answer["status"]
    assert read.usage.n_output_tokens > 0
