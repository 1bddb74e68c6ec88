"""Memory and going on over many documents, with scripted replies: does either grow with the work?

    python experiments/bench/scale.py [--documents 1000 100000] [--option tasks|data]

For each number of documents `pearl execute --tasks` (or `execute PLAN --data`) runs over as many, all but
the last of which have a scripted reply. The same command is then given again: it finds all rows but that of the last one,
which failed, and asks for it. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

PLAN = 'New actions:\n- None\n\n1. day = FIND(CTX, "the day she left") : Find the day\n'
WORDS = "She packed her things while it rained and said nothing to anybody. " * 8


TIMED = """
import sys, time
began = time.perf_counter()
from pearl.cli import main
from pearl.llm.backends.scripted import Scripted
complete = Scripted.complete
async def timed(self, request):
    Scripted.complete = complete
    print(f"first call after {time.perf_counter() - began} s", file=sys.stderr)
    return await complete(self, request)
Scripted.complete = timed
main()
"""


def measured(folder: Path, option: str) -> tuple[float, float, float, int]:
    """Seconds to the first call and in all, the most memory in MB, and the exit code."""
    work = (
        ["--tasks", "tasks.jsonl"] if option == "tasks" else ["day.plan", "--data", "tasks.jsonl"]
    )
    command = [
        sys.executable, "-c", TIMED, "execute", *work,
        "--model", "scripted:rules.json", "--out", "rows.jsonl", "--store", "store",
    ]  # fmt: skip
    began = time.perf_counter()
    with (folder / "stderr").open("w") as said:
        actions = [
            (os.POSIX_SPAWN_DUP2, said.fileno(), 2),
        ]
        here = Path.cwd()
        os.chdir(folder)
        try:
            pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
        finally:
            os.chdir(here)
        _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - began
    # Where no call was made there is none to be timed.
    found = re.search(r"first call after ([\d.]+) s", (folder / "stderr").read_text())
    first_s = float(found[1]) if found else 0.0
    return first_s, seconds, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def over(n: int, option: str) -> dict[str, float]:
    """What a run over so many documents takes, and going on with it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = [{"match": f"on day (?!{n - 1}\\b)(\\d+)", "reply": "On day \\1."}]
        (folder / "rules.json").write_text(json.dumps(rules))
        (folder / "day.plan").write_text(PLAN)
        with (folder / "tasks.jsonl").open("w") as file:
            for i in range(n):
                row = {"id": str(i), "plan": PLAN, "document": f"She left on day {i}. {WORDS}"}
                file.write(json.dumps(row) + "\n")
        _, first_s, first_mb, first_code = measured(folder, option)
        call_s, again_s, again_mb, again_code = measured(folder, option)
        with (folder / "rows.jsonl").open() as file:
            ids = [json.loads(line)["id"] for line in file]
        assert call_s, (folder / "stderr").read_text()
        assert (first_code, again_code) == (1, 1), (folder / "stderr").read_text()
        assert ids == [str(i) for i in range(n)], "a row is lost, twice or out of order"
    return {
        "documents": n,
        "seconds": round(first_s, 1),
        "mb": round(first_mb, 1),
        "again_first_call_s": round(call_s, 1),
        "again_seconds": round(again_s, 1),
        "again_mb": round(again_mb, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--option", choices=["tasks", "data"], default="tasks")
    said = parser.parse_args()
    results = [over(n, said.option) for n in said.documents]
    print("documents  seconds  MB     again, first call  seconds  MB")
    for r in results:
        print(
            f"{r['documents']:9,}  {r['seconds']:7.1f}  {r['mb']:5.1f}"
            f"  {r['again_first_call_s']:17.1f}  {r['again_seconds']:7.1f}"
            f"  {r['again_mb']:.1f}"
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
