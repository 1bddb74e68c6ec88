"""An evaluation with SmolLM2 that is killed goes on where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pearl.evals.log import read_log
from pearl.runs.store import Store
from tests.cli.terminal import child
from tests.real.smollm2 import QUESTIONS, STORY
from tests.runs.store.children import await_rows
from tests.server import Canned, Seen, Server

pytestmark = pytest.mark.slow

OPTIONS = ["He had broken his arm", "Forty crowns", "The Aurelia", "The widow Brandt"]
N, N_BEFORE = 4, 2
"""Questions, and those that are answered before the kill."""


class Relay:
    """Answers as another server does, until it is asked more questions than it may answer for now."""

    def __init__(self, url: str) -> None:
        self.released = threading.Event()
        self._address = url.removesuffix("/v1")
        self._questions: set[str] = set()

    def __call__(self, seen: Seen) -> Canned:
        self._questions.update(asked(seen))
        if len(self._questions) > N_BEFORE:
            self.released.wait()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self._address + seen.path, seen.data, headers)
        try:
            with urllib.request.urlopen(request) as reply:
                return Canned(reply.read())
        except urllib.error.HTTPError as error:
            return Canned(error.read(), error.code)


def asked(seen: Seen) -> list[str]:
    """The questions that a request is about."""
    return [question for question in QUESTIONS[:N] if question.encode() in seen.data]


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
    openai_server.answer = relay = Relay(server_url)
    command = [
        "eval", "--data", str(data), "--methods", "mcq", "--model", "openai:smollm2",
        "--base-url", openai_server.url, "--window", "4096", "--max-output-tokens", "24",
        "--concurrency", "1", "--store", str(store), "-o", str(log),
    ]  # fmt: skip
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "pearl", *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as killed:  # fmt: skip
            await_rows(store, N_BEFORE)
            killed.kill()
    finally:
        relay.released.set()
    assert killed.returncode == -signal.SIGKILL
    with Store.open(store, read_only=True) as opened:
        (run,) = opened.runs()
        kept = {row["question"] for row in opened.rows(run.id) if row["status"] != "failed"}
    assert kept, "nothing was answered, and nothing is shown by this test"
    n_before = len(openai_server.requests)
    done = child(*command)
    assert done.returncode in {0, 1}, done.stderr
    answered = {one.sample for one in read_log(log).records if one.method == "mcq"}
    assert answered == {row["id"] for row in rows}
    again = {question for seen in openai_server.requests[n_before:] for question in asked(seen)}
    assert not kept & again
    assert kept | again == set(QUESTIONS[:N])
