"""What does a call cost this process, beside the official client?

    python experiments/bench/overhead.py [--quick] [--at-once N]
        [--callers CALLER ...] [--profile CALLER]

Processor time of a process for each call, 32 at once unless said otherwise, over different prompts of 6 kB, start-up taken
off: the whole of `pearl execute`, with its store, its rows and its traces; `Pearl` as a library, which
keeps nothing; and beside them, none of which keeps anything, the official client over either of its
transports and aiohttp alone. `cold`: no document has been seen, `warm`: by this process, so
that its tokens are counted. `vocabulary`: tokens are counted with one of 200,000, made up for this,
and estimated otherwise. All run in turns, and the median of each round's ratios to the official client
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
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent

PLAN = (
    'Question: Why was the boat sold?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'
)

AT_ONCE = 32

OTHERS = ("official", "official_aiohttp", "aiohttp")
OURS = ("pearl_library", "pearl_command")

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
        call_s: float,
        callers: Sequence[str],
        at_once: int = AT_ONCE,
    ) -> None:
        from callers import N_FIRST

        self._n = n
        self._call_s = call_s
        self._callers = callers
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
            "at_once": at_once,
        }

    def measured(
        self, caller: str, *, is_counted: bool = False, options: tuple[str, ...] = ()
    ) -> Any:
        """What a caller prints; None where what it needs is not installed."""
        server = subprocess.Popen(
            [sys.executable, str(HERE / "quick_server.py"), "--call-s", str(self._call_s)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            said = {
                **self._said,
                "url": f"http://127.0.0.1:{server.stdout.readline().strip()}/v1",
                "model": "gpt-4o" if is_counted else "sim",
                "is_counted": is_counted,
            }
            done = subprocess.run(
                [sys.executable, str(HERE / "callers.py"), caller, *options],
                input=json.dumps(said), capture_output=True, text=True, check=False,
            )  # fmt: skip
        finally:
            server.terminate()
            server.wait()
        if options:
            print(done.stdout, done.stderr)
            return None
        if "ModuleNotFoundError" in done.stderr or "you must have installed" in done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def turn(self) -> dict[str, tuple[float, float]]:
        """Milliseconds of the processor a call, and calls a second, of all of them in turn."""
        found: dict[str, tuple[float, float]] = {}
        for caller in (each for each in OTHERS if each in self._callers):
            times = self.measured(caller)
            if times is not None:
                found[caller] = self._tell(caller, self._figures(times[0]))
        for caller in (each for each in OURS if each in self._callers):
            for is_counted in (False, True):
                times = self.measured(caller, is_counted=is_counted)
                for heat, each in zip(("cold", "warm"), times, strict=True):
                    name = " ".join([caller, heat, *(["vocabulary"] if is_counted else [])])
                    found[name] = self._tell(name, self._figures(each))
        return found

    def _tell(self, name: str, figures: tuple[float, float]) -> tuple[float, float]:
        """What was measured just now, for whoever waits."""
        print(f"{name}: {figures[0]:.2f} ms, {figures[1]:.0f} a second", file=sys.stderr)
        return figures

    def _figures(self, times: tuple[float, float]) -> tuple[float, float]:
        return 1_000 * times[0] / self._n, self._n / times[1]


def main() -> None:
    """Measure in turns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--call-s", type=float, default=0.05)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--callers", nargs="+", default=[*OTHERS, *OURS], metavar="CALLER")
    parser.add_argument("--profile", metavar="CALLER")
    said = parser.parse_args()
    n_calls = said.calls or (100 if said.quick else 1_500)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), n_calls, said.call_s, said.callers, said.at_once)
        if said.profile:
            bench.measured(said.profile, is_counted=True, options=("--profile",))
            return
        turns = [bench.turn() for _ in range(said.rounds or (1 if said.quick else 3))]
    every: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for turn in turns:
        base = turn.get("official", (float("nan"), 0.0))[0]
        for caller, (cpu_ms, per_s) in turn.items():
            every[caller].append((cpu_ms, cpu_ms / base, per_s))
    figures = {
        caller: [round(median(column), 3) for column in zip(*rows, strict=True)]
        for caller, rows in every.items()
    }
    width = max(map(len, figures))
    print(f"{'caller':{width}}  CPU ms  ratio  calls/s")
    for caller, (cpu_ms, ratio, per_s) in figures.items():
        print(f"{caller:{width}}  {cpu_ms:6.2f}  {ratio:5.2f}  {per_s:7.0f}")
    found = {
        caller.replace(" ", "_"): {"cpu_ms": cpu_ms, "ratio": ratio, "calls_per_s": per_s}
        for caller, (cpu_ms, ratio, per_s) in figures.items()
    }
    of = {"quick": said.quick, "calls": n_calls, "at_once": said.at_once}
    line = {"bench": "overhead", **of, **found}
    print(json.dumps(line))


if __name__ == "__main__":
    main()
