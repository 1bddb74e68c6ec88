"""Small evaluation logs, made up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pearl.errors.escaping import json_bytes
from pearl.evals.log import EvalLog, EvalRecord, Header, PlanShape
from pearl.llm import Usage
from pearl.llm.prices import Price

PRICE = Price(input_usd=2.0, output_usd=8.0)
SKILL = {"direct": 0.55, "pearl": 0.75, "retrieve": 0.5, "map-reduce": 0.6}
TOKENS = {"direct": 9_000, "pearl": 60_000, "retrieve": 2_500, "map-reduce": 30_000}


def header(**fields: Any) -> Header:
    """A header; `fields` replace what it says."""
    known: dict[str, Any] = {
        "pearl_version": "0.1.0", "created": "2026-11-21T09:00:00Z", "domain": "quality",
        "data": "quality-dev", "data_sha256": "0" * 64, "n_samples": 40, "model": "openai:gpt-x",
        "library": "quality", "n_actions": 80, "library_sha256": "1" * 64, "bank": "quality",
        "n_examples": 8, "methods": ("direct", "pearl"), "seeds": (0,), "temperature": 0.0,
        "price": PRICE,
    }  # fmt: skip
    return Header(**{**known, **fields})


def record(sample: str = "q1", method: str = "pearl", **fields: Any) -> EvalRecord:
    """A right answer to a question with four options; `fields` replace what it says."""
    known: dict[str, Any] = {
        "status": "answered", "question": "Why did Nils sell the boat?", "document": "story.txt",
        "options": ("The hull was rotten.", "He was tired.", "Nobody asked.", "It sank."),
        "gold": 0, "choice": 0, "score": 1.0, "reply": "A", "answer": "Its hull was rotten.",
        "n_calls": 1, "usage": Usage(9_000, 120), "duration_s": 1.5,
    }  # fmt: skip
    return EvalRecord(sample=sample, method=method, **{**known, **fields})


def log(n_samples: int = 40, *, skill: float = 0.0, **fields: Any) -> EvalLog:
    """A log with every sample under every method and seed, some wrong, some failed."""
    top = header(n_samples=n_samples, **fields)
    records = [
        _made_up(random.Random(f"{i} {method} {seed} {top.n_actions}"), i, method, seed, skill)
        for i in range(n_samples)
        for method in top.methods
        for seed in top.seeds
    ]
    if top.price is not None:
        records = [replace(r, cost_usd=top.price.cost_usd(r.usage)) for r in records]
    return EvalLog(top, tuple(records))


def _made_up(chance: random.Random, i: int, method: str, seed: int, skill: float) -> EvalRecord:
    about: dict[str, Any] = {"seed": seed, "subsets": (("hard", "easy")[i % 2],)}
    if method == "pearl":
        steps = chance.randint(2, 8)
        about["plan"] = "1. ans = FIND_REASON(CTX) : Find why"
        about["shape"] = PlanShape(
            n_steps=steps, n_calls=steps + chance.randint(0, 3), depth=max(2, steps - 2), width=2
        )
        if chance.random() < 0.1:
            about |= {"status": "fell_back", "plan": None, "shape": None}
    tokens = TOKENS.get(method, 20_000)
    about["usage"] = Usage(int(tokens * chance.uniform(0.7, 1.3)), chance.randint(50, 900))
    about["duration_s"] = chance.expovariate(1 / 8)
    if chance.random() < 0.04:
        about |= {"status": "failed", "score": 0.0, "choice": None, "error": "the model gave up"}
    elif chance.random() > SKILL.get(method, 0.6) + skill:
        about |= {"score": 0.0, "choice": chance.choice([None, 1, 2, 3])}
    return record(f"q{i}", method, **about)


def write(made: EvalLog, path: Path) -> Path:
    """The log as a file."""
    lines: Sequence[Header | EvalRecord] = (made.header, *made.records)
    path.write_text("".join(f"{json_bytes(line).decode()}\n" for line in lines), encoding="utf-8")
    return path
