"""Commands as people give them: in this process, or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from pearl.cli import run

STORY = (
    "Nils left the harbour at dawn.\n\nHe sold the boat because the hull was rotten. Nobody asked."
)
PLAN = """\
Question: Why did Nils sell the boat?

New actions:
- None

1. ans = FIND_REASON(CTX, "Nils selling the boat") : Find why he sold it
"""


class Terminal:
    """Runs commands in this process, in a folder of their own, and keeps what they print."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *args: str, code: int | None = 0, stdin: bytes = b"") -> str:
        """Run, expect an exit code unless it is None, return stdout; what stderr said is in `.talk`."""
        self._capsys.readouterr()
        with patch("sys.stdin", TextIOWrapper(BytesIO(stdin))):
            got = run(args)
        captured = self._capsys.readouterr()
        self.talk = captured.err
        assert code in (got, None), f"exit {got}: {captured.err}{captured.out}"
        assert not any(word in captured.err for word in ("Traceback", "a bug in PEARL"))
        return captured.out

    def json(self, *args: str, code: int = 0) -> Any:
        """Run with `--json`; returns the data."""
        return json.loads(self(*args, "--json", code=code))


def child(*args: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "pearl", *args], input=stdin, capture_output=True,
        env={**os.environ, **env}, check=False,
    )  # fmt: skip


QUESTION = "Why did Nils sell the boat?"


def write(name: str, *rows: Any) -> None:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def rows_of(name: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def asked(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "question": QUESTION, "document_path": "story.txt", **fields}
