"""A server on loopback that caches the beginnings of prompts as vendors do, and bills by their prices.

A token is four characters. An entry of the cache can be read when the call that wrote it has ended, lives from
that call's beginning, and is renewed by every read. Tokens of replies cost nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import accumulate, count
from typing import Any, Literal

import pytest

from pearl import Document, Pearl
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.messages import PLAN_ASKED
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.executors import Task
from pearl.runs.executors.local import run
from tests.clock import ComputedLoop, computed
from tests.server import Canned, Seen, Server, completion, send

LOOKBACK = 20  # Blocks before a mark in which Anthropic looks for an entry
BLOCK = 128  # Tokens of the blocks of a cache without marks


@dataclass(frozen=True)
class Vendor:
    """Rules and prices; `marks` are the rules of GPT-5.6 and later."""

    model: str
    rules: Literal["anthropic", "marks", "automatic", "none"]
    price: Price
    min_tokens: int = 1_024
    lifetime_s: float = 300.0


CLAUDE = Price.read("input=2,cached=0.2,write=2.5,write_long=4,output=0,write_on_request=true")
GPT = Price.read("input=2,cached=0.2,write=2.5,output=0")
VENDORS = {
    "Anthropic": Vendor("anthropic:claude-sonnet-5", "anthropic", CLAUDE),
    "OpenAI, writes billed": Vendor("openai:gpt-6-sol", "marks", GPT, lifetime_s=1_800),
    "OpenAI, writes free": Vendor(
        "openai:gpt-5", "automatic", Price.read("input=1.25,cached=0.125,output=0")
    ),
    "no cache": Vendor("openai:other", "none", Price.read("input=0.3,output=0")),
}


@dataclass
class Call:
    """A request as blocks of its prompt, each with the lifetime that its mark asks for, and its usage."""

    blocks: list[tuple[str, str]]
    began_s: float
    n_cached: int = 0
    written: dict[str, int] = field(default_factory=dict)
    new: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.blocks)


class Cache:
    """The prefix cache of one vendor."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.usd = 0.0
        self._entries: dict[str, tuple[float, str]] = {}  # beginning → end of its life, lifetime

    def begin(self, call: Call, *, is_explicit: bool) -> None:
        """Look a prompt up, and bill it."""
        rules, price, text = self.vendor.rules, self.vendor.price, call.text
        starts = list(accumulate(text for text, _ in call.blocks))
        marks = [(s, ttl) for s, (_, ttl) in zip(starts, call.blocks, strict=True) if ttl]
        assert len(marks) <= 4, "400"
        if rules == "automatic":
            marks = [(text[:n], "5m") for n in range(4 * BLOCK, len(text) + 1, 4 * BLOCK)]
        elif rules == "marks" and not is_explicit:
            marks = [(text, "5m")]
        found = ""
        for mark, _ in marks:
            before = [start for start in starts if len(start) <= len(mark)][-LOOKBACK:]
            for start in before if rules == "anthropic" else [mark]:
                end_s, ttl = self._entries.get(start, (0.0, ""))
                if end_s > call.began_s and len(start) > len(found):
                    found = start
                    self._entries[start] = (call.began_s + self._lives_s(ttl), ttl)
        least = max(len(found), 4 * self.vendor.min_tokens - 1)
        call.new = [mark for mark in marks if len(mark[0]) > least and rules != "none"]
        n = call.n_cached = len(found) // 4
        for start, ttl in call.new:
            call.written[ttl] = call.written.get(ttl, 0) + len(start) // 4 - n
            n = len(start) // 4
        write = price.input_usd if price.write_usd is None else price.write_usd
        self.usd += (
            (len(text) // 4 - n) * price.input_usd + call.n_cached * (price.cached_usd or 0.0)
            + call.written.get("5m", 0) * write + call.written.get("1h", 0) * (price.write_long_usd or 0.0)
        ) / 1e6  # fmt: skip

    def end(self, call: Call) -> None:
        """Make what a request wrote readable."""
        self._entries |= {s: (call.began_s + self._lives_s(ttl), ttl) for s, ttl in call.new}

    def _lives_s(self, ttl: str) -> float:
        return 3_600.0 if ttl == "1h" else self.vendor.lifetime_s


class BillingServer(Server):
    """Answers "ok" after `delay_s`; `calls` has every request with its usage."""

    def __init__(self, vendor: Vendor, delay_s: float) -> None:
        super().__init__()
        self.cache = Cache(vendor)
        self.calls: list[Call] = []
        self.delay_s = delay_s

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        call = Call(list(_blocks(seen.body)), clock())
        self.cache.begin(call, is_explicit="prompt_cache_options" in seen.body)
        self.calls.append(call)
        await asyncio.sleep(self.delay_s)
        self.cache.end(call)
        n_input, n_written = len(call.text) // 4, sum(call.written.values())
        if seen.path.endswith("/messages"):
            usage: dict[str, Any] = {
                "input_tokens": n_input - call.n_cached - n_written, "output_tokens": 1,
                "cache_creation_input_tokens": n_written, "cache_read_input_tokens": call.n_cached,
                "cache_creation": {f"ephemeral_{ttl}_input_tokens": n for ttl, n in call.written.items()},
            }  # fmt: skip
            content = [{"type": "text", "text": _said(seen.body)}]
            reply = {"content": content, "model": "claude", "stop_reason": "end_turn"}
        else:
            told = {"cache_write_tokens": n_written} if self.cache.vendor.rules == "marks" else {}
            details = {"cached_tokens": call.n_cached, **told}
            usage = {
                "prompt_tokens": n_input,
                "completion_tokens": 1,
                "prompt_tokens_details": details,
            }
            reply = completion(_said(seen.body))
        await send(Canned({**reply, "usage": usage}), writer)

    def least_usd(self) -> float:
        """The least for these requests, by trying every choice of marks, one request after another."""
        rules, price = self.cache.vendor.rules, self.cache.vendor.price
        reads: dict[str, list[int]] = {}
        for call in self.calls:
            head = call.text[: call.text.rfind("</text>") + 7]
            reads.setdefault(head, []).append(len(call.text) // 4)

        @lru_cache(None)
        def least(n: int, sizes: tuple[int, ...], *, is_cached: bool) -> float:
            """The least for requests of these sizes whose first `n` tokens are the same."""
            if not sizes:
                return 0.0
            usual = sizes[0] * price.input_usd
            choices = [usual + least(n, sizes[1:], is_cached=is_cached)]
            if rules != "none" and n >= self.cache.vendor.min_tokens:
                n_read = n // BLOCK * BLOCK if rules == "automatic" else n
                saved = n_read * (price.input_usd - (price.cached_usd or 0.0))
                more = (
                    -saved
                    if is_cached
                    else n * max(0.0, (price.write_usd or 0.0) - price.input_usd)
                )
                choices.append(usual + more + least(n, sizes[1:], is_cached=True))
            return min(choices)

        return sum(least(len(h) // 4, tuple(n), is_cached=False) for h, n in reads.items()) / 1e6


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield json.dumps(body.get("output_config")), ""
    yield body.get("system", ""), ""
    for turn in body["messages"]:
        parts = turn["content"]
        for part in [{"text": parts}] if isinstance(parts, str) else parts:
            ttl = part.get("cache_control", {}).get("ttl", "")
            yield part["text"], "5m" if "prompt_cache_breakpoint" in part else ttl


def _said(body: dict[str, Any]) -> str:
    """A reply of the form that a request asks for."""
    form = body.get("output_config", {}).get("format", {})
    if not form:
        asked = "".join(text for text, _ in _blocks(body))
        if PLAN_ASKED in asked:
            return plan(1)
        n_items = asked.count("\n<item ")
        return "\n".join(f"{i}: yes" for i in range(1, n_items + 1)) or "ok"
    return json.dumps({
        name: [] if kind.get("type") == "array" else kind.get("enum", ["ok"])[0]
        for name, kind in form["schema"]["properties"].items()
    })  # fmt: skip


def plan(n_steps: int, about: str = "boat") -> str:
    """A plan of independent steps over the document."""
    steps = (f'{i}. s{i} = FIND(CTX, "{about} {i}") : Find it' for i in range(1, n_steps + 1))
    return "New actions:\n- None\n\n" + "\n".join(steps)


def document(name: str, n_tokens: int) -> Document:
    """A document of about so many tokens, unlike all others."""
    lines = (f"On day {i} the boat of {name} was sold, and nobody said why.\n" for i in count())
    text = ""
    while len(text) < 4 * n_tokens:
        text += next(lines)
    return Document(text, name)


def billed(
    vendor: Vendor, reads: Iterable[tuple[Document, str]], *, delay_s: float = 20.0,
    concurrency: int = 8, port: int = 0, **settings: Any,
) -> tuple[BillingServer, Budget]:  # fmt: skip
    """Run a plan, or ask a question, over each document against a server on a computed clock."""
    budget = Budget(price=vendor.price)

    def same(document: Document) -> Document:
        return document

    async def main() -> BillingServer:
        server = BillingServer(vendor, delay_s)
        server._port = port
        async with server.within_loop():
            kind = "openai" if vendor.model.startswith("openai:") else None
            asked = ModelSettings(server.url, 3e4, 200_000, kind, "KEY")
            settings.setdefault("constrain", "off")
            pearl = Pearl(
                create_model(vendor.model, asked), budget=budget, concurrency=concurrency,
                library="seed", compose="off", **settings,
            )  # fmt: skip
            tasks = [
                Task(str(i), partial(same, doc), *((None, text) if "1. " in text else (text,)))
                for i, (doc, text) in enumerate(reads)
            ]
            failed = [outcome.error async for outcome in run(pearl, tasks) if outcome.error]
            await pearl.aclose()
            assert not failed, failed[0]
        return server

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "sk-not-a-key")
        with computed(patch, ComputedLoop(under_way_s=0.002)) as runner:
            return runner.run(main()), budget
