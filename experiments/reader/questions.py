"""The questions, their texts, and what a step of their plans asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
HALVES = ("dev", "final")
KINDS = (
    "fact", "reason", "number", "list", "yesno", "not stated", "two-part", "rows", "fields"
)  # fmt: skip

Question = Mapping[str, Any]


def read_questions(half: str | None = None, file: str = "questions.jsonl") -> list[Question]:
    """The questions of one half, or of both."""
    lines = (FOLDER / file).read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return [question for question in asked if half in (None, question["half"])]


@cache
def text_of(name: str) -> str:
    """The text of a question."""
    return (FOLDER / "texts" / f"{name}.txt").read_text("utf-8").strip()
