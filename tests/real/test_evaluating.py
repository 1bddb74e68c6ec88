"""An evaluation with SmolLM2 that is killed goes on where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pearl.evals.log import read_log
from tests.cli.terminal import child
from tests.real.smollm2 import QUESTIONS, STORY
from tests.runs.store.children import await_rows
from tests.server import Canned, Seen, Server

pytestmark = pytest.mark.slow

OPTIONS = ["He had broken his arm", "Forty crowns", "The Aurelia", "The widow Brandt"]
N, N_BEFORE = 4, 2
"""Questions, and those that are answered before the kill."""


def relay(url: str) -> Callable[[Seen], Canned]:
    """Has a server on loopback answer by what another says."""

    def answer(seen: Seen) -> Canned:
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(f"{url}/chat/completions", seen.data, headers)
        with urllib.request.urlopen(asked) as reply:
            return Canned(reply.read())

    return answer


def test_what_was_answered_before_a_kill_is_not_asked_again(
    server_url: str, openai_server: Server, tmp_path: Path
) -> None:
    data, log, store = tmp_path / "data.jsonl", tmp_path / "eval.jsonl", tmp_path / "store"
    rows = [
        {"id": f"q{i}", "question": question, "document": STORY, "options": OPTIONS, "gold": "A"}
        for i, question in enumerate(QUESTIONS[:N])
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    openai_server.models, openai_server.owned_by = ["smollm2"], "llamacpp"
    openai_server.answer = relay(server_url)
    openai_server.hold_after = N_BEFORE
    command = [
        "eval", "--data", str(data), "--methods", "mcq", "--model", "openai:smollm2",
        "--base-url", openai_server.url, "--window", "4096", "--max-output-tokens", "24",
        "--concurrency", "1", "--store", str(store), "-o", str(log),
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "pearl", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as killed:  # fmt: skip
        await_rows(store, N_BEFORE)
        killed.kill()
    assert killed.returncode == -signal.SIGKILL
    openai_server.hold_after = None
    done = child(*command)
    assert done.returncode in {0, 1}, done.stderr
    answered = {one.sample for one in read_log(log).records if one.method == "mcq"}
    assert answered == {row["id"] for row in rows}
    asked = Counter(
        question
        for seen in openai_server.requests
        for question in QUESTIONS[:N]
        if question in seen.prompt
    )
    assert [asked[question] for question in QUESTIONS[:N_BEFORE]] == [1] * N_BEFORE
    assert {asked[question] for question in QUESTIONS[N_BEFORE:N]} <= {1, 2}, "one was under way"
