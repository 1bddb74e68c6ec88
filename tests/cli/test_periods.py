"""The day of a question at the command line."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tests.cli.commands.test_runs import pearl
from tests.cli.terminal import Terminal
from tests.server import Server

__all__ = ["pearl"]

PLAN = 'New actions:\n- None\n\n1. a = FIND(CTX, "sales") : f'
ASK = ("ask", "What were sales last year?", "report.txt")


@pytest.fixture(autouse=True)
def _report(pearl: Terminal) -> None:
    Path("report.txt").write_text("Sales were 12 in 2023, and 10 in fiscal 2024.", encoding="utf-8")


def test_dates_are_settings_of_flags_variables_and_files(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.on("is asked on", PLAN)
    openai_server.on(".", "Sales were 12 in 2023")
    model = ("--model", "openai:m", "--base-url", openai_server.url)

    def told(*args: str) -> str:
        openai_server.forget()
        pearl(*ASK, *model, "--fresh", *args)
        return openai_server.requests[0].prompt

    assert f"is asked on {date.today()}. " in told("--as-of", "today")
    fiscal = "is asked on 2024-11-05, in fiscal 2025 (fiscal years end on 09-30)"
    assert fiscal in told("--as-of", "2024-11-05", "--fiscal-year-end", "09-30")
    assert "end on 02-29)" in told("--as-of", "2024-11-05", "--fiscal-year-end", "02-29")
    pearl(*ASK, "--as-of", "2024-11-05", "--fiscal-year-end", "09-31", code=2)
    for written in ("2024-11-05", '"2024-11-05"'):
        Path("pearl.toml").write_text(f'as_of = {written}\nfiscal-year-end = "09-30"\n')
        pearl("config", "trust")
        assert fiscal in told()
    monkeypatch.setenv("PEARL_AS_OF", "2020-01-01")
    assert "is asked on 2020-01-01. " in told("--fiscal-year-end", "12-31")


def test_a_run_goes_on_with_the_date_it_was_begun_with(
    pearl: Terminal, openai_server: Server
) -> None:
    Path("tasks.jsonl").write_text(
        json.dumps({"id": "a", "question": ASK[1], "document_path": "report.txt"}), encoding="utf-8"
    )
    openai_server.on("is asked on 2024-11-05, in fiscal 2025", PLAN)
    openai_server.on(".", "Sales were 12 in 2023")
    args = ("--model", "openai:m", "--base-url", openai_server.url)
    pearl(
        "execute", "--tasks", "tasks.jsonl", "-o", "rows.jsonl", *args, "--as-of", "2024-11-05",
        "--fiscal-year-end", "09-30", "--max-calls", "0", code=7,
    )  # fmt: skip
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"], "--yes", "--max-calls", "9", *args[2:])
    (row,) = map(json.loads, Path("rows.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["status"] == "answered"
