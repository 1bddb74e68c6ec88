"""How much sooner steps answer when the document's prefix is kept. Prints a table, one JSON line.

    python experiments/bench/prefix_reuse.py [--model FILE.gguf] [--calls 6]

Asks several questions of one document of about 3,400 tokens, and then of two documents in turn,
with the states of prompts kept and with every prompt read anew, in the same run. Without a model,
over one of 25M random weights: what is timed is reading, and the replies are a few tokens of noise.
The time is that of a call, in seconds; the first call starts llama.cpp and is not compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from pearl.llm import Message, Request  # noqa: E402
from pearl.llm.backends.llamacpp import LlamaCppModel  # noqa: E402
from tests.llm.backends.llamacpp.gguf_models import write_random_model  # noqa: E402
from tests.models import answer_task  # noqa: E402

TIMEOUT_S = 600.0
WINDOW = 8_192
HARBOUR = "the captain was in the harbour with his letter and she had it " * 140
STORY = "she was not in the story but all they had from this was text " * 140


def asked(document: str, question: str) -> Request:
    text = f"<text>\n{document}\n</text>\n\n{question}"
    return Request((Message("user", text),), answer_task(question, document))


async def timed_calls(
    path: Path, documents: Sequence[str], *, reuse: bool
) -> list[dict[str, float]]:
    """Seconds, tokens of the prompt and those of them that were kept, of one call a document."""
    model = LlamaCppModel(path, TIMEOUT_S, WINDOW, reuse=reuse)
    calls = []
    try:
        await model.complete(asked("", "ready?"))
        for i, document in enumerate(documents):
            began = time.perf_counter()
            usage = (await model.complete(asked(document, f"{i}: who had the letter?"))).usage
            seconds = round(time.perf_counter() - began, 3)
            calls.append(
                {"s": seconds, "tokens": usage.n_input_tokens, "cached": usage.n_cached_tokens}
            )
    finally:
        await model.aclose()
    return calls


def compared(path: Path, documents: Sequence[str]) -> dict[str, object]:
    """The calls with and without reuse, and how many times faster those are that can reuse."""
    n_new = len(set(documents))
    kept = asyncio.run(timed_calls(path, documents, reuse=True))
    anew = asyncio.run(timed_calls(path, documents, reuse=False))
    later, later_anew = (statistics.median(c["s"] for c in calls[n_new:]) for calls in (kept, anew))
    return {
        "kept": kept,
        "anew": anew,
        "later_s": later,
        "later_anew_s": later_anew,
        "times_faster": round(later_anew / later, 1),
    }


def measured(path: Path, n_calls: int = 6) -> dict[str, dict[str, object]]:
    """One document, and two in turn."""
    return {
        "one document": compared(path, [HARBOUR] * n_calls),
        "two in turn": compared(path, [HARBOUR, STORY] * (n_calls // 2)),
    }


def random_model(folder: Path) -> Path:
    """A model of 25M weights in a folder."""
    return write_random_model(folder / "random-25m.gguf", n_layers=8, n_hidden=512)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--calls", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or random_model(Path(folder))
        rows = measured(path, options.calls)
    print(f"{'later calls, median':20} {'kept':>8} {'anew':>8} {'faster':>8}")
    for name, row in rows.items():
        print(f"{name:20} {row['later_s']:7.2f}s {row['later_anew_s']:7.2f}s {row['times_faster']:7}x")  # fmt: skip
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
