"""`pearl eval` of conversations: what is shown, kept and refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import pearl
from tests.cli.terminal import Terminal
from tests.server import Server

__all__ = ["pearl"]

QUESTIONS = ["what was rent of mills in 2008?", "and what was it in 2007?", "what is the change?"]
PROGRAMS = ["120", "100", "subtract(120, 100)"]
ARGS = ("eval", "--domain", "finance", "--data", "dev.jsonl", "--scorer", "numeric")
QUICK = (*ARGS, "--methods", "direct", "--json")


def dialogue(name: str) -> dict[str, Any]:
    return {
        "id": f"Single_{name}",
        "doc": {
            "pre_text": f"of {name}.", "post_text": "",
            "table": {"2008": {f"rent of {name}": 120.0}, "2007": {f"rent of {name}": 100.0}},
        },
        "dialogue": {
            "conv_questions": QUESTIONS, "turn_program": PROGRAMS, "executed_answers": [120.0, 100.0, 20.0],
        },
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _files(pearl: Terminal) -> None:
    rows = (json.dumps(dialogue(name)) for name in ("mills", "boats"))
    Path("dev.jsonl").write_text("\n".join(rows), "utf-8")


def evaluated(pearl: Terminal, *args: str) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(pearl(*QUICK, *args))
    return shown


def test_a_run_over_conversations_is_resumed_as_it_was(pearl: Terminal) -> None:
    args = (*ARGS, "--methods", "direct", "--window", "700")
    pearl(*args, "-o", "whole.jsonl")
    pearl(*args, "-o", "cut.jsonl", "--fresh", "--max-calls", "2", code=7)
    (id,) = re.findall(r"pearl runs resume (\S+)", pearl.talk)
    pearl("runs", "resume", id, "--yes", "--max-calls", "100")
    kept = [Path(name).read_text("utf-8").splitlines()[1:] for name in ("whole.jsonl", "cut.jsonl")]
    answers = [[json.loads(line)["answer"] for line in lines] for lines in kept]
    assert answers[0] == answers[1]


def test_questions_that_kept_their_wording_are_counted(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    openai_server.on("Rewrite this question: and what", "I cannot do that.")
    openai_server.on("Rewrite this question: what is", "What is the change of the rent?")
    openai_server.on(".", "120")
    online = ("--model", "openai:m", "--base-url", openai_server.url)
    found = evaluated(pearl, *online)
    assert [row["n_kept_wording"] for row in found["rows"] if row["subset"] == "all"] == [2]
    said = "direct: 2 questions could not be made clear alone, and kept the wording"
    assert said in pearl(*ARGS, "--methods", "direct", *online)
