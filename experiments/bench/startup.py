"""How long the command line takes to say something. Prints one JSON line.

    python experiments/bench/startup.py [N]

Times `pearl --version` and `pearl demo` as child processes, and beside them, in the same run, what
the interpreter alone and the interpreter with click take. Milliseconds, median of N runs (20).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python": ["-c", "pass"],
    "python_click": ["-c", "import click"],
    "pearl_version": ["-m", "pearl", "--version"],
    "pearl_check": ["-m", "pearl", "check", "-"],
    "pearl_demo": ["-m", "pearl", "demo"],
}
PLAN = b'1. a = FIND(CTX, "x") : f\n'


def median_ms(arguments: list[str], n: int) -> float:
    """Median wall time of n child processes, after one that warms the caches."""
    taken = []
    for _ in range(n + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], input=PLAN, capture_output=True, check=True)
        taken.append(1_000 * (time.perf_counter() - began))
    return round(statistics.median(taken[1:]), 1)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(
        json.dumps(
            {"bench": "startup", "n": n, "ms": {k: median_ms(v, n) for k, v in COMMANDS.items()}}
        )
    )


if __name__ == "__main__":
    main()
