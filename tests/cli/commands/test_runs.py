"""`pearl runs`: what is shown, exported, resumed and removed."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pearl.cli.commands.execute import command as execute
from pearl.cli.commands.runs import ALLOWED
from pearl.runs.request import ExecuteRequest
from pearl.runs.store import RunSpec, Store
from tests.cli.terminal import PLAN, STORY, Terminal
from tests.root import ROOT
from tests.skips import needs

SCHEMA = json.loads((ROOT / "docs/results.schema.json").read_text("utf-8"))
COMMAND = ("execute", "why plan", "story.txt")

ANSWERED: dict[str, Any] = {
    "id": "a", "gold": "B", "n": [1, 2], "input_tokens": "of the input", "status": "answered",
    "question": "Why, \"really\"?", "document": "story.txt", "answer": "=1+1\nrotten \U0001f511",
    "method": "plan", "model": "m", "plan": "1. a = FIND(CTX) : x", "evidence": [],
    "unverified_quotes": [], "steps": [], "coverage": 1, "duration_s": 0.25,
    "usage": {"input_tokens": 5, "output_tokens": 6, "cached_tokens": 0},
}  # fmt: skip
FAILED = {
    "id": "b", "status": "failed", "question": None,
    "error": {"type": "DataError", "message": "no such file"},
}  # fmt: skip


@pytest.fixture
def pearl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PEARL_STORE", str(tmp_path / "store"))
    Path("story.txt").write_text(STORY, encoding="utf-8")
    Path("why.plan").write_text(PLAN, encoding="utf-8")
    return Terminal(tmp_path, capsys)


def fill(*rows: dict[str, Any], folder: str = "store", command: tuple[str, ...] = COMMAND) -> str:
    """Make a run that ended; its id."""
    spec = RunSpec(command, {"model": "m"}, {"story.txt": "1"})
    with Store.open(Path(folder)) as store:
        run = store.begin(spec, fresh=True)
        for i, row in enumerate(rows):
            asyncio.run(run.record(row["id"].encode(), i, row["id"], row, f'{{"t_s": {i}}}\n'))
        run.finish("stopped", {"cost_usd": 0.5})
    return run.id


def test_list(pearl: Terminal) -> None:
    first, second = fill(ANSWERED, FAILED), fill()
    out = pearl("runs", "list")
    assert out.index(second) < out.index(first)
    assert "stopped" in out
    assert "execute 'why plan' story.txt" in " ".join(out.split())
    listed = json.loads(pearl("runs", "list", "--json"))
    assert [run["id"] for run in listed] == [second, first]
    assert listed[1]["results"] == 2
    assert listed[1]["counts"] == {"cost_usd": 0.5}


def test_export_as_json_lines(pearl: Terminal) -> None:
    id = fill(ANSWERED, FAILED)
    out = pearl("runs", "export", id, "--trace", "t.jsonl")
    assert [json.loads(line) for line in out.splitlines()] == [ANSWERED, FAILED]
    assert Path("t.jsonl").read_text() == '{"t_s": 0}\n{"t_s": 1}\n'
    assert "2 rows" in pearl.talk
    pearl("runs", "export", id, "-o", "r.jsonl")
    assert Path("r.jsonl").read_text("utf-8") == out
    pearl("runs", "export", id, "-o", "store/store.db", code=2)
    pearl("runs", "export", id, "-o", "rows.xls", code=2)
    assert "unknown format .xls" in pearl.talk


def as_tables(folder: Path) -> list[list[dict[str, Any]]]:
    with (folder / "r.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    from pyarrow import parquet

    names, *rows = openpyxl.load_workbook(folder / "r.xlsx").active.iter_rows()
    assert all(cell.data_type != "f" for row in rows for cell in row)
    of_excel = [{a.value: b.value for a, b in zip(names, row, strict=True)} for row in rows]
    return [lines, of_excel, parquet.read_table(folder / "r.parquet").to_pylist()]


@needs("pyarrow")
def test_export_as_tables(pearl: Terminal) -> None:
    steps = [
        {"output": "age", "value": 51, "state": "found"},
        {"output": "drugs", "value": ["aspirin", "=1+1"], "state": "found"},
        {"output": "status", "value": "", "state": "undecided"},
        {"output": "why", "value": "Nothing.\x07", "state": "nothing"},
        {"output": "long", "value": "word " * 7_000, "state": "found"},
    ]
    id = fill({**ANSWERED, "steps": steps}, {**FAILED, "steps": "of the input"})
    for name in ("r.csv", "r.parquet", "r.xlsx"):
        pearl("runs", "export", id, "-o", name)
    # A spreadsheet that separates by semicolons would evaluate the rest of a cell of CSV.
    for (first, second), mark in zip(as_tables(pearl.folder), ("'", "", ""), strict=True):
        assert list(first)[:2] == ["id", "document"]
        assert str(first["age"]) == "51"
        assert first["drugs"] == f"aspirin;{mark} =1+1"
        assert (first["status"], first["status_"]) == ("answered", "undecided")
        assert first["why_"] == "nothing found"
        assert second["age"] in (None, "")
        assert len(first["long"]) > 30_000
        assert first["answer"] == f"{mark}{ANSWERED['answer']}"
        assert json.loads(first["n"]) == [1, 2]
        assert first["gold"] == "B"
        assert (float(first["duration_s"]), float(first["coverage"])) == (0.25, 1)
        assert int(first["input_tokens"]) == 5
        assert first["input_tokens_"] == "of the input"
        assert second["error_type"] == "DataError"
        assert second["error"] == "no such file"
        assert not second["answer"]
    pearl("runs", "export", id, "--format", "parquet", code=2)
    assert "goes to a file" in pearl.talk


def test_damaged_rows_are_counted(pearl: Terminal) -> None:
    import sqlite3

    id = fill(ANSWERED, FAILED)
    with sqlite3.connect("store/store.db") as connection:
        connection.execute("UPDATE results SET row = '{' || row WHERE status = 'failed'")
    connection.close()
    out = pearl("runs", "export", id, "--format", "csv", code=1)
    assert "no such" not in out
    assert "1 damaged rows" in pearl.talk


def test_rows_that_are_in_the_store_and_not_in_the_file_are_told(pearl: Terminal) -> None:
    import sqlite3

    Path("other.txt").write_text(STORY)
    command = ("execute", "why.plan", "story.txt", "other.txt", "--out", "rows.jsonl")
    pearl(*command)
    rows = Path("rows.jsonl").read_text()
    with sqlite3.connect("store/store.db") as connection:
        connection.execute("INSERT INTO results SELECT run_id, x'01', 9, task_id, status, '[]', trace FROM results LIMIT 1")  # fmt: skip
    connection.close()
    pearl(*command, code=8)
    assert "1 row of run" in pearl.talk
    assert Path("rows.jsonl").read_text() == rows


def begun(pearl: Terminal, folder: Path, *args: str) -> str:
    """A run of `pearl execute --out` that a limit has ended, given in a folder; its id."""
    with contextlib.chdir(folder):
        Path("why.plan").write_text(PLAN, encoding="utf-8")
        Path("d.txt").write_text(STORY, encoding="utf-8")
        pearl(
            "execute", "why.plan", "d.txt", "--out", "rows.jsonl", *args, "--max-calls", "0", code=7
        )
    return str(json.loads(pearl("runs", "list", "--json"))[0]["id"])


def test_resume_goes_on_in_the_folder_of_the_run(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pearl.folder / "work").mkdir()
    (pearl.folder / "other").mkdir()
    id = begun(pearl, pearl.folder / "work", "--max-steps", "9")
    monkeypatch.chdir(pearl.folder / "other")
    monkeypatch.setenv("PEARL_MAX_STEPS", "1")  # the run has settings of its own
    pearl("runs", "resume", id, "--yes", "--max-calls", "9")
    assert Path.cwd() == pearl.folder / "other"
    assert ids("../work/rows.jsonl") == ["d.txt"]
    assert "max-steps 9" in pearl("runs", "show", id)


def test_what_would_be_another_run_is_no_resuming(pearl: Terminal) -> None:
    id = begun(pearl, pearl.folder)
    for words in (
        ["other.txt"],
        ["--tasks", "t.jsonl"],
        ["--limit", "3"],
        ["--fresh"],
        ["--run", id],
    ):
        pearl("runs", "resume", id, "--yes", *words, code=2)
        assert "another run" in pearl.talk
    pearl("runs", "resume", id, "--yes", "--max-steps", "3", code=8)
    assert "other settings" in pearl.talk


def test_resume_where_the_folder_is_gone(pearl: Terminal) -> None:
    (pearl.folder / "work").mkdir()
    id = begun(pearl, pearl.folder / "work")
    shutil.rmtree("work")
    pearl("runs", "resume", id, "--yes", code=8)
    assert f"the folder of run {id} does not exist" in pearl.talk


def test_every_option_of_execute_is_part_of_the_work_or_known_not_to_be() -> None:
    options = {option.name for option in execute.params}
    # Which store and run it is, and what is the user's own to say.
    others = {"store", "run", "fresh", "dry_run", "page", "as_lines", "api_key_env", *ALLOWED}
    others |= {"embeddings"}  # documents are sent there
    others |= {"yes"}  # said once, for one repetition
    others |= {"telemetry", "private"}  # what is told of it is the user's own to say, too
    assert options == {*ExecuteRequest.__struct_fields__, *others} - {"written", "mapper_model"}


TASKS = [
    {"id": str(i), "plan": PLAN, "document": f"He sold it on day {i} because it was rotten."}
    for i in range(12)
]


def ids(path: str) -> list[str]:
    return [json.loads(line)["id"] for line in Path(path).read_text("utf-8").splitlines()]


def test_what_can_be_read_but_once_is_never_the_same_run(pearl: Terminal) -> None:
    os.mkfifo("pipe")
    for tasks in (TASKS[:2], TASKS[2:4]):
        told = "\n".join(map(json.dumps, tasks))
        writer = threading.Thread(target=Path("pipe").write_text, args=(told,))
        writer.start()
        pearl("execute", "--tasks", "pipe", "--out", "rows.jsonl", "--force")
        writer.join()
        assert ids("rows.jsonl") == [task["id"] for task in tasks]


def test_prune_shows_before_it_removes(pearl: Terminal) -> None:
    ids = [fill(ANSWERED), fill(ANSWERED, FAILED)]
    out = pearl("runs", "prune", "--keep", "1")
    assert ids[0] in out
    assert ids[1] not in out
    assert "--yes" in pearl.talk
    pearl("runs", "prune", "--older-than", "1h", "--yes")
    assert "removed 0 runs" in pearl.talk
    pearl("runs", "prune", "--keep", "1", "--replies", "--yes")
    assert "removed 1 run, 1 result, 0 replies" in pearl.talk
    assert [run["id"] for run in json.loads(pearl("runs", "list", "--json"))] == [ids[1]]
