"""The tests' server with places, prefill and a prefix cache: where the shared simulator is not.

    python experiments/bench/stand_in.py [--slots N] [--call-s S] [--prefill-tps N] [--shared-prefill]

Prints its port, serves until it is ended. A token is four bytes of the prompt. The prompt is cached in
blocks of 128 tokens once its prefill is over; beginnings of less than 1,024 tokens are not found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from contextlib import nullcontext
from hashlib import blake2b
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.server import Canned, Seen, Server, completion, send

BLOCK, MIN_PREFIX = 128, 1_024


class StandIn(Server):
    """Answers "ok" after as long as a model would take."""

    def __init__(self, said: argparse.Namespace) -> None:
        super().__init__()
        self._said = said
        self._slots = asyncio.Semaphore(said.slots)
        self._accelerator = asyncio.Lock() if said.shared_prefill else nullcontext()
        self._cached: set[bytes] = set()
        self._counts = {"calls": 0, "cached_tokens": 0, "uncached_tokens": 0}

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.path.endswith("/__stats"):
            await send(Canned(self._counts), writer)
        elif seen.path.endswith("/chat/completions"):
            async with self._slots:
                n_tokens, n_cached = await self._read(seen)
                await asyncio.sleep(self._said.call_s)
            reply = completion("ok")
            reply["usage"] |= {
                "prompt_tokens": n_tokens,
                "prompt_tokens_details": {"cached_tokens": n_cached},
            }
            await send(Canned(reply), writer)
        else:
            await super()._answer(seen, writer)

    async def _read(self, seen: Seen) -> tuple[int, int]:
        """Prefill: tokens of the prompt, and those of them that the cache had."""
        if self._said.log:
            with Path(self._said.log).open("a") as log:  # noqa: ASYNC230 - of a benchmark
                log.write(json.dumps({"request": seen.body}) + "\n")
        messages = seen.body["messages"]
        prompt = "\n".join(f"<{m['role']}>{m['content']}" for m in messages).encode()
        n_tokens, digest, blocks = math.ceil(len(prompt) / 4), blake2b(digest_size=16), []
        for i in range(0, len(prompt) - 4 * BLOCK + 1, 4 * BLOCK):
            digest.update(prompt[i : i + 4 * BLOCK])
            blocks.append(digest.digest())
        async with self._accelerator:
            n_hit = next((i for i, b in enumerate(blocks) if b not in self._cached), len(blocks))
            n_cached = BLOCK * n_hit if BLOCK * n_hit >= MIN_PREFIX else 0
            if self._said.prefill_tps:
                await asyncio.sleep((n_tokens - n_cached) / self._said.prefill_tps)
            self._cached.update(blocks)
        self._counts["calls"] += 1
        self._counts["cached_tokens"] += n_cached
        self._counts["uncached_tokens"] += n_tokens - n_cached
        return n_tokens, n_cached


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--call-s", type=float, default=0.0)
    parser.add_argument("--prefill-tps", type=float, default=0.0)
    parser.add_argument("--shared-prefill", action="store_true")
    parser.add_argument("--log", default="")
    server = StandIn(parser.parse_args())
    server.start()
    print(server.url.rpartition(":")[2].partition("/")[0], flush=True)


if __name__ == "__main__":
    main()
