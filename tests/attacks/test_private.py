"""Rows S17, S18 and S22: what a run leaves on the disk and in messages, apart from its answers."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import Canned, Server, completion
from tests.suite import Trial

PLAN = 'New actions:\n- None\n\n1. ans = FIND(CTX, "what she takes") : Find it\n'


def forms(canary: str) -> list[bytes]:
    """A canary as it may be written: whole, in parts, and encoded."""
    whole = canary.encode()
    parts = [whole[:8], whole[-8:], canary.upper().encode()]
    return [*parts, base64.b64encode(whole)[:10], whole.hex().encode()[:16]]


def files(*folders: Path) -> Iterator[Path]:
    """All files below folders."""
    for folder in folders:
        yield from (path for path in folder.rglob("*") if path.is_file())


class Home:
    """A user with an empty home, a folder of documents, and a server."""

    def __init__(self, folder: Path, server: Server, canary: str) -> None:
        self.folder, self.server, self.canary = folder, server, canary
        self.home, self.temporary, self.work = folder / "home", folder / "tmp", folder / "work"
        for each in (self.home, self.temporary, self.work):
            each.mkdir()
        self.told = b""
        task = {"id": canary, "plan": f"1. ans = {canary}(CTX) : x", "document": canary}
        texts = {
            "a.txt": f"Visit of {canary}. She takes 5 mg daily.\n",
            "t.csv": f"name,dose,{canary}\n{canary},5,1\nAda,6,2\n",
            "broken.jsonl": f'{{"id": 1, "text": "{canary}"\n',
            "bad.plan": f"1. ans = FIND({canary}) : x\n",
            "why.plan": PLAN,
            "tasks.jsonl": json.dumps(task),
        }
        for name, text in texts.items():
            (self.work / name).write_text(text, encoding="utf-8")
        self.inputs = set(files(self.work))

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        private: bool = True,
        **variables: str,
    ) -> int:
        """A command in the folder of the documents; what it tells on stderr is kept."""
        others = ("PEARL_", "XDG_", "OPENAI_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        own = {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        command, *rest = arguments
        if command != "runs":
            rest += ["--model", "openai:m", "--base-url", self.server.url]
            rest += ["--private"] if private else []
        program = [sys.executable, "-P", "-m", "pearl", command, *rest]
        env |= {**own, **variables}
        done = subprocess.run(
            program, cwd=self.work, env=env, input=stdin.encode(), capture_output=True, check=False
        )
        self.told += done.stderr
        return done.returncode

    def leaks(self, *, apart_from: tuple[str, ...] = ()) -> list[str]:
        """Files and messages with a form of the canary, apart from inputs and named outputs."""
        wanted = forms(self.canary)
        given = self.inputs | {self.work / name for name in apart_from}
        places = {str(path): path.read_bytes() for path in files(self.folder) if path not in given}
        places |= {f"name of {name}": name.encode() for name in places}
        places["stderr"] = self.told
        return [place for place, data in places.items() if any(form in data for form in wanted)]


@pytest.fixture
def user(tmp_path: Path, openai_server: Server, trial: Trial) -> Home:
    canary = f"Zelmira{trial.random.randrange(10**9)}Quandt"
    openai_server.on("Question", PLAN)
    openai_server.on(
        canary, f"{canary} takes it. {f'As {canary} said. ' * 300}\n> Visit of {canary}."
    )
    return Home(tmp_path, openai_server, canary)


COMMANDS = (
    ("ask", "What does {0} take?", "a.txt", "--out", "out1"),
    ("ask", "What does {0} take?", "a.txt", "t.csv", "--together", "--out", "out2"),
    ("ask", "What does {0} take?", "a.txt", "--schema", "patient: str", "--out", "out3"),
    ("ask", "What does {0} take?", "a.txt", "--telemetry", "--out", "out4"),
    ("ask", "What does {0} take?", "missing.txt"),
    ("ask", "a.txt", "What does {0} take?"),
    ("ask", "What is it?", "{0} takes it."),
    ("ask", "What does {0} take?", "a.txt", "--max-calls", "0"),
    ("plan", "What does {0} take?", "--out", "out5"),
    ("execute", "bad.plan", "a.txt", "--out", "out6"),
    ("execute", "why.plan", "--data", "broken.jsonl", "--out", "out7"),
    ("execute", "--tasks", "tasks.jsonl"),
    ("plan", "--data", "t.csv", "--column", "question=who"),
    ("execute", "why.plan", "a.txt", "t.csv"),
    ("extract", "patient: str", "a.txt", "t.csv", "--json"),
)  # fmt: skip
ROWS = (
    ("execute", "why.plan", "a.txt", "t.csv", "--out", "rows.jsonl"),
    ("extract", "patient: str", "a.txt", "--out", "patients.csv"),
)
OUTS = tuple(f"out{n}" for n in range(1, 10))


@pytest.mark.row("S17", "a private run: text of patients outside its answers")
def test_private_runs(trial: Trial, user: Home) -> None:
    n_runs = n_failed = 0
    echo = f"I cannot read this: {user.canary}"
    faults = [
        *(Canned({"error": {"message": echo}}, status) for status in (400, 401, 404, 422)),
        Canned(completion(None, refusal=echo)), Canned(completion(echo, finish_reason="length")),
    ]  # fmt: skip
    if trial.size != "ci":  # these are asked again, after a while
        faults += [
            Canned(echo),
            Canned({"choices": echo}),
            Canned(completion(echo, finish_reason="odd")),
        ]
    for number, command in enumerate(COMMANDS):
        some = trial.random.sample(faults, trial.n(ci=number % 2, nightly=9, release=9))
        for fault in some if trial.size == "ci" and some else [None, *some]:
            user.server.forget()
            if fault is not None:
                user.server.next(*[fault] * 8)
            arguments = [part.format(user.canary) for part in command]
            n_failed += user.run(*arguments, "--force", OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
                                 OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") != 0  # fmt: skip
            n_runs += 1
    leaks = user.leaks(apart_from=OUTS)
    trial.figure("commands", n_runs)
    trial.figure("failed commands", n_failed, at_least=5)
    trial.figure("files and messages with a form of the name", len(leaks), at_most=0)
    assert not leaks, leaks
    user.server.forget()
    for command in ROWS:
        assert user.run(*command) == 2
        assert b"a private run stores no rows" in user.told
        user.told = b""


@pytest.mark.row("S17", "the same commands in a run that is not private, as a check of this search")
def test_the_search_finds_what_is_there(trial: Trial, user: Home) -> None:
    user.run("ask", f"What does {user.canary} take?", "a.txt", "t.csv", "--together", private=False)
    user.run("execute", "bad.plan", "a.txt", private=False)
    leaks = user.leaks()
    trial.figure("files and messages with a form of the name", len(leaks), at_least=3)
    assert "stderr" in leaks


@pytest.mark.row("S18", "rights of all files under an open umask")
def test_files_are_of_the_user_alone(trial: Trial, user: Home) -> None:
    before = os.umask(0)
    try:
        user.run("ask", "What does she take?", "a.txt", "t.csv", "--together", private=False)
        user.run("execute", "why.plan", "a.txt", "--out", "rows.jsonl", private=False)
    finally:
        os.umask(before)
    kept = list(files(user.home))
    open_ones = [
        path for path in kept if path.stat().st_mode & 0o077 or path.parent.stat().st_mode & 0o022
    ]
    trial.figure("files of the store and of caches", len(kept), at_least=3)
    trial.figure("that others may read", len(open_ones), at_most=0)
    assert not open_ones, open_ones


@pytest.mark.row("S22", "what is removed is not in any file of the store")
def test_removed_rows_are_gone(trial: Trial, user: Home) -> None:
    n_rounds, left = trial.n(ci=2, nightly=10, release=100), []
    store = user.home / ".local/share/pearl"
    for n in range(n_rounds):
        execute = ("execute", "why.plan", "a.txt", "t.csv", "--out", f"rows{n}.jsonl", "--fresh")
        assert user.run(*execute, private=False) < 2
        assert any(user.canary.encode() in path.read_bytes() for path in files(store))
        assert user.run("runs", "prune", "--older-than", "0d", "--replies", "--yes") == 0
        contents = {str(path): path.read_bytes() for path in files(store)}
        left += [
            path
            for path, data in contents.items()
            if any(form in data for form in forms(user.canary))
        ]
    trial.figure("rounds", n_rounds)
    trial.figure("files of the store with a form of the name", len(left), at_most=0)
    assert not left, left
