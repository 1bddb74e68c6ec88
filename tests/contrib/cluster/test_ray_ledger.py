"""Workers of a cluster and the one ledger of their run: commands over four nodes, a server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pearl.runs.store import Store
from tests.contrib.cluster.clustered import PLAN
from tests.root import ROOT
from tests.server import Seen, Server
from tests.skips import needs_ray

pytestmark = [pytest.mark.slow, needs_ray]

AT_ONCE = 8
N = 24
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "sk-test", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a cluster with a worker on each of its nodes."""
    command = [sys.executable, "-m", "tests.contrib.cluster.clustered", "nodes", "4"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        env=ENVIRONMENT,
    ) as cluster:  # fmt: skip
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield next(line.split()[1] for line in cluster.stdout if line.startswith("address "))
        cluster.stdin.close()


def reply(seen: Seen) -> str:
    return f'"This is story {seen.prompt.partition("This is story ")[2].partition(".")[0]}."'


class Lab:
    """A folder with documents, and commands that ask a server about them on the cluster."""

    def __init__(self, folder: Path, server: Server, address: str) -> None:
        self.folder, self.server = folder, server
        self._environment = {**ENVIRONMENT, "RAY_ADDRESS": address}
        server.on("", reply)
        self.write([f"This is story {i}. Its hero is Ada." for i in range(N)])

    def write(self, texts: list[str]) -> None:
        with (self.folder / "tasks.jsonl").open("w") as tasks:
            for i, text in enumerate(texts):
                (self.folder / f"{i}.txt").write_text(text)
                task = {"id": f"{i}", "document_path": f"{i}.txt", "question": "Why?", "plan": PLAN}
                tasks.write(json.dumps(task) + "\n")

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-m", "pearl", "execute", "--tasks", "tasks.jsonl", "--out", "rows.jsonl", "--store", "kept",
            "--model", "openai:m", "--base-url", self.server.url, "--executor", "ray", "--concurrency", f"{AT_ONCE}",
            "--prefix", "off", "--max-output-tokens", "300", "--constrain", "off", *options,
        ]  # fmt: skip
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=self._environment, stderr=pipe, text=True)  # fmt: skip

    def run(self, *options: str, code: int = 0) -> str:
        """What a command says that ends with this code."""
        program = self.start(*options)
        told = program.communicate()[1]
        assert program.returncode == code, told
        return told

    @property
    def prompts(self) -> list[str]:
        return [seen.prompt for seen in self.server.requests]

    def amid(self, n: int) -> subprocess.Popen[str]:
        """A run of which the server has answered `n` calls, all stored, and holds the others."""
        self.server.hold_after = n
        program = self.start("--max-calls", "1000")
        wait(lambda: len(self.prompts) >= n + AT_ONCE and self.n_stored() == n)
        return program

    def n_stored(self) -> int:
        with Store.open(self.folder / "kept", read_only=True) as store:
            return int(store.all("SELECT count(*) FROM replies")[0][0])


def wait(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.05)


@pytest.fixture
def lab(tmp_path: Path, openai_server: Server, address: str) -> Lab:
    return Lab(tmp_path, openai_server, address)


def workers() -> list[int]:
    """The processes of the workers."""
    commands = Path("/proc").glob("[0-9]*/cmdline")
    return [int(path.parent.name) for path in commands if b"ray::RayWorker" in path.read_bytes()]


def test_replies_are_not_asked_again_when_the_driver_was_killed(lab: Lab) -> None:
    with lab.amid(10) as driver:
        driver.kill()
    n_before = len(lab.prompts)
    lab.server.hold_after = None
    lab.run()
    n_asked = Counter(lab.prompts)
    assert {n_asked[prompt] for prompt in lab.prompts[:10]} == {1}
    assert len(lab.prompts) <= 2 * N + n_before - 10
    rows = [json.loads(line) for line in (lab.folder / "rows.jsonl").read_text().splitlines()]
    assert [(row["id"], row["status"]) for row in rows] == [(f"{i}", "answered") for i in range(N)]


def test_replies_are_not_asked_again_when_workers_were_killed(lab: Lab) -> None:
    with lab.amid(10) as driver:
        for pid in workers()[:2]:
            os.kill(pid, signal.SIGKILL)
        lab.server.hold_after = None
        told = driver.communicate()[1]
    assert driver.returncode == 0, told
    n_asked = Counter(lab.prompts)
    assert {n_asked[prompt] for prompt in lab.prompts[:10]} == {1}
    # on a busy machine the killed workers may have had no call in flight
    assert 2 * N <= len(lab.prompts) <= 2 * N + AT_ONCE
    # What the lost workers had in flight may have been billed: it counts.
    assert f"spent {len(lab.prompts)} calls" in told
