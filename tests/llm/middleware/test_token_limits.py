"""A server with a limit of tokens and prompts of all lengths, on a clock that is computed."""

from __future__ import annotations

import asyncio
import random

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion, Constrains, Message, Request, Usage
from pearl.llm.middleware.limiter import Limited
from pearl.llm.middleware.retry import Retrying
from tests.clock import computed
from tests.models import answer_task

AT_ONCE = 64
TOKENS_PER_S = 20_000.0
UNTIL_S = 200.0


class TokenLimited:
    """Admits `TOKENS_PER_S`, and those of `burst_s` seconds at once."""

    name = identity = "openai:limited"
    window = None
    notice = ""
    reads_prompts = False
    constrains = Constrains()

    def __init__(self, burst_s: float) -> None:
        self._most = self._level = burst_s * TOKENS_PER_S
        self._at = 0.0
        self.n_refused = self.n_tokens = self.n_admitted = 0

    async def complete(self, request: Request) -> Completion:
        now, cost = asyncio.get_running_loop().time(), len(request.prompt)
        self._level = min(self._most, self._level + (now - self._at) * TOKENS_PER_S)
        self._at = now
        if self._level < cost:
            self.n_refused += 1
            await asyncio.sleep(0.05)
            raise ModelError("slow down", kind="rate_limited", retry_after_s=1.0)
        self._level -= cost
        self.n_admitted += 1
        self.n_tokens += cost
        await asyncio.sleep(0.5)
        return Completion("ok", self.name, Usage())

    async def aclose(self) -> None:
        """Nothing to let go of."""


@pytest.mark.parametrize("burst_s", [1.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_limit_of_tokens_is_a_limit(burst_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long calls are refused more often than short ones, which is not at random."""
    draw, server = random.Random(1), TokenLimited(burst_s)
    n_failed = 0

    async def work(asked: Retrying) -> None:
        nonlocal n_failed
        while asyncio.get_running_loop().time() < UNTIL_S:
            prompt = "w" * max(1, round(1_000 * draw.lognormvariate(-0.5, 1.0)))
            try:
                await asked.complete(Request((Message("user", prompt),), answer_task("?", "")))
            except ModelError:
                n_failed += 1

    async def main() -> None:
        asked = Retrying(Limited(server, AT_ONCE))
        await asyncio.gather(*(work(asked) for _ in range(2 * AT_ONCE)))

    with computed(monkeypatch) as runner:
        runner.run(main())
    assert server.n_refused < 0.06 * server.n_admitted
    assert n_failed < 0.005 * server.n_admitted
    assert server.n_tokens > 0.6 * TOKENS_PER_S * UNTIL_S
