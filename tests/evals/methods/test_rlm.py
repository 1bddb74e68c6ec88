"""`rlm`: dspy's recursive language model over PEARL's client, on a server whose replies are written."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pearl import Pearl, Trace
from pearl.cli import run as pearl_command
from pearl.documents.tokens import Counter
from pearl.errors import BudgetError, UsageError
from pearl.evals.log import EvalRecord
from pearl.evals.methods import Effort, rlm
from pearl.evals.runner import Evaluation, evaluate
from pearl.llm.middleware.budget import Budget
from pearl.plugins.extras import install_hint
from tests.evals.asking import OPTIONS, STORY, acting, run, sample
from tests.server import FAULTS, Canned, Seen, Server, completion
from tests.skips import needs_dspy

ASK = """\
parts = context.split("\\n\\n")
found = llm_query_batched([f"Does this say why he sold it? {part}" for part in parts])
print(found)"""
SUBMIT = "SUBMIT(next(each for each in found if each.startswith('The')))"
FOR_EVER = "while True:\n    pass"
UNSANDBOXED = Effort(unsandboxed=True)


def turn(code: str) -> str:
    """What the root says: a thought, and code."""
    return (
        f"[[ ## reasoning ## ]]\nGo on.\n\n[[ ## code ## ]]\n```python\n{code}\n```\n\n"
        "[[ ## completed ## ]]"
    )


def is_root(request: Seen) -> bool:
    return "[[ ## iteration ## ]]" in request.prompt


def script(server: Server, *turns: str) -> None:
    """The root's code, turn by turn, the last one again and again; a paragraph is judged by its words."""
    for number, code in enumerate(turns, start=1):
        server.on(rf"iteration ## \]\]\s+{number}/20", turn(code))
    server.on(r"iteration ## \]\]", turn(turns[-1]))
    server.on(r"Does this say why.*rotten", OPTIONS[0])
    server.on("Does this say why", "no")


def pearl_of(server: Server, **settings: Any) -> Pearl:
    return Pearl("openai:sim", base_url=server.url, api_key_env="", **settings)


def asked(server: Server, effort: Effort = UNSANDBOXED, **settings: Any) -> EvalRecord:
    async def main() -> EvalRecord:
        async with pearl_of(server, **settings) as pearl:
            found = evaluate(pearl, [sample()], Evaluation(("rlm",), effort=effort))
            (record,) = [record async for record in found]
            return record

    return asyncio.run(main())


def failing(server: Server, words: str) -> None:
    """Have the server refuse what has these words."""

    def answer(request: Seen) -> Canned:
        if words in request.prompt:
            return FAULTS["400"]
        return Canned(completion(server._reply(request)))

    server.answer = answer


def test_without_the_extra_it_is_named_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dspy", None)
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"question": "Who?", "document": STORY.text, "reference": "Nils"}))
    assert pearl_command(["eval", "--data", str(data), "--methods", "direct,rlm"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "pearl: method 'rlm' needs dspy, which is not installed",
        f"  help: {install_hint('rlm')}",
    ]
    with pytest.raises(UsageError, match="needs dspy"):
        run(Pearl(model := acting()), [sample()], "direct", "rlm")
    assert model.requests == []


@needs_dspy
def test_the_code_asks_about_pieces_and_submits(openai_server: Server) -> None:
    script(openai_server, ASK, SUBMIT)
    record = asked(openai_server)
    assert (record.status, record.error, record.answer) == ("answered", None, OPTIONS[0])
    assert (record.choice, record.score, record.plan) == (0, 1.0, None)
    roots = [request for request in openai_server.requests if is_root(request)]
    pieces = [request.prompt for request in openai_server.requests if not is_root(request)]
    assert len(roots) == 2
    assert sorted(pieces) == sorted(
        f"Does this say why he sold it? {part}" for part in STORY.text.split("\n\n")
    )
    assert f"['no', '{OPTIONS[0]}', 'no']" in roots[1].prompt
    assert record.n_calls == len(openai_server.requests) == 5
    assert record.usage.n_input_tokens == 500


@needs_dspy
def test_a_forced_answer_is_a_fallback(openai_server: Server) -> None:
    openai_server.on("extract the final outputs now", "[[ ## answer ## ]]\nIt had sunk")
    script(openai_server, "print(1)")
    record = asked(openai_server)
    assert (record.status, record.choice, record.score) == ("fell_back", 3, 0.0)
    assert record.n_calls == len(openai_server.requests) == 21


@needs_dspy
@pytest.mark.parametrize(("budget", "n_calls"), [(300, 0), (4_000, 4), (20_000, 5)])
def test_all_calls_together_stay_within_the_budget(
    openai_server: Server, budget: int, n_calls: int
) -> None:
    script(openai_server, ASK, SUBMIT)
    record = asked(openai_server, Effort(budget, unsandboxed=True))
    count = Counter.for_model("openai:sim").count
    sent = sum(count(request.prompt) for request in openai_server.requests)
    assert sent <= budget
    if record.status == "failed":
        assert f"ExecutionError: a budget of {budget:,} tokens is too small: " in str(record.error)
    assert (record.status, len(openai_server.requests)) == (
        "answered" if n_calls == 5 else "failed",
        n_calls,
    )


@needs_dspy
def test_a_limit_ends_the_run_even_if_the_code_catches_the_error(openai_server: Server) -> None:
    code = "try:\n    llm_query('one')\n    llm_query('two')\nfinally:\n    SUBMIT('It had sunk')"
    script(openai_server, code)
    with pytest.raises(BudgetError):
        asked(openai_server, budget=Budget(max_calls=2))
    assert len(openai_server.requests) == 2


@needs_dspy
def test_code_that_never_ends_is_ended(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(openai_server, FOR_EVER)
    monkeypatch.setattr(rlm, "IDLE_S", 2.0)
    record = asked(openai_server)
    assert record.status == "failed"
    assert record.error == "ExecutionError: the model's code made no call for 2 s"


@needs_dspy
@pytest.mark.parametrize("code", [FOR_EVER, "llm_query('hang')"])
def test_cancelling_ends_calls_and_code(openai_server: Server, code: str) -> None:
    script(openai_server, code)
    openai_server.hold_after = 1

    async def main() -> None:
        pearl = pearl_of(openai_server)
        work = asyncio.ensure_future(
            rlm.predict(pearl, sample(), STORY, UNSANDBOXED, trace := Trace())
        )
        n_sent = 2 if "hang" in code else 1
        while not trace.n_calls or len(openai_server.requests) < n_sent:  # noqa: ASYNC110  another thread
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await pearl.aclose()

    asyncio.run(main())


@needs_dspy
def test_code_runs_in_the_sandbox_unless_the_user_says_otherwise(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dspy

    made = []

    class Sandbox(dspy.LocalInterpreter):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    class Missing:
        def __init__(self) -> None:
            raise dspy.CodeInterpreterError("there is no Deno\nat all")

    script(openai_server, ASK, SUBMIT)
    monkeypatch.setattr(dspy, "PythonInterpreter", Sandbox)
    assert asked(openai_server, Effort()).status == "answered"
    assert len(made) == 1
    monkeypatch.setattr(dspy, "PythonInterpreter", Missing)
    record = asked(openai_server, Effort())
    assert record.error == (
        "ExecutionError: the model's code cannot run (dspy needs Deno and, once, the network): "
        "there is no Deno"
    )


@needs_dspy
def test_no_store_says_that_code_may_run_without_a_sandbox(
    openai_server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import dspy

    script(openai_server, ASK, SUBMIT)
    failing(openai_server, "2/20")
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"question": "Why?", "document": STORY.text, "reference": "x"}))
    store = ["--store", str(tmp_path / "store")]
    command = ["--methods", "rlm", "--unsandboxed", "--base-url", openai_server.url, *store]
    assert pearl_command(["eval", "--data", str(data), "--model", "openai:sim", *command]) == 1
    openai_server.answer = None

    class Sandbox(dspy.LocalInterpreter):  # type: ignore[misc]
        def __init__(self) -> None:
            raise dspy.CodeInterpreterError("asked for")

    monkeypatch.setattr(dspy, "PythonInterpreter", Sandbox)
    capsys.readouterr()
    assert pearl_command(["runs", "list", "--json", *store]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    resume = ["runs", "resume", one["id"], "--yes", *store, "--base-url", openai_server.url]
    n_before = len(openai_server.requests)
    assert pearl_command(resume) == 1
    assert len(openai_server.requests) == n_before
    assert pearl_command([*resume, "--unsandboxed"]) == 0
