"""What does a call cost this process, beside the official client?

    python experiments/bench/overhead.py [--quick]

Processor time of a process for each call, 32 at once, over different prompts of 6 kB, start-up taken
off: the whole of `pearl execute`, with its store, its rows and its traces; `Pearl` as a library, which
keeps nothing; and beside them, none of which keeps anything, the official client over either of its
transports and aiohttp alone. `cold`: no document has been seen. All run in turns, and the median of each round's ratios to the official client
counts. Prints a table and one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent

PLAN = (
    'Question: Why was the boat sold?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'
)

AT_ONCE = 32

CALLERS = {
    "official": "official",
    "official_aiohttp": "official_aiohttp",
    "aiohttp": "aiohttp",
    "pearl_library": "pearl_library_cold",
    "pearl_command": "pearl_command_cold",
}
"""Callers of `callers.py`, and how their figures are called."""

PROMPT_CHARACTERS = 6_000


def texts(n: int, length: int) -> list[str]:
    """Documents of made-up sentences, of which no two are alike."""
    from callers import made_up_words

    words = made_up_words(random.Random(0), 20_000)
    draw = random.Random(1)
    found = []
    for _ in range(n):
        text = ""
        while len(text) < length:
            sentence = [draw.choice(words) for _ in range(6)]
            text += f"The {' '.join(sentence[:3])} of the {' '.join(sentence[3:])}. "
        found.append(text[:length].strip())
    return found


def prompts(documents: list[str]) -> list[list[dict[str, str]]]:
    """What `pearl execute` sends for the plan over each of them."""
    from pearl import Document
    from pearl.actions.library import load_library
    from pearl.documents.tokens import Counter
    from pearl.dsl.checker import compile_plan
    from pearl.dsl.graph import build_graph
    from pearl.interpreter.context import ContextLimits
    from pearl.interpreter.requests import RequestBuilder

    graph = build_graph(compile_plan(PLAN, load_library("seed")))
    found = []
    for text in documents:
        calls = RequestBuilder(graph, Document(text), ContextLimits(Counter()))
        task, _ = calls.task(graph.steps[0], {})
        messages = calls.request(task).messages
        found.append([{"role": m.role, "content": m.content} for m in messages])
    return found


class Bench:
    """Documents, their prompts and a server, in a folder."""

    def __init__(
        self,
        folder: Path,
        n: int,
    ) -> None:
        from callers import N_FIRST

        self._n = n
        (frame,) = prompts(["x"])
        length = PROMPT_CHARACTERS - sum(len(message["content"]) for message in frame)
        documents = texts(n + N_FIRST, length)
        (folder / "documents").mkdir()
        for i, text in enumerate(documents):
            (folder / "documents" / f"{i:05}.txt").write_text(text)
        (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts(documents))))
        (folder / "why.plan").write_text(PLAN)
        self._said = {
            "prompts": str(folder / "prompts.jsonl"),
            "documents": str(folder / "documents"),
            "plan": str(folder / "why.plan"),
            "model": "sim",
            "at_once": AT_ONCE,
        }

    def measured(self, caller: str) -> tuple[float, float] | None:
        """Milliseconds of the processor a call, and calls a second; None where what it needs is not installed."""
        server = subprocess.Popen(
            [sys.executable, str(HERE / "quick_server.py")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            said = {
                **self._said,
                "url": f"http://127.0.0.1:{server.stdout.readline().strip()}/v1",
            }
            done = subprocess.run(
                [sys.executable, str(HERE / "callers.py"), caller],
                input=json.dumps(said), capture_output=True, text=True, check=False,
            )  # fmt: skip
        finally:
            server.terminate()
            server.wait()
        if "ModuleNotFoundError" in done.stderr or "you must have installed" in done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        cpu_s, passed_s = json.loads(done.stdout.splitlines()[-1])
        return 1_000 * cpu_s / self._n, self._n / passed_s

    def turn(self) -> dict[str, tuple[float, float]]:
        """The figures of all callers in turn."""
        found: dict[str, tuple[float, float]] = {}
        for caller, name in CALLERS.items():
            if (figures := self.measured(caller)) is not None:
                found[name] = figures
                print(f"{name}: {figures[0]:.2f} ms, {figures[1]:.0f} a second", file=sys.stderr)
        return found


def main() -> None:
    """Measure in turns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    said = parser.parse_args()
    n_calls = 100 if said.quick else 1_500
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), n_calls)
        turns = [bench.turn() for _ in range(1 if said.quick else 3)]
    every: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for turn in turns:
        base = turn.get("official", (float("nan"), 0.0))[0]
        for caller, (cpu_ms, per_s) in turn.items():
            every[caller].append((cpu_ms, cpu_ms / base, per_s))
    figures = {
        caller: [round(median(column), 3) for column in zip(*rows, strict=True)]
        for caller, rows in every.items()
    }
    print(f"{'caller':18}  CPU ms  ratio  calls/s")
    for caller, (cpu_ms, ratio, per_s) in figures.items():
        print(f"{caller:18}  {cpu_ms:6.2f}  {ratio:5.2f}  {per_s:7.0f}")
    found = {
        caller: {"cpu_ms": cpu_ms, "ratio": ratio, "calls_per_s": per_s}
        for caller, (cpu_ms, ratio, per_s) in figures.items()
    }
    of = {"quick": said.quick, "calls": n_calls, "at_once": AT_ONCE}
    print(json.dumps({"bench": "overhead", **of, **found}))


if __name__ == "__main__":
    main()
