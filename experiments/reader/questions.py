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
CASES = ("composition", "extraction", "rows", "tables")

Question = Mapping[str, Any]


def read_questions(half: str | None = None) -> list[Question]:
    """The questions of one half, or of both."""
    return [each for each in _read("questions") if half in (None, each["half"])]


def read_cases(kind: str) -> list[Question]:
    """The forty cases of one kind; those of rows, tables and fields have a document of their own."""
    return _read(f"cases_{kind}")


def _read(name: str) -> list[Question]:
    lines = (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def text_of(name: str) -> str:
    """The text of a question."""
    return (FOLDER / "texts" / f"{name}.txt").read_text("utf-8").strip()
