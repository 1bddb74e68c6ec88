"""The options of `--executor batch`, and its forecast."""

from __future__ import annotations

import json

from tests.cli.terminal import Terminal


def test_options_of_batches_need_batches(pearl: Terminal) -> None:
    pearl("execute", "why.plan", "story.txt", "--out", "o.jsonl", "--batch-threshold", "5", code=2)
    assert "--batch-threshold needs --executor batch" in pearl.talk


def test_a_forecast_has_the_price_of_batches_at_least_and_the_full_one_at_most(
    pearl: Terminal,
) -> None:
    args = ["execute", "why.plan", "story.txt", "--out", "out.jsonl", "--dry-run", "--json"]
    args += ["--model", "openai:m", "--price", "input=2,output=8,batch=0.5", "--executor"]
    full, half = (json.loads(pearl(*args, n))["total"]["cost_usd"] for n in ("local", "batch"))
    assert half == {"least": full["least"] / 2, "most": full["most"]}, "all calls may go directly"
