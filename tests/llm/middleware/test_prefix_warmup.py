"""The first call over a document goes ahead, the others follow, and only where that pays."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from pearl.errors import ModelError, UsageError
from pearl.interpreter.prompt import action_messages
from pearl.llm import Completion, Constrains, Message, Request, Usage
from pearl.llm.middleware import prefix_warmup as priming
from pearl.llm.middleware.prefix_warmup import PROOFS, PrefixWarmup
from pearl.llm.middleware.rate import Limited
from pearl.llm.prices import Price
from tests.models import answer_task

LONG = "Ada sold the boat because it leaked. " * 2_000
SHORT = LONG[: len(LONG) // 3]


class Cached:
    """A server with a prefix cache, by document; keeps the order of what begins and ends."""

    name = identity = "cached"
    window: int | None = None
    notice = ""
    reads_prompts = True
    constrains = Constrains()

    def __init__(
        self, *, has_cache: bool = True, read_s: float = 0.01, write_s: float = 0.0, fail: int = 0
    ) -> None:
        self.events: list[str] = []
        self._warm: set[str] = set()
        self._has_cache, self._read_s, self._write_s, self._fail = has_cache, read_s, write_s, fail

    async def complete(self, request: Request) -> Completion:
        question = request.task.question  # type: ignore[union-attr]
        document = request.task.document  # type: ignore[union-attr]
        n_tokens = len(request.prompt) // 4
        n_cached = n_tokens // 128 * 128 if document in self._warm and self._has_cache else 0
        self.events.append(f"+{question}")
        try:
            await asyncio.sleep(self._write_s + (0 if n_cached else self._read_s))
            if self._fail:
                self._fail -= 1
                raise ModelError("down", kind="transport")
        finally:
            self.events.append(f"-{question}")
        self._warm.add(document)
        return Completion("yes", self.name, Usage(n_tokens, 1, n_cached))

    async def aclose(self) -> None:
        """Nothing to let go of."""


def request(question: str, document: str | None = LONG) -> Request:
    task = replace(answer_task(question, ""), document=document)
    return Request(action_messages(task), task)


async def ask(model: PrefixWarmup, *requests: Request) -> list[Completion | BaseException]:
    return await asyncio.gather(*map(model.complete, requests), return_exceptions=True)


def roles(found: list[Completion | BaseException]) -> list[str]:
    return [
        each.prefix.role if isinstance(each, Completion) and each.prefix else "failed"
        for each in found
    ]


def test_later_calls_wait_for_the_first_and_hit_the_cache() -> None:
    server = Cached()
    found = asyncio.run(ask(PrefixWarmup(server), *map(request, "abc"), request("d", LONG + "!")))
    assert server.events[:2] == ["+a", "+d"]  # another document does not wait
    assert server.events.index("-a") < server.events.index("+b")
    assert roles(found) == ["first", "waited", "waited", "first"]
    for each in found[1:3]:
        assert isinstance(each, Completion)
        assert each.prefix
        assert each.prefix.waited_s > 0
        assert each.usage.n_cached_tokens


@pytest.mark.parametrize(
    ("price", "expected"),
    [
        (None, ["first", "free", "free", "waited"]),
        (Price(input_usd=2.5, output_usd=10, cached_usd=1.25), ["first", "free", "free", "waited"]),
        (Price(input_usd=3, output_usd=10, cached_usd=0.3), ["first", "free", "waited", "waited"]),
        (
            Price(input_usd=15, output_usd=75, cached_usd=1.5),
            ["first", "waited", "waited", "waited"],
        ),
    ],
)
def test_few_calls_over_a_short_document_do_not_wait(
    price: Price | None, expected: list[str]
) -> None:
    server = Cached()
    model = PrefixWarmup(server, price=price)
    assert roles(asyncio.run(ask(model, *(request(name, SHORT) for name in "abcd")))) == expected
    assert (
        server.events[: expected.count("free") + 1]
        == ["+a", "+b", "+c"][: 4 - expected.count("waited")]
    )


def test_if_the_first_call_fails_the_next_one_warms_up() -> None:
    server = Cached(fail=2)
    found = asyncio.run(ask(PrefixWarmup(server), *map(request, "abcd")))
    assert roles(found) == ["failed", "failed", "first", "waited"]
    assert server.events == ["+a", "-a", "+b", "-b", "+c", "-c", "+d", "-d"]


def test_waiting_calls_hold_no_places() -> None:
    server = Cached(read_s=0.03)
    model = PrefixWarmup(Limited(server, 2), n_places=2)
    asyncio.run(ask(model, *map(request, "abc"), request("d", LONG + "!")))
    assert server.events[:2] == ["+a", "+d"]


@pytest.mark.parametrize("document", [None, "Ada sold the boat."])
def test_calls_without_a_long_document_do_not_wait(document: str | None) -> None:
    server = Cached()
    found = asyncio.run(ask(PrefixWarmup(server), *(request(name, document) for name in "abc")))
    assert roles(found) == ["free"] * 3
    assert server.events[:3] == ["+a", "+b", "+c"]


def test_a_server_without_a_cache_is_detected() -> None:
    server = Cached(has_cache=False)
    model = PrefixWarmup(server)

    async def main() -> list[Completion | BaseException]:
        await ask(model, *(request(str(i)) for i in range(PROOFS + 1)))
        server.events.clear()
        return await ask(model, *(request(name, LONG + "!") for name in "abc"))

    found = asyncio.run(main())
    assert server.events[:3] == ["+a", "+b", "+c"]
    assert isinstance(found[0], Completion)
    assert found[0].prefix
    assert found[0].prefix.why == "the server reports no cached tokens"


def test_an_expired_prefix_is_warmed_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(priming, "monotonic", lambda: now)
    model = PrefixWarmup(Cached(read_s=0))
    found = asyncio.run(ask(model, request("a")))
    now = priming.LIFETIME_S - 1
    found += asyncio.run(ask(model, request("b")))  # which uses it, so it is kept for as long again
    now = 2 * priming.LIFETIME_S - 2
    found += asyncio.run(ask(model, request("c")))
    now += priming.LIFETIME_S + 1
    found += asyncio.run(ask(model, request("d")))
    assert roles(found) == ["first", "free", "free", "first"]


def test_a_document_with_our_tags_is_warmed_up() -> None:
    """Its delimiters are neutralised in the prompt, so it does not stand there as it is."""
    marked = f"<text>{LONG}</text> says the <input> of {LONG}"
    asked = [request(name, marked) for name in "abc"]
    assert marked not in asked[0].prompt
    assert roles(asyncio.run(ask(PrefixWarmup(Cached()), *asked))) == ["first", "waited", "waited"]


def test_off_is_off() -> None:
    server = Cached()
    found = asyncio.run(ask(PrefixWarmup(server, "off"), *map(request, "abc")))
    assert server.events[:3] == ["+a", "+b", "+c"]
    assert roles(found) == ["free"] * 3
    with pytest.raises(UsageError, match="mode"):
        PrefixWarmup(server, "on")  # type: ignore[arg-type]


def test_only_the_latest_documents_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priming, "MAX_PREFIXES", 1)
    model = PrefixWarmup(Cached(read_s=0))
    found = [asyncio.run(ask(model, request(str(i), LONG + end))) for i, end in enumerate("!?!")]
    assert [roles(each) for each in found] == [["first"]] * 3


def test_another_system_text_is_another_prefix() -> None:
    def under(system: str, question: str) -> Request:
        asked = request(question)
        return replace(asked, messages=(Message("system", system), *asked.messages[1:]))

    model = PrefixWarmup(Cached(read_s=0))
    found = asyncio.run(ask(model, under("Be brief.", "a")))
    found += asyncio.run(ask(model, under("Be kind.", "b")))
    found += asyncio.run(ask(model, under("Be brief.", "c")))
    assert [role == "first" for role in roles(found)] == [True, True, False]
