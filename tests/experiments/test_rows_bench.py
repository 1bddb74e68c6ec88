"""The bench that labels rows beside other libraries: what the simulated model is asked and says."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import aiohttp
import pytest

from tests.root import ROOT

SCRIPT = ROOT / "experiments/bench/rows.py"


@pytest.fixture(scope="module")
def parts() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("experiments", "experiments/bench"):
            patch.syspath_prepend(ROOT / folder)
        yield import_module


def drawn(parts: Any, n: int, **faults: float) -> tuple[Any, Any]:
    window = parts("aggregation.windows").draw_window(n, 0)
    oracle = parts("aggregation.oracle").Oracle(window.labels_of, window.labels, faults=faults)
    return window, oracle


@pytest.mark.parametrize(("faults", "n_unlabelled"), [({}, 0), ({"drop": 1.0}, 3)])
def test_the_root_of_the_rlm_makes_no_mistake_of_its_own(
    parts: Any, faults: dict[str, float], n_unlabelled: int
) -> None:
    window, oracle = drawn(parts, 70, **faults)
    submitted: list[str] = []
    names: dict[str, Any] = {
        "context": window.text,
        "llm_query_batched": lambda prompts: [oracle.call(prompt).reply for prompt in prompts],
        "SUBMIT": submitted.append,
    }
    for code in parts("labellers").root_turns(list(window.labels), 32):
        exec(code, names)
    (found,) = map(json.loads, submitted)
    assert len(oracle.calls) == 3
    assert found.count(None) == n_unlabelled
    assert all(
        label in (None, entry.label) for label, entry in zip(found, window.entries, strict=True)
    )


@pytest.mark.parametrize("is_list", [True, False])
def test_the_server_answers_in_the_form_that_is_asked_for(parts: Any, is_list: bool) -> None:
    window, oracle = drawn(parts, 3)
    server = parts("rows").Server(oracle, ["print(1)"])
    items = [f"<item {i}>{entry.text}</item {i}>" for i, entry in enumerate(window.entries, 1)]
    prompt = ", ".join([*window.labels, *(items if is_list else items[:1])])
    schema = {"properties": {"results" if is_list else "label": {}}}
    tool = {"type": "function", "function": {"name": "send_output", "parameters": schema}}

    async def ask(url: str, content: str, **more: Any) -> dict[str, Any]:
        body = {"model": "m", "messages": [{"role": "user", "content": content}], **more}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v1/chat/completions", json=body) as reply,
        ):
            reply.raise_for_status()
            message: dict[str, Any] = (await reply.json())["choices"][0]["message"]
            return message

    with parts("aggregation.oracle").on_loopback(server.application) as url:
        called = asyncio.run(ask(url, prompt, tools=[tool]))
        root = asyncio.run(ask(url, "[[ ## iteration ## ]]\n1/20"))
    labels = [{"label": entry.label} for entry in window.entries]
    arguments = json.loads(called["tool_calls"][0]["function"]["arguments"])
    assert arguments == ({"results": labels} if is_list else labels[0])
    assert "```python\nprint(1)\n```" in root["content"]
    assert (len(oracle.calls), len(server.roots)) == (1, 1)


@pytest.mark.slow
def test_every_row_is_right_and_what_was_answered_is_kept() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--entries", "300", "--only", "pearl", "dspy_rlm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    ours = figures["pearl"]
    assert ours["calls"] == 10
    assert [ours[name] for name in ("right", "right_dropped", "right_after_kill")] == [300] * 3
    assert ours["asked_again_after_kill"] < 5 * 32  # that many had been answered
    if find_spec("dspy") is None:
        assert "dspy_rlm: not measured: ModuleNotFoundError: No module named 'dspy'" in done.stdout
    else:
        assert figures["dspy_rlm"]["right"] == 300
