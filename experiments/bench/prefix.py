"""Does the first call over a document prime the server's cache, and what does waiting for it cost?

    python experiments/bench/prefix.py [--quick]

Runs the plans of 10 questions over each of 10 long documents (3 over 4 with --quick), against a
simulated server with a prefix cache in blocks of 128 tokens, once with one accelerator for all
prefills and once with one for each call: first without waiting, then with `auto`. Compared are the
makespan, and the uncached prompt tokens with the least possible in whole blocks: those of the same
calls made one after the other, that is each distinct document once and what is new in each call. Prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Any

from serving import QUICK, documents, opened, plans, serving, stats

from pearl import Document
from pearl.llm.middleware.prefix_warmup import PrimingMode
from pearl.runs.executors import Task
from pearl.runs.executors.local import run

N_QUESTIONS, N_DOCUMENTS = (3, 4) if QUICK else (10, 10)
N_PLACES = 16
BLOCK, MIN_PREFIX = 128, 1_024
COMMON = ("--prefill-tps", "20000", "--call-s", "0.05", "--slots", str(N_PLACES))
SERVERS = {
    "shared prefill": (*COMMON, "--shared-prefill"),
    "prefill for each call": COMMON,
}


def same(document: Document) -> Document:
    return document


def least(log: Path) -> int:
    """Tokens that would not come from the cache if the calls were made one after the other."""
    seen: set[bytes] = set()
    n_tokens = 0
    for line in log.read_text("utf-8").splitlines():
        messages = json.loads(line)["request"]["messages"]
        prompt = "\n".join(f"<{m['role']}>{m['content']}" for m in messages).encode()
        digest, blocks = sha1(), list[bytes]()
        for i in range(0, len(prompt) - 4 * BLOCK + 1, 4 * BLOCK):
            digest.update(prompt[i : i + 4 * BLOCK])
            blocks.append(digest.digest())
        n_hit = BLOCK * next((i for i, b in enumerate(blocks) if b not in seen), len(blocks))
        n_tokens += math.ceil(len(prompt) / 4) - (n_hit if n_hit >= MIN_PREFIX else 0)
        seen.update(blocks)
    return n_tokens


async def measure(options: tuple[str, ...], prefix: PrimingMode) -> dict[str, Any]:
    """One run over all questions and documents."""
    library, questions = plans(N_QUESTIONS)
    read = documents(N_DOCUMENTS)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "requests.jsonl")
        with serving(*options, "--log", str(log)) as url:
            async with opened(url, N_PLACES, library, prefix=prefix) as pearl:
                tasks = [  # as a file of questions has them: every document for each question
                    Task(f"{i}/{document.name}", partial(same, document), plan=str(plan))
                    for i, plan in enumerate(questions)
                    for document in read
                ]
                began = time.monotonic()
                failed = [o.error async for o in run(pearl, tasks) if o.error is not None]
                makespan_s = time.monotonic() - began
            assert not failed, failed[0]
            counted = stats(url)
        n_least = least(log)
    return {
        "calls": counted["calls"],
        "makespan_s": round(makespan_s, 2),
        "uncached": counted["uncached_tokens"],
        "uncached/least": round(counted["uncached_tokens"] / n_least, 3),
    }


def main() -> None:
    """Measure both servers, both ways."""
    found: dict[str, Any] = {}
    for server, options in SERVERS.items():
        off = asyncio.run(measure(options, "off"))
        auto = asyncio.run(measure(options, "auto"))
        ratio = round(auto["makespan_s"] / off["makespan_s"], 3)
        found[server] = {"off": off, "auto": auto, "makespan_ratio": ratio}
    print(json.dumps({"bench": "prefix", "quick": QUICK, **found}))


if __name__ == "__main__":
    main()
