"""What do whole commands cost, as multiples of `python -c pass`? Prints one JSON line.

    python experiments/bench/startup.py [N]

Commands run as child processes in turns, N rounds (5) after one that writes the byte code: `--version`,
`--help`, `check` of a plan, `execute` of a plan of one call over a loopback server, `stored`: the same with its
reply in the store, and `official`: a script that makes the call by the official client. Of each the least
milliseconds of processor time, the million instructions where valgrind is installed, and both as multiples of those of the
interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from instructions import VALGRIND, millions

PEARL = ["-c", "from pearl.cli import main; main()"]  # as the installed script does
PLAN = '1. a = FIND(CTX, "x") : f\n'
REPLY = '{"answer": "It leaked.", "quotes": ["The boat leaked."]}'
OFFICIAL = """
import sys
from openai import OpenAI
client = OpenAI(api_key="none", base_url=sys.argv[1], max_retries=0)
messages = [{"role": "user", "content": "Find x: It rained."}]
print(client.chat.completions.create(model="m", messages=messages).choices[0].message.content)
"""


def processor_ms(words: list[str], env: dict[str, str]) -> float:
    """Processor time of a process and its children."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], capture_output=True, check=True, env=env)
    after = getrusage(RUSAGE_CHILDREN)
    return 1_000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def measured(
    commands: dict[str, Callable[[], list[str]]], env: dict[str, str], n: int
) -> dict[str, dict[str, float]]:
    """The figures of commands; each is made anew for each run."""
    rounds = [
        {name: processor_ms(command(), env) for name, command in commands.items()}
        for _ in range(n + 1)
    ]
    figures = {"ms": {name: min(each[name] for each in rounds[1:]) for name in commands}}
    if VALGRIND:
        figures["M"] = {name: millions(command(), env) for name, command in commands.items()}
    return {
        name: {
            key: round(value, 1)
            for unit, found in figures.items()
            for key, value in (
                (unit, found[name]),
                (f"{unit}_ratio", found[name] / found["python"]),
            )
        }
        for name in commands
    }


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    program = [sys.executable, str(Path(__file__).with_name("quick_server.py")), REPLY]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        plan, text = Path(folder, "a.plan"), Path(folder, "a.txt")
        plan.write_text(PLAN)
        text.write_text("It rained. The boat leaked.\n")
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env = {**kept, "OPENAI_API_KEY": "none"}
        asked = [str(text), "--model", "openai:m", "--base-url", url, "--json"]
        n_stores = 0

        def execute(*, is_stored: bool) -> list[str]:
            nonlocal n_stores
            n_stores += not is_stored
            return [*PEARL, "execute", str(plan), *asked, "--store", f"{folder}/{n_stores}"]

        try:
            found = measured(
                {
                    "python": lambda: ["-c", "pass"],
                    "version": lambda: [*PEARL, "--version"],
                    "help": lambda: [*PEARL, "--help"],
                    "check": lambda: [*PEARL, "check", str(plan)],
                    "execute": lambda: execute(is_stored=False),
                    "stored": lambda: execute(is_stored=True),
                    "official": lambda: ["-c", OFFICIAL, url],
                },
                env, n,
            )  # fmt: skip
        finally:
            server.terminate()
    print(json.dumps({"bench": "startup", "n": n, **found}))


if __name__ == "__main__":
    main()
