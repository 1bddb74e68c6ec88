"""`pearl execute --out`: whatever ends it, nothing is paid for twice and every row is there once."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pearl.cli import run as pearl_command
from tests.server import Canned, Seen, Server, completion, error

PLAN = """\
Question: Why does she leave?

New actions:
- None

1. a = FIND(CTX, "why she leaves") : Find why
2. ans = COMPARE(CTX, a, "the reason given") : Compare
"""
N = 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "why.plan").write_text(PLAN)
    for i in range(N):
        (tmp_path / f"d{i:02}.txt").write_text(f"She left on day {i}. It rained.\n")
    return tmp_path


def command(folder: Path, server: Server, *args: str) -> list[str]:
    documents = sorted(path.name for path in folder.glob("d*.txt"))
    return [
        "execute", "why.plan", *documents, "--out", "out.jsonl", "--model", "openai:test-model",
        "--base-url", server.url, "--concurrency", "2", *args,
    ]  # fmt: skip


def start(folder: Path, server: Server, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pearl", *command(folder, server, *args)],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


Execute = Callable[..., str]


@pytest.fixture
def execute(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Execute:
    """The same command in this process; what it says on stderr."""
    monkeypatch.chdir(folder)

    def in_process(server: Server, *args: str, code: int = 0) -> str:
        capsys.readouterr()
        assert pearl_command(command(folder, server, *args)) == code
        return capsys.readouterr().err

    return in_process


@pytest.fixture
def pearl_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEARL_STORE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def ids(folder: Path) -> list[object]:
    return [row["id"] for row in rows(folder)]


DOCUMENTS = [f"d{i:02}.txt" for i in range(N)]


def wait_for(server: Server, n: int, child: subprocess.Popen[bytes] | None = None) -> None:
    while len(server.requests) < n:
        assert child is None or child.poll() is None, "the command ended before it asked as often"
        time.sleep(0.01)


def test_the_same_command_again_makes_no_call(
    folder: Path, openai_server: Server, execute: Execute
) -> None:
    execute(openai_server)
    first = (folder / "out.jsonl").read_bytes()
    assert len(openai_server.requests) == 2 * N
    assert ids(folder) == DOCUMENTS
    said = execute(openai_server)
    assert len(openai_server.requests) == 2 * N
    assert f"{N} rows in out.jsonl, {N} of them from earlier runs" in said
    assert (folder / "out.jsonl").read_bytes() == first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_keeps_what_is_done_and_says_how_to_go_on(
    folder: Path, openai_server: Server, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    openai_server.hold_after = 6
    process = start(folder, openai_server)
    wait_for(openai_server, 7)
    process.send_signal(number)
    openai_server.hold_after = None
    _, said = process.communicate()
    assert process.returncode == code
    done = ids(folder)
    assert 0 < len(done) < N
    assert done == DOCUMENTS[: len(done)]
    run = said.partition("resume it: pearl runs resume ")[2].split()[0]
    assert f"runs resume {run} --base-url {openai_server.url}\n" in said
    monkeypatch.chdir(folder.parent)
    assert pearl_command(["runs", "resume", run, "--yes"]) == 0
    assert ids(folder) == DOCUMENTS
    assert len(openai_server.requests) == 2 * N


@pytest.mark.slow
def test_a_run_in_use_is_not_written_by_two(
    folder: Path, openai_server: Server, execute: Execute
) -> None:
    openai_server.delay_s = 5.0
    first = start(folder, openai_server)
    wait_for(openai_server, 1)
    said = execute(openai_server, code=8)
    assert f"in use by process {first.pid}" in said
    first.kill()
    first.communicate()


@pytest.mark.slow
def test_too_many_errors_end_the_work_and_rows_say_where_they_are(
    folder: Path, openai_server: Server
) -> None:
    task = {"plan": PLAN, "document": "She left. It rained."}
    n = 300  # many are under way when a busy machine writes the row of the second failure
    lines = [json.dumps({"id": str(i), **task}) for i in range(n)]
    lines[2] = lines[5] = lines[6] = '{"id": 1, "plan"'
    (folder / "tasks.jsonl").write_text("\n".join(lines))
    command = ["execute", "--tasks", "tasks.jsonl", "--out", "out.jsonl", "--model", "openai:m"]
    for most in ("1", "9"):
        done = subprocess.run(
            [sys.executable, "-m", "pearl", *command, "--base-url", openai_server.url,
             "--concurrency", "1", "--max-errors", most],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert (len(rows(folder)) == n) is (most == "9")
        assert "tasks.jsonl:3: " in done.stderr
    assert [row["status"] for row in rows(folder)].count("failed") == 3


LIST = '1. causes = LIST_ALL(CTX, "causes") : List them\n2. n = COUNT(causes) : Count\n'


def _day(seen: Seen) -> str:
    """The number of the document in a prompt."""
    return seen.prompt.partition("She left on day ")[2].partition(".")[0]


def test_a_retry_asks_the_selected_rows_again_and_no_others(
    folder: Path, openai_server: Server, execute: Execute
) -> None:
    (folder / "why.plan").write_text(LIST)
    is_mended = False

    def answer(seen: Seen) -> Canned:
        day = _day(seen)
        if day in "29" and not is_mended:
            return Canned(error("no"), 400)
        if day in "147" and not is_mended:
            return Canned(completion("There may be causes, or none at all, it seems."))
        return Canned(completion('{"entries": [{"entry": "the rain", "quote": "It rained."}]}'))

    openai_server.answer = answer
    said = execute(openai_server, code=1)
    run = said.partition("run ")[2].partition(":")[0]
    before = {row["id"]: row for row in rows(folder)}
    statuses = Counter(str(row["status"]) for row in before.values())
    assert statuses == {"answered": N - 5, "undecided": 3, "failed": 2}

    def retried(*args: str) -> set[str]:
        """The documents that were asked again."""
        openai_server.requests.clear()
        store = ["--base-url", openai_server.url]
        assert pearl_command(["runs", "retry", run, *store, *args]) in (0, 1)
        asked = set(map(_day, openai_server.requests))
        assert ids(folder) == DOCUMENTS
        for row in rows(folder):
            if str(int(str(row["id"])[1:3])) not in asked:
                assert row == before[row["id"]]
            before[row["id"]] = row
        return asked

    assert retried("--state", "nothing_found") == set()
    assert retried("--state", "undecided", "--row", "d04.txt") == {"4"}
    assert retried("--state", "failed") == {"2", "9"}
    is_mended = True
    assert retried() == {"1", "2", "4", "7", "9"}
    assert {row["status"] for row in rows(folder)} == {"answered"}
    assert retried() == set()


def test_work_of_another_version_is_paid_again_only_after_a_yes(
    folder: Path, openai_server: Server, execute: Execute, pearl_store: Path
) -> None:
    said = execute(openai_server)
    run = said.partition("run ")[2].partition(":")[0]
    with closing(sqlite3.connect(pearl_store / "store.db")) as connection:
        connection.execute(
            "UPDATE runs SET spec_key = x'00',"
            " settings = CAST(json_set(settings, '$.prompts_sha256', 'other', '$.of_old', 1) AS TEXT)"
        )
        connection.commit()
    openai_server.requests.clear()
    said = execute(openai_server, "--price", "input=1,output=1", "--force", code=2)
    assert f"run {run} of this work has {N} rows" in said
    assert "another version of PEARL" in said
    assert f"all is asked again ({2 * N} calls, $" in said
    assert f"--yes confirms it; pearl runs export {run}" in said
    assert pearl_command(["runs", "resume", run, "--yes"]) == 8
    assert openai_server.requests == []
    execute(openai_server, "--yes", "--force")
    assert ids(folder) == DOCUMENTS
    execute(openai_server)  # the run of this version is the one that counts from now on


@pytest.mark.parametrize("version", [2, 3])
def test_an_older_store_is_converted_after_a_copy_of_it(
    folder: Path, openai_server: Server, execute: Execute, pearl_store: Path, version: int
) -> None:
    execute(openai_server)
    path = pearl_store / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        for table, column in (("replies", "body"), ("results", "row")):
            connection.execute(f"UPDATE {table} SET {column} = substr({column}, 33)")  # its digest
            if version < 3:
                connection.execute(
                    f"ALTER TABLE {table} ADD COLUMN checksum BLOB NOT NULL DEFAULT x'00'"
                )
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
        n_rows = connection.execute("SELECT count(*) FROM results").fetchone()
    n_calls = len(openai_server.requests)
    said = execute(openai_server)
    assert f"the store of version {version} is converted to version 4" in said
    assert len(openai_server.requests) == n_calls
    copy = path.with_name(f"store.db.version-{version}")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        assert connection.execute("SELECT count(*) FROM results").fetchone() == n_rows
    assert "converted" not in execute(openai_server)
