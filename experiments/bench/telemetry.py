"""What telemetry costs: the same tasks without it, and with collectors that answer, are down or silent.

    python experiments/bench/telemetry.py [--tasks 200] [--rounds 5] [--latency 0.05]

The tasks are a plan of three steps over short documents, with a model in this process that replies after
the latency, eight calls at once. In every round each manner is measured once, in turn; printed are the
median seconds, the median of their ratios to those without telemetry of the same round, the wait at
the end, and the processor time of this process for each call.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

import pearl
from pearl.llm import Completion, Constrains, Request, Usage
from pearl.runs.executors import Task
from pearl.telemetry import to_collector

PLAN = """\
New actions:
- None

1. why = FIND(CTX, "why she leaves") : Find why
2. when = FIND(CTX, "when she leaves") : Find when
3. ans = COMPARE(CTX, why, when) : Compare both
"""
N_STEPS = 3

SINK = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Replying:
    """A model that replies after a time."""

    name = identity = "replying"
    notice = ""
    window = None
    reads_prompts = True
    constrains = Constrains()

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s

    async def complete(self, request: Request) -> Completion:
        """Reply."""
        await asyncio.sleep(self._latency_s)
        return Completion("it rained", "replying", Usage(100, 2, 0))

    async def aclose(self) -> None:
        """Nothing to let go of."""


async def work(n: int, latency_s: float, telemetry: object) -> None:
    tasks = [
        Task(str(i), lambda i=i: pearl.Document(f"She left on day {i}. It rained."), plan=PLAN)
        for i in range(n)
    ]
    async with pearl.Pearl(Replying(latency_s), concurrency=8) as asked:
        summary = await pearl.Session(asked, telemetry=telemetry).run(tasks)
    assert summary.n_done == n
    assert not summary.n_failed


def measured(n: int, latency_s: float, address: str | None) -> tuple[float, float, float, str]:
    """Seconds of the work, seconds at the end, processor seconds, and what was said."""
    said: list[str] = []
    collector = None
    if address is not None:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
        collector = to_collector(said.append)
    cpu, began = time.process_time(), time.perf_counter()
    asyncio.run(work(n, latency_s, collector.telemetry if collector else None))
    ended = time.perf_counter()
    if collector is not None:
        collector.close()
    closed = time.perf_counter()
    return ended - began, closed - ended, time.process_time() - cpu, " ".join(said)


@contextmanager
def addresses() -> Iterator[dict[str, str | None]]:
    """Manner → address of the collector."""
    sink = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    assert sink.stdout is not None
    port = sink.stdout.readline().strip()
    with socket.create_server(("127.0.0.1", 0)) as dead:
        nobody = dead.getsockname()[1]
    try:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            yield {
                "none": None,
                "answers": f"http://127.0.0.1:{port}",
                "is down": f"http://127.0.0.1:{nobody}",
                "is silent": f"http://127.0.0.1:{silent.getsockname()[1]}",
            }
    finally:
        sink.terminate()
        sink.wait()


def main() -> None:
    import logging

    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    logging.getLogger("opentelemetry").propagate = False
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.05)
    arguments = parser.parse_args()
    found: dict[str, list[tuple[float, float, float, str]]] = {}
    with addresses() as manners:
        measured(20, 0.0, None)  # imports and tables
        measured(20, 0.0, manners["answers"])
        for _ in range(arguments.rounds):
            for manner, address in manners.items():
                figures = measured(arguments.tasks, arguments.latency, address)
                found.setdefault(manner, []).append(figures)
    n_calls = arguments.tasks * N_STEPS
    print("| collector | seconds | ratio | at the end, s | processor, µs a call |")
    print("|---|---|---|---|---|")
    for manner, rounds in found.items():
        ratio = median(
            took / without for (took, *_), (without, *_) in zip(rounds, found["none"], strict=True)
        )
        took, end, cpu = (median(each[i] for each in rounds) for i in range(3))
        print(
            f"| {manner} | {took:.2f} | {ratio:.3f} | {end:.2f} | {cpu / n_calls * 1e6:,.0f} |"
            f" {rounds[-1][3]}"
        )


if __name__ == "__main__":
    main()
