"""Workers of a cluster and the one ledger of their run: commands over four nodes and a server on loopback."""

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
from tests.root import ROOT
from tests.server import FAULTS, Canned, Seen, Server, completion, error
from tests.skips import needs_ray

pytestmark = [pytest.mark.slow, needs_ray]

AT_ONCE = 8
N = 24
PLAN = '1. hero = FIND(CTX, "the hero of the story") : Who\n2. why = FIND(CTX, hero) : Why'


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.runs.executors.cluster_of", "4"]
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT,
        env=environment,
    ) as cluster:  # fmt: skip
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield next(line.strip() for line in cluster.stdout if ":" in line and " " not in line)
        cluster.stdin.close()


class Lab:
    """A folder with documents, and commands that ask a server about them on the cluster."""

    def __init__(self, folder: Path, server: Server, address: str) -> None:
        self.folder = folder
        self.server = server
        self.address = address

    def write(self, texts: list[str]) -> None:
        tasks = []
        for i, text in enumerate(texts):
            (self.folder / f"d{i}.txt").write_text(text)
            tasks.append(
                {"id": f"t{i}", "document_path": f"d{i}.txt", "question": "Why?", "plan": PLAN}
            )
        (self.folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    def start(self, *options: str) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-m", "pearl", "execute", "--tasks", "tasks.jsonl", "--out", "rows.jsonl", "--store", "store",
            "--model", "openai:m", "--base-url", self.server.url, "--executor", "ray", "--concurrency", str(AT_ONCE),
            "--prefix", "off", *options,
        ]  # fmt: skip
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "sk-test",
            "RAY_ADDRESS": self.address,
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str) -> tuple[int, str]:
        """The exit code of a command, and what it says."""
        program = self.start(*options)
        _, told = program.communicate()
        return program.returncode, told

    @property
    def prompts(self) -> list[str]:
        return [seen.prompt for seen in self.server.requests]

    def n_stored(self) -> int:
        with Store.open(self.folder / "store", read_only=True) as store:
            return int(store.all("SELECT count(*) FROM replies")[0][0])

    def amid(self, n: int) -> subprocess.Popen[str]:
        """A run of which the server has answered `n` calls, all stored, and holds the others."""
        self.server.hold_after = n
        program = self.start("--max-calls", "1000")
        wait(lambda: len(self.server.requests) >= n + AT_ONCE and self.n_stored() == n)
        return program


def wait(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.05)


@pytest.fixture
def lab(tmp_path: Path, openai_server: Server, address: str) -> Lab:
    lab = Lab(tmp_path, openai_server, address)
    lab.write([f"This is story {i}. Its hero is Ada." for i in range(N)])
    openai_server.on("", reply)
    return lab


def reply(seen: Seen) -> str:
    return f'"This is story {seen.prompt.partition("This is story ")[2].partition(".")[0]}."'


def workers() -> list[int]:
    """The processes of the workers of all clusters of this user."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::RayWorker"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_limits_hold_for_all_workers_together(lab: Lab) -> None:
    code, told = lab.run("--max-calls", "13")
    assert code == 7, told
    assert "13 calls" in told
    assert len(lab.server.requests) == 13
    code, told = lab.run()
    assert code == 0, told
    assert max(Counter(lab.prompts).values()) == 1
    assert len(lab.server.requests) == 2 * N


def test_money_spent_by_all_workers_is_within_the_limit(lab: Lab) -> None:
    lab.server.delay_s = 0.02
    code, told = lab.run(
        "--max-cost", "0.8", "--price", "input=100,output=100", "--max-output-tokens", "300"
    )
    cost_usd = sum(100 + len(reply(seen).split()) for seen in lab.server.requests) / 1e4
    assert code == 7, told
    assert 0 < cost_usd <= 0.8
    assert f"${cost_usd:.4f}" in told


def test_equal_requests_of_all_workers_are_asked_once(lab: Lab) -> None:
    lab.write(["This is story 0. Its hero is Ada."] * N)  # files of their own: for any worker
    lab.server.delay_s = 0.3
    code, told = lab.run()
    assert code == 0, told
    assert len(lab.server.requests) == 2
    assert len((lab.folder / "rows.jsonl").read_text().splitlines()) == N


def test_replies_are_not_asked_again_when_the_driver_was_killed(lab: Lab) -> None:
    with lab.amid(10) as driver:
        driver.kill()
    n_before = len(lab.server.requests)
    lab.server.hold_after = None
    code, told = lab.run()
    assert code == 0, told
    n_asked = Counter(lab.prompts)
    assert {n_asked[prompt] for prompt in lab.prompts[:10]} == {1}
    assert len(lab.server.requests) <= 2 * N + n_before - 10


def test_replies_are_not_asked_again_when_workers_were_killed(lab: Lab) -> None:
    with lab.amid(10) as driver:
        killed = workers()[:2]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        lab.server.hold_after = None
        _, told = driver.communicate()
    assert driver.returncode == 0, told
    n_asked = Counter(lab.prompts)
    assert len(killed) == 2
    assert {n_asked[prompt] for prompt in lab.prompts[:10]} == {1}
    assert len(lab.server.requests) <= 2 * N + AT_ONCE
    # What the lost workers had in flight may have been billed: it counts.
    assert f"{len(lab.server.requests)} calls" in told


def test_all_workers_wait_when_the_server_tells_one_to(lab: Lab) -> None:
    came: list[float] = []

    def answer(seen: Seen) -> Canned:
        came.append(time.monotonic())
        if len(came) == 1:
            return Canned(error("slow down"), 429, {"retry-after": "4"})
        return Canned(completion(reply(seen)))

    lab.server.answer = answer
    # The others of the first calls are open until the driver knows.
    lab.server.hold_after = 1
    with lab.start("--concurrency", "4") as driver:
        wait(lambda: len(lab.server.requests) == 4)
        time.sleep(1.0)
        lab.server.hold_after = None
        _, told = driver.communicate()
    assert driver.returncode == 0, told
    assert came[4] - came[0] > 3.9
    assert "refused 1 of" in told


def test_a_wrong_key_ends_all_workers_with_one_message(lab: Lab) -> None:
    lab.server.answer = lambda seen: FAULTS["401"]
    code, told = lab.run()
    assert code == 5, told
    assert told.count("answered 401") == 1
    assert len(lab.server.requests) <= AT_ONCE
