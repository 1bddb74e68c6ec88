"""`--set`, `--parameter` and columns of `--data`: the parameters of plans on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

PLAN = """\
Question: Why was {drug} stopped?

Parameters:
- drug : the drug that was stopped

New actions:
- None

1. why = FIND_REASON(CTX, ["the stopping of the drug", drug]) : Find out why
"""
LETTER = (
    "The warfarin was stopped because of the bleeding. The aspirin was stopped because of a rash."
)
RULES = [
    {"match": "- warfarin\n", "reply": "> The warfarin was stopped because of the bleeding."},
    {"match": "- aspirin\n", "reply": "> The aspirin was stopped because of a rash."},
]
STORE = ("--model", "scripted:rules.json", "--store", "store")
MODEL = (*STORE, "--check", "off")


@pytest.fixture(autouse=True)
def folder(pearl: Terminal) -> None:
    Path("stopped.plan").write_text(PLAN, "utf-8")
    Path("letter.txt").write_text(LETTER, "utf-8")
    Path("rules.json").write_text(json.dumps(RULES), "utf-8")


def test_a_text_is_given_and_shown(pearl: Terminal) -> None:
    out = pearl("execute", "stopped.plan", "letter.txt", "--set", "drug=warfarin", "-v", *MODEL)
    assert "drug = warfarin" in out
    assert "because of the bleeding" in out
    assert PLAN.strip() in out
    row = pearl.json("execute", "stopped.plan", "letter.txt", "--set", "drug=aspirin", *MODEL)
    assert (row["parameters"], row["question"]) == ({"drug": "aspirin"}, "Why was aspirin stopped?")
    assert "rash" in row["answer"]
    page = ("execute", "stopped.plan", "letter.txt", "--set", "drug=<b>x", "--page", "p.html", "--trace", "t.jsonl")  # fmt: skip
    pearl(*page, "--model", "extractive", "--store", "store")
    pearl("view", "t.jsonl", "-o", "t.html")
    for name in ("p.html", "t.html"):
        assert "drug = &lt;b&gt;x" in Path(name).read_text("utf-8")
    assert "1 task" in pearl(
        "execute", "stopped.plan", "letter.txt", "--set", "drug=x", "--dry-run"
    )


def test_columns_of_data_give_a_text_for_each_row(pearl: Terminal) -> None:
    rows = [("warfarin", "letter.txt"), ("aspirin", "letter.txt"), ("", "letter.txt"), ("aspirin", "letter.txt")]  # fmt: skip
    Path("drugs.csv").write_text("drug,document_path\n" + "\n".join(map(",".join, rows)), "utf-8")
    args = ("execute", "stopped.plan", "--data", "drugs.csv", *MODEL, "--out", "rows.jsonl")
    pearl(*args, code=1)
    found = [json.loads(line) for line in Path("rows.jsonl").read_text("utf-8").splitlines()]
    told = [(row.get("parameters"), row["status"]) for row in found]
    assert told[:2] == [({"drug": "warfarin"}, "answered"), ({"drug": "aspirin"}, "answered")]
    assert told[2][1] == "failed"
    assert len({row["id"] for row in found}) == 3
    assert len(told) == 3  # the same document with the same text is run once
    assert "rash" in found[1]["answer"]
    pearl("view", "rows.jsonl", "-o", "rows.html")
    assert "Why was aspirin stopped? (drug = aspirin)" in Path("rows.html").read_text("utf-8")
    assert "'drug' is empty" in found[2]["error"]["message"]
    Path("list.jsonl").write_text(json.dumps({"drug": ["a"], "document": LETTER}), "utf-8")
    pearl("execute", "stopped.plan", "--data", "list.jsonl", *MODEL, "--out", "list_rows.jsonl", code=2)  # fmt: skip
    assert "parameter 'drug' must be a text, not a list" in Path("list_rows.jsonl").read_text("utf-8")  # fmt: skip
    pearl("execute", "stopped.plan", "--data", "drugs.csv", "--set", "drug=aspirin", *MODEL, "--out", "all.jsonl")  # fmt: skip
    (row,) = [json.loads(line) for line in Path("all.jsonl").read_text("utf-8").splitlines()]
    assert row["parameters"] == {"drug": "aspirin"}


def test_a_run_is_resumed_with_its_texts(pearl: Terminal) -> None:
    args = ("execute", "stopped.plan", "letter.txt", *MODEL, "--out")
    pearl(*args, "a.jsonl", "--set", "drug=warfarin", "--max-calls", "0", code=None)
    run = pearl.talk.partition("run ")[2].partition(":")[0]
    pearl("runs", "resume", run, "--store", "store", "--max-calls", "9", "--yes")
    (row,) = [json.loads(line) for line in Path("a.jsonl").read_text("utf-8").splitlines()]
    assert (row["status"], row["parameters"]) == ("answered", {"drug": "warfarin"})
    pearl(*args, "b.jsonl", "--set", "drug=aspirin")
    assert "of them from earlier runs" not in pearl.talk
    assert "rash" in Path("b.jsonl").read_text("utf-8")


PLANNED = [
    {"match": r"Question: Why was \{drug\} stopped\?\n\nParameters, whose", "reply": PLAN.partition("1. ")[2].join(["1. ", ""])},
    *RULES,
]  # fmt: skip


def test_a_plan_is_written_with_a_parameter(pearl: Terminal) -> None:
    Path("rules.json").write_text(json.dumps(PLANNED), "utf-8")
    written = pearl("plan", "Why was warfarin stopped?", "--parameter", "drug=warfarin", *STORE)
    assert written.strip() == PLAN.replace("the drug that was stopped", "the drug of the question").strip()  # fmt: skip
    Path("written.plan").write_text(written, "utf-8")
    Path("rules.json").write_text(json.dumps(RULES), "utf-8")  # no plan can be written any more
    row = pearl.json("execute", "written.plan", "letter.txt", "--set", "drug=aspirin", *MODEL)
    assert (row["answer"].count("rash"), row["parameters"]) == (1, {"drug": "aspirin"})
