"""`pearl chat` as people use it: in a pipe, and typed at a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.cli.emulator import OnTerminal
from tests.cli.terminal import Terminal, child
from tests.server import Canned, Seen, Server, completion

WHO, WHY = "Who sold the boat?", "And why?"
WHOLE = "Why did he sell the boat?"
"""A question that the embedded model understands without the one before it."""
PLAN = 'New actions:\n- None\n\n1. reason = FIND_REASON(CTX, "the boat") : Find why it was sold\n'
CLEAR = "Why did ANSWER_1 sell the boat?"


def lines(*said: str) -> bytes:
    return "".join(f"{line}\n" for line in said).encode()


def served(seen: Seen) -> Canned:
    """What a language model would reply to each kind of request."""
    prompt = seen.body["messages"][-1]["content"]
    if "Rewrite this question" in prompt:
        return Canned(completion(CLEAR))
    if "Write the plan" in prompt:
        return Canned(completion(PLAN))
    if "What answers: Who sold the boat?" in prompt:
        return Canned(completion('{"name": {"value": "He", "quote": "He sold it"}}'))
    return Canned(completion('He sold it: "because the hull was rotten".'))


def asking(server: Server) -> list[str]:
    return ["--model", "openai:test-model", "--base-url", server.url, "--constrain", "off"]


# --- piped ------------------------------------------------------------------------------------


def test_the_output_of_a_pipe_reads_as_a_conversation(pearl: Terminal) -> None:
    said = pearl("chat", "story.txt", stdin=lines(WHO, "", WHOLE, "/turns", "/plan"))
    first, second, turns, plan = said.split("> ")[1:]
    assert first.startswith(f"{WHO}\n")
    assert "He sold the boat because the hull was rotten." in first
    assert second.startswith(f"{WHOLE}\n")
    assert "He sold the boat because the hull was rotten." in second
    assert turns.startswith("/turns\n1. Who sold the boat?\n")
    assert f"\n2. {WHOLE}\n" in turns
    assert f'FIND(CTX, "{WHOLE}")' in plan


def test_json_is_one_object_a_turn_and_nothing_else(pearl: Terminal) -> None:
    said = pearl("chat", "story.txt", "--json", stdin=lines(WHO, "/turns", WHOLE))
    rows = [json.loads(line) for line in said.splitlines()]
    assert [row["status"] for row in rows] == ["answered", "answered"]
    assert "1. Who sold the boat?" in pearl.talk


def test_a_question_that_fails_is_told_and_the_others_are_answered(pearl: Terminal) -> None:
    rules = [
        {"match": "Rewrite this question: (.*\\?)", "reply": "\\1"},
        {"match": "Write the plan for this question.\n\nQuestion: Who", "reply": PLAN},
        {"match": "He sold the boat because the hull was rotten", "reply": "The hull was rotten."},
    ]
    Path("rules.json").write_text(json.dumps(rules), encoding="utf-8")
    args = ("chat", "story.txt", "--model", "scripted:rules.json")
    said = pearl(*args, "--json", stdin=lines(WHO, "What else?", "Who asked?"), code=1)
    rows = [json.loads(line) for line in said.splitlines()]
    assert [row["status"] for row in rows] == ["answered", "failed", "answered"]
    assert rows[1]["question"] == "What else?"
    assert "no rule" in rows[1]["error"]["message"]
    assert "pearl: no rule" in pearl.talk


def test_a_line_that_cannot_be_asked_is_one_failure(pearl: Terminal) -> None:
    bad = [b"\xff\xfe?\n", b"x" * 250_000 + b"\n", b"/nonsense\n", b"/undo now\n", b"/save\n"]
    said = pearl("chat", "story.txt", stdin=b"".join(bad) + lines(WHO), code=1)
    assert said.count("because the hull was rotten") == 1
    for told in ("not valid text", "more than 100,000", "no command '/nonsense'",
                 "/undo takes nothing more", "/save needs FILE"):  # fmt: skip
        assert told in pearl.talk


def test_several_documents_are_one_corpus(pearl: Terminal) -> None:
    Path("other.txt").write_text("Ines sold the mill because the wheel broke.", encoding="utf-8")
    said = pearl(
        "chat",
        "story.txt",
        "other.txt",
        stdin=lines("Who sold the mill?", "Why did Ines sell the mill?"),
    )
    answers = said.split("> ")
    assert "other.txt" in answers[1]
    assert "because the wheel broke" in answers[2]


# --- kept -------------------------------------------------------------------------------------


def turns_of(path: str) -> list[str]:
    rows = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["question"] for row in rows[1:]]


def test_a_conversation_is_kept_and_gone_on_with(pearl: Terminal) -> None:
    pearl("chat", "story.txt", "-o", "talk.jsonl", stdin=lines(WHO, "Who asked?", "/undo"))
    assert turns_of("talk.jsonl") == [WHO]
    said = pearl("chat", "story.txt", "--continue", "talk.jsonl", stdin=lines(WHY, "/plan"))
    assert 'FIND(CTX, "And why?")' in said
    assert turns_of("talk.jsonl") == [WHO, WHY]
    before = Path("talk.jsonl").read_bytes()
    pearl("chat", "story.txt", "-o", "talk.jsonl", stdin=lines(WHY), code=2)
    assert "--force" in pearl.talk
    pearl("chat", "story.txt", "--continue", "talk.jsonl", "-o", "b.jsonl", stdin=lines("Where?"))
    assert Path("talk.jsonl").read_bytes() == before
    assert turns_of("b.jsonl") == [WHO, WHY, "Where?"]
    Path("story.txt").write_text("Another story.", encoding="utf-8")
    pearl("chat", "story.txt", "--continue", "talk.jsonl", stdin=lines(WHY), code=3)
    assert "another document" in pearl.talk


def test_a_conversation_is_saved_and_forgotten(pearl: Terminal) -> None:
    said = pearl("chat", "story.txt", stdin=lines(WHO, "/save a.jsonl", "/new", "/turns"))
    assert "1 turn in a.jsonl" in said
    assert said.endswith("1 turn forgotten\n> /turns\nno turn yet\n")
    assert turns_of("a.jsonl") == [WHO]
    pearl("chat", "story.txt", stdin=lines("/save story.txt", "/quit", WHO), code=1)
    assert "exists already" in pearl.talk
    assert "hull" in Path("story.txt").read_text(encoding="utf-8")


def test_replies_are_kept_so_that_the_same_conversation_asks_nothing_again(
    pearl: Terminal, openai_server: Server
) -> None:
    openai_server.answer = served
    first = pearl("chat", "story.txt", *asking(openai_server), stdin=lines(WHO, WHY))
    n = len(openai_server.requests)
    assert (
        n == 6
    )  # plan and step; the question made clear, what the answer names, its plan and step
    again = pearl("chat", "story.txt", *asking(openai_server), stdin=lines(WHO, WHY))
    assert again == first
    assert len(openai_server.requests) == n
    pearl("chat", "story.txt", *asking(openai_server), "--fresh", stdin=lines(WHO))
    assert len(openai_server.requests) == n + 2


def test_a_limit_ends_the_session(pearl: Terminal, openai_server: Server) -> None:
    openai_server.answer = served
    args = ("chat", "story.txt", *asking(openai_server), "--max-calls", "2", "-o", "talk.jsonl")
    pearl(*args, "--trace", "t.jsonl", stdin=lines(WHO, WHY, "Who asked?"), code=7)
    assert len(openai_server.requests) == 2
    assert turns_of("talk.jsonl") == [WHO]


@pytest.mark.slow
def test_two_conversations_in_one_file_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("Nils sold the boat because it leaked.", encoding="utf-8")
    file = tmp_path / "talk.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "pearl", "chat", "story.txt", "-o", "talk.jsonl"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
    ) as talk:  # fmt: skip
        assert talk.stdin is not None
        assert talk.stdout is not None
        talk.stdin.write(lines(WHO, "/turns"))
        talk.stdin.flush()
        while b"1. Who sold" not in talk.stdout.readline():
            pass
        other = child(
            "chat", str(tmp_path / "story.txt"), "--continue", str(file), stdin=lines("Who asked?")
        )
        assert other.returncode == 0, other.stderr
        said, told = talk.communicate(lines(WHY, "/save saved.jsonl"))
        assert talk.returncode == 1
    assert b"another program has written to the file" in told
    assert b"2 turns in saved.jsonl" in said
    assert turns_of(str(file)) == [WHO, "Who asked?"]
    assert turns_of(str(tmp_path / "saved.jsonl")) == [WHO, WHY]


# --- typed ------------------------------------------------------------------------------------


class Typist(OnTerminal):
    """Types at the terminal of a chat, and reads its output."""

    seen = _unread = ""

    def until(self, wanted: str) -> str:
        """Read until something is shown; returns all up to it since the last time."""
        while wanted not in self._unread:
            text = self.read()
            assert text, f"it ended before {wanted!r}: {self._unread}"
            self._unread += text
        said, _, self._unread = self._unread.partition(wanted)
        self.seen += said + wanted
        return said + wanted

    def interrupt(self) -> int:
        """Press Ctrl-C at the prompt until it ends; returns the exit code."""
        while self.process.poll() is None:
            self.type("\x03")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
        return self.end()


@contextmanager
def typing(folder: Path, *args: str) -> Iterator[Typist]:
    (folder / "story.txt").write_text(
        "Nils sold the boat because the \x1b]0;owned\x07 hull leaked.\n\nNobody asked.", "utf-8"
    )
    typist = Typist(folder, "-m", "pearl", "chat", "story.txt", *args, TERM="xterm")
    try:
        yield typist
    finally:
        typist.close()


def test_a_person_asks_edits_and_leaves(tmp_path: Path) -> None:
    with typing(tmp_path) as person:
        person.until("> ")
        assert "/help lists commands" in person.seen
        person.type(f"{WHO}\n")
        said = person.until("Evidence") + person.until("> ")
        assert "sold the boat because the" in said
        assert "\x1b]0;" not in said
        person.type("And whyx\x7f?\n")
        person.until("Evidence")
        person.until("> ")
        person.type("\x1b[A\x1b[A\n")  # the question before the last one
        assert WHO in person.until("Evidence")
        person.until("> ")
        person.type("/turns\n")
        assert "2. And why?" in person.until("3. Who sold the boat?")
        person.until("> ")
        person.type("/nonsense\n")
        person.until("no command '/nonsense'")
        person.until("> ")
        person.type("\x04")
        assert person.end() == 0


@pytest.mark.slow
def test_ctrl_c_ends_a_question_and_at_the_prompt_the_session(
    tmp_path: Path, openai_server: Server
) -> None:
    is_asked, go_on = threading.Event(), threading.Event()

    def slowly(seen: Seen) -> Canned:
        is_asked.set()
        go_on.wait(120)
        return served(seen)

    openai_server.answer = slowly
    with typing(tmp_path, *asking(openai_server), "-o", "talk.jsonl") as person:
        person.until("> ")
        person.type(f"{WHO}\n")
        assert is_asked.wait(120)
        person.type("\x03")
        person.until("the question is cancelled")
        person.until("> ")
        go_on.set()
        person.type("Why did Nils sell it?\n")
        person.until("Evidence")
        person.until("> ")
        assert person.interrupt() == 130
    assert turns_of(str(tmp_path / "talk.jsonl")) == ["Why did Nils sell it?"]
