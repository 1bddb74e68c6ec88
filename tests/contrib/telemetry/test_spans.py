"""Trees of spans of tasks that run with a real server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider

import pearl
from pearl.contrib.telemetry import Telemetry
from pearl.llm import ChooseTask, Message, Request
from pearl.llm.progress import CallAttempt
from pearl.runs.executors import Task
from pearl.trace import ModelWaited
from tests.contrib.telemetry.spans import Spans
from tests.models import verdicts_on
from tests.server import Canned, Server, completion

HEAD = "New actions:\n- None\n\n"
ONE = f'{HEAD}1. why = FIND(CTX, "why she leaves") : Find why\n'
DIAMOND = f"""{HEAD}\
1. why = FIND(CTX, "why she leaves") : Find why
2. when = FIND(CTX, "when she leaves") : Find when
3. ans = COMPARE(CTX, why, when) : Compare both
"""
ROWS = f"""{HEAD}\
1. days = SPLIT(CTX, "line") : One a line
2. wet = FILTER(days, "it rained") : Those of rain
3. ans = COUNT(wet) : How many
"""
STORY = "She left. It rained."


def task(
    id: str = "a", text: str = STORY, *, plan: str | None = None, ask: str | None = None
) -> Task:
    return Task(id, lambda: pearl.Document(text), ask, plan, source=id)


def reply(text: str, **details: str) -> Canned:
    return Canned(completion(text, **details))


class Bench:
    """Runs tasks over a server, and keeps their spans."""

    def __init__(self, server: Server, store: Path | None = None) -> None:
        self.spans = Spans()
        self._server = server
        self._store = store

    def run(self, *tasks: Task, n_taken: int | None = None, **settings: object) -> Bench:
        """Run them, or stop once so many have an outcome."""
        asyncio.run(self._run(tasks, n_taken, settings))
        return self

    async def _run(
        self, tasks: Iterable[Task], n_taken: int | None, settings: dict[str, object]
    ) -> None:
        options = {"base_url": self._server.url, "concurrency": 1, "first_wait_s": 0.01}
        async with pearl.Pearl("openai:test-model", **{**options, **settings}) as asked:  # type: ignore[arg-type]
            session = pearl.Session(
                asked, store=self._store, telemetry=Telemetry(self.spans.provider)
            )
            async with aclosing(session.run(tasks)) as run:
                n = 0
                async for _ in run:
                    n += 1
                    if n == n_taken:
                        break


@pytest.fixture
def server(openai_server: Server) -> Server:
    openai_server.on("", "it rained")
    return openai_server


FOUND = "cache=miss hits=0 context=full state=found"
TREES: dict[str, tuple[tuple[str | Canned, ...], tuple[Task, ...], dict[str, object], str]] = {
    "steps and their graph": ((), (task(plan=DIAMOND),), {}, f"""\
invoke_workflow pearl status=answered
  execute_tool FIND {FOUND} id=1
    chat test-model
  execute_tool FIND {FOUND} id=2
    chat test-model
  execute_tool COMPARE {FOUND} id=3 parent_id=1 links=1
    chat test-model"""),
    "retries are siblings": (("500", "429", "reset"), (task(plan=ONE),), {}, f"""\
invoke_workflow pearl status=answered
  execute_tool FIND {FOUND} id=1
    ! chat test-model type=transport
    ! chat test-model type=rate_limited resend_count=1
    ! chat test-model type=transport resend_count=2
    chat test-model resend_count=3"""),
    "a step fails": (("400",), (task(plan=ONE),), {}, """\
! invoke_workflow pearl type=bad_request status=failed
  ! execute_tool FIND type=bad_request id=1
    ! chat test-model type=bad_request"""),
    "a plan is repaired and shared": (
        (reply("nonsense"), reply(ONE)),
        (task(ask="Why?"), task("b", "Again: it rained.", ask="Why?")), {}, f"""\
invoke_workflow pearl status=answered
  plan pearl cache=miss repairs=1
    chat test-model
    chat test-model
  execute_tool FIND {FOUND} id=1
    chat test-model
invoke_workflow pearl status=answered
  execute_tool FIND {FOUND} id=1
    chat test-model"""),
    "the fallback": ((), (task(ask="Why?"),), {"max_repairs": 0}, f"""\
invoke_workflow pearl status=answered
  ! plan pearl type=PlanningError cache=miss repairs=0
    chat test-model
  execute_tool ANSWER {FOUND} id=1
    chat test-model"""),
    "the planner's call fails": (("400",), (task(ask="Why?"),), {}, """\
! invoke_workflow pearl type=bad_request status=failed
  ! plan pearl type=bad_request cache=miss repairs=0
    ! chat test-model type=bad_request"""),
    "rows": (
        (reply(verdicts_on(("rain", "sun", "more rain"), "yes", "no", "yes")),),
        (task(text="rain\nsun\nmore rain", plan=ROWS),), {}, """\
invoke_workflow pearl status=answered
  execute_tool SPLIT context=none state=found id=1
  execute_tool FILTER cache=miss hits=0 context=rows state=found id=2 parent_id=1
    chat test-model
  execute_tool COUNT context=none state=found id=3 parent_id=2"""),
    "no document": ((), (Task("a", plan=ONE),), {}, """\
! invoke_workflow pearl type=PearlError status=failed"""),
}  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_tree_of_spans(name: str, server: Server) -> None:
    faults, tasks, settings, tree = TREES[name]
    server.next(*faults)
    assert Bench(server).run(*tasks, **settings).spans.tree() == tree  # type: ignore[arg-type]


def test_attributes_of_a_call(server: Server) -> None:
    (call,) = (
        Bench(server).run(task(plan=ONE), seed=7, temperature=0.5).spans.named("chat test-model")
    )
    assert call.kind.name == "CLIENT"
    assert dict(call.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "test-model",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": 7,
        "gen_ai.request.max_tokens": 8192,
        "gen_ai.response.model": "test-model-2026",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "openinference.span.kind": "LLM",
        "server.address": "127.0.0.1",
        "server.port": int(server.url.split(":")[2].partition("/")[0]),
    }


def test_cached_replies_and_stored_rows_have_no_calls(server: Server, tmp_path: Path) -> None:
    Bench(server, tmp_path).run(task(plan=ONE), task("b", plan=DIAMOND))
    n_asked = len(server.requests)
    again = Bench(server, tmp_path).run(task(plan=ONE), task("b", plan=DIAMOND))
    tree = """\
invoke_workflow pearl status=answered cache=hit
invoke_workflow pearl status=answered cache=hit"""
    assert again.spans.tree() == tree
    other = Bench(server, tmp_path).run(task("c", plan=ONE))
    tree = """\
invoke_workflow pearl status=answered
  execute_tool FIND cache=hit hits=1 context=full state=found id=1"""
    assert other.spans.tree() == tree
    assert len(server.requests) == n_asked


def test_cached_plan(server: Server, tmp_path: Path) -> None:
    server.next(reply(ONE))
    Bench(server, tmp_path).run(task(ask="Why?"))
    other = Bench(server, tmp_path).run(task("b", "Another story. It rained.", ask="Why?"))
    tree = """\
invoke_workflow pearl status=answered
  plan pearl cache=hit repairs=0
  execute_tool FIND cache=miss hits=0 context=full state=found id=1
    chat test-model"""
    assert other.spans.tree() == tree


def test_cancelled_tasks_have_spans(server: Server) -> None:
    server.hold_after = 2
    many = (task(str(i), f"{STORY} {i}", plan=ONE) for i in range(8))
    spans = Bench(server).run(*many, n_taken=1, concurrency=2).spans
    roots = [span.attributes or {} for span in spans.named("invoke_workflow pearl")]
    assert [root["pearl.status"] for root in roots].count("interrupted") >= 1
    assert len(roots) < 8
    cut_off = [s for s in spans.all if (s.attributes or {}).get("error.type") == "cancelled"]
    assert {span.name for span in cut_off} == {"execute_tool FIND", "chat test-model"}


def test_cancelled_planning(server: Server) -> None:
    server.next("hang")
    spans = Spans()

    async def ask() -> None:
        async with pearl.Pearl("openai:test-model", base_url=server.url) as asked:
            with Telemetry(spans.provider).tracing() as trace:
                await asked.ask("Why?", pearl.Document(STORY), trace=trace)

    async def ask_and_cancel() -> None:
        asking = asyncio.create_task(ask())
        while not server.requests:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    asyncio.run(ask_and_cancel())
    tree = """\
! invoke_workflow pearl type=cancelled status=failed
  ! plan pearl type=cancelled cache=miss repairs=0
    ! chat test-model type=cancelled"""
    assert spans.tree() == tree


def test_span_of_a_call_has_the_duration_of_the_attempt() -> None:
    spans, request = Spans(), Request((Message("user", "why?"),), ChooseTask("why?", ("a", "b")))
    with Telemetry(spans.provider).tracing() as trace:
        for duration_s in (1e-6, 3600.0):
            trace.progressed(request.task, CallAttempt("m", "m", request, 0, duration_s))
    (root,), (short, long) = spans.named("invoke_workflow pearl"), spans.named("chat m")
    assert (short.end_time or 0) - (short.start_time or 0) == 1_000
    assert long.start_time == root.start_time
    before_ns, run = time.time_ns(), Telemetry(spans.provider).run()
    run.listening()("late", ModelWaited(reason="busy", wait_s=1, attempt=1, t_s=3600.0))
    run.close()
    began_ns = spans.named("invoke_workflow pearl")[-1].start_time or 0
    assert before_ns <= began_ns + 3600 * 10**9 <= time.time_ns()


def test_spans_are_created_from_a_finished_trace(server: Server) -> None:
    """A cluster tells of a task when it is over; attempts are not known then."""
    server.next("500", reply("nonsense"), reply(DIAMOND))

    async def ask() -> pearl.Trace:
        trace = pearl.Trace("a")
        async with pearl.Pearl(
            "openai:test-model", base_url=server.url, concurrency=1, first_wait_s=0.01
        ) as asked:
            await asked.ask("Why?", pearl.Document(STORY), trace=trace)
        return trace

    spans = Spans()
    Telemetry(spans.provider, content=True).run().finished(
        "a", asyncio.run(ask()), status="answered"
    )
    (root,) = spans.named("invoke_workflow pearl")
    assert 0 < (root.start_time or 0) < (root.end_time or 0) <= time.time_ns()
    for span in spans.named("chat test-model"):  # the prompts and replies are not known
        assert not [name for name in span.attributes or {} if "messages" in name]
    tree = """\
invoke_workflow pearl status=answered
  plan pearl repairs=1
    chat test-model
    chat test-model
  execute_tool FIND cache=miss hits=0 context=full state=found id=1
    chat test-model
  execute_tool FIND cache=miss hits=0 context=full state=found id=2
    chat test-model
  execute_tool COMPARE cache=miss hits=0 context=full state=found id=3 parent_id=1 links=1
    chat test-model"""
    assert spans.tree() == tree


def test_spans_stand_below_those_of_the_program(server: Server) -> None:
    bench = Bench(server)
    with bench.spans.provider.get_tracer("mine").start_as_current_span("mine"):
        bench.run(task(plan=ONE))
    assert bench.spans.tree().splitlines()[:2] == [
        "mine",
        "  invoke_workflow pearl status=answered",
    ]


def test_error_of_telemetry_does_not_affect_the_answer(server: Server) -> None:
    told: list[str] = []

    class Broken(TracerProvider):
        def get_tracer(self, *args: object, **options: object):  # type: ignore[no-untyped-def]
            tracer = super().get_tracer("x")
            tracer.start_span = lambda *args, **options: 1 / 0  # type: ignore[method-assign]
            return tracer

    async def ask() -> pearl.Answer:
        async with pearl.Pearl("openai:test-model", base_url=server.url) as asked:
            with Telemetry(Broken(), on_trouble=told.append).tracing() as trace:
                return await asked.execute(DIAMOND, pearl.Document(STORY), trace=trace)

    assert asyncio.run(ask()).text == "it rained"
    assert told == ["telemetry has ended: ZeroDivisionError: division by zero"]
