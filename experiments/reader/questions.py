"""The questions, their texts, and what a step of their plans asks for."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import cache
from itertools import islice
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


def shared_questions(half: str | None = None) -> tuple[list[Question], int]:
    """Those about shared data, which is no part of the project, and how many of them lack their file."""
    asked = [each for each in _read("questions_shared") if half in (None, each["half"])]
    here = [each for each in asked if _shared(each["text"]) is not None]
    return here, len(asked) - len(here)


def _shared(name: str) -> Path | None:
    """The file of `shared:FOLDER/FILE#N` in shared/data beside the checkout; None without that data."""
    path = name.removeprefix("shared:").partition("#")[0]
    files = (folder / "shared/data" / path for folder in FOLDER.parents)
    return next((file for file in files if file.is_file()), None)


@cache
def text_of(name: str) -> str:
    """The text of a question."""
    if (file := _shared(name)) is not None and name.startswith("shared:"):
        row = int(name.partition("#")[2])
        if file.suffix == ".json":
            return str(json.loads(file.read_text("utf-8"))["data"][row]["src"]).strip()
        with file.open(encoding="utf-8", newline="") as lines:
            return next(islice(csv.DictReader(lines), row, None))["transcription"].strip()
    return (FOLDER / "texts" / f"{name}.txt").read_text("utf-8").strip()
