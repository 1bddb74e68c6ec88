"""The command line as people meet it: what is printed where, exit codes, files, bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pearl.cli import group as pearl_commands
from pearl.cli import run
from pearl.cli.help import Command
from pearl.cli.writing import new_file
from tests.cli.terminal import PLAN, STORY, Terminal, child
from tests.skips import needs_full_device

# --- asking and running -----------------------------------------------------------------------


def test_ask_prints_the_answer_with_its_evidence(pearl: Terminal) -> None:
    out = pearl("ask", "Why did Nils sell the boat?", "story.txt")
    assert "because the hull was rotten" in out
    start = STORY.index("He sold")
    assert f"story.txt, characters {start}-" in out
    assert "no language model" in pearl.talk


def test_ask_reads_stdin(pearl: Terminal) -> None:
    out = pearl("ask", "Why did Nils sell the boat?", "-", stdin=STORY.encode())
    assert "the hull was rotten" in out
    assert "\x1b[" not in out


def test_ask_over_several_documents(pearl: Terminal) -> None:
    (pearl.folder / "other.txt").write_text(
        "Nils sold the boat because he was tired.", encoding="utf-8"
    )
    out = pearl("ask", "Why did Nils sell the boat?", "story.txt", "other.txt")
    assert out.index("== story.txt") < out.index("rotten") < out.index("== other.txt")
    together = pearl(
        "ask", "When did Nils leave the harbour?", "other.txt", "story.txt", "--together", "--json"
    )
    best = json.loads(together)["evidence"][0]
    assert best["source"] == "story.txt"
    assert STORY[best["start"] : best["end"]] == best["text"] == "Nils left the harbour at dawn."


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


@pytest.mark.parametrize("group", [[], ["runs"], ["refine"], ["config"]])
def test_help_has_a_whole_line_for_every_command(
    pearl: Terminal, group: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = pearl(*group, "--help")
    assert "Other distributions" not in shown, "each command of ours has a group"
    command: click.Command = pearl_commands
    for name in group:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), name)  # type: ignore[assignment]
    assert isinstance(command, click.Group)
    context = click.Context(command)
    for name in command.list_commands(context):
        member = command.get_command(context, name)
        assert member is not None
        first = " ".join((member.help or "").partition("\n\n")[0].split())
        first = re.split(r"(?<=\.) ", first)[0].removesuffix(".")
        lines = [line for line in shown.splitlines() if line.split()[:1] == [name]]
        assert len(lines) == 1, (name, shown)
        assert first in lines[0]
        options = member.options if isinstance(member, Command) and member.is_long else []
        listed = pearl(*group, name, "--help-all") if options else ""
        for option in options:
            assert re.search(rf"^ .*{option.opts[-1]}\b", listed, re.M), (name, option.opts)


def test_plan_then_execute(pearl: Terminal) -> None:
    pearl("plan", "Why did Nils sell the boat?", "-o", "mine.plan")
    text = (pearl.folder / "mine.plan").read_text(encoding="utf-8")
    assert text.startswith("Question: Why did Nils sell the boat?\n\nNew actions:\n")
    assert "the hull was rotten" in pearl("execute", "mine.plan", "story.txt")
    pearl("check", "mine.plan")
    assert pearl("fmt", "--check", "mine.plan") == ""


def test_plans_of_a_questions_file_are_tasks(pearl: Terminal) -> None:
    rows = [
        {"id": "a", "question": "Why did Nils sell the boat?", "document_path": "story.txt"},
        {
            "id": "b",
            "question": "When did Nils leave?",
            "document": "Nils left on 3 May. It rained.",
        },
        {"question": "Who asked?"},
    ]
    Path("q.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\nnot json\n", encoding="utf-8")
    pearl("plan", "--data", "q.jsonl", "--out", "plans.jsonl", code=1)
    planned = [json.loads(line) for line in Path("plans.jsonl").read_text("utf-8").splitlines()]
    assert [row["status"] for row in planned] == ["planned"] * 3 + ["failed"]
    assert "q.jsonl:4" in planned[3]["error"]["message"]
    pearl("execute", "--tasks", "plans.jsonl", "story.txt", "--out", "results.jsonl", code=1)
    results = [json.loads(line) for line in Path("results.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in results[:3]] == ["a", "b", "3"]
    assert [row["status"] for row in results] == ["answered"] * 3 + ["failed"]
    assert "rotten" in results[0]["answer"]
    assert "3 May" in results[1]["answer"]


def test_tasks_take_plans_paths_and_questions(pearl: Terminal) -> None:
    rows = [
        {"id": 1, "plan": PLAN, "document": STORY},
        {"id": 2, "plan_path": "why.plan", "document_path": "story.txt"},
        {"id": 3, "question": "Why did Nils sell the boat?", "document": STORY},
        {"id": 4, "plan": PLAN},
        {"id": 5, "plan": "1. a = NOPE(CTX) : x", "document": STORY},
    ]
    Path("t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    out = pearl("execute", "--tasks", "t.jsonl", "--json", code=1)
    got = [json.loads(line) for line in out.splitlines()]
    assert [row["status"] for row in got] == ["answered"] * 3 + ["failed"] * 2
    assert [row["id"] for row in got] == ["1", "2", "3", "4", "5"]
    assert "t.jsonl:4" in got[3]["error"]["message"]
    assert "unknown-action" in got[4]["error"]["message"]


def test_inputs_are_never_written_over(pearl: Terminal) -> None:
    pearl("execute", "why.plan", "story.txt", "--out", "why.plan", code=2)
    pearl("ask", "Why?", "story.txt", "--trace", "./story.txt", code=2)
    assert "is an input" in pearl.talk
    assert Path("story.txt").read_text("utf-8") == STORY


def test_a_file_that_is_replaced_keeps_its_rights(pearl: Terminal) -> None:
    Path("o.jsonl").touch(mode=0o600)
    pearl("execute", "why.plan", "story.txt", "--out", "o.jsonl")
    assert Path("o.jsonl").stat().st_mode & 0o777 == 0o600


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


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
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


def test_a_broken_plan_is_told_once_under_its_name(pearl: Terminal) -> None:
    Path("bad.plan").write_text("1. a = NOPE(CTX) : x\n", encoding="utf-8")
    pearl("execute", "bad.plan", "story.txt", "story.txt", "--out", "o.jsonl", code=4)
    assert "bad.plan:1:8: action 'NOPE'" in pearl.talk
    assert not Path("o.jsonl").exists()


def test_a_document_that_was_not_read_in_full_says_so(pearl: Terminal) -> None:
    Path("long.txt").write_text(
        "Nils sold it. Goats graze on the hill.\n\n" * 500, encoding="utf-8"
    )
    out = pearl(
        "ask", "What did Nils sell?", "long.txt", "--context", "retrieve", "--window", "2000"
    )
    assert "% of the document" in out


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


def test_unknown_settings_are_named(pearl: Terminal) -> None:
    Path("pearl.toml").write_text('modle = "x"\n', encoding="utf-8")
    pearl("demo", code=3)
    assert "did you mean 'model'?" in pearl.talk
    pearl("--config", "absent.toml", "demo", code=3)


# --- bad input: at most three lines, cause and mend, no traceback, nothing half-written ----------


BAD = {
    "missing file": (["ask", "Who?", "absent.txt"], 3, "absent.txt"),
    "folder": (["ask", "Who?", "void"], 3, "folder|directory"),
    "binary file": (["ask", "Who?", "photo.png"], 3, "photo.png"),
    "empty document": (["ask", "Who?", "empty.txt"], 3, "empty"),
    "too large a document": (["ask", "Who?", "huge.txt"], 3, "MB"),
    "empty question": (["ask", "  ", "story.txt"], 2, "question is empty"),
    "no document": (["ask", "Who?"], 2, "no document"),
    "unknown model": (["ask", "Who?", "story.txt", "--model", "opnai:gpt-4o"], 2, "openai:gpt-4o"),
    "no key": (["ask", "Who?", "story.txt", "--model", "openai:gpt-4o"], 5, "OPENAI_API_KEY"),
    "no server": (
        ["ask", "Who?", "story.txt", "--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1"],
        5, "127.0.0.1:9",
    ),
    "unknown library": (["ask", "Who?", "story.txt", "--library", "qualty"], 3, "did you mean 'quality'"),
    "unknown domain": (["ask", "Who?", "story.txt", "--domain", "medicl"], 2, "did you mean 'medical'"),
    "unknown command": (["aks", "Who?"], 2, "did you mean 'ask'"),
    "unknown option": (["ask", "--modle", "x", "Who?", "story.txt"], 2, "--mod"),
    "broken plan": (["execute", "broken.plan", "story.txt"], 4, "2 more|1 more|unknown-action"),
    "plan that cannot be repaired": (
        ["ask", "Who?", "story.txt", "--model", "scripted:rules.json", "--fallback", "none"], 4, "no valid plan",
    ),
    "missing plan": (["execute", "absent.plan", "story.txt"], 3, "absent.plan"),
    "missing tasks": (["execute", "--tasks", "absent.jsonl"], 3, "absent.jsonl"),
    "lone surrogate": (["ask", "Who\udcff?", "story.txt"], 2, "half a character"),
    "surrogate in a document": (["ask", "Who?", "surrogate.txt"], 3, "surrogate.txt"),
    "out in no folder": (["ask", "Who?", "story.txt", "--trace", "no/where.jsonl"], 3, "no/where.jsonl"),
}  # fmt: skip


@pytest.mark.usefixtures("_no_waits")
@pytest.mark.parametrize("case", BAD)
def test_bad_input(pearl: Terminal, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    args, code, words = BAD[case]
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "1")
    Path("photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    Path("void").mkdir()
    Path("empty.txt").write_text(" \n", encoding="utf-8")
    Path("huge.txt").write_bytes(b"word " * 300_000)
    Path("surrogate.txt").write_bytes(b"half \xed\xa0\x80 a character")
    Path("broken.plan").write_text("1. a = NOPE(CTX) : x\n2. b = FIND(zz) : y\n", encoding="utf-8")
    Path("rules.json").write_text(
        '[{"match": ".", "reply": "I would rather not."}]', encoding="utf-8"
    )
    before = sorted(Path().iterdir())
    out = pearl(*args, code=code)
    said = [
        line
        for line in pearl.talk.splitlines()
        if not line.startswith(("extractive:", "openai:", "scripted:"))
    ]
    assert 1 <= len(said) <= 3, pearl.talk
    assert said[0].startswith("pearl: ")
    assert re.search(words, pearl.talk), pearl.talk
    assert out == ""
    failed = json.loads(pearl(*args, "--json", code=code))
    assert (failed["status"], failed["error"]["exit_code"]) == ("failed", code)
    assert failed["error"]["type"].endswith("Error")
    told = f"pearl: {failed['error']['message']}\n"
    if failed["error"]["help"]:
        told += f"  help: {failed['error']['help']}\n"
    assert pearl.talk.endswith(told)
    assert sorted(Path().iterdir()) == before


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


def test_the_version_is_fast_to_say() -> None:
    done = child("--version")
    assert done.stdout.startswith(b"pearl ")


def test_every_public_name_exists() -> None:
    import pearl

    for name in pearl.__all__:
        assert getattr(pearl, name) is not None
    with pytest.raises(AttributeError):
        _ = pearl.nonsense
