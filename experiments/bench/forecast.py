"""What a dry run predicts beside what a server counts for the same run. Prints one JSON line.

    python experiments/bench/forecast.py --sim SIM_SERVER.py [--documents 5]

Runs plans over documents of several lengths, some longer than the window, against a simulated
server that counts tokens its own way (bytes / 4) and says so with each reply. Prompts are counted
in the same way here, so that the difference is that of the prediction and not of two vocabularies. Of three figures the
first two are what was predicted at least and at most, the third is what came of it;
`server_adds_per_call` is what the server counts beside the prompts, the marks of their messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.llm import Completion, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.middleware.budget import Budget
from pearl.llm.middleware.wrappers import Wrapper
from pearl.pipeline import Pearl
from pearl.runs.executors import Task
from pearl.runs.executors.local import run
from pearl.runs.forecast import forecast

WINDOW = 6_000
REPLY = 200
SHORT = 3
"""So many of the documents fit the window."""
INDEPENDENT = """\
New actions:
- None

1. a = FIND_REASON(CTX, "the boat was sold") : Find why
2. b = FIND_REASON(CTX, "Nils left") : Find why
3. c = CONCAT(a, b) : Both
"""
PLANS = {
    "short": INDEPENDENT,
    "independent": INDEPENDENT,
    "dependent": """\
New actions:
- None

1. a = FIND_REASON(CTX, "the boat was sold") : Find why
2. b = FIND_REASON(CTX, a) : Find why that was so
3. c = FIND_REASON(CTX, b) : And that
""",
}
PARAGRAPH = "Nils left the harbour at dawn. He sold the boat because the hull was rotten. "


class Bytes(Counter):
    """Counts as the simulated server does."""

    def count(self, text: str) -> int:
        """Bytes / 4, rounded up."""
        return math.ceil(len(text.encode("utf-8", "replace")) / 4)

    def bounds(self, text: str, part: str = "") -> tuple[int, int]:
        """As it adds up, but for rounding."""
        n = self.count(text)
        return max(0, n - 1), n + 1

    def most(self, n: int) -> int:
        """As it adds up, but for rounding."""
        return n + 1


class Counting(Wrapper):
    """Counts the prompts that are sent."""

    n_tokens = 0

    async def complete(self, request: Request) -> Completion:
        """Count one, and send it."""
        self.n_tokens += Bytes().count(request.prompt)
        return await self._model.complete(request)


@contextmanager
def simulated(sim: Path) -> Iterator[str]:
    """The address of a simulated server, for the length of a block."""
    arguments = ["--call-s", "0.01", "--slots", "16", "--reply-tokens", "120"]
    with subprocess.Popen(
        [sys.executable, str(sim), *arguments], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


async def compare(url: str, n_documents: int) -> dict[str, Any]:
    """Prediction and bill of every plan over every document."""
    found: dict[str, Any] = {"bench": "forecast", "documents": n_documents}
    texts = ["\n\n".join([f"Story {i}.", *[PARAGRAPH * 5] * 4**i]) for i in range(n_documents)]
    for name, plan in PLANS.items():
        shown = texts[:SHORT] if name == "short" else texts
        counting = Counting(create_model("openai:sim", ModelSettings(url, window=WINDOW)))
        budget = Budget(Bytes())
        async with Pearl(
            counting,
            window=WINDOW,
            max_output_tokens=REPLY,
            budget=budget,
            prefix="off",
            is_shared=False,
        ) as pearl:
            pearl.limits = replace(pearl.limits, counter=Bytes())
            tasks = [
                Task(str(i), lambda text=text, i=i: Document(text, f"{i}.txt"), plan=plan)
                for i, text in enumerate(shown)
            ]
            said = forecast(pearl, tasks).total
            async for outcome in run(pearl, tasks):
                assert outcome.error is None, outcome.error
            spent = budget.spent
        least, most, sent = said.input_tokens.least, said.input_tokens.most, counting.n_tokens
        assert most is not None
        found[name] = {
            "calls": [said.calls.least, said.calls.most, spent.n_calls],
            "input_tokens": [least, most, sent],
            "output_tokens": [
                said.output_tokens.least, said.output_tokens.most, spent.usage.n_output_tokens,
            ],
            "is_within": least <= sent <= most,
            "most_over_actual": round(most / sent, 4),
            "server_adds_per_call": (spent.usage.n_input_tokens - sent) / spent.n_calls,
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sim", type=Path, required=True, help="the simulated server to start")
    parser.add_argument("--documents", type=int, default=5)
    options = parser.parse_args()
    with simulated(options.sim) as url:
        print(json.dumps(asyncio.run(compare(url, options.documents))))


if __name__ == "__main__":
    main()
