"""No request leaves without a limit to its reply, whatever is asked and whoever asks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import get_args

import pytest

from pearl.actions.library import read_library
from pearl.documents.document import Document
from pearl.errors import ModelError, PlanningError
from pearl.llm import ActionTask, Completion, Constrains, Model, Request, Task
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.reply_limits import reply_limit
from pearl.mining.miner import Miner, Question
from pearl.mining.refining import RefineSettings, read_drafts, refine_actions
from pearl.pipeline import Pearl
from pearl.planner.prompt_selection import Shown
from pearl.planner.writer import RepairLoop
from tests.models import RandomWriter
from tests.server import Canned, Server, error

SEED = read_library("FIND(CTX, X) : Find X\n", "seed")
PLAN = '1. a = FIND(CTX, "the boat") : Find it'
BY_ROW = '1. a = SPLIT(CTX, "sentence") : Rows\n2. b = FILTER(a, "the boat is seen") : Keep them'
OF_TABLE = '1. a = LOOKUP(CTX, "Where is the boat?") : Ask'
OF_FIELD = '1. a = EXTRACT(CTX, "place") : Take it'
TABLE = Document("boat,place\noak,here\ntea,there\n")
LONG = Document(" ".join(f"On day {day} the boat was seen again." for day in range(400)))


class Asked:
    """A model that keeps what it is asked, and says what its server would."""

    name = identity = "asked"
    notice = ""
    reads_prompts = True
    constrains = Constrains()

    def __init__(self, window: int | None = 2_000) -> None:
        self.window = window
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        is_plan = type(request.task).__name__ in ("PlanTask", "MineTask")
        if isinstance(request.task, ActionTask) and request.task.action.extracts:
            return Completion('{"place": {"value": "here", "quote": "here"}}', self.name)
        return Completion(f"New actions:\n- None\n\n{PLAN}" if is_plan else "A", self.name)

    async def aclose(self) -> None:
        """Nothing to let go of."""


async def everything(model: Model, limit: int | None = None) -> None:
    """One request of every kind, at least."""
    pearl = Pearl(model, library=SEED, max_output_tokens=limit, prefix="off")
    await pearl.plan("Where is the boat?")
    await pearl.execute(PLAN, LONG)
    await pearl.execute(BY_ROW, LONG)
    await pearl.execute(OF_TABLE, TABLE)
    await pearl.execute(OF_FIELD, Document("The boat is here."))
    await pearl.choose("Where?", ["here", "there"], answer="over there")
    await pearl.choose("Where?", ["here", "there"], document=LONG, is_reasoned=True)
    miner = Miner(pearl.calls(), SEED, max_output_tokens=pearl.limits.max_output_tokens)
    await miner.ask(Question("q", 0, "Where is the boat?"))
    drafts = "".join(f"FIND_{name}(CTX, X) : Find {name} of X\n" for name in ("OAK", "TEA", "INK"))
    settings = RefineSettings(max_actions=1, max_output_tokens=limit)
    await refine_actions(read_drafts(drafts, "drafts"), pearl.calls(), settings)


@pytest.mark.parametrize(("window", "limit"), [(None, 77), (2_000, None)])
def test_every_kind_of_request_has_a_limit(window: int | None, limit: int | None) -> None:
    model = Asked(window)
    asyncio.run(everything(model, limit))
    kinds = {type(request.task) for request in model.requests}
    parted = set(get_args(Task)) if window else kinds  # nothing is merged that is read as a whole
    assert kinds == parted
    for request in model.requests:
        expected = limit or reply_limit(request.task, window)
        assert request.max_output_tokens == expected, request.task


@pytest.mark.parametrize("by", ["grammar", "json"])
def test_a_plan_under_a_constraint_has_a_limit(by: str) -> None:
    model = RandomWriter([by])  # type: ignore[list-item]
    with suppress(PlanningError):  # a schema takes actions that are not declared
        asyncio.run(RepairLoop("Where?", Shown(SEED), model, max_repairs=20).write())
    assert model.requests
    for request in model.requests:
        assert request.constraint is not None
        assert request.max_output_tokens == reply_limit(request.task, None)


def asked_of(server: Server, n: int = 1) -> list[int]:
    """The limits that a server was sent over so many plans."""

    async def plans() -> None:
        model = OpenAIModel(Endpoint(server.url, "test-model", ""), 10.0, 128_000)
        try:
            for i in range(n):
                await RepairLoop(
                    f"Where is boat {i}?", Shown(SEED), model, max_output_tokens=4_000
                ).write()
        finally:
            await model.aclose()

    server.on("", f"New actions:\n- None\n\n{PLAN}")
    asyncio.run(plans())
    names = ("max_tokens", "max_completion_tokens")
    return [
        next(seen.body[name] for name in names if name in seen.body) for seen in server.requests
    ]


TOO_LARGE = {
    "openai": "max_tokens is too large: 4000. This model supports at most 2048 completion tokens, "
    "whereas you provided 4000.",
    "deepseek": "Invalid max_tokens value, the valid range of max_tokens is [1, 2048]",
    "groq": "`max_tokens` must be less than or equal to `2048`, the maximum value for "
    "`max_tokens` is less than the `context_window` for this model",
}


@pytest.mark.parametrize("said", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_model_that_writes_less_is_asked_for_less_from_then_on(
    said: str, openai_server: Server
) -> None:
    openai_server.next(Canned(error(said), 400))
    assert asked_of(openai_server, 3) == [4_000, 2_000, 2_000, 2_000]


def test_a_limit_beyond_the_window_is_lowered_for_one_call(
    openai_server: Server,
) -> None:
    said = (
        "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context "
        "length is 8192 tokens and your request has 6000 input tokens (4000 > 8192 - 6000)."
    )
    openai_server.next(Canned(error(said), 400))
    assert asked_of(openai_server, 2) == [4_000, 2_000, 4_000]


def test_a_too_long_prompt_is_an_error(openai_server: Server) -> None:
    said = "This model's maximum context length is 8192 tokens, your messages have 9000; max_tokens"
    openai_server.answer = lambda seen: Canned(error(said, code="context_length_exceeded"), 400)
    with pytest.raises(ModelError, match="maximum context length") as caught:
        asked_of(openai_server)
    assert caught.value.kind == "bad_request"
    sent = [seen.body["max_tokens"] for seen in openai_server.requests]
    assert sent == [4_000, 2_000, 1_000, 500]


def test_a_limit_by_the_other_name_is_sent_by_that(openai_server: Server) -> None:
    said = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead."
    )
    openai_server.next(Canned(error(said, param="max_tokens", code="unsupported_parameter"), 400))
    asked_of(openai_server, 2)
    names = [sorted(key for key in seen.body if key.startswith("max")) for seen in openai_server.requests]  # fmt: skip
    assert names == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]
