"""`pearl execute` over a window, killed again and again and given again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from aggregation.bars import N_PER_CALL, Bar
from aggregation.oracle import Oracle, serving
from aggregation.plans import plan_of
from aggregation.questions import draw_questions
from aggregation.scoring import answers_in
from aggregation.windows import draw_window
from bench.killed_runs import FORKING, ROOT, is_alive

__all__ = ["kills"]

AT_ONCE = 8
CALL_S = 0.02


def kills(n_kills: int, seed: int, n: int = 10_000, at_most_s: float = 0.3) -> Bar:
    """Kill a run at random moments until it ends, then begin another, until there were enough kills.

    A reply that was under way when the process was killed may be asked for again: as many as there
    are calls at once. Nothing else may be.

    Args:
        n_kills: Of all runs.
        seed: Of the first window, and of the moments.
        n: Entries of a window.
        at_most_s: Longest time from a run's first call to its end.
    """
    draw = random.Random(seed)
    bar = Bar(f"{n_kills} kills, {n:,} entries", {})
    done, runs, again = 0, 0, 0
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
        with subprocess.Popen(
            [sys.executable, "-c", FORKING], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as forks:  # fmt: skip
            while done < n_kills:
                window = draw_window(n, seed + runs)
                oracle = Oracle(window.labels_of, window.labels, seed=seed)
                question = draw_questions(window, seed + runs, 1)[0]
                folder = Path(home, str(runs))
                folder.mkdir()
                (folder / "count.plan").write_text(plan_of(question.query, window.labels))
                (folder / "window.txt").write_text(window.text)
                with serving(oracle, CALL_S) as url:
                    command = (
                        f"execute {folder}/count.plan {folder}/window.txt --out {folder}/rows.jsonl "
                        f"--store {folder}/store --model openai:oracle --base-url {url} "
                        f"--concurrency {AT_ONCE}\n"
                    )
                    survived = _until_done(forks, command, oracle, draw, at_most_s, n_kills - done)
                done += survived
                runs += 1
                rows = [json.loads(row) for row in (folder / "rows.jsonl").read_text().splitlines()]
                said = [
                    answers_in(question.query.kind, str(row["steps"][-1]["value"])) for row in rows
                ]
                bar.require(said == [question.right], f"run {runs}: another answer: {said}")
                asked = Counter(text for call in oracle.calls for text in call.items.values())
                bar.require(
                    asked.keys() == window.labels_of.keys(),
                    f"run {runs}: texts were not asked about",
                )
                again += asked.total() - len(asked)
            assert forks.stdin is not None
            forks.stdin.close()
    most = done * AT_ONCE * N_PER_CALL
    bar.figures = {"runs": runs, "kills": done, "asked_again": again, "under_way_at_most": most}
    bar.require(again <= most, "what had been answered was asked again")
    return bar


def _until_done(
    forks: subprocess.Popen[str],
    command: str,
    oracle: Oracle,
    draw: random.Random,
    at_most_s: float,
    n_kills: int,
) -> int:
    """Give a command until it ends by itself; how often it was killed."""
    assert forks.stdin is not None
    assert forks.stdout is not None
    n = 0
    while True:
        n_before = len(oracle.calls)
        forks.stdin.write(command)
        forks.stdin.flush()
        pid = int(forks.stdout.readline())
        if n < n_kills:
            while len(oracle.calls) == n_before and is_alive(pid):
                time.sleep(0.002)
            time.sleep(draw.uniform(0, at_most_s))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code = int(forks.stdout.readline())
        if code == 0:
            return n
        if code != -signal.SIGKILL:
            raise RuntimeError(f"the command ended with {code}: pearl {command}")
        n += 1
