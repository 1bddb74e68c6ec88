from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.reader import run
from experiments.reader.questions import (
    FOLDER,
    HALVES,
    KINDS,
    read_questions,
    shared_questions,
    text_of,
)
from experiments.reader.rules import outcome
from pearl import Pearl
from pearl.dsl.checker import compile_plan
from pearl.llm.backends.scripted import Scripted
from pearl.plugins import names

QUESTIONS = read_questions()
SHARED = list(map(json.loads, (FOLDER / "questions_shared.jsonl").read_text("utf-8").splitlines()))
BY_ID = {question["id"]: question for question in QUESTIONS}


def test_there_are_two_hundred_questions_in_two_halves_alike() -> None:
    assert len(BY_ID) == len({question["question"] for question in QUESTIONS}) == 200
    wanted = dict(zip(KINDS, (50, 30, 25, 25, 25, 20, 15, 5, 5), strict=True))
    assert Counter(question["kind"] for question in QUESTIONS) == wanted
    halves = [Counter(each["kind"] for each in read_questions(half)) for half in HALVES]
    assert all(abs(halves[0][kind] - halves[1][kind]) <= 1 for kind in KINDS)
    texts = Counter((each["text"], each["half"]) for each in QUESTIONS)
    assert {each["half"] for each in QUESTIONS} == set(HALVES)
    assert all(abs(texts[name, "dev"] - texts[name, "final"]) <= 5 for name, _ in texts)
    assert all(250 <= len(text_of(name).split()) <= 700 for name, _ in texts)


@pytest.mark.parametrize(
    "domain", sorted({each["domain"] for each in QUESTIONS} & {*names("pearl.data.domains")})
)
def test_every_plan_is_valid_in_the_library_of_its_domain(domain: str) -> None:
    actions = Pearl(domain=domain).actions
    for question in (each for each in QUESTIONS + SHARED if each["domain"] == domain):
        plan = compile_plan(question["plan"], actions)
        assert plan.plan.question == question["question"]
        assert not plan.notes, question["id"]


def test_every_rule_accepts_its_own_answer_and_refuses_others() -> None:
    for question in QUESTIONS:
        silent = "right" if question["kind"] == "not stated" else "not found"
        nothing = dict.fromkeys([None, "", "Nothing found.", "The text does not say."], silent)
        right, wrong, whole = question["right"], question["wrong"], text_of(question["text"])
        said = {right: "right", f"{right}.": "right", wrong: "wrong", whole: "wrong", **nothing}
        assert {each: outcome(each, question) for each in said} == said, question["id"]


def test_questions_about_shared_data_are_asked_where_it_is(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    for question in SHARED:
        assert outcome(question["right"], question) == "right"
        assert outcome(question["wrong"], question) == "wrong"
    asked = ["bare", "--shared", "--half", "both", "--model", model, "--limit", "2"]
    here, n_missing = shared_questions()
    assert len(here) + n_missing == len(SHARED) == 24
    for question in here:
        assert outcome(text_of(question["text"]), question) == "wrong"
        assert "\n" not in text_of(question["text"])[:20]
    monkeypatch.setattr("experiments.reader.questions._shared", lambda name: None)
    assert "24 questions are left out: their shared data is not here" in invoked(run.main, *asked)


PLAN = '1. ans = FIND_PLACE(CTX, "the letter") : Find where the letter is'
RULES = [
    {"match": "Answer in a few words", "reply": "In his tobacco tin."},
    {"match": "FIND_REASON.*Question: ", "reply": PLAN},
    {"match": "Wilma", "reply": "In his tobacco tin.\n> folded it into his tobacco tin"},
]


@pytest.fixture
def model(tmp_path: Path) -> str:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps(RULES), encoding="utf-8")
    return f"scripted:{file}"


def invoked(command: Any, *args: str) -> str:
    done = CliRunner().invoke(command, args, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_plans_are_written_alone_and_answers_are_asked_by_them(model: str, tmp_path: Path) -> None:
    plans = tmp_path / "plans.jsonl"
    asked = ["--model", model, "--half", "both", "--questions", "ferryman-01"]
    for shown in (
        invoked(run.main, "plan", *asked, "--out", str(plans)),
        invoked(run.main, "ask", *asked, "--plans", str(plans)),
    ):
        row = next(line.split() for line in shown.splitlines() if line.startswith("all"))
        assert row[:3] == ["all", "1", "1"]
    assert "FIND" in run.read_results(plans)[0]["plan"]


@pytest.mark.parametrize("mode", [mode for mode in run.MODES if mode != "plan"])
def test_a_run_is_judged_and_continued_and_two_are_compared(
    mode: str, model: str, tmp_path: Path
) -> None:
    out = tmp_path / "out" / "one.jsonl"
    asked = [mode, "--model", model, "--half", "both", "--out", str(out)]
    shown = invoked(run.main, *asked, "--questions", "ferryman-01")
    row = next(line.split() for line in shown.splitlines() if line.startswith("all"))
    assert row == ["all", "1", "1", "21%-100%", *"0000", "0/0" if mode == "bare" else "1/1"]
    assert "s of the processor" in shown
    invoked(run.main, *asked, "--questions", "ferryman-01,ferryman-02")
    results = run.read_results(out)
    assert [each["id"] for each in results] == ["ferryman-01", "ferryman-02"]
    wrong = tmp_path / "two.jsonl"
    wrong.write_text(json.dumps({**results[0], "answer": "On the stage"}) + "\n", encoding="utf-8")
    told = invoked(run.main, "compare", str(out), str(wrong))
    assert "1 questions in both: one.jsonl 1 right, two.jsonl 0; only the first 1" in told
    assert "only one.jsonl: ferryman-01" in told


ROWS = [
    {"match": "<item 151>", "reply": "151 yes\n478 no\n777 no\n180 yes\n412 yes\n285 no\n566 Is no\n663 The yes"},
    {"match": "Fields of the text", "reply": json.dumps({
        "sender": {"value": "Varga & Sons", "quote": "The parcel from Varga & Sons"},
        "weight": {"value": "12.4 kg", "quote": "weighed 12.4 kg"},
        "came_on": {"value": "2023-04-03", "quote": "came on 3 April 2024"}})},
    {"match": "Which hive", "reply": '{"select": ["Hive"], "sort": [{"by": "Honey kg", "descending": true}], "limit": 1}'},
    {"match": ".*", "reply": "He feared for the mules, since a pony had kicked the rail. [1] She tied flour sacks over their eyes. [2]"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "figures"),
    [
        ("rows", "8 of 8 parts right"),
        ("tables", "1/1"),
        ("extraction", "2 of 3 parts right"),
        ("composition", "1/1"),
    ],
)
def test_cases_are_asked_with_the_prompts_of_pearl(
    kind: str, figures: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scripted, "reads_prompts", True)
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps(ROWS), encoding="utf-8")
    asked = ["cases", "--kind", kind, "--model", f"scripted:{rules}", "--limit", "1"]
    row = next(line for line in invoked(run.main, *asked).splitlines() if line.startswith("all"))
    assert row.split()[2] == ("0" if kind == "extraction" else "1")
    assert row.endswith(figures)


def test_an_undecided_or_failed_answer_is_not_right() -> None:
    result = {"id": "ferryman-01", "kind": "fact", "answer": "tin", "seconds": 1, "cpu_seconds": 1}
    lines = run.report(
        [{**result, "status": "undecided"}, {**result, "error": "no server"}], QUESTIONS
    )
    assert lines[-2].split()[:9] == ["all", "2", "0", "0%-66%", "0", "0", "1", "1", "0/0"]
