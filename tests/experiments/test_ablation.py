"""`experiments/ablation.py`: a library trimmed to several sizes, each planned with, run and scored by a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.experiments.scripts import experiment
from tests.server import Server

pytestmark = pytest.mark.slow

LIBRARY = """\
# Refined by a model: 4 actions stand for 9 drafts.

CONCAT(S1, S2, ...) : Join the texts

# stands for: FIND x2, FIND_IT,
#   SEARCH (seed)
FIND(CTX, X) : Find X in CTX

# stands for: FIND_OWNER
FIND_OWNER(CTX, X) : Find who owns X

# stands for: FIND_REASON x3
FIND_REASON(CTX, X) : Find why X happens in CTX
"""
OPTIONS = ["The hull was rotten", "He was tired", "Ada asked him to", "It had sunk"]
ROWS = [
    {"id": f"q{i}", "question": f"Why did Nils sell boat {i}?", "options": OPTIONS, "gold": "A",
     "document": f"He sold boat {i} because the hull was rotten. Then he was tired."}
    for i in range(24)
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    Path("mine.actions").write_text(LIBRARY, encoding="utf-8")
    Path("data.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return tmp_path


def ablated(*args: str) -> Result:
    command = ["mine.actions", "--data", "data.jsonl", "--out", "out", *args]
    return CliRunner().invoke(experiment("ablation").main, command)


def rows(result: Result) -> list[list[str]]:
    lines = result.stdout.splitlines()
    return [line.split() for line in lines if line.strip()[:1].isdecimal()]


def test_the_most_used_actions_are_kept_and_sizes_are_compared(
    folder: Path, openai_server: Server
) -> None:
    def plan(name: str) -> str:
        return f'New actions:\n- None\n\n1. ans = {name}(CTX, "the sale") : Find it'

    openai_server.on(r"FIND_REASON\(CTX.*Write the plan for this question", plan("FIND_REASON"))
    openai_server.on("Write the plan for this question", plan("FIND"))
    openai_server.on('Find why "the sale"', "The hull was rotten")
    openai_server.on(".", "He was tired")
    online = ("--model", "openai:m", "--base-url", openai_server.url)
    done = ablated("--sizes", "1,2,3,80", *online)
    assert done.exit_code == 0, done.stderr
    # One is CONCAT, which Python computes; with two no action tells why, so every answer is wrong.
    assert [(row[0], row[3]) for row in rows(done)] == [
        ("1", "0/24"), ("2", "0/24"), ("3", "24/24"), ("4", "24/24"),
    ]  # fmt: skip
    assert rows(done)[1][-3:] == ["-100.0", "-100.0..-71.5", "<0.001"]
    assert "p: Holm over 3 sizes" in done.stdout
    kept = Path("out/3.actions").read_text("utf-8")
    assert "# stands for: FIND_REASON x3\nFIND_REASON(CTX" in kept
    assert "FIND_OWNER" not in kept
    n = len(openai_server.requests)
    assert rows(ablated("--sizes", "1,2,3,80", *online)) == rows(done)
    assert len(openai_server.requests) == n


def test_published_plans_say_which_actions_are_used(folder: Path) -> None:
    plan = '1. a = FIND_OWNER(CTX, "Ada") : f\n2. b = FIND_OWNER(CTX, "Nils") : f'
    Path("one.jsonl").write_text(json.dumps({"plan": plan}), encoding="utf-8")
    Path("two.jsonl").write_text(json.dumps({"method": "mcq", "answer": "A"}), encoding="utf-8")
    done = ablated("--sizes", "2", "--limit", "1", "--traces", "one.jsonl", "two.jsonl")
    assert done.exit_code == 0, done.stderr
    assert "FIND_OWNER" in Path("out/2.actions").read_text("utf-8")
