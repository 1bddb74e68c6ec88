"""`--executor batch` with files, and its forecast."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.llm.batches.test_files import NOWHERE, carry_out


def test_the_command_line_names_the_command_and_continues(pearl: Terminal) -> None:
    args = ["execute", "why.plan", "story.txt", "--out", "out.jsonl", "--store", "kept"]
    args += ["--model", "vllm:test-model", "--base-url", NOWHERE, "--window", "8000"]
    args += ["--executor", "batch", "--batch-folder", "todo"]
    pearl(*args, code=75)
    assert "vllm run-batch -i " in pearl.talk
    (requests,) = Path("todo").iterdir()
    carry_out(requests, Path("todo") / requests.name.replace("requests", "results"))
    for _ in range(3):  # a plan of several levels
        pearl(*args, code=None)
        left = list(Path("todo").glob("*.requests.jsonl"))
        if not left:
            break
        carry_out(left[0], Path("todo") / left[0].name.replace("requests", "results"))
    assert json.loads(Path("out.jsonl").read_text())["status"] != "failed"


def test_options_of_batches_need_batches(pearl: Terminal) -> None:
    pearl("execute", "why.plan", "story.txt", "--out", "o.jsonl", "--batch-folder", "x", code=2)
    assert "--batch-folder needs --executor batch" in pearl.talk


def test_a_forecast_has_the_price_of_batches_at_least_and_the_full_one_at_most(
    pearl: Terminal,
) -> None:
    args = ["execute", "why.plan", "story.txt", "--out", "out.jsonl", "--dry-run", "--json"]
    args += ["--model", "openai:m", "--price", "input=2,output=8,batch=0.5", "--executor"]
    full, half = (json.loads(pearl(*args, n))["total"]["cost_usd"] for n in ("local", "batch"))
    assert half == {"least": full["least"] / 2, "most": full["most"]}, "all calls may go directly"
