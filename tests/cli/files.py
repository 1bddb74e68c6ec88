"""Files of rows, as commands read and write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

QUESTION = "Why did Nils sell the boat?"


def write(name: str, *rows: Any) -> None:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def rows_of(name: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def asked(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "question": QUESTION, "document_path": "story.txt", **fields}
