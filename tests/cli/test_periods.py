"""Relative periods at the command line: the date that they refer to, and what they were read as."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from tests.cli.commands.test_runs import pearl
from tests.cli.terminal import Terminal
from tests.server import Server

__all__ = ["pearl"]

ASK = ("ask", "What were sales last year?", "report.txt")


@pytest.fixture(autouse=True)
def _report(pearl: Terminal) -> None:
    Path("report.txt").write_text("Sales were 12 in 2023, and 10 in fiscal 2024.", encoding="utf-8")


def test_an_answer_says_how_its_question_was_understood(pearl: Terminal) -> None:
    said = pearl(*ASK, "--as-of", "2024-05-01")
    assert "Understood as: What were sales in 2023?" in said
    assert 'Note: "last year" read as 2023 (as of 2024-05-01)' in said
    assert "Understood" not in pearl(*ASK)


def test_dates_are_settings_of_flags_variables_and_files(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def understood(*args: str) -> str:
        row = json.loads(pearl(*ASK, "--json", *args))
        assert row["question"] == ASK[1]
        return str(row.get("understood", {}).get("question"))

    assert understood("--as-of", "today") == f"What were sales in {date.today().year - 1}?"
    flags = ("--as-of", "2024-11-05", "--fiscal-year-end", "09-30")
    assert understood(*flags) == "What were sales in fiscal 2024?"
    for written in ("2024-11-05", '"2024-11-05"'):
        Path("pearl.toml").write_text(f'as_of = {written}\nfiscal-year-end = "09-30"\n')
        pearl("config", "trust")
        assert understood() == "What were sales in fiscal 2024?"
    monkeypatch.setenv("PEARL_AS_OF", "2020-01-01")
    assert understood("--fiscal-year-end", "12-31") == "What were sales in 2019?"


def test_a_run_goes_on_with_the_date_it_was_begun_with(
    pearl: Terminal, openai_server: Server
) -> None:
    Path("tasks.jsonl").write_text(
        json.dumps({"id": "a", "question": ASK[1], "document_path": "report.txt"}), encoding="utf-8"
    )
    openai_server.on("in fiscal 2024", 'New actions:\n- None\n\n1. a = FIND(CTX, "sales") : f')
    openai_server.on(".", "> Sales were 12 in 2023")
    args = ("--model", "openai:m", "--base-url", openai_server.url)
    pearl(
        "execute", "--tasks", "tasks.jsonl", "-o", "rows.jsonl", *args, "--as-of", "2024-11-05",
        "--fiscal-year-end", "09-30", "--max-calls", "0", code=7,
    )  # fmt: skip
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"], "--yes", "--max-calls", "9", *args[2:])
    (row,) = map(json.loads, Path("rows.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["understood"]["question"] == "What were sales in fiscal 2024?"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--as-of", "yesterday"), "'yesterday' is not a date"),
        (("--as-of", "2024-02-30"), "'2024-02-30' is not a date"),
        (("--as-of", "0900-01-01"), "as_of is from 1700 to 2199"),
        (("--as-of", "today", "--fiscal-year-end", "13-01"), "'13-01' is not MM-DD"),
        (("--as-of", "today", "--fiscal-year-end", "W10-1"), "'W10-1' is not MM-DD"),
        (("--fiscal-year-end", "09-30"), "no effect without as_of"),
    ],
)
def test_what_is_no_date_is_refused(pearl: Terminal, flags: tuple[str, ...], why: str) -> None:
    pearl(*ASK, *flags, code=2)
    assert why in pearl.talk
