"""Named sources on the command line and in settings files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.service import SUBJECTS, write_service

PLAN = """\
Question: Which rule is it?

Sources:
- rules : the rules of the service
- reports

New actions:
- None

1. rule = FIND(rules, "fee refunded cancelled") : The rule
2. files = SPLIT(reports, "document") : The reports
3. n = COUNT(files) : How many reports
"""
GIVEN = ("--source", "rules=rules/ : the rules", "--source", "reports=reports")


@pytest.fixture(autouse=True)
def folder(pearl: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pearl.folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_service(pearl.folder)
    Path("c.plan").write_text(PLAN)


def test_a_plan_runs_over_sources_alone_and_all_forms_name_them(pearl: Terminal) -> None:
    shown = pearl("execute", "c.plan", *GIVEN, "--page", "page.html", "--trace", "t.jsonl")
    assert f"The rule: {SUBJECTS['refunds']} [1]" in shown
    assert "[1] rules: refunds.md, characters 11-81; rule" in shown
    assert "rules: refunds.md" in Path("page.html").read_text()
    assert "rules: refunds.md" in Path("t.jsonl").read_text()
    answer = pearl.json("execute", "c.plan", *GIVEN)
    assert [e["source"] for e in answer["evidence"][:1]] == ["rules: refunds.md"]
    costs = pearl.json("execute", "c.plan", *GIVEN, "--dry-run")
    rules = sum(map(len, SUBJECTS.values()))
    assert costs["total"]["calls"] == {"least": 1, "most": 1}
    assert costs["total"]["input_tokens"]["least"] > rules / 6


def test_a_settings_file_names_sources_for_many_plans(pearl: Terminal) -> None:
    table = '[sources.{0}]\npath = "{0}"\ndescription = "the {0}"\n'
    Path("own.toml").write_text("".join(map(table.format, ("rules", "reports", "cache"))))
    assert SUBJECTS["refunds"] in pearl("--config", "own.toml", "execute", "c.plan")
    Path("pearl.toml").write_text(table.format("rules"))
    pearl("execute", "c.plan", code=2)
    assert "you have not trusted this file" in pearl.talk
    Path("own.toml").write_text('[sources.rules]\nfile = "rules"\n')
    pearl("--config", "own.toml", "execute", "c.plan", code=3)
    assert "'rules' names no path" in pearl.talk


def test_a_stored_run_is_resumed_over_the_same_files_only(pearl: Terminal) -> None:
    pearl("execute", "c.plan", *GIVEN, "--out", "o.jsonl")
    (run,) = pearl.json("runs", "list")
    pearl("runs", "resume", run["id"])
    assert "1 of them from earlier runs" in pearl.talk
    os.utime("rules/refunds.md", (1, 1))
    pearl("runs", "resume", run["id"], code=8)
    assert f"a source of run {run['id']} has changed" in pearl.talk


def test_a_question_is_planned_over_sources_and_the_plan_is_kept(pearl: Terminal) -> None:
    plan = '1. rule = FIND(rules, "fee refunded cancelled") : Find the rule'
    refused = '1. answer = NO_SOURCE("Why?") : No source has it'
    rules = [
        {"match": "Question: Which rule.*- rules : corpus of 10 documents, .*: the rules\n", "reply": plan},
        {"match": "Question: Why", "reply": refused},
        {"match": "Assistance dogs.*fee refunded", "reply": f"> {SUBJECTS['refunds']}"},
    ]  # fmt: skip
    for rule in rules:
        rule["match"] = f"(?s){rule['match']}"
    Path("rules.json").write_text(json.dumps(rules))
    model = ("--model", "scripted:rules.json", "--check", "off")
    pearl("plan", "Which rule is on refunds?", *GIVEN, "-o", "kept.plan", *model[:2])
    kept = Path("kept.plan").read_text()
    assert "\n\nSources:\n- rules : the rules\n\nNew actions:\n" in kept
    answer = pearl.json("ask", "Which rule is on refunds?", *GIVEN, *model)
    assert answer["plan"].strip() == kept.strip()
    again = pearl.json("execute", "kept.plan", "--source", "rules=rules", *model)
    keys = ("answer", "evidence")
    assert [again[key] for key in keys] == [answer[key] for key in keys]
    assert [each["source"] for each in answer["evidence"]] == ["rules: refunds.md"]
    none = pearl.json("ask", "Why?", *GIVEN, *model)
    assert none["status"] == "nothing_found"
    alone = pearl.json("ask", "Which rule?", "story.txt", "--dry-run", *model)
    costs = pearl.json("ask", "Which rule?", *GIVEN, "--dry-run", *model)
    least = [each["total"]["input_tokens"]["least"] for each in (alone, costs)]
    assert least[1] > least[0] + 100
