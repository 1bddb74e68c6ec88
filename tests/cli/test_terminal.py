"""What others wrote is shown on a terminal, and never obeyed: looked at through a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors.escaping import escaped, to_json
from tests.cli.own_terminal import OnTerminal
from tests.cli.terminal import Terminal

EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b1mbold\x9d0;c1\x9c\u202egnp.exe\u2066\x08\x7f\r"
OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*[A-HJKm]|\?25[lh])")
STORY = f"Nils sold the boat because the {EVIL} hull was rotten. Nobody asked him about it."


@given(st.text())
def test_what_is_escaped_is_never_obeyed_and_json_stays_the_same(text: str) -> None:
    assert not OBEYED.search(escaped(text).replace("\r", "\x00"))
    assert "\x1b" not in escaped(text)
    assert escaped(escaped(text)) == escaped(text)
    line = to_json({text: [text]})
    assert not OBEYED.search(line)
    assert json.loads(line) == {text: [text]}


RUN = """
import json, sys
from pearl.cli import run
for number, args in enumerate(json.loads(sys.argv[1])):
    if number:
        print("=== next", flush=True)
    run(args)
"""


def on_a_terminal(folder: Path, *commands: Sequence[str]) -> str:
    """All that commands write to the terminal they run on, one after the other in one process."""
    child = OnTerminal(folder, "-c", RUN, json.dumps(commands))
    child.end()
    child.close()
    return child.written


def harmless(said: str) -> str:
    """What was said, without the colours and moves of the cursor that are PEARL's own."""
    assert "\x1b[31mred" not in said
    assert "\x1b]" not in said
    rest = COLOUR.sub("", said).replace("\r\n", "\n").replace("\r", "")
    assert not OBEYED.search(rest), repr(rest)
    assert "\x1b" not in rest, repr(rest)
    return rest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / f"st{EVIL}ory.txt").write_text(STORY, encoding="utf-8")
    (tmp_path / "story.txt").write_text(STORY, encoding="utf-8")
    plan = f'1. ans = FIND_REASON(CTX, "Nils selling {EVIL}") : Find [bold]why[/nope]\n'
    (tmp_path / "why.plan").write_text(plan, encoding="utf-8")
    (tmp_path / "bad.plan").write_text(f'1. a = FIND(CTX, "{EVIL}", x{EVIL})\n', encoding="utf-8")
    rows = [
        {"id": f"a{EVIL}[/b]", "question": "Why did Nils sell the boat?", "document": STORY},
        {"id": f"b{EVIL}", "question": "Why?", "document_path": f"no{EVIL}.txt"},
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (tmp_path / "tasks.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


WHY = "Why did Nils sell the boat?"


COMMANDS = [
    (("ask", WHY, f"st{EVIL}ory.txt", "story.txt", "-v"), r"\u009b1mbold"),
    (("ask", WHY, "story.txt", "--json"), r"\u009b1mbold"),
    (("ask", WHY, f"gone{EVIL}.txt"), r"gone\u001b]0;owned\u0007"),
    (("execute", "--tasks", "tasks.jsonl", "--out", f"out{EVIL}.jsonl"), r"no\u001b]0;owned"),
    (("execute", "--tasks", "tasks.jsonl", "-v"), r"== a\u001b]0;owned\u0007\u001b[31mred"),
    (("execute", "--tasks", "tasks.jsonl", "--json"), r"\u202e"),
    (("check", "bad.plan", "why.plan"), r"\u009d0;c1"),
    (("check", f"gone{EVIL}", "--json"), r"gone\u001b]0;owned"),
    (("fmt", f"bad{EVIL}.plan"), r"bad\u001b]0;owned"),
    (("plan", f"Why {EVIL}?"), "Question"),
    (("ask", f"--no{EVIL}", "x"), "No such option"),
    ((f"com{EVIL}mand",), r"\u001b]0;owned"),
    (("view", f"log{EVIL}"), r"log\u001b]0;owned"),
    (("runs", "list"), "execute --tasks"),
    (("runs", "show", f"run{EVIL}"), r"run\u001b]0;owned"),
]


@pytest.mark.slow
def test_no_command_lets_a_terminal_obey(folder: Path) -> None:
    (folder / f"bad{EVIL}.plan").write_text("1. a = FIND(\n", encoding="utf-8")
    said = harmless(on_a_terminal(folder, *(args for args, _ in COMMANDS)))
    parts = said.split("=== next\n")
    assert len(parts) == len(COMMANDS)
    for (args, shown), part in zip(COMMANDS, parts, strict=True):
        assert shown in part, args
        assert not any(word in part for word in ("Traceback", "a bug in PEARL"))


def test_what_a_message_quotes_is_escaped(pearl: Terminal) -> None:
    pearl("ask", f"--no{EVIL}", "x", code=2)
    assert "No such option" in pearl.talk
    assert not OBEYED.search(pearl.talk)


MARKDOWN = f"""\
## Reasons

He sold the **boat** because "the hull was rotten", which the [report](http://evil.example/a) says [bold]too[/bold]:
- ![picture](http://evil.example/b) <b>html</b> &#27;[31mred {EVIL}

| Part | State |
|---|--:|
| hull | `rotten` |
"""


def test_markdown_is_laid_out_on_a_terminal_and_obeyed_nowhere(tmp_path: Path) -> None:
    for name in ("story.txt", "other.txt"):
        (tmp_path / name).write_text("Nils sold it because the hull was rotten.", "utf-8")
    plan = '1. a = FIND(CTX, "the boat") : find it'
    rules = [{"match": "New actions", "reply": plan}, {"match": ".", "reply": MARKDOWN}]
    (tmp_path / "rules.json").write_text(json.dumps(rules), "utf-8")
    args = ("ask", WHY, "story.txt", "--model", "scripted:rules.json")
    commands = (args, (*args, "-o", "answer.md"), (*args, "other.txt", "-o", "rows.jsonl"))
    first, _, several = harmless(on_a_terminal(tmp_path, *commands)).split("=== next")
    assert " 2/2 " in several
    for text in ("Reasons", "sold the boat", '"the hull was rotten" [1]', "hull  rotten", "[/bold]",
                 "![picture](http://evil.example/b)", "<b>html</b>", "&#27;"):  # fmt: skip
        assert text in " ".join(first.split("\n")), text
    for text in ("##", "**", "|--", "`"):
        assert text not in first.partition("Reasons")[2]
    kept = (tmp_path / "answer.md").read_text("utf-8")
    assert "sold the boat because" in kept
    assert '"the hull was rotten" [1], which the [report](http://evil.example/a) says' in kept
