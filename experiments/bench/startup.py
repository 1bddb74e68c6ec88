"""Processor time of commands as multiples of `python -c pass`. Prints one JSON line.

    python experiments/bench/startup.py [N]

Runs commands as child processes in turns, N rounds (20) after one that writes the byte code. `execute` is
measured from its start to its first request, over a loopback server, and `ask_files` is the number of
modules of pearl that `pearl ask` imports with that server. Of each command the least and the median
milliseconds of processor time, and the ratio of the least to that of the interpreter.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

PEARL = ["-c", "from pearl.cli import main; main()"]  # as the installed script does
PLAN = '1. a = FIND(CTX, "x") : f\n'
TICK_MS = 1_000 / os.sysconf("SC_CLK_TCK")
REPLY = {"role": "assistant", "content": "rain"}
COMPLETION = {
    "id": "a", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": REPLY}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}  # fmt: skip


class FirstRequest(BaseHTTPRequestHandler):
    """Replies, and notes the processor time of the child at its first request."""

    process: subprocess.Popen[bytes] | None = None
    taken_ms: float | None = None

    def do_GET(self) -> None:
        """The server has no list of models."""
        self.send_error(404)

    def do_POST(self) -> None:
        """A chat completion."""
        self.rfile.read(int(self.headers["content-length"]))
        if FirstRequest.taken_ms is None and FirstRequest.process is not None:
            stat = Path(f"/proc/{FirstRequest.process.pid}/stat").read_text()
            fields = stat.rpartition(")")[2].split()
            FirstRequest.taken_ms = TICK_MS * (int(fields[11]) + int(fields[12]))
        body = json.dumps(COMPLETION).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    server = ThreadingHTTPServer(("127.0.0.1", 0), FirstRequest)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    with tempfile.TemporaryDirectory() as folder:
        plan, text = Path(folder, "a.plan"), Path(folder, "a.txt")
        plan.write_text(PLAN)
        text.write_text("It rained. The boat leaked.\n")
        asked = [str(text), "--model", "openai:m", "--base-url", url]
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "OPENAI_API_KEY": "none", "PEARL_STORE": f"{folder}/store"}

        def taken_ms(*words: str) -> float:
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], capture_output=True, check=True, env=env)
            after = getrusage(RUSAGE_CHILDREN)
            used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            return 1_000 * used

        def first_request_ms() -> float:
            FirstRequest.taken_ms = FirstRequest.process = None
            words = [sys.executable, *PEARL, "execute", str(plan), *asked, "--fresh"]
            FirstRequest.process = subprocess.Popen(
                words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
            )
            FirstRequest.process.wait()
            assert FirstRequest.taken_ms is not None, "the command sent no request"
            return FirstRequest.taken_ms

        commands = {
            "python": lambda: taken_ms("-c", "pass"),
            "version": lambda: taken_ms(*PEARL, "--version"),
            "check": lambda: taken_ms(*PEARL, "check", str(plan)),
            "execute": first_request_ms,
        }
        rounds = [{name: run() for name, run in commands.items()} for _ in range(n + 1)][1:]
        words = [sys.executable, "-X", "importtime", *PEARL, "ask", "Why did it leak?", *asked]
        done = subprocess.run(words, capture_output=True, text=True, env=env)
    files = set(re.findall(r"\|\s*(pearl(?:\.\w+)*)$", done.stderr, re.M))
    least = {name: min(each[name] for each in rounds) for name in commands}
    found = {
        name: {
            "min_ms": round(least[name], 1),
            "median_ms": round(statistics.median(each[name] for each in rounds), 1),
            "of_python": round(least[name] / least["python"], 1),
        }
        for name in commands
    }
    print(json.dumps({"bench": "startup", "n": n, **found, "ask_files": len(files)}))


if __name__ == "__main__":
    main()
