"""What does a call cost, start-up taken off, beside the official client? Prints one JSON line.

    [QUICK=1] python experiments/bench/slope.py [CALLER...]

The callers of `callers.py`, 4 calls at once over documents of 6 kB. Where valgrind is installed: million instructions,
the difference between 4 and 84 documents by 80. Else milliseconds of processor time of 200 calls after 64 others.
`pearl_command` is the whole of `pearl execute`, its store, its rows and its traces; `pearl_library` keeps nothing.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from callers import N_FIRST, made_up_words
from instructions import VALGRIND, millions

from pearl import Document
from pearl.actions.library import load_library
from pearl.documents.tokens import Counter
from pearl.dsl.checker import compile_plan
from pearl.dsl.graph import build_graph
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.requests import RequestBuilder

HERE = Path(__file__).parent
FEW, MANY, AT_ONCE = 4, 84, 4
N_CLOCKED = 200
PROMPT_CHARACTERS = 6_000
NAMES = ["pearl_command", "pearl_library", "official", "aiohttp"]
PLAN = (
    'Question: Why was the boat sold?\n\n1. ans = FIND_REASON(CTX, "the boat") : Find the reason\n'
)


def texts(n: int) -> list[str]:
    """Documents of made-up sentences, of which no two are alike."""
    words = made_up_words(random.Random(0), 20_000)
    draw = random.Random(1)
    found = []
    for _ in range(n):
        text = ""
        while len(text) < PROMPT_CHARACTERS:
            sentence = [draw.choice(words) for _ in range(6)]
            text += f"The {' '.join(sentence[:3])} of the {' '.join(sentence[3:])}. "
        found.append(text[:PROMPT_CHARACTERS].strip())
    return found


def prompt(document: str) -> list[dict[str, str]]:
    """What `pearl execute` sends for the plan over a document."""
    graph = build_graph(compile_plan(PLAN, load_library("seed")))
    calls = RequestBuilder(graph, Document(document), ContextLimits(Counter()))
    task, _ = calls.task(graph.steps[0], {})
    return [{"role": m.role, "content": m.content} for m in calls.request(task).messages]


def written(folder: Path, n: int, first: int) -> dict[str, Any]:
    """What a caller is told, for so many documents of which it is to read some beforehand."""
    documents = texts(first + n)
    (folder / "documents").mkdir(parents=True)
    for i, text in enumerate(documents):
        (folder / "documents" / f"{i:05}.txt").write_text(text)
    (folder / "prompts.jsonl").write_text("\n".join(json.dumps(prompt(each)) for each in documents))
    (folder / "why.plan").write_text(PLAN)
    return {
        "prompts": str(folder / "prompts.jsonl"), "documents": str(folder / "documents"),
        "plan": str(folder / "why.plan"), "model": "sim", "at_once": AT_ONCE, "first": first,
    }  # fmt: skip


def counted(caller: list[str], folder: Path, url: str) -> dict[str, float]:
    """Million instructions of a call and of what comes before the first."""
    said = [json.dumps(written(folder / str(n), n, 0) | {"url": url}) for n in (FEW, MANY)]
    clocked_s(caller, said[0])  # writes byte code
    few, many = (millions(caller, given=each) for each in said)
    return {"a_call": round((many - few) / (MANY - FEW), 3), "start": round(few)}


def clocked_s(caller: list[str], said: str) -> float:
    """Seconds of the processor that a caller takes."""
    command = [sys.executable, *caller]
    done = subprocess.run(command, input=said, text=True, stdout=subprocess.PIPE, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])[0])


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    server = subprocess.Popen(
        [sys.executable, str(HERE / "quick_server.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        for name in sys.argv[1:] or NAMES:
            caller = [str(HERE / "callers.py"), name]
            with tempfile.TemporaryDirectory() as folder:
                if VALGRIND:
                    found[name] = counted(caller, Path(folder), url)
                else:
                    said = json.dumps(written(Path(folder), N_CLOCKED, N_FIRST) | {"url": url})
                    ms = 1_000 * clocked_s(caller, said) / N_CLOCKED
                    found[name] = {"a_call": round(ms, 3)}
    finally:
        server.terminate()
        server.wait()
    unit = "million instructions" if VALGRIND else "ms"
    print(json.dumps({"bench": "slope", "unit": unit, **found}))


if __name__ == "__main__":
    main()
