"""What does a call cost, start-up taken off, in instructions? Prints one JSON line; needs valgrind.

    python experiments/bench/slope.py [CALLER...]

The callers of `callers.py`, each over 4 and over 84 documents of 6 kB, 4 calls at once: the difference by
80. `pearl_command` is the whole of `pearl execute`, its store, its rows and its traces.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from instructions import millions

HERE = Path(__file__).parent
FEW, MANY, AT_ONCE = 4, 84, 4
NAMES = ["pearl_command", "pearl_library", "official", "aiohttp"]


def written(folder: Path, n: int) -> dict[str, Any]:
    """What a caller is told, for so many documents."""
    from overhead import PLAN, prompts, texts

    documents = texts(n, 6_000)
    (folder / "documents").mkdir(parents=True)
    for i, text in enumerate(documents):
        (folder / "documents" / f"{i:05}.txt").write_text(text)
    (folder / "prompts.jsonl").write_text("\n".join(map(json.dumps, prompts(documents))))
    (folder / "why.plan").write_text(PLAN)
    return {
        "prompts": str(folder / "prompts.jsonl"), "documents": str(folder / "documents"),
        "plan": str(folder / "why.plan"), "model": "sim", "at_once": AT_ONCE, "first": 0,
    }  # fmt: skip


def main() -> None:
    names = sys.argv[1:] or NAMES
    counted: dict[str, list[float]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, str(HERE / "quick_server.py")], stdout=-1, text=True
        ) as server,
    ):
        assert server.stdout is not None
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            said = [
                json.dumps(written(Path(folder, str(n)), n) | {"url": url}) for n in (FEW, MANY)
            ]
            for name in names:
                caller = [str(HERE / "callers.py"), name]
                subprocess.run(
                    [sys.executable, *caller], input=said[0], text=True, stdout=-3, check=True
                )
                counted[name] = [millions(caller, given=each) for each in said]
        finally:
            server.terminate()
    found = {
        name: {"a_call": round((many - few) / (MANY - FEW), 3), "start": round(few)}
        for name, (few, many) in counted.items()
    }
    print(json.dumps({"bench": "slope", "unit": "million instructions", **found}))


if __name__ == "__main__":
    main()
