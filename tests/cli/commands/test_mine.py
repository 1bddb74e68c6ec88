"""`pearl mine`: real processes, a real server, real signals; no question is lost or asked twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pearl.cli.run_commands import Stopper
from pearl.data.log_files import read_journal
from pearl.mining.miner import MinedHeader, MinedRow
from tests.cli.terminal import Terminal
from tests.server import Server

REPLY = 'New actions:\n- FIND_MOTIVE(CTX, X) : Find why X acts\n\n1. m = FIND_MOTIVE(CTX, "it") : f'
DRAFT = "FIND_MOTIVE(CTX, X) : Find why X acts"


def write_questions(n: int, *more: str) -> None:
    rows = [json.dumps({"id": f"q{i}", "question": f"Why did number {i} leave?"}) for i in range(n)]
    Path("q.jsonl").write_text("\n".join([*rows, *more]) + "\n", encoding="utf-8")


def asked(server: Server) -> Counter[str]:
    """How often each question was asked."""
    return Counter(request.prompt.rpartition("Question: ")[2] for request in server.requests)


def rows() -> list[MinedRow]:
    return read_journal(Path("m.jsonl"), MinedHeader, MinedRow)[1]


def against(server: Server, *more: str) -> list[str]:
    options = ["--data", "q.jsonl", "--out", "m.jsonl", "--model", "openai:test-model"]
    return ["mine", *options, "--base-url", server.url, *more]


def mine(args: Sequence[str], pearl: Terminal, code: int = 0) -> tuple[str, str]:
    """What was printed to stdout and stderr."""
    return pearl(*args, code=code), pearl.talk


def summary(args: Sequence[str], pearl: Terminal, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = pearl.json(*args, code=code)
    return found


# --- what is written and said -----------------------------------------------------------------


def test_every_question_has_a_row(pearl: Terminal, openai_server: Server) -> None:
    write_questions(5)
    openai_server.on("number 3", "New actions:\n- None")
    openai_server.on("Question:", REPLY)
    out, talk = mine(against(openai_server, "--price", "input=2,cached=0.5,output=10"), pearl)
    assert out.splitlines() == ["questions  action", "        4  FIND_MOTIVE(CTX, X)"]
    for words in (r"mined +5\n", r"asked now +5\n", r"drafts +4\n", r"distinct drafts +1\n",
                  r"input tokens +500\n", r"cached tokens +320\n", r"cost usd +0\.0"):  # fmt: skip
        assert re.search(words, talk), talk
    header, found = read_journal(Path("m.jsonl"), MinedHeader, MinedRow)
    assert (header.model, header.library, header.data) == ("openai:test-model", "seed", "q.jsonl")
    assert any(action.startswith("FIND(CTX") for action in header.seed_actions)
    assert sorted(row.id for row in found) == [f"q{i}" for i in range(5)]
    assert {row.id: row.actions for row in found} == {
        f"q{i}": () if i == 3 else (DRAFT,) for i in range(5)
    }
    assert {row.model for row in found} == {"test-model-2026"}
    assert asked(openai_server) == {f"Why did number {i} leave?": 1 for i in range(5)}
    assert all(request.body["temperature"] == 0 for request in openai_server.requests)


def test_a_bad_row_is_counted_and_fails_the_command(pearl: Terminal, openai_server: Server) -> None:
    write_questions(1, "[1]")
    openai_server.on("Question:", f'New actions:\n- {DRAFT}\n\n1. a = FIND_MOTIVE(CTX, "x") : f')
    said = summary(against(openai_server), pearl, code=1)
    assert (said["mined"], said["bad_rows"]) == (1, 1)


def test_what_is_called_and_defined_nowhere_is_told(pearl: Terminal, openai_server: Server) -> None:
    write_questions(3)
    openai_server.on("number 2", '1. a = FIND(CTX, "x") : f')
    openai_server.on("Question:", '1. a = FIND_OMEN(CTX, "x") : f')
    said = summary(against(openai_server), pearl)
    assert (said["mined"], said["drafts"], said["undeclared_calls"]) == (3, 0, 2)
    assert said["undeclared"] == [{"action": "FIND_OMEN", "questions": 2}]
    _, talk = mine(against(openai_server), pearl)
    assert "called but not declared, so no drafts: FIND_OMEN (2)" in talk


def test_prose_is_kept_and_is_no_failure(pearl: Terminal, openai_server: Server) -> None:
    write_questions(1)
    said_next = ["I would look for the motive."]
    openai_server.on("Question:", lambda seen: said_next[-1])
    said = summary(against(openai_server), pearl, code=1)
    assert (said["unreadable"], said["mined"], said["failed"]) == (1, 0, 0)
    (row,) = rows()
    assert (row.status, row.reply) == ("unreadable", "I would look for the motive.")
    assert "I would look" in row.diagnostics[0]
    assert summary(against(openai_server), pearl, code=1)["asked_now"] == 0
    _, talk = mine(against(openai_server), pearl, code=1)
    assert "no reply could be read as actions; --again" in talk
    assert "unreadable, the first: question 'q0': reply:1:1" in talk
    said_next.append(REPLY)
    for args, n in (((), 0), (("--again",), 1)):
        out, _ = mine(against(openai_server, *args, "--dry-run", "--json"), pearl)
        assert json.loads(out)["total"]["calls"]["least"] == n
    again = summary(against(openai_server, "--again"), pearl)
    assert (again["asked_now"], again["mined"], again["unreadable"]) == (1, 1, 0)


# --- going on ---------------------------------------------------------------------------------


def test_what_failed_is_asked_again_and_nothing_else(
    pearl: Terminal, openai_server: Server
) -> None:
    write_questions(4)
    openai_server.on("Question:", REPLY)
    openai_server.next("400", "400")
    said = summary(against(openai_server), pearl, code=1)
    assert (said["failed"], said["mined"]) == (2, 2)
    failed = {row.id: row for row in rows() if row.status == "failed"}
    assert len(failed) == 2
    assert all(row.error and not row.reply for row in failed.values())
    openai_server.requests.clear()
    said = summary(against(openai_server), pearl)
    assert (said["failed"], said["mined"], said["asked_now"]) == (0, 4, 2)
    assert asked(openai_server) == {row.question: 1 for row in failed.values()}
    assert len(rows()) == 4


def test_what_the_end_of_the_run_cut_off_is_left(
    openai_server: Server, pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_questions(1)
    openai_server.next(*["401"] * 2)
    out, talk = mine(against(openai_server, "--json"), pearl, code=5)
    assert json.loads(out)["error"]["exit_code"] == 5
    assert "answered 401" in talk
    assert "not one reply" not in talk
    leave = Stopper.__exit__

    def late(self: Stopper, *raised: Any) -> None:
        leave(self, *raised)
        self.exit_code = 130  # as by a Ctrl-C while the refusal came

    monkeypatch.setattr(Stopper, "__exit__", late)
    openai_server.next(*["401"] * 2)
    _, talk = mine(against(openai_server), pearl, code=130)
    assert "answered 401" in talk
    assert "stopped with 1 left" in talk
