"""How long the command line takes to say something. Prints one JSON line.

    python experiments/bench/startup.py [N]

Times commands as child processes, in turns, so that a machine that others use is as slow for all of
them: the interpreter alone, the interpreter with click, which is the least that a command can take, then
`pearl`. N rounds (20) after one that writes the bytecode and the cache. Of each command the least and
the median milliseconds, and the median of its ratio to the interpreter with click, round by round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

PEARL = ["-c", "from pearl.cli import main; main()"]  # as the installed script does
COMMANDS = {
    "python": ["-c", "pass"],
    "python_click": ["-c", "import click"],
    "pearl_version": [*PEARL, "--version"],
    "pearl_help": [*PEARL, "execute", "--help"],
    "pearl_check": [*PEARL, "check", "-"],
    "pearl_demo": [*PEARL, "demo"],
}
PLAN = b'1. a = FIND(CTX, "x") : f\n'

# What is installed has its bytecode beside it.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def taken_ms(arguments: list[str]) -> float:
    """Wall time of one child process."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], input=PLAN, capture_output=True, check=True, env=ENVIRONMENT
    )
    return 1_000 * (time.perf_counter() - began)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rounds = [{name: taken_ms(words) for name, words in COMMANDS.items()} for _ in range(n + 1)][1:]
    found = {
        name: {
            "min_ms": round(min(each[name] for each in rounds), 1),
            "median_ms": round(statistics.median(each[name] for each in rounds), 1),
            "of_click": round(
                statistics.median(each[name] / each["python_click"] for each in rounds), 2
            ),
        }
        for name in COMMANDS
    }
    print(json.dumps({"bench": "startup", "n": n, **found}))


if __name__ == "__main__":
    main()
