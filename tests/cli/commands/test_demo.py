"""The demo: what it prints, and that its commands do so again."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from pearl.cli.commands.demo import PARTS, QUESTION
from pearl.llm.backends import recorded
from pearl.plugins.files import read_data
from tests.cli.terminal import Terminal


def test_the_commands_of_the_demo_print_its_answers_again(pearl: Terminal) -> None:
    printed = pearl("demo")
    copied = pearl("demo", "--copy", "mine")
    assert copied.split() == ["mine/story.txt", "mine/crossings.plan", "mine/crossings.csv"]
    commands = re.findall(r"^\$ pearl (.+)$", printed, re.M)
    assert len(commands) == len(PARTS) == 3
    for command in commands:
        files = re.sub(r"\b\w+\.(?:txt|csv|plan)\b", r"mine/\g<0>", command)
        again = pearl(*shlex.split(files))
        assert again.replace("mine/", "") in printed
        assert again.strip()


def test_a_recorded_answer_is_labelled_and_its_quotes_are_in_the_story(pearl: Terminal) -> None:
    pearl("demo", "--copy", ".", "--force")
    answer = pearl.json("ask", QUESTION, "story.txt", "--model", "recorded:demo")
    assert re.fullmatch(r"recorded:demo: Claude .+, recorded \d{4}-\d\d-\d\d", answer["model"])
    assert answer["model"] in pearl.talk
    assert answer["status"] == "answered"
    assert answer["evidence"]
    assert not answer["unverified_quotes"]


def test_the_demo_holds_when_an_action_is_added(pearl: Terminal) -> None:
    """A plan is recorded by its question, as its prompt has all actions of today."""
    pearl("demo", "--copy", ".", "--force")
    library = read_data("actions", "seed.actions") + "MEASURE(CTX, X) : Find how large X is\n"
    Path("more.actions").write_text(library)
    asked = ("ask", QUESTION, "story.txt", "--model", "recorded:demo")
    assert pearl(*asked, "--library", "more.actions") == pearl(*asked)


def test_a_repair_of_a_recorded_plan_is_no_first_plan(
    pearl: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the plan that has to be repaired would be the reply to every repair."""
    rule = {"match": QUESTION, "reply": "no plan", "model": "m"}
    (tmp_path / "bad.json").write_text(json.dumps([rule]))
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    pearl("demo", "--copy", ".", "--force")
    pearl("ask", QUESTION, "story.txt", "--model", "recorded:bad", code=5)
    assert "the recording 'bad' has no reply to this request" in pearl.talk
