"""`pearl mine`: real processes, a real server, real signals; no question is lost or asked twice."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pearl.cli import run
from pearl.cli.stopping import ONCE_S, Stopper
from pearl.data.journal import read_journal
from pearl.mining.miner import MinedHeader, MinedRow
from pearl.runs.executors.local import UNDER_WAY
from tests.server import FAULTS, HANG_S, Server

REPLY = 'New actions:\n- FIND_MOTIVE(CTX, X) : Find why X acts\n\n1. m = FIND_MOTIVE(CTX, "it") : f'
DRAFT = "FIND_MOTIVE(CTX, X) : Find why X acts"

Mine = Callable[..., str]


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


def start(args: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "pearl", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


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


def test_json_says_the_same(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(3)
    openai_server.on("Question:", REPLY)
    said = summary(against(openai_server, "--price", "2/10"), capsys)
    n_output = 3 * len(REPLY.split())
    assert said.pop("duration_s") > 0
    assert said == {
        "questions": 3, "asked_now": 3, "asked_twice_in_data": 0, "bad_rows": 0, "mined": 3,
        "unreadable": 0, "failed": 0, "drafts": 3, "distinct_drafts": 1, "input_tokens": 300,
        "output_tokens": n_output, "cached_tokens": 192, "cost_usd": round((600 + 10 * n_output) / 1e6, 4),
        "commonest": [{"action": "FIND_MOTIVE(CTX, X)", "questions": 3}],
    }  # fmt: skip
    assert summary(against(openai_server), capsys)["cost_usd"] is None


def test_without_a_network(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.dumps({"question": "What are the symptoms of gout?"})
    Path("q.jsonl").write_text(row, encoding="utf-8")
    out, talk = mine(["mine", "--data", "q.jsonl", "--out", "m.jsonl"], capsys)
    assert "        1  FIND_SYMPTOMS(CTX, X)" in out
    assert "no language model" in talk
    assert "not known (--price)" in talk


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
        (["--out", "m.jsonl"], 2, "mining needs questions"),
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


def test_a_server_that_stumbles_is_asked_again_at_once(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(2)
    openai_server.on("Question:", REPLY)
    openai_server.next(FAULTS["reset"])
    assert summary(against(openai_server), capsys)["failed"] == 0
    assert len(openai_server.requests) == 3


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


def test_other_settings_need_another_file(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(1)
    openai_server.on("Question:", REPLY)
    mine(against(openai_server), capsys)
    before = Path("m.jsonl").read_bytes()
    data = ["mine", "--data", "q.jsonl", "--out", "m.jsonl"]
    for args in (data, against(openai_server, "--seed-library", "quality")):
        _, talk = mine(args, capsys, code=2)
        assert "'m.jsonl' is there, and is not what this command wrote" in talk
    assert Path("m.jsonl").read_bytes() == before
    assert len(openai_server.requests) == 1


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


def test_shards_merge_to_the_rows_of_one_run(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(8)
    openai_server.on("Question:", REPLY)
    for i in (1, 2):
        shard = ["--shard", f"{i}/2", "--store", f"s{i}", "--out", f"{i}.jsonl"]
        mine(against(openai_server, *shard), capsys)
    mine(["runs", "merge", "s1", "s2", "--into", "s"], capsys)
    assert summary(against(openai_server, "--store", "s"), capsys)["asked_now"] == 0
    assert [row.id for row in rows()] == [f"q{i}" for i in range(8)]
    parts = [read_journal(Path(f"{i}.jsonl"), MinedHeader, MinedRow)[1] for i in (1, 2)]
    assert all(parts)
    assert sorted((row for part in parts for row in part), key=lambda row: row.index) == rows()
    assert set(asked(openai_server).values()) == {1}


def test_another_kind_of_file_is_left_alone(
    folder: Path, openai_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    write_questions(1)
    Path("m.jsonl").write_text("Dear diary\n", encoding="utf-8")
    _, talk = mine(against(openai_server), capsys, code=2)
    assert "is not what this command wrote" in talk
    assert Path("m.jsonl").read_text("utf-8") == "Dear diary\n"
    assert openai_server.requests == []


# --- being stopped ----------------------------------------------------------------------------

N = 40
AT_ONCE = 4


@pytest.fixture
def slow(folder: Path, openai_server: Server) -> Server:
    write_questions(N)
    openai_server.on("Question:", REPLY)
    openai_server.delay_s = 0.05
    return openai_server


def finish(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Run it to its end: then every question has one row."""
    server.delay_s = 0
    said = summary(against(server), capsys)
    assert (said["questions"], said["mined"]) == (N, N)
    assert sorted(row.index for row in rows()) == list(range(N))
    assert len(asked(server)) == N


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_stopped_once_it_finishes_what_is_under_way(
    slow: Server, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    slow.hold_after = 2 * AT_ONCE
    process = start(against(slow, "--concurrency", str(AT_ONCE)))
    wait_for(lambda: len(slow.requests) > 2 * AT_ONCE)
    process.send_signal(number)
    slow.hold_after = None
    out, talk = process.communicate()
    assert process.returncode == 130, talk
    assert "Traceback" not in talk
    assert "Warning" not in talk
    assert "once more to stop at once" in talk
    assert Path("m.jsonl").read_bytes().endswith(b"\n")
    n_done = len(rows())
    assert n_done == len(slow.requests) < N
    assert f"stopped with {N - n_done} left" in talk
    assert "FIND_MOTIVE" in out
    finish(slow, capsys)
    assert set(asked(slow).values()) == {1}, "a question was asked twice"


@pytest.mark.slow
def test_stopped_twice_it_ends_at_once(slow: Server, capsys: pytest.CaptureFixture[str]) -> None:
    process = start(against(slow, "--concurrency", str(AT_ONCE)))
    wait_for(lambda: len(slow.requests) > 2 * AT_ONCE)
    slow.delay_s = HANG_S
    n_before = len(slow.requests)
    wait_for(lambda: len(slow.requests) >= n_before + AT_ONCE)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "without a key" in process.stderr.readline()
    assert "once more" in process.stderr.readline()
    time.sleep(2 * ONCE_S)  # two at once would be one
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate()
    assert process.returncode == 130, talk
    lines = talk.split("\n")
    assert lines[0].strip().startswith("to go on: pearl runs resume ")
    assert [line for line in lines[1:] if line] == ["pearl: interrupted"]
    finish(slow, capsys)
    assert sum(asked(slow).values()) == N + AT_ONCE  # what was under way was asked again


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on(
    slow: Server, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    slow.delay_s = 0.02
    process = start(against(slow, "--concurrency", str(AT_ONCE)))
    wait_for(lambda: bool(slow.requests))
    time.sleep(random.Random(seed).uniform(0, 0.2))
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    finish(slow, capsys)
    # Asked again are the calls under way and the replies that were not on the disk yet.
    assert sum(asked(slow).values()) <= N + UNDER_WAY * AT_ONCE


@pytest.mark.slow
def test_two_at_once_are_refused(slow: Server, capsys: pytest.CaptureFixture[str]) -> None:
    process = start(against(slow, "--concurrency", str(AT_ONCE)))
    wait_for(lambda: bool(slow.requests))
    _, talk = mine(against(slow), capsys, code=8)
    assert "is in use by process" in talk
    process.send_signal(signal.SIGINT)
    process.communicate()
    finish(slow, capsys)
    assert set(asked(slow).values()) == {1}


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_keeps_what_was_written(
    slow: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    slow.delay_s = 0.005
    code = (
        "import resource, signal, sys; from pearl.cli import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *against(slow)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 8
    said = done.stderr.splitlines()
    assert "without a key" in said[0]
    assert "store.db" in said[-2]
    assert "Traceback" not in done.stderr
    assert not Path("m.jsonl").exists()
    finish(slow, capsys)
    # Lost are the replies in the commit that failed, and calls that were under way then.
    assert sum(asked(slow).values()) <= N + 2 * AT_ONCE
