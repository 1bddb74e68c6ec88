"""Questions of a corpus on the command line: folders, several files, a file of rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.server import Server


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    goats = "\n\n".join(f"Goats graze on hill {i}, and nobody counts them." for i in range(150))
    Path("reports").mkdir()
    Path("reports/a.txt").write_text(f"{goats}\n\nNils sold the boat in June.")
    Path("reports/b.txt").write_text(f"Ada kept her boat.\n\n{goats}")
    rows = [
        {"id": "r1", "text": "The mill burned in 1911."},
        {"id": "r2", "text": "He moved to Oslo."},
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


PLAN = """\
1. found = RETRIEVE(CTX, "sold the boat", 2) : Search for the sale
2. n = COUNT(found) : Count the passages
"""


@pytest.fixture
def plan(corpus: Path) -> str:
    Path("boat.plan").write_text(PLAN)
    return "boat.plan"


def test_a_plan_over_all_documents_that_are_asked_one_by_one_names_the_option(
    pearl: Terminal, corpus: Path, openai_server: Server
) -> None:
    openai_server.on(
        "Who sold the boat in words",
        'New actions:\n- None\n\n1. seller = FIND(CTX, "who") : Without SPLIT(CTX, "document")',
    )
    openai_server.on(
        "You write plans",
        'New actions:\n- None\n\n1. each = SPLIT(CTX, "document") : One row each\n'
        '2. ans = FILTER(each, "it says who sold the boat") : Those',
    )
    openai_server.on("", '{"1":"no","q1":null}')
    args = ("ask", "Which reports say who sold the boat?", "--model", "openai:m", "--base-url", openai_server.url, "--constrain", "off")  # fmt: skip
    pearl(*args, "reports", code=None)
    assert pearl.talk.count("--together gives one answer") == 1
    pearl("ask", "Who sold the boat in words?", *args[2:], "reports", code=None)
    assert 'Without SPLIT(CTX, "document")' in pearl.talk
    assert "--together gives" not in pearl.talk
    for named in (["reports", "--together"], ["reports/a.txt"]):
        pearl(*args, *named, code=None)
        assert "--together gives" not in pearl.talk


def test_files_that_runs_wrote_are_no_documents_of_a_corpus(pearl: Terminal, plan: str) -> None:
    asked = ("execute", plan, "reports", "--together")
    alone = json.loads(pearl(*asked, "--json"))
    for _ in range(2):
        pearl(*asked, "--out", "reports/all.jsonl", "--rows", "reports/rows.csv")
    told = json.loads(pearl(*asked, "--json"))
    assert "reports: left out: 2 files that runs wrote; name one to read it" in pearl.talk
    assert told["answer"] == alone["answer"]
    assert {each["source"] for each in told["evidence"]} <= {"a.txt", "b.txt"}
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"])
    assert "has changed since" not in pearl.talk


def test_a_plan_is_run_over_a_corpus_once(pearl: Terminal, plan: str) -> None:
    told = json.loads(pearl("execute", plan, "reports", "--together", "--json"))
    assert told["answer"] == "2"
    assert told["evidence"][0]["source"] == "a.txt"
    pearl("execute", plan, "reports", "--together", "--rows", "rows.csv", "--trace", "t.jsonl")
    assert "a.txt" in Path("rows.csv").read_text()
    pearl("execute", plan, "reports", "--together", "--out", "all.jsonl", "--rows", "more.csv")
    printed, kept = (
        list(csv.DictReader(Path(name).read_text().splitlines()))
        for name in ("rows.csv", "more.csv")
    )
    assert [{**row, "id": "reports"} for row in printed] == kept != []
    Path("more.csv").write_text("mine")
    pearl("execute", plan, "reports", "--together", "--out", "all.jsonl", "--rows", "more.csv")
    assert Path("more.csv").read_text() != "mine"  # its own file
    events = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    (retrieved,) = [event for event in events if event["event"] == "retrieved"]
    assert retrieved["passages"][0]["document"] == "a.txt"


def test_a_run_over_a_corpus_that_has_changed_is_not_gone_on_with(
    pearl: Terminal, plan: str
) -> None:
    asked = ("execute", plan, "reports", "--together", "-o", "out.jsonl")
    pearl(*asked)
    (run,) = json.loads(pearl("runs", "list", "--json"))
    Path("reports/c.txt").write_text("Ida sold the boat, too.")
    pearl("runs", "resume", run["id"], "--yes", code=8)
    assert f"the corpus of run {run['id']} has changed since" in pearl.talk
    pearl(*asked, "--force")  # another run, over what is there now
    assert len(json.loads(pearl("runs", "list", "--json"))) == 2


def test_standard_input_in_a_corpus_is_not_read_twice(pearl: Terminal, plan: str) -> None:
    asked = ("execute", plan, "reports/a.txt", "-", "--together", "-o", "out.jsonl")
    pearl(*asked, stdin=b"Ida sold the boat, too.")
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"], "--yes", code=2)
    assert "standard input" in pearl.talk


def test_what_passages_were_sent_to_is_named_again_by_the_user(
    pearl: Terminal, plan: str, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEARL_EMBEDDINGS_URL", openai_server.url)
    words = ("--ranker", "hybrid", "--embeddings", "openai:e")
    pearl("execute", plan, "reports", "--together", "-o", "out.jsonl", *words)
    (run,) = json.loads(pearl("runs", "list", "--json"))
    n_asked = len(openai_server.requests)
    assert n_asked
    again = ("runs", "resume", run["id"], "--yes")
    pearl(*again, code=2)
    assert "--embeddings openai:e" in pearl.talk
    pearl(*again, *words[2:])
    assert "1 of them from earlier runs" in pearl.talk
    assert len(openai_server.requests) == n_asked
