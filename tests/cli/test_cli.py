"""The command line as people meet it: what is printed where, exit codes, files, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import click
import pytest

from pearl.cli import GROUPS, group, run
from pearl.cli.writing import new_file
from tests.cli.terminal import PLAN, STORY, Terminal
from tests.skips import needs_full_device

# --- asking and running -----------------------------------------------------------------------


def test_ask_reads_stdin(pearl: Terminal) -> None:
    out = pearl("ask", "Why did Nils sell the boat?", "-", stdin=STORY.encode())
    assert "the hull was rotten" in out
    assert "\x1b[" not in out


@pytest.mark.parametrize(
    ("documents", "statuses", "code"),
    [
        (["story.txt"], ["answered"], 0),
        (["absent.txt"], ["failed"], 3),
        (["story.txt", "absent.txt"], ["answered", "failed"], 1),
    ],
)
@pytest.mark.parametrize("command", [["ask", "Why did Nils sell?"], ["execute", "why.plan"]])
def test_json_lines_have_the_same_fields_for_one_document_and_for_many(
    pearl: Terminal, command: list[str], documents: list[str], statuses: list[str], code: int
) -> None:
    out = pearl(*command, *documents, "--jsonl", code=code)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["id"] for row in rows] == documents
    assert [row["status"] for row in rows] == statuses
    for row in rows:
        if row["status"] == "failed":
            assert row["error"] == {
                "type": "DataError",
                "message": "absent.txt: no such file",
                "help": "check the path",
                "exit_code": 3,
            }


def test_a_private_file_is_private_while_it_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "o.jsonl"
    target.touch(mode=0o600)
    with new_file(str(target)) as file:
        file.write("A secret.")
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


@needs_full_device
def test_a_full_disk_is_no_traceback() -> None:
    command = f"{sys.executable} -m pearl grammar > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"cannot write the output: No space left" in done.stderr
    assert not any(word in done.stderr for word in (b"Traceback", b"a bug in PEARL"))


@pytest.mark.parametrize("closed", [pytest.param(">&-", marks=pytest.mark.slow), "<&- >&- 2>&-"])
def test_closed_output_is_output_to_nobody(closed: str, pearl: Terminal) -> None:
    for args, is_kept in (
        ("execute why.plan story.txt --out z.jsonl", True),
        ("ask Why? story.txt", False),
    ):
        command = f"{sys.executable} -m pearl {args} {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        assert not any(word in done.stderr for word in (b"Traceback", b"a bug in PEARL"))
        assert not is_kept or len(Path("z.jsonl").read_text().splitlines()) == 1


# --- settings ---------------------------------------------------------------------------------


def test_flags_come_before_variables_before_the_file(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan_steps(*flags: str) -> int:
        Path("two.plan").write_text('1. a = FIND(CTX, "x") : f\n2. b = FIND(a, "y") : g\n', "utf-8")
        return run(["execute", "two.plan", "story.txt", *flags])

    assert plan_steps() == 0
    Path("pearl.toml").write_text("max-steps = 1\n", encoding="utf-8")
    assert plan_steps() == 4
    monkeypatch.setenv("PEARL_MAX_STEPS", "2")
    assert plan_steps() == 0
    assert plan_steps("--max-steps", "1") == 4


# --- bad input: at most three lines, cause and mend, no traceback, nothing half-written ----------


def test_a_closed_pipe_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)  # before anything is written: no race with the reader
    try:
        command = [sys.executable, "-m", "pearl", "grammar"]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("form", ["", pytest.param("--json", marks=pytest.mark.slow)])
def test_a_reader_that_leaves_amid_many_documents_is_no_error(pearl: Terminal, form: str) -> None:
    row = {"plan": PLAN, "document": STORY * 20}
    Path("t.jsonl").write_text("\n".join(json.dumps({"id": i, **row}) for i in range(80)))
    command = f"{sys.executable} -m pearl execute --tasks t.jsonl --library seed {form} | head -n 2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1, done.stderr.decode()


def test_help_shows_what_matters_first_and_all_of_it_in_groups(pearl: Terminal) -> None:
    short, whole = pearl("execute", "--help"), pearl("execute", "--help-all")
    for option in ("--set ", "--model ", "--dry-run ", "--json "):
        assert f"  {option}" in short
        assert whole.count(f"  {option}") == 1
    assert "--shard" not in short
    titles = [line for line in whole.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == ["Options:", "Question and document:", "Plan:", "Model:", "Rows:", "Limits:", "Run:", "Search:", "Output:", "Help:"]  # fmt: skip


def test_the_help_says_of_each_command_what_the_command_says_of_itself() -> None:
    for name, summary in chain.from_iterable(rows.items() for rows in GROUPS.values()):
        if (command := group.get_command(click.Context(group), name)) is not None:  # of contrib
            assert " ".join((command.help or "").split()).startswith(summary), name


def test_every_public_name_exists() -> None:
    import pearl

    for name in dir(pearl):
        assert getattr(pearl, name) is not None
    with pytest.raises(AttributeError):
        _ = pearl.nonsense
