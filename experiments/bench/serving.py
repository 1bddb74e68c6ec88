"""What the benchmarks of running have in common: a simulated server, plans, documents, a stack.

The server is `sim_server.py` of the shared tools, the plans are the published ones and the
documents the articles of QuALITY; where the shared folder is not beside the checkout, the server is
`stand_in.py`, and plans and documents are made up.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pearl import Document, Pearl
from pearl.actions.library import load_library, read_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PearlError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.middleware.prefix_warmup import PrimingMode

QUICK = "--quick" in sys.argv


def shared(name: str) -> Path | None:
    """A file of the folder `shared` beside the checkout; None where it is not."""
    found = (folder / "shared" / name for folder in Path(__file__).resolve().parents)
    return next((path for path in found if path.exists()), None)


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A simulated server; gives its address up to the `/v1`."""
    program = shared("tools/sim_server.py") or Path(__file__).with_name("stand_in.py")
    process = subprocess.Popen(
        [sys.executable, str(program), *options], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.wait()


def stats(url: str) -> dict[str, Any]:
    """What the server counted."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/__stats") as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def plans(n: int) -> tuple[ActionLibrary, list[CheckedPlan]]:
    """Valid plans, drawn without repetition as far as there are so many."""
    folder = shared("data/pearl_traces")
    if folder is None:
        library = load_library("seed")
        texts = [_made_up(random.Random(i)) for i in range(n)]
    else:
        library = read_library((folder / "actions_refined.txt").read_text("utf-8"), "refined")
        rows = [
            json.loads(line)
            for path in sorted(folder.glob("dev.*.jsonl"))
            for line in path.read_text("utf-8").splitlines()
        ]
        texts = [row["plan"] for row in rows]
        random.Random(0).shuffle(texts)
    found = []
    for text in texts:
        try:
            found.append(compile_plan(text, library))
        except PearlError:
            continue  # 29 published plans call actions that are defined nowhere
        if len(found) == n:
            break
    return library, found


def documents(n: int) -> list[Document]:
    """Long documents, some 5,000 to 8,000 tokens each."""
    path = shared("data/quality/QuALITY.subset.dev")
    texts: list[str] = []
    if path is not None:
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        texts = list(dict.fromkeys(row["article"] for row in rows))
    while len(texts) < n:
        draw = random.Random(len(texts))
        words = ["".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(4_000)]
        texts.append(" ".join(words))
    return [Document(text, f"document-{i}") for i, text in enumerate(texts[:n])]


def opened(
    url: str,
    n_places: int,
    library: ActionLibrary | str = "seed",
    *,
    prefix: PrimingMode = "off",
) -> Pearl:
    """A `Pearl` on the simulated model."""
    model = create_model("openai:sim", ModelSettings(url, 600.0, 128_000))
    return Pearl(model, library=library, concurrency=n_places, prefix=prefix)


def _made_up(draw: random.Random) -> str:
    """A plan of calls over the document and over earlier outputs."""
    lines = []
    for i in range(1, draw.randint(3, 9)):
        over = f"a{draw.randrange(1, i)}" if i > 1 and draw.random() < 0.6 else f'"thing {i}"'
        lines.append(f"{i}. a{i} = FIND(CTX, {over}) : Find number {i} of {draw.random()}")
    return "\n".join(lines)
