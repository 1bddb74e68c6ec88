"""`pearl mine`: real processes, a real server, real signals; no question is lost or asked twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pearl.cli import run
from pearl.cli.work import Stopper
from pearl.data.journal import read_journal
from pearl.mining.miner import MinedHeader, MinedRow
from tests.server import Server

REPLY = 'New actions:\n- FIND_MOTIVE(CTX, X) : Find why X acts\n\n1. m = FIND_MOTIVE(CTX, "it") : f'
DRAFT = "FIND_MOTIVE(CTX, X) : Find why X acts"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def mine(args: Sequence[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    """Run in this process; what was printed to stdout and stderr."""
    capsys.readouterr()
    got = run(args)
    out, err = capsys.readouterr()
    assert got == code, err
    assert "Traceback" not in err
    return out, err


def summary(
    args: Sequence[str], capsys: pytest.CaptureFixture[str], code: int = 0
) -> dict[str, Any]:
    out, _ = mine([*args, "--json"], capsys, code)
    found: dict[str, Any] = json.loads(out)
    return found


# --- what is written and said -----------------------------------------------------------------


def test_every_question_has_a_row(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(5)
    openai_server.on("number 3", "New actions:\n- None")
    openai_server.on("Question:", REPLY)
    out, talk = mine(against(openai_server, "--price", "2/0.5/10"), capsys)
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


def test_a_question_that_is_there_twice_is_asked_once(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    again = json.dumps({"id": "again", "question": "Why did number 1\n  leave?"})
    write_questions(3, again, again.replace("again", "more"))
    openai_server.on("Question:", REPLY)
    said = summary(against(openai_server), capsys)
    assert (said["questions"], said["asked_twice_in_data"]) == (3, 2)
    assert set(asked(openai_server).values()) == {1}


def test_bad_rows_are_told_and_the_rest_is_mined(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(2, "no json", *["[1]"] * 4)
    openai_server.on("Question:", REPLY)
    _, talk = mine(against(openai_server), capsys, code=1)
    assert "pearl: 5 rows left out; the first: q.jsonl:3" in talk
    assert re.search(r"bad rows +5\n", talk)
    assert len(rows()) == 2


@pytest.mark.parametrize("content", ["", "\n\n", "no json\n", '{"id": "a", "document": "x"}\n'])
def test_data_without_a_question(
    folder: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    Path("q.jsonl").write_text(content, encoding="utf-8")
    mine(["mine", "--data", "q.jsonl", "--out", "m.jsonl"], capsys, code=3)
    assert not Path("m.jsonl").exists()


def test_arguments_that_make_no_sense(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_questions(1)
    for args, code, words in (
        (["--out", "m.jsonl"], 2, "mine needs questions"),
        (["--data", "q.jsonl"], 2, "--out"),
        (["--data", "q.jsonl", "--out", "q.jsonl"], 2, "is an input"),
        (["--data", "q.jsonl", "--out", "m.jsonl", "--price", "dear"], 2, "'dear' is not IN/OUT"),
        (["--data", "q.jsonl", "--out", "m.jsonl", "--seed-library", "sed"], 3, "did you mean 'seed'"),
        (["--data", "absent.jsonl", "--out", "m.jsonl"], 3, "absent.jsonl"),
        (["--data", "q.jsonl", "--out", "absent/m.jsonl"], 3, "cannot be written"),
        (["--data", "q.jsonl", "--out", "/dev/full"], 3, "cannot be written"),
    ):  # fmt: skip
        _, talk = mine(["mine", *args], capsys, code)
        assert words in talk
    assert [path.name for path in folder.iterdir()] == ["q.jsonl"]


def test_prose_is_kept_and_is_no_failure(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(1)
    said_next = ["I would look for the motive."]
    openai_server.on("Question:", lambda seen: said_next[-1])
    said = summary(against(openai_server), capsys, code=1)
    assert (said["unreadable"], said["mined"], said["failed"]) == (1, 0, 0)
    (row,) = rows()
    assert (row.status, row.reply) == ("unreadable", "I would look for the motive.")
    assert "I would look" in row.diagnostics[0]
    assert summary(against(openai_server), capsys, code=1)["asked_now"] == 0
    _, talk = mine(against(openai_server), capsys, code=1)
    assert "not one reply could be read as actions; --again" in talk
    assert "unreadable, the first: question 'q0': reply:1:1" in talk
    said_next.append(REPLY)
    for args, n in (((), 0), (("--again",), 1)):
        out, _ = mine(against(openai_server, *args, "--dry-run", "--json"), capsys)
        assert json.loads(out)["total"]["calls"]["least"] == n
    again = summary(against(openai_server, "--again"), capsys)
    assert (again["asked_now"], again["mined"], again["unreadable"]) == (1, 1, 0)


def test_half_a_character_in_a_question_spoils_nothing(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(1, '{"id": "half", "question": "Why \\ud800 me?"}')
    openai_server.on("Question:", REPLY)
    got = run(against(openai_server))
    _, talk = capsys.readouterr()
    assert "Traceback" not in talk
    assert got in (0, 1)
    assert "q0" in {row.id for row in rows()}


# --- going on ---------------------------------------------------------------------------------


def test_what_failed_is_asked_again_and_nothing_else(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(4)
    openai_server.on("Question:", REPLY)
    openai_server.next("400", "400")
    said = summary(against(openai_server), capsys, code=1)
    assert (said["failed"], said["mined"]) == (2, 2)
    failed = {row.id: row for row in rows() if row.status == "failed"}
    assert len(failed) == 2
    assert all(row.error and not row.reply for row in failed.values())
    openai_server.requests.clear()
    said = summary(against(openai_server), capsys)
    assert (said["failed"], said["mined"], said["asked_now"]) == (0, 4, 2)
    assert asked(openai_server) == {row.question: 1 for row in failed.values()}
    assert len(rows()) == 4


def test_more_questions_may_come_and_fewer(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.on("Question:", REPLY)
    write_questions(2)
    mine(against(openai_server), capsys)
    write_questions(5)
    said = summary(against(openai_server), capsys)
    assert (said["questions"], said["asked_now"]) == (5, 3)
    assert summary(against(openai_server, "--limit", "1"), capsys)["asked_now"] == 0
    assert set(asked(openai_server).values()) == {1}


def test_a_question_that_has_changed_is_asked(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(2)
    openai_server.on("Question:", REPLY)
    mine(against(openai_server), capsys)
    text = Path("q.jsonl").read_text("utf-8")
    Path("q.jsonl").write_text(text.replace("number 0", "Ada"), encoding="utf-8")
    assert summary(against(openai_server), capsys)["asked_now"] == 1
    assert [row.question for row in rows()] == ["Why did Ada leave?", "Why did number 1 leave?"]


def test_a_wrong_key_ends_the_run_and_the_rest_is_asked_later(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(9)
    openai_server.on("Question:", REPLY)
    openai_server.next("401")
    _, talk = mine(against(openai_server, "--concurrency", "1"), capsys, code=5)
    assert "answered 401" in talk
    assert len(openai_server.requests) < 9
    assert all(row.status == "mined" for row in rows())
    assert summary(against(openai_server), capsys)["mined"] == 9


def test_what_the_end_of_the_run_cut_off_is_left(
    folder: Path,
    openai_server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_questions(1)
    openai_server.next(*["401"] * 2)
    out, talk = mine(against(openai_server, "--json"), capsys, code=5)
    assert json.loads(out)["error"]["exit_code"] == 5
    assert "answered 401" in talk
    assert "not one reply" not in talk
    leave = Stopper.__exit__

    def late(self: Stopper, *raised: Any) -> None:
        leave(self, *raised)
        self.is_stopping = True  # as by a Ctrl-C while the refusal came

    monkeypatch.setattr(Stopper, "__exit__", late)
    openai_server.next(*["401"] * 2)
    _, talk = mine(against(openai_server), capsys, code=130)
    assert "answered 401" in talk
    assert "stopped with 1 left" in talk


def test_limits_and_a_forecast(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(6)
    openai_server.on("Question:", REPLY)
    out, _ = mine(against(openai_server, "--dry-run", "--json"), capsys)
    found = json.loads(out)
    assert (found["n_tasks"], found["total"]["calls"]["least"]) == (6, 6)
    assert openai_server.requests == []
    _, talk = mine(against(openai_server, "--max-calls", "2", "--concurrency", "1"), capsys, code=7)
    assert "stopped with 4 left" in talk
    assert len(openai_server.requests) == 2
    assert summary(against(openai_server), capsys)["asked_now"] == 4
    assert set(asked(openai_server).values()) == {1}
