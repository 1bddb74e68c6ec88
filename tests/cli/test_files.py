"""Files on the command line: what is never replaced, never read, and never mistaken for another thing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pearl.cli.writing import OutputWriter
from pearl.errors import UsageError
from tests.cli.terminal import QUESTION, Terminal, asked, child, rows_of, write

# --- what is written --------------------------------------------------------------------------

MINE = "what somebody wrote\n"


@pytest.fixture
def tasks() -> str:
    write("t.jsonl", asked("a"), asked("b"))
    return "t.jsonl"


@pytest.mark.parametrize(
    "command",
    [
        ["plan", QUESTION, "-o", "FILE"],
        ["plan", "--data", "t.jsonl", "-o", "FILE"],
        ["ask", QUESTION, "story.txt", "--trace", "FILE"],
        ["execute", "why.plan", "story.txt", "--out", "FILE"],
        ["execute", "why.plan", "story.txt", "--page", "FILE", "--trace", "trace"],
        ["execute", "why.plan", "story.txt", "--rows", "FILE", "--trace", "trace"],
        ["grammar", "-o", "FILE"],
    ],
    ids=lambda command: " ".join(command),
)
def test_an_existing_file_is_replaced_by_force_only(
    pearl: Terminal, tasks: str, command: list[str]
) -> None:
    Path("FILE").write_text(MINE, encoding="utf-8")
    pearl(*command, code=2)
    assert "'FILE' exists already" in pearl.talk
    assert "--force" in pearl.talk
    assert not Path("trace").exists()  # it is refused before anything is asked
    assert Path("FILE").read_text(encoding="utf-8") == MINE
    pearl(*command, "--force")
    assert Path("FILE").read_text(encoding="utf-8") != MINE


def test_another_command_is_another(pearl: Terminal, tasks: str) -> None:
    pearl("plan", QUESTION, "-o", "one.plan")
    pearl("plan", "When did Nils leave?", "-o", "one.plan", code=2)
    assert QUESTION in Path("one.plan").read_text(encoding="utf-8")
    pearl("execute", "--tasks", "t.jsonl", "--out", "rows.jsonl")
    pearl("execute", "why.plan", "story.txt", "--out", "rows.jsonl", code=2)
    pearl("execute", "--tasks", "t.jsonl", "--max-steps", "9", "--out", "rows.jsonl", code=2)
    assert len(rows_of("rows.jsonl")) == 2


def test_a_file_that_comes_meanwhile_stays(pearl: Terminal) -> None:
    writer = OutputWriter()

    def write_late() -> None:
        with writer.open("rows") as file:
            file.write("mine")
            Path("rows").write_text(MINE, encoding="utf-8")

    with pytest.raises(UsageError, match="'rows' exists already"):
        write_late()
    assert Path("rows").read_text(encoding="utf-8") == MINE
    assert not list(Path().glob(".rows*"))


@pytest.mark.parametrize("command", [("ask", QUESTION), ("execute", "why.plan")])
def test_the_name_of_the_output_says_what_it_is(pearl: Terminal, command: tuple[str, ...]) -> None:
    for out, begins in (
        ("a.html", "<!DOCTYPE html>"), ("a.json", '{\n  "v"'), ("a.jsonl", '{"'), ("a.txt", "He sold"), ("a.md", "He sold"),
    ):  # fmt: skip
        assert "rotten" not in pearl(*command, "story.txt", "-o", out)
        said = Path(out).read_text(encoding="utf-8")
        assert said.startswith(begins), out
        assert "rotten" in said
    assert "rotten" in pearl(
        *command, "story.txt", "-o", "a.csv"
    )  # without rows, the answer is printed
    assert Path("a.csv").read_text(encoding="utf-8").startswith("id,")
    pearl(*command, "story.txt", "-o", "a.pages", code=2)
    assert "'a.pages': unknown format" in pearl.talk
    Path("b.txt").write_text("It rained.")
    pearl(*command, "story.txt", "b.txt", "-o", "b.html", code=2)
    pearl(*command, "story.txt", "b.txt", "-o", "b.csv", code=2)
    assert "name it b.jsonl" in pearl.talk


def test_pipes_empty_files_and_stdout_are_written_to(pearl: Terminal) -> None:
    Path("empty").touch()
    pearl("ask", QUESTION, "story.txt", "-o", "empty")
    assert "rotten" in Path("empty").read_text(encoding="utf-8")
    Path("link").symlink_to("behind")
    pearl("plan", QUESTION, "-o", "link")
    assert Path("link").is_symlink()
    assert QUESTION in Path("behind").read_text(encoding="utf-8")
    assert QUESTION in pearl("plan", QUESTION, "-o", "-")
    done = child("plan", QUESTION, "-o", "/dev/stdout")
    assert QUESTION in done.stdout.decode()
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    pearl("plan", QUESTION, "-o", "pipe")
    assert QUESTION.encode() in reader.communicate()[0]


# --- what is said where something else was meant -------------------------------------------------


def test_a_wrong_value_is_told_with_the_place_that_says_it(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pearl.toml").write_text('concurrency = "many"\n', encoding="utf-8")
    pearl("execute", "why.plan", "story.txt", code=2)
    assert f"{Path('pearl.toml').resolve()}: Invalid value for 'concurrency': 'many'" in pearl.talk
    monkeypatch.setenv("PEARL_CONCURRENCY", "few")
    pearl("execute", "why.plan", "story.txt", code=2)
    assert "pearl: Invalid value for PEARL_CONCURRENCY: 'few'" in pearl.talk
    pearl("execute", "why.plan", "story.txt", "--concurrency", "no", code=2)
    assert "pearl: Invalid value for '--concurrency': 'no'" in pearl.talk
    monkeypatch.delenv("PEARL_CONCURRENCY")
    for value in ("[9, 30]", "930"):  # types that TOML has, and command lines have not
        Path("user.toml").write_text(f"fiscal_year_end = {value}\n", encoding="utf-8")
        pearl("--config", "user.toml", "execute", "why.plan", "story.txt", code=2)
        assert f"'{value}' is not MM-DD" in pearl.talk


def test_tasks_are_run_over_the_documents_of_their_rows_else_over_those_that_are_named(
    pearl: Terminal,
) -> None:
    failed = {"id": "f", "status": "failed", "error": {"message": "no plan"}, "question": "Why?"}
    write("q.jsonl", {"question": QUESTION}, failed)
    pearl("execute", "--tasks", "q.jsonl", "--out", "rows.jsonl", code=1)
    assert "  help: name them: pearl execute --tasks q.jsonl DOC..." in pearl.talk
    (_, second) = rows_of("rows.jsonl")
    assert second["error"]["message"].endswith("the plan of this row failed: no plan")
    pearl("execute", "--tasks", "q.jsonl", "story.txt", "--out", "more.jsonl", code=1)
    assert [row["status"] for row in rows_of("more.jsonl")] == ["answered", "failed"]
