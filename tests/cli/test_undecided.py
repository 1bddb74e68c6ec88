"""What people and programs are told of answers that are none, or not sure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pearl.evals.log import read_log
from tests.cli.terminal import Terminal

PLAN = """\
1. animals = LIST_ALL(CTX, "animals") : List them
2. n = COUNT(animals) : Count
"""
RULES = [
    {
        "match": "three",
        "reply": '{"entries": ["a dog", "a cat", "a cow"], "quotes": ["three animals"]}',
    },
    {"match": "hedge", "reply": "There is no mention of animals"},
    {"match": "empty", "reply": "Nothing found."},
]


@pytest.fixture
def folder(pearl: Terminal) -> Path:
    Path("rules.json").write_text(json.dumps(RULES), encoding="utf-8")
    Path("count.plan").write_text(PLAN, encoding="utf-8")
    Path("list.plan").write_text(PLAN.splitlines()[0] + "\n2. f = FIRST(animals) : One\n", "utf-8")
    for name in ("three", "hedge", "empty"):
        Path(f"{name}.txt").write_text(f"A farm: {name} animals.", encoding="utf-8")
    return pearl.folder


def test_rows_say_what_they_are(pearl: Terminal, folder: Path) -> None:
    documents = ["three.txt", "hedge.txt", "empty.txt"]
    args = ("--model", "scripted:rules.json", "--out", "rows.jsonl")
    pearl("execute", "count.plan", *documents, *args, code=1)
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text("utf-8").splitlines()]
    assert [row["status"] for row in rows] == ["answered", "undecided", "answered"]
    assert [row["answer"] for row in rows][::2] == ["3", "0"]
    assert rows[1]["answer"].startswith("undecided: step 'animals': the reply cannot be read as")
    assert "  1 answer undecided: the rows have the reasons\n" in pearl.talk
    assert "nothing found" not in pearl.talk
    pearl("execute", "count.plan", *documents, *args, code=1)
    assert "3 of them from earlier runs" in pearl.talk
    run = pearl.talk.partition("run ")[2].partition(":")[0]
    assert "2 answered, 1 undecided" in pearl("runs", "show", run)
    pearl("execute", "list.plan", "empty.txt", *args[:2], "--out", "other.jsonl")
    assert "  1 answer with nothing found\n" in pearl.talk


def test_what_had_finished_when_a_step_failed_is_shown(pearl: Terminal, folder: Path) -> None:
    Path("two.plan").write_text(
        '1. a = FIND(CTX, "a dog") : One\n2. rows = SPLIT(CTX, "line") : Lines\n3. b = FIELD(rows, "x") : Two\n'
        "4. c = CONCAT(a, b) : Both",
        "utf-8",
    )
    said = pearl("execute", "two.plan", "three.txt", code=6)
    assert "a = FIND" in said
    assert "finished steps:" in pearl.talk
    assert "step 'b'" in pearl.talk


def test_an_evaluation_counts_them_as_what_they_are(pearl: Terminal, folder: Path) -> None:
    """One that found nothing is an answer; one that is undecided is none."""
    said = {"three": "a dog", "hedge": "There is no mention of animals", "empty": "Nothing found."}
    rows = [
        {"id": name, "question": "Which?", "document_path": f"{name}.txt", "reference": reference}
        for name, reference in said.items()
    ]
    plan = Path("list.plan").read_text("utf-8")
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    planned = {"match": "New actions", "reply": plan}
    Path("rules.json").write_text(json.dumps([planned, *RULES]), encoding="utf-8")
    args = ("--model", "scripted:rules.json", "--scorer", "f1")
    pearl("eval", "--data", "data.jsonl", *args, "--methods", "pearl", "-o", "data.log", code=1)
    records = {record.sample: record for record in read_log("data.log").records}
    assert {name: (r.status, r.score) for name, r in records.items()} == {
        "three": ("answered", 1.0), "hedge": ("failed", 0.0), "empty": ("answered", 1.0),
    }  # fmt: skip
    why = records["hedge"].error or ""
    assert why.startswith("undecided: step 'animals'")
    assert "after '- '" in why
