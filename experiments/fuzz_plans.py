"""Broken plans without end: does a reader ever fail in a way nobody expects?

    python experiments/fuzz_plans.py 1000000

Takes shipped plans, breaks them (characters, tokens and lines taken out, put in, swapped, doubled,
replaced) and reads each strictly and tolerantly (with --in-turn one way each, for half the time).
Anything but a plan or a `PlanError` ends the run
with the text that did it. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from pearl.actions.library import load_library
from pearl.dsl.checker import compile_plan, mend_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError

ROOT = Path(__file__).parent.parent

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|\s+|.', re.S)

CHARACTERS = (
    "\n\t\r \u00a0\u2028\0\x07\x85\ud800\ufeff\"'“”‘’\\()[]{},:;=#-–—*`>.…/0159aZ_éש検🔑\u0301"
)

TOKENS = (
    "CTX", "ctx", "x", '"x"', "'x'", "“x”", "1", "-1.5", "12345678901234567", "1e5", " = ", " : ", ": ",
    "(", ")", "[", "]", ", ", ",", "...", "- ", "1. ", "2) ", "Step 3: ", "**", "```", "\\", '\\"',
    "\\u00e9", "\\ud83d", "FIND(", "X=", " # ", " // ", "- None", "New actions:", "Question: ",
)  # fmt: skip

LINES = (
    "", " ", "```", "```text", "New actions:", "**New actions:** None", "- None", "none", "Question: Who?",
    "- COUNT_X(CTX, X) : Count X", "- COUNT_X(CTX", "Here is the plan:", "1. First, I read.",
    "ans = FIND(CTX, 'x')", "9. a = FIND(CTX, FIND(CTX)) : x", "FIND(CTX)", "> quoted",
)  # fmt: skip


def seeds() -> list[str]:
    """The shipped plans."""
    return [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("fewshot/*/*.plan"))]


def broken(text: str, chance: random.Random) -> str:
    """The text with one to six things wrong with it, or with none."""
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        kind = chance.randrange(3)
        if kind == 0:
            text = "".join(_changed(list(text), CHARACTERS, chance))
        elif kind == 1:
            text = "".join(_changed(TOKEN.findall(text), TOKENS, chance))
        else:
            text = "\n".join(_changed(text.split("\n"), LINES, chance))
    return text


def _changed(parts: list[str], others: str | tuple[str, ...], chance: random.Random) -> list[str]:
    """One part taken out, put in, swapped with another, doubled or replaced."""
    if not parts:
        return [chance.choice(others)]
    at, to = chance.randrange(len(parts)), chance.randrange(len(parts))
    match chance.randrange(5):
        case 0:
            del parts[at]
        case 1:
            parts.insert(at, chance.choice(others))
        case 2:
            parts[at], parts[to] = parts[to], parts[at]
        case 3:
            parts.insert(to, parts[at])
        case _:
            parts[at] = chance.choice(others)
    return parts


def outcome(text: str, library: ActionLibrary, *, tolerant: bool) -> tuple[str, str]:
    """How reading, mending and checking a text ends."""
    mended, _ = mend_plan(text, library, tolerant=tolerant)
    try:
        compile_plan(text, library, tolerant=tolerant)
    except PlanError as error:
        error.render()
        return type(error).__name__, mended
    return "valid", mended


def texts(n: int, seed: int) -> Iterator[str]:
    """`n` broken plans, always the same for a seed."""
    chance, plans = random.Random(seed), seeds()
    for _ in range(n):
        yield broken(chance.choice(plans), chance)


def run(n: int, seed: int, *, in_turn: bool = False) -> Counter[str]:
    """Read `n` broken plans in both ways, or one way in turn, and count how it ended.

    Every tenth is read twice.
    """
    libraries = [load_library(name) for name in ("seed", "quality", "medical")]
    counts: Counter[str] = Counter()
    for i, text in enumerate(texts(n, seed)):
        for tolerant in (i % 2 == 1,) if in_turn else (False, True):
            try:
                first = outcome(text, libraries[i % 3], tolerant=tolerant)
                if i % 10 == 0 and outcome(text, libraries[i % 3], tolerant=tolerant) != first:
                    raise RuntimeError("a second reading gave something else")
            except BaseException:
                print(f"seed {seed}, case {i}, tolerant={tolerant}: {text!r}", flush=True)
                raise
            counts[f"{'tolerant' if tolerant else 'strict'}: {first[0]}"] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("n", type=int, help="how many broken plans")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--in-turn", action="store_true", help="read each plan one way only")
    options = parser.parse_args()
    began = time.perf_counter()
    chunk = 2_000
    sizes = [min(chunk, options.n - i) for i in range(0, options.n, chunk)]
    total: Counter[str] = Counter()
    with ProcessPoolExecutor(options.processes) as pool:
        seeds_ = range(options.seed, options.seed + len(sizes))
        for counts in pool.map(partial(run, in_turn=options.in_turn), sizes, seeds_):
            total += counts
    report = {"n": options.n, "seed": options.seed, "unexpected": 0, **dict(sorted(total.items()))}
    print(json.dumps({**report, "seconds": round(time.perf_counter() - began, 1)}))


if __name__ == "__main__":
    main()
