"""A server on loopback that caches the beginnings of prompts as vendors do, and bills by their prices.

A token is four characters. A prompt is a list of blocks: what the request shows before the prompt (the
form of the reply), each message, or each text of a message. An entry of the cache can be read when the
reply to the request that wrote it has begun to arrive, and every read renews it.
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
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.executors import Task
from pearl.runs.executors.local import run
from tests.clock import ComputedLoop, computed
from tests.server import Canned, Seen, Server, completion, send

LOOKBACK = 20  # Blocks before a mark in which Anthropic looks for an entry
MOST_MARKS = 4
BLOCK = 128  # Tokens of the blocks of a cache without marks


@dataclass(frozen=True)
class Vendor:
    """Rules and prices (US dollars per million tokens): `marks` are those of GPT-5.6 and later."""

    model: str
    rules: Literal["anthropic", "marks", "automatic", "none"]
    input: float
    cached: float = 0.0
    write: float = 0.0
    write_long: float = 0.0
    min_tokens: int = 1_024
    lifetime_s: float = 300.0

    @property
    def price(self) -> str:
        """The same as `--price` takes it."""
        rates = {name: getattr(self, name) for name in ("cached", "write", "write_long")}
        given = "".join(f",{name}={rate}" for name, rate in rates.items() if rate)
        asked = ",write_on_request=true" if self.rules == "anthropic" else ""
        return f"input={self.input},output=0{given}{asked}"


VENDORS = {
    "Anthropic": Vendor("anthropic:claude-sonnet-5", "anthropic", 2, 0.2, 2.5, 4),
    "OpenAI, writes billed": Vendor("openai:gpt-6-sol", "marks", 2, 0.2, 2.5, lifetime_s=1_800),
    "OpenAI, writes free": Vendor("openai:gpt-5", "automatic", 1.25, 0.125),
    "no cache": Vendor("openai:other", "none", 0.3),
}


@dataclass
class Bill:
    """What a request costs, and when it began and ended."""

    body: dict[str, Any]
    began_s: float
    ended_s: float = 0.0
    n_input: int = 0
    n_cached: int = 0
    written: dict[str, int] = field(default_factory=dict)
    marks: list[tuple[str, str]] = field(default_factory=list)


class Cache:
    """The prefix cache of one vendor."""

    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.usd = 0.0
        self._entries: dict[str, tuple[float, str]] = {}  # beginning → end of its life, lifetime

    def begin(self, body: dict[str, Any], now_s: float) -> Bill:
        """Look a prompt up in the cache."""
        vendor, bill = self.vendor, Bill(body, now_s)
        blocks = list(_blocks(body))
        starts = list(accumulate(text for text, _ in blocks))
        bill.n_input = len(starts[-1]) // 4
        marks = [
            (start, str(mark)) for start, (_, mark) in zip(starts, blocks, strict=True) if mark
        ]
        if vendor.rules == "automatic":
            ends = range(4 * BLOCK, len(starts[-1]) + 1, 4 * BLOCK)
            marks = [(starts[-1][:end], "5m") for end in ends]
        elif vendor.rules == "none":
            marks = []
        elif vendor.rules == "marks":
            options = body.get("prompt_cache_options", {})
            if options.get("mode") != "explicit":
                marks.append((starts[-1], "5m"))
        assert vendor.rules == "automatic" or len(marks) <= MOST_MARKS, "400"
        found = ""
        for mark, _ in marks:
            before = [start for start in starts if len(start) <= len(mark)][-LOOKBACK:]
            for start in before if vendor.rules == "anthropic" else [mark]:
                ends_s, ttl = self._entries.get(start, (0.0, ""))
                if ends_s > now_s and len(start) > len(found):
                    found = start
                    self._entries[start] = (now_s + self._lives_s(ttl), ttl)
        bill.n_cached = len(found) // 4
        bill.marks = [
            mark for mark in marks
            if len(mark[0]) > len(found) and len(mark[0]) // 4 >= vendor.min_tokens
        ]  # fmt: skip
        at = bill.n_cached
        for start, ttl in bill.marks:
            bill.written[ttl] = bill.written.get(ttl, 0) + len(start) // 4 - at
            at = len(start) // 4
        n_written = sum(bill.written.values())
        self.usd += (
            (bill.n_input - bill.n_cached - n_written) * vendor.input
            + bill.n_cached * (vendor.cached or vendor.input)
            + bill.written.get("5m", 0) * (vendor.write or vendor.input)
            + bill.written.get("1h", 0) * (vendor.write_long or vendor.input)
        ) / 1e6
        return bill

    def end(self, bill: Bill, now_s: float) -> None:
        """Make what a request wrote readable."""
        bill.ended_s = now_s
        for start, ttl in bill.marks:
            self._entries[start] = (bill.began_s + self._lives_s(ttl), ttl)

    def _lives_s(self, ttl: str) -> float:
        return 3_600.0 if ttl == "1h" else self.vendor.lifetime_s


class BillingServer(Server):
    """Answers "ok" after `delay_s`, and bills it; `bills` has every request."""

    def __init__(self, vendor: Vendor, delay_s: float) -> None:
        super().__init__()
        self.cache = Cache(vendor)
        self.bills: list[Bill] = []
        self.delay_s = delay_s

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if not seen.path.endswith(("/chat/completions", "/messages")):
            await super()._answer(seen, writer)
            return
        clock = asyncio.get_running_loop().time
        bill = self.cache.begin(seen.body, clock())
        self.bills.append(bill)
        await asyncio.sleep(self.delay_s)
        self.cache.end(bill, clock())
        n_written = sum(bill.written.values())
        if seen.path.endswith("/messages"):
            kept = {
                f"ephemeral_{ttl}_input_tokens": bill.written.get(ttl, 0) for ttl in ("5m", "1h")
            }
            usage: dict[str, Any] = {
                "input_tokens": bill.n_input - bill.n_cached - n_written, "output_tokens": 1,
                "cache_creation_input_tokens": n_written, "cache_creation": kept,
                "cache_read_input_tokens": bill.n_cached,
            }  # fmt: skip
            content = [{"type": "text", "text": _said(seen.body)}]
            reply = {"type": "message", "role": "assistant", "model": "claude", "content": content,
                     "stop_reason": "end_turn", "usage": usage}  # fmt: skip
        else:
            details = {"cached_tokens": bill.n_cached}
            if self.cache.vendor.rules == "marks":
                details["cache_write_tokens"] = n_written
            usage = {
                "prompt_tokens": bill.n_input,
                "completion_tokens": 1,
                "prompt_tokens_details": details,
            }
            reply = {**completion("ok"), "usage": usage}
        await send(Canned(reply), writer)

    def usd_without_control(self) -> float:
        """The bill of the same requests at the same times, had they marked nothing."""
        cache = Cache(self.cache.vendor)
        times = [(bill.began_s, 1, bill) for bill in self.bills]
        times += [(bill.ended_s, 0, bill) for bill in self.bills]
        again: dict[int, Bill] = {}
        for time_s, is_begin, bill in sorted(times, key=lambda each: each[:2]):
            if is_begin:
                again[id(bill)] = cache.begin(_unmarked(bill.body), time_s)
            else:
                cache.end(again[id(bill)], time_s)
        return cache.usd

    def least_usd(self) -> float:
        """The least for these requests, by trying every choice of marks, one request after another."""
        vendor = self.cache.vendor
        reads: dict[str, list[int]] = {}
        for bill in self.bills:
            whole = "".join(text for text, _ in _blocks(_unmarked(bill.body)))
            reads.setdefault(whole[: whole.rfind("</text>") + 7], []).append(bill.n_input)
        least = 0.0
        for head, sizes in reads.items():
            n = len(head) // 4
            n_read = n // BLOCK * BLOCK if vendor.rules == "automatic" else n
            is_cached = vendor.rules != "none" and n >= vendor.min_tokens

            @lru_cache(None)
            def usd(i: int, *, has_entry: bool) -> float:
                if i == len(sizes):  # noqa: B023
                    return 0.0
                plain = sizes[i] * vendor.input  # noqa: B023
                saved = n_read * (vendor.input - vendor.cached)  # noqa: B023
                extra = n * (max(vendor.write, vendor.input) - vendor.input)  # noqa: B023
                choices = [plain + usd(i + 1, has_entry=has_entry)]
                if is_cached and has_entry:  # noqa: B023
                    choices.append(plain - saved + usd(i + 1, has_entry=True))
                elif is_cached:  # noqa: B023
                    choices.append(plain + extra + usd(i + 1, has_entry=True))
                return min(choices)

            least += usd(0, has_entry=False)
        return least / 1e6


def _blocks(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The blocks of a prompt, each with the lifetime that its mark asks for, or ""."""
    forms = [body.get(name) for name in ("tools", "response_format", "output_config")]
    yield json.dumps(forms), ""
    if "system" in body:
        yield f"<system>{body['system']}", ""
    for turn in body["messages"]:
        yield f"<{turn['role']}>", ""
        parts = turn["content"]
        for part in [{"text": parts}] if isinstance(parts, str) else parts:
            mark = part.get("cache_control", {}).get("ttl", "")
            yield part["text"], "5m" if "prompt_cache_breakpoint" in part else mark


def _said(body: dict[str, Any]) -> str:
    """A reply of the form that a request asks for."""
    form = body.get("output_config", {}).get("format", {})
    values = {
        name: [] if kind.get("type") == "array" else kind.get("enum", ["ok"])[0]
        for name, kind in form.get("schema", {}).get("properties", {}).items()
    }
    return json.dumps(values) if form else "ok"


def _unmarked(body: dict[str, Any]) -> dict[str, Any]:
    def joined(turn: dict[str, Any]) -> dict[str, Any]:
        parts = turn["content"]
        texts: Iterable[str] = [parts] if isinstance(parts, str) else (p["text"] for p in parts)
        return {**turn, "content": "".join(texts)}

    kept = {name: value for name, value in body.items() if name != "prompt_cache_options"}
    return {**kept, "messages": [*map(joined, body["messages"])]}


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
    concurrency: int = 8, **settings: Any,
) -> tuple[BillingServer, Budget]:  # fmt: skip
    """Run a plan over each document against a server on a computed clock."""
    budget = Budget(price=Price.read(vendor.price))

    def same(document: Document) -> Document:
        return document

    async def main() -> BillingServer:
        server = BillingServer(vendor, delay_s)
        async with server.within_loop():
            backend, _, _ = vendor.model.partition(":")
            kind = None if backend == "anthropic" else "openai"
            model = create_model(vendor.model, ModelSettings(server.url, 3e4, 200_000, kind, "KEY"))
            pearl = Pearl(
                model, budget=budget, concurrency=concurrency, library="seed",
                **{"constrain": "off", "compose": "off", **settings},
            )  # fmt: skip
            tasks = [
                Task(f"{i}", partial(same, document), plan=text)
                for i, (document, text) in enumerate(reads)
            ]
            failed = [outcome.error async for outcome in run(pearl, tasks) if outcome.error]
            await pearl.aclose()
            assert not failed, failed[0]
        return server

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY", "sk-not-a-key")
        with computed(patch, ComputedLoop(under_way_s=0.002)) as runner:
            return runner.run(main()), budget
