"""Everything a server may put on the wire is what it was said to be: no wrong answer, no traceback."""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request
from pearl.llm.backends import ModelSettings, create_model
from tests.llm.backends.openai.wire_cases import CASES, Case, Says
from tests.models import answer_task
from tests.server import Canned, Server, completion, serving

REQUEST = Request((Message("user", "Who?"),), answer_task("Who?", ""))
KEY = "sk-very-secret-0123456789"


@dataclass(frozen=True)
class Wired:
    """A server, another one that is not to hear of anything, and an event loop."""

    here: Server
    other: Server
    runner: asyncio.Runner

    async def ask(self, case: Case) -> Completion | ModelError:
        """Ask by a connection of its own: the server may close the one before at any time."""
        settings = ModelSettings(self.here.url, case.timeout_s, window=1_000)
        model = create_model("openai:m", settings)
        try:
            return await model.complete(REQUEST)
        except ModelError as error:
            return error
        finally:
            await model.aclose()


@pytest.fixture(scope="module")
def wired() -> Iterator[Wired]:
    with (
        pytest.MonkeyPatch.context() as patch,
        serving() as here,
        serving() as other,
        asyncio.Runner() as runner,
    ):
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: hidden")
        yield Wired(here, other, runner)


def placed(sent: Canned, wired: Wired) -> Canned:
    """The answer with the addresses of this test in its headers."""
    places = {
        "{here}": wired.here.url,
        "{other}": wired.other.url,
        "{host}": wired.here.url.split("/")[2],
    }
    headers = dict(sent.headers)
    for name in headers:
        for mark, place in places.items():
            headers[name] = headers[name].replace(mark, place)
    return replace(sent, headers=headers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_is_what_it_was_said_to_be(case: Case, wired: Wired) -> None:
    wired.here.forget()
    wired.here.next(*(placed(sent, wired) for sent in case.sent))
    found = wired.runner.run(wired.ask(case))
    outcome = case.outcome
    if isinstance(outcome, Says):
        assert isinstance(found, Completion), found
        assert found.text == outcome.text
        if outcome.usage is not None:
            assert found.usage == outcome.usage
    else:
        assert isinstance(found, ModelError), f"taken for an answer: {found}"
        assert found.kind in outcome.kinds, found
        assert len(str(found).splitlines()) <= 3
        assert len(str(found)) < 800
        assert KEY not in str(found)
        if outcome.retry_after_s is not None or "rate_limited" in outcome.kinds:
            assert found.retry_after_s == outcome.retry_after_s
    assert len(wired.here.requests) == case.n_requests, "nothing is asked again in silence"
    assert not wired.other.requests, "no other server hears of the prompt"


ASKING = """
import asyncio, re, sys
from pathlib import Path
from pearl.errors import ModelError
from pearl.llm import Message, Request
from pearl.llm.backends import ModelSettings, create_model
from tests.models import answer_task

REQUEST = Request((Message("user", "Who?"),), answer_task("Who?", ""))

async def ask():
    model = create_model("openai:m", ModelSettings(sys.argv[1], 60.0, window=1_000))
    for _ in range(2):
        try:
            print((await model.complete(REQUEST)).text)
        except ModelError as error:
            print(error.kind, "MiB" in str(error))
        peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
        print(int(peak[1]) // 1024)
    await model.aclose()

asyncio.run(ask())
"""


def _large() -> Iterator[tuple[str, Canned]]:
    many = b'{"choices": [' + b"[]," * (50 * 2**20 // 3) + b"0]}"
    yield "plain", Canned(many)
    yield "packed", Canned(gzip.compress(many, 1), headers={"content-encoding": "gzip"})
    yield "endless", Canned(b"[" * 2**16, manner="endless")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "packed", "endless"])
def test_a_large_reply_takes_no_more_memory_than_a_reply_may(name: str) -> None:
    """50 MiB of empty lists took more than 3 GB once."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the most memory that a process had is read from /proc")
    with serving() as server:
        server.next(Canned(completion("ok")), dict(_large())[name])
        command = [sys.executable, "-c", ASKING, server.url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, before_mib, second, after_mib = done.stdout.splitlines()
    assert (first, second) == ("ok", "malformed True")
    assert int(after_mib) - int(before_mib) < 64
