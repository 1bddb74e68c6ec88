"""Files that commands read: none outside, none for ever, and what was meant."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pearl.actions.library import library_text, load_library
from tests.cli.terminal import QUESTION, STORY, Terminal, asked, rows_of, write

# --- what is read -----------------------------------------------------------------------------


def test_bad_rows_fail_alone(pearl: Terminal) -> None:
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("loop").symlink_to("loop")
    bad = ["a\0b", "/dev/zero", "pipe", "folder", "loop", "x" * 300, "absent.txt", "latin.plan"]
    Path("latin.plan").write_bytes(b'1. a = FIND(CTX, "caf\xe9\xff\xfe\x00")' * 9)
    write(
        "t.jsonl",
        asked("good"),
        *({"id": f"d{n}", "question": QUESTION, "document_path": path} for n, path in enumerate(bad)),
        *({"id": f"p{n}", "plan_path": path, "document": STORY} for n, path in enumerate(bad)),
        asked("last"),
    )  # fmt: skip
    pearl("execute", "--tasks", "t.jsonl", "--out", "rows.jsonl", "--allow-outside", code=1)
    rows = {row["id"]: row for row in rows_of("rows.jsonl")}
    assert len(rows) == 2 * len(bad) + 2
    assert [rows[id]["status"] for id in ("good", "last")] == ["answered"] * 2
    failed = [row for id, row in rows.items() if id not in ("good", "last")]
    assert {row["status"] for row in failed} == {"failed"}
    assert all(row["error"]["type"] == "DataError" for row in failed), failed
    assert [rows[f"d{n}"].get("document") for n in range(len(bad))] == bad


def test_paths_stay_in_the_folder_of_the_file(pearl: Terminal) -> None:
    Path("in.txt").symlink_to(Path("../secret.txt").absolute())
    Path("sub").mkdir()
    Path("sub/own.txt").symlink_to(Path("story.txt").absolute())
    outside = ["../secret.txt", str(Path("../secret.txt").absolute()), "in.txt"]
    rows = [asked(str(n), document_path=path) for n, path in enumerate(outside)]
    write("t.jsonl", *rows, asked("inside", document_path="sub/own.txt"),
          {"id": "plan", "plan_path": "../secret.txt", "document": STORY})  # fmt: skip
    pearl("execute", "--tasks", "t.jsonl", "--out", "rows.jsonl", code=1)
    statuses = {row["id"]: row["status"] for row in rows_of("rows.jsonl")}
    assert statuses == {**dict.fromkeys(["0", "1", "2", "plan"], "failed"), "inside": "answered"}
    assert "under the mat" not in Path("rows.jsonl").read_text(encoding="utf-8")
    assert "--allow-outside" in rows_of("rows.jsonl")[0]["error"]["help"]
    pearl("plan", "--data", "t.jsonl", "-o", "plans.jsonl", code=1)
    assert [row["status"] for row in rows_of("plans.jsonl")][:3] == ["failed"] * 3
    data = ("execute", "why.plan", "--data", "t.jsonl")
    assert len(pearl(*data, "--json", code=1).splitlines()) == 5
    write("t.jsonl", *rows)
    pearl(*data, "--json", "--allow-outside")


# --- tasks ------------------------------------------------------------------------------------


def test_every_row_of_a_tasks_file_has_one_of_the_results(pearl: Terminal) -> None:
    write("t.jsonl", asked("a"), asked("b"), asked("a"), asked("a"))
    for _ in range(2):
        pearl("execute", "--tasks", "t.jsonl", "--out", "rows.jsonl")
        assert [row["id"] for row in rows_of("rows.jsonl")] == ["a", "b", "a", "a"]
    assert "4 of them from earlier runs" in pearl.talk


def test_tasks_run_under_the_library_that_they_were_planned_for(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("q.jsonl", asked("a"))
    pearl("plan", "--data", "q.jsonl", "--domain", "quality", "-o", "plans.jsonl")
    planned = rows_of("plans.jsonl")[0]["planned_for"]
    assert (planned["domain"], planned["library"]) == ("quality", "quality")
    tasks = ("execute", "--tasks", "plans.jsonl", "--out", "rows.jsonl")
    pearl(*tasks)
    (run,) = json.loads(pearl("runs", "list", "--json"))
    assert (run["settings"]["domain"], run["settings"]["library"]) == ("quality", "quality")
    pearl(*tasks, "--domain", "quality", "--library", "quality")
    pearl(*tasks, "--domain", "medical", code=2)
    assert "written for domain 'quality', not 'medical'" in pearl.talk
    pearl(*tasks, "--library", "seed", code=2)
    assert "written for library 'quality', not 'seed'" in pearl.talk
    assert len(pearl.talk.splitlines()) == 2
    monkeypatch.setenv("PEARL_DOMAIN", "medical")
    pearl(*tasks, code=2)


def test_a_library_of_ones_own_goes_with_its_plans(pearl: Terminal) -> None:
    Path("lib").mkdir()
    text = library_text(load_library("seed"))
    Path("lib/mine.actions").write_text(text, encoding="utf-8")
    write("q.jsonl", asked("a"))
    pearl("plan", "--data", "q.jsonl", "--library", "lib/mine.actions", "-o", "plans.jsonl")
    assert rows_of("plans.jsonl")[0]["planned_for"]["library"] == "lib/mine.actions"
    pearl("execute", "--tasks", "plans.jsonl", "--out", "rows.jsonl")
    Path("lib/mine.actions").write_text(f"{text}MORE(CTX, X) : Find X\n", encoding="utf-8")
    pearl("execute", "--tasks", "plans.jsonl", "--out", "rows.jsonl", code=3)
    assert "library 'lib/mine.actions' has changed" in pearl.talk


def test_a_plan_for_another_library_fails_alone(pearl: Terminal) -> None:
    write("q.jsonl", asked("a"))
    pearl("plan", "--data", "q.jsonl", "--domain", "quality", "-o", "one.jsonl")
    pearl("plan", "--data", "q.jsonl", "--domain", "medical", "-o", "two.jsonl")
    write("both.jsonl", *rows_of("one.jsonl"), {**rows_of("two.jsonl")[0], "id": "b"})
    pearl("execute", "--tasks", "both.jsonl", "--out", "rows.jsonl", code=1)
    first, second = rows_of("rows.jsonl")
    assert (first["status"], second["status"]) == ("answered", "failed")
    assert "another library, 'medical'" in second["error"]["message"]


# --- what was meant ---------------------------------------------------------------------------


def test_a_document_named_twice_is_read_once(pearl: Terminal) -> None:
    told = pearl("ask", QUESTION, "story.txt", "story.txt", "-o", "told.txt", "--json")
    assert told == ""
    assert len(Path("told.txt").read_text().splitlines()) > 1  # one answer, over several lines
    assert json.loads(Path("told.txt").read_text())["question"] == QUESTION
    assert "1 document is named twice, but read only once: story.txt" in pearl.talk


def test_folders_and_patterns_are_documents(pearl: Terminal) -> None:
    Path("all/deep").mkdir(parents=True)
    Path("all/.git").mkdir()
    for name in ("all/a.txt", "all/deep/b.md", "all/.git/c.txt", "all/d.bin"):
        Path(name).write_text(STORY, encoding="utf-8")
    heads = [line for line in pearl("ask", QUESTION, "all").splitlines() if line[:2] == "=="]
    assert heads == ["== all/a.txt", "== all/deep/b.md"]
    assert "1 file of other kinds left out" in pearl.talk
    rows = pearl("execute", "why.plan", "all/**/*.md", "st*.txt", "--json")
    assert [json.loads(line)["id"] for line in rows.splitlines()] == ["all/deep/b.md", "story.txt"]
    Path("[1].txt").write_text(STORY, encoding="utf-8")  # a name, not a pattern
    pearl("ask", QUESTION, "[1].txt")
