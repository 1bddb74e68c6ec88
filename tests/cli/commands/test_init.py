"""`pearl init`: the new folder works as its README says, and nothing is written over."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


def test_every_command_of_its_readme_works(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "mine/library.actions" in pearl("init", "mine").splitlines()
    monkeypatch.chdir("mine")
    (block,) = re.findall(r"```sh\n(.*?)```", Path("README.md").read_text("utf-8"), re.S)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert len(commands) == 4
    for name, *args in commands:
        assert name == "pearl"
        named = [
            str(path) for arg in args for path in ([arg] if "*" not in arg else Path().glob(arg))
        ]
        pearl(*named)
    asked = json.loads(pearl("ask", "How much is the deposit?", "documents/lease.txt", "--json"))
    assert "two months' rent" in asked["answer"]
    assert "FIND(CTX" in asked["plan"]


def test_its_settings_are_trusted_as_they_are_and_not_changed(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pearl("init", "mine")
    monkeypatch.chdir("mine")
    with Path("pearl.toml").open("a") as file:
        file.write('model = "openai:x"\n')
    pearl("plan", "Who pays?", code=2)
    assert "you have not trusted this file" in pearl.talk


def test_nothing_is_written_over(pearl: Terminal) -> None:
    Path("mine").mkdir()
    Path("mine/questions.jsonl").write_text("mine alone", "utf-8")
    pearl("init", "mine", code=3)
    assert "mine/questions.jsonl: exists already" in pearl.talk
    assert [path.name for path in Path("mine").iterdir()] == ["questions.jsonl"]
    assert Path("mine/questions.jsonl").read_text("utf-8") == "mine alone"
