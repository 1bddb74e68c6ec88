"""Commands of PEARL as child processes that start in milliseconds, and the works that the suites disturb."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.batch_server import BatchServer, serving_batches
from tests.models import written
from tests.root import ROOT
from tests.server import Seen, quotable

FORKING = """
import gc, importlib, json, h11, openai, os, pkgutil, signal, sys, traceback
import pearl.cli.commands, pearl.retrieval.search, pearl.contrib.batches.executor, pearl.runs.session
for module in pkgutil.iter_modules(pearl.cli.commands.__path__):
    importlib.import_module("pearl.cli.commands." + module.name)
from pearl.cli import run
from pearl.errors import PearlError
gc.freeze()
for line in sys.stdin:
    match json.loads(line):
        case int(pid):
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        case {"args": args, "folder": folder, "home": home, "out": out, "is_held": is_held}:
            pid = os.fork()
    if pid:
        if is_held:
            os.waitpid(pid, os.WUNTRACED)
        print(pid, flush=True)
        continue
    os.chdir(folder)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        os.environ[name] = home
    for number, path in enumerate(["stdin", out + ".out", out + ".err"]):
        how = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
        os.dup2(os.open(path if number or os.path.exists(path) else os.devnull, how, 0o600), number)
    sys.stdin = open(0)
    if is_held:
        os.kill(os.getpid(), signal.SIGSTOP)
    code = 0
    try:
        if args[0] == "-c":
            sys.argv = ["-c", *args[2:]]
            exec(args[1], {"__name__": "__main__"})
        else:
            code = run(args)
    except SystemExit as end:
        code = end.code
    except PearlError as error:
        print(f"{type(error).__name__} {error}", file=sys.stderr)
        code = error.exit_code
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        sys.stdout.flush()
        os._exit(code)
"""


@dataclass
class Program:
    """A command that was started."""

    pid: int
    out: str
    programs: Programs

    def signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def wait(self) -> int:
        """Its exit status once it has ended."""
        return int(self.programs.ask(self.pid))

    @property
    def stdout(self) -> str:
        """What it has written."""
        return Path(f"{self.out}.out").read_text(encoding="utf-8")

    @property
    def stderr(self) -> str:
        """The same of its errors and notes."""
        return Path(f"{self.out}.err").read_text(encoding="utf-8")


class Programs:
    """Forks commands from one process that has run the code `first` and imported everything."""

    def __init__(self, folder: Path, first: str = "", **environment: str) -> None:
        self._folder = folder
        self._n = 0
        self._forking = subprocess.Popen(
            [sys.executable, "-c", first + FORKING], env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, request: Any) -> str:
        """One line to the process, and the line that it answers."""
        assert self._forking.stdin is not None
        assert self._forking.stdout is not None
        self._forking.stdin.write(json.dumps(request) + "\n")
        self._forking.stdin.flush()
        return self._forking.stdout.readline()

    def start(self, folder: Path, *args: str, is_held: bool = False) -> Program:
        """Start a command, or `-c CODE`, in a folder; `is_held`: it waits for SIGCONT."""
        self._n += 1
        out = str(self._folder / str(self._n))
        request = {"args": args, "folder": str(folder), "home": str(folder / "home"), "out": out}
        return Program(int(self.ask({**request, "is_held": is_held})), out, self)

    def run(self, folder: Path, *args: str) -> Program:
        """A command that ends without an error."""
        program = self.start(folder, *args)
        code = program.wait()
        assert code == 0, (args, code, program.stderr)
        return program

    def trace(self, folder: Path, *args: str, by: list[str]) -> tuple[int, str, Program]:
        """Run a command under strace with these options; its exit status and the log."""
        program = self.start(folder, *args, is_held=True)
        log = f"{program.out}.strace"
        command = ["strace", "-f", "-o", log, "-p", str(program.pid), *by]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
            assert strace.stderr is not None
            assert "attached" in strace.stderr.readline()
            program.signal(signal.SIGCONT)
            code = program.wait()
            strace.stderr.read()
        return code, Path(log).read_text(encoding="utf-8"), program

    def close(self) -> None:
        """End the process, once all commands have ended."""
        self._forking.communicate()


@dataclass(frozen=True)
class Work:
    """A command, the file that it leaves (None: its output), and the work that comes before it."""

    args: tuple[str, ...]
    result: str | None = None
    stdin: str = ""
    before: str | None = None


def commanded(command: str, *rest: Any) -> Work:
    return Work(tuple(command.split()), *rest)


ONLINE = "--model openai:test-model --base-url URL --store kept --concurrency 8"
BATCHES = """
import asyncio, sys
from pathlib import Path
from pearl import Pearl
from pearl.contrib.batches.executor import Pace, run
from pearl.runs.store import Store
from tests.contrib.batches.batch_tasks import tasks_of
async def main(url, folder):
    with Store.open(folder) as store:
        pace = Pace(quiet_s=0.02, poll_s=0.01, longest_poll_s=0.02, patience_s=5.0)
        async with Pearl("openai:test-model", base_url=url) as pearl:
            async for o in run(pearl, tasks_of(20, 2), replies=store, folder=folder, pace=pace, batch_threshold=0):
                print(o.unit.id, o.result.text)
asyncio.run(main(sys.argv[1], Path("kept")))
"""
WORKS = {
    "documents": commanded(f"execute why.plan --data d.jsonl --out rows.jsonl {ONLINE}", "rows.jsonl"),
    "rows of one document": commanded(f"execute rows.plan lines.txt --out one.jsonl {ONLINE}", "one.jsonl"),
    "index": commanded("search corpus harbour --at index --json"),
    "embeddings": commanded("search corpus harbour --method dense --embeddings openai:e --embeddings-url URL --at index --json"),
    "batches": Work(("-c", BATCHES, "URL")),
    "export": commanded("runs export RUN --store kept --out again.jsonl --force", "again.jsonl", "", "documents"),
    "eval": commanded(f"eval --data gold.jsonl --methods direct --out log {ONLINE}", "log"),
}  # fmt: skip
PLANS = {
    "why.plan": """\
1. day = FIND(CTX, "the day she left") : Find the day
2. ans = FIND(CTX, day) : Find what happened then
""",
    "rows.plan": """\
1. lines = SPLIT(CTX, "line") : Split
2. told = CLASSIFY(lines, ["good", "bad"], "the mood") : Label
3. ans = COUNT(told) : Count
""",
}


def prepare(folder: Path, n_documents: int) -> Path:
    """The inputs of all works."""
    (folder / "corpus").mkdir(parents=True)
    for name, plan in PLANS.items():
        (folder / name).write_text(f"New actions:\n- None\n\n{plan}")
    texts = [f"She left on day {i}. The harbour was empty." for i in range(n_documents)]
    for i, text in enumerate(texts):
        (folder / "corpus" / f"{i}.txt").write_text("\n\n".join([text, f"Day {i} was cold."] * 20))
    rows = [{"id": str(i), "document": text} for i, text in enumerate(texts)]
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"question": "When did she leave?", "options": ["then", "later"], "gold": "A"}
    (folder / "gold.jsonl").write_text(
        "".join(json.dumps(row | options) + "\n" for row in rows[:10])
    )
    (folder / "lines.txt").write_text(
        "".join(f"Line {i} is about a boat.\n" for i in range(10 * n_documents))
    )
    (folder / "story.txt").write_text("She left. He sold the boat because the hull was rotten.")
    return folder


def reply(seen: Seen) -> str:
    """What a language model would reply: always the same to the same prompt."""
    if numbers := re.findall(r"<item \d+>\nLine (\d+) is", seen.prompt):
        return written(seen.prompt, ["good" if int(i) % 3 else "bad" for i in numbers])
    if "Write the plan" in seen.prompt:
        return 'New actions:\n- None\n\n1. ans = FIND(CTX, "the boat") : Find it\n'
    if "Rewrite this question: " in seen.prompt:
        return "Who sold the boat?"
    if "letter" in seen.prompt:
        return "Answer: A"
    said = f"It was day {zlib.crc32(seen.prompt.encode())}."
    quote = quotable(seen.prompt) or []
    return json.dumps({"answer": said, "quote": quote}) if '{"answer"' in seen.prompt else said


OF_THE_RUN = {
    "duration_s", "seconds", "usage", "planning_usage", "calls", "n_calls", "cost_usd", "latency_s",
    "started", "created", "waits_s", "started_at", "finished_at", "date",
}  # fmt: skip
"""Fields that tell how a result was made: not what it is."""


def essence(text: str) -> list[Any]:
    """The values of a result in JSON, without what a cached reply or a clock changes; other texts as they are."""

    def without(value: Any) -> Any:
        match value:
            case dict():
                return {k: without(v) for k, v in value.items() if k not in OF_THE_RUN}
            case list():
                return [without(v) for v in value]
        return value

    try:
        return [without(json.loads(line)) for line in text.splitlines()]
    except ValueError:
        return [text]


class Lab:
    """Carries out works in folders of their own on `disk`, with a server on loopback."""

    def __init__(self, programs: Programs, server: BatchServer, folder: Path) -> None:
        self.programs, self.server, self.disk, self._n = programs, server, folder, 0
        self.n_documents = 30

    def folder(self, work: Work) -> Path:
        """A new folder with all that the work needs."""
        self._n += 1
        folder = prepare(self.disk / f"run {self._n}", self.n_documents)
        (folder / "stdin").write_text(work.stdin)
        if work.before:
            self.programs.run(folder, *self.args(WORKS[work.before], folder))
        self.server.forget()
        self.server.jobs.clear()
        return folder

    def folder_of(self, files: dict[str, str]) -> Path:
        """A new folder with these files."""
        self._n += 1
        folder = self.disk / f"run {self._n}"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    def args(self, work: Work, folder: Path) -> list[str]:
        """The command line of a work."""
        args = [self.server.url if arg == "URL" else arg for arg in work.args]
        if "RUN" in args:
            listed = self.programs.run(folder, "runs", "list", "--store", "kept", "--json")
            args[args.index("RUN")] = json.loads(listed.stdout)[0]["id"]
        return args

    def expected(self, work: Work) -> list[Any]:
        """What the work leaves if nothing disturbs it."""
        folder = self.folder(work)
        result = self.result(work, folder, self.programs.run(folder, *self.args(work, folder)))
        shutil.rmtree(folder)
        return result

    def result(self, work: Work, folder: Path, program: Program) -> list[Any]:
        """What a command left that has ended."""
        return essence((folder / work.result).read_text() if work.result else program.stdout)

    @property
    def n_calls(self) -> int:
        """Calls that the server was sent since the folder was made, those in batches included."""
        return len(self.server.requests) + len(self.server.submitted)


def kept_keys(folder: Path) -> set[bytes]:
    """The keys of the replies, rows and vectors on the disk; raises if a database is damaged."""
    keys = set()
    for path in [*folder.rglob("*.db"), *folder.rglob("*.sqlite")]:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), path
            for table in ("replies", "results", "vectors"):
                with suppress(sqlite3.OperationalError):  # of another database, or not yet made
                    keys |= {
                        table.encode() + row[0]
                        for row in connection.execute(f"SELECT key FROM {table}")
                    }
    return keys


def files(folder: Path) -> set[str]:
    """The names of all files of a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@contextmanager
def replying() -> Iterator[BatchServer]:
    """A server that replies so, with a Batch API."""
    with serving_batches() as server:
        server.on("", reply)
        yield server
