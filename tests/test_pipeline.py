"""`Pearl`: questions to answers with evidence."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from traceback import format_exception
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

import pearl
from pearl import Answer, Document, Pearl, Trace, load
from pearl.cli.commands.demo import FOLDER
from pearl.documents.tokens import Counter
from pearl.errors import DataError, ModelError, PearlError, PlanError, PlanningError, UsageError
from pearl.errors.privacy import privacy_restored
from pearl.llm import ActionTask, CheckTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Outcome, Task
from pearl.runs.executors.local import run
from pearl.trace import PlanFailed, RunStarted
from tests.models import MemoryReplies, Small, verdicts
from tests.server import Canned, Server, completion

TEXT = "The ferry left at noon.\n\nMara stayed because she had lost the ticket. The rain went on."
DOCUMENT = Document(TEXT, "ferry.txt")
PLAN = """\
New actions:
- None

1. event = FIND_EVENT(CTX, "Mara staying") : Find it
2. reason = FIND_REASON(CTX, "Mara staying") : Find why
3. ans = CONCAT(event, reason) : Join
"""


def reply(request: Request) -> str:
    if isinstance(request.task, PlanTask):
        return PLAN
    assert isinstance(request.task, ActionTask)
    if request.task.output == "event":
        return "> Mara stayed because she had lost the ticket.\n> The ferry sank at midnight."
    return 'She had lost it: "stayed  because she had\nlost the ticket".'


def test_answer_has_evidence() -> None:
    answer = asyncio.run(Pearl(Scripted(reply)).ask("Why did Mara stay?", DOCUMENT))
    assert answer.method == "plan"
    assert [step.output for step in answer.steps] == ["event", "reason", "ans"]
    quoted = {e.text: e.steps for e in answer.evidence}
    assert "Mara stayed because she had lost the ticket." in quoted
    for e in answer.evidence:
        assert TEXT[e.span.start : e.span.end] == e.text
    assert [quote.step for quote in answer.unverified] == ["event"]
    assert "sank at midnight" in answer.unverified[0].text


def test_coverage_of_an_answer_is_its_lowest_step() -> None:
    answer = asyncio.run(Pearl(Scripted(reply)).ask("Why did Mara stay?", DOCUMENT))
    assert [step.coverage for step in answer.steps] == [1.0, 1.0, None]
    shown = (0.75, 0.25, None)
    steps = tuple(replace(s, coverage=c) for s, c in zip(answer.steps, shown, strict=True))
    assert dataclasses.replace(answer, steps=steps).coverage == 0.25
    assert dataclasses.replace(answer, steps=steps[2:]).coverage is None


def test_answers_are_json_and_shown_in_notebooks_as_on_a_terminal() -> None:
    answer = asyncio.run(Pearl(Scripted(reply)).ask("Why <b>?", DOCUMENT))
    row = json.loads(json.dumps(answer.to_dict()))
    assert row["status"] == "degraded"
    assert row["why"] == "step 'event': not in the document: 'The ferry sank at midnight.'"
    assert row["evidence"][0]["start"] == TEXT.index("Mara")
    printer = Mock()
    answer._repr_pretty_(printer, False)
    shown = printer.text.call_args[0][0]
    assert "Mara stayed because she had lost the ticket. [1]" in shown
    assert "not in the document: " in shown


def test_a_plan_with_its_question_can_be_executed_again_and_again() -> None:
    async def main() -> tuple[str, str]:
        async with Pearl() as pearl:
            plan = await pearl.plan("Why did Mara stay?")
            again = pearl.compile(str(plan))
            assert again.plan == plan.plan
            one = await pearl.execute(plan, DOCUMENT)
            other = await pearl.execute(
                plan, Document("It rained. Mara stayed because of her dog.")
            )
            return one.text, other.text

    one, other = asyncio.run(main())
    assert "ticket" in one
    assert "dog" in other


def test_without_a_valid_plan_the_question_itself_is_asked_and_that_is_recorded() -> None:
    def stubborn(request: Request) -> str:
        return "no plan" if isinstance(request.task, PlanTask) else "> The ferry left at noon."

    with pytest.raises(PlanningError):
        asyncio.run(
            Pearl(Scripted(stubborn), max_repairs=1, fallback="none").ask("When?", DOCUMENT)
        )
    trace = Trace()
    pearl = Pearl(Scripted(stubborn), max_repairs=1)
    answer = asyncio.run(pearl.ask("When did the ferry leave?", DOCUMENT, trace=trace))
    assert answer.method == "direct"
    assert answer.evidence[0].text == "The ferry left at noon."
    failed = [event for event in trace if isinstance(event, PlanFailed)]
    assert (failed[0].n_attempts, failed[0].fallback) == (2, "direct")


@pytest.mark.parametrize("fallback", ["direct", "none"])
def test_a_model_that_is_too_small_for_plans_is_asked_the_question_itself(fallback: str) -> None:
    asked: list[str] = []

    def reply(request: Request) -> str:
        asked.append(type(request.task).__name__)
        plan = '1. ans = FIND(CTX, "when the ferry left") : Find it'
        return plan if isinstance(request.task, PlanTask) else "> The ferry left at noon."

    pearl = Pearl(Small(reply), fallback=fallback)
    answer = asyncio.run(pearl.ask("When did the ferry leave?", DOCUMENT))
    is_direct = fallback == "direct"
    assert asked == ["ActionTask"] * 2 if is_direct else asked[0] == "PlanTask"
    assert (answer.method == "direct") is is_direct
    assert any("too small to write plans" in note for note in answer.notes) is is_direct
    assert answer.evidence[0].text == "The ferry left at noon."


@pytest.mark.parametrize(
    ("first", "n_turns"),
    [("at noon", 4), (ModelError("cut", kind="truncated", reply="at noon, and"), 2)],
)
def test_a_small_model_answers_in_words_before_it_gives_the_form(
    first: str | ModelError, n_turns: int
) -> None:
    sent: list[Request] = []

    def reply(request: Request) -> str:
        sent.append(request)
        if len(sent) == 2:
            return '{"answer": "at noon", "quote": "The ferry left at noon."}'
        if isinstance(first, ModelError):
            raise first
        return first

    answer = asyncio.run(Pearl(Small(reply)).ask("When did the ferry leave?", DOCUMENT))
    assert (answer.text, answer.status) == ("at noon", "answered")
    assert ["JSON" in request.messages[-1].content for request in sent] == [False, True]
    turns = sent[1].messages
    assert len(turns) == n_turns
    assert n_turns < 4 or (turns[1], turns[2].content) == (sent[0].messages[1], "at noon")
    assert answer.steps[0].n_calls == len(sent) == 2


@pytest.mark.parametrize(("check", "n_checks"), [("auto", 0), ("all", 1)])
def test_a_model_that_is_too_small_checks_claims_only_if_all_are_to_be(
    check: str, n_checks: int
) -> None:
    checked: list[CheckTask] = []

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            checked.append(request.task)
            return verdicts("supported")
        assert isinstance(request.task, ActionTask)
        if request.task.action.composes:
            return "The ferry left when the sun was high [1]."
        return "noon\n> The ferry left at noon."

    pearl = Pearl(Small(reply), check=check)
    plan = pearl.compile(
        '1. a = FIND(CTX, "when it left") : When\n2. b = FIND(CTX, "what left") : What\n3. ans = ANSWER("When?", a, b) : Answer'
    )
    answer = asyncio.run(pearl.execute(plan, DOCUMENT))
    assert len(checked) == n_checks
    assert any("meaning was not checked" in note for note in answer.notes) is (n_checks == 0)


def traced_tokens(pearl: Pearl, text: str) -> int | None:
    trace = Trace()
    plan = pearl.compile('1. ans = FIND(CTX, "it") : Find it')
    asyncio.run(pearl.execute(plan, Document(text), trace=trace))
    return next(e.n_document_tokens for e in trace if isinstance(e, RunStarted))


def test_trace_has_the_tokens_of_a_long_document() -> None:
    text = TEXT * 400
    pearl = Pearl(Scripted(lambda request: "found"), window=12_000)
    assert traced_tokens(pearl, text) == Counter().count(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "extractiv"}, "did you mean 'extractive'"),
        ({"model": "gpt-4o"}, "did you mean 'openai:gpt-4o'"),
        ({"domain": "medicl"}, "did you mean 'medical'"),
        ({"context": "ful"}, "did you mean 'full'"),
        ({"library": "qualty"}, "did you mean 'quality'"),
    ],
)
def test_unknown_names_have_suggestions(settings: dict[str, str], words: str) -> None:
    with pytest.raises(DataError if "library" in settings else UsageError, match=words):
        Pearl(**settings)  # type: ignore[arg-type]


def test_changing_a_fact_of_the_shipped_story_changes_the_answer(tmp_path: Path) -> None:
    question = "Why does Tobias cross the river every night at ten with an empty boat?"
    story = load(FOLDER / "story.txt")

    async def ask(document: Document) -> list[str]:
        async with Pearl() as pearl:
            return [e.text for e in (await pearl.ask(question, document)).evidence]

    before = asyncio.run(ask(story))
    best = before[0]
    changed = best.replace(best.split()[-1], "nobody-knows-what.")
    after = asyncio.run(ask(Document(story.text.replace(best, changed), "story")))
    assert before != after
    assert changed in after


def test_bug_in_one_task_does_not_affect_others() -> None:
    def faulty(request: Request) -> str:
        if isinstance(request.task, ActionTask) and "bug" in (request.task.document or ""):
            raise ZeroDivisionError("a bug")
        return reply(request)

    async def main() -> list[Outcome[Task]]:
        documents = [Document(text) for text in ("one", "a bug", "three")]
        tasks = [Task(d.text, lambda d=d: d, "Why?") for d in documents]  # type: ignore[misc]
        return [outcome async for outcome in run(Pearl(Scripted(faulty)), tasks)]

    outcomes = asyncio.run(main())
    assert [outcome.to_dict()["status"] for outcome in outcomes] == [
        "degraded",
        "failed",
        "degraded",
    ]
    assert outcomes[1].to_dict()["error"]["type"] == "ZeroDivisionError"


def test_string_is_refused_as_document() -> None:
    with pytest.raises(UsageError, match="Document, not a str"):
        asyncio.run(Pearl().ask("Why?", "some text"))  # type: ignore[arg-type]


def test_run_refuses_a_function() -> None:
    with pytest.raises(UsageError, match="cannot be awaited") as caught:
        pearl.run(Pearl().ask)  # type: ignore[arg-type]
    assert "pearl.run(pearl.Pearl().ask(...))" in str(caught.value)


@pytest.mark.parametrize("mark", ["<s>", "[INST]", "</text>", "<input>", "<|im_end|>"])
def test_a_passage_with_marks_of_prompts_can_be_quoted(mark: str) -> None:
    document = Document(f"The price {mark}of fifty was struck out yesterday.")

    def reply(request: Request) -> str:
        lines = request.messages[-1].content.splitlines()
        return "It was struck.\n> " + next(line for line in lines if "fifty" in line)

    pearl = Pearl(Scripted(reply))
    plan = pearl.compile('1. ans = FIND(CTX, "the price") : Find it')
    (passage,) = asyncio.run(pearl.execute(plan, document)).evidence
    assert passage.text == document.text


def test_tracebacks_of_a_private_pearl_quote_nothing() -> None:
    table = Document("name,dose\nZelmira,5", "t.csv", kind="table")
    plans = (
        '1. r = SPLIT(CTX, "record") : Rows\n2. n = FIELD(r, "Zelmira") : No such field',
        '1. r = SPLIT(CTX, "record") : Rows\n2. n = WHERE(r, "name", "at most", "Zelmira") : No number',
        '1. n = FIND(CTX, "Zelmira") : The model breaks',
        "1. n = ZELMIRA(CTX) : No such action",
    )

    def broken(request: Request) -> str:
        raise ValueError("Zelmira")

    with privacy_restored():
        asker = Pearl(Scripted(broken), private=True)
        for plan in plans:
            with pytest.raises(PearlError) as raised:
                asyncio.run(asker.execute(plan, table))
            told = "".join(format_exception(raised.value))
            assert "a private run leaves out what was wrong" in told
            assert "zelmira" not in told.casefold()


def test_an_answer_from_a_server_that_cuts_prompts_is_degraded_and_not_cached(
    openai_server: Server,
) -> None:
    reply = completion("The hull was rotten.")
    reply["usage"] = {"prompt_tokens": 30, "completion_tokens": 5}
    openai_server.answer = lambda seen: Canned(reply)
    document = pearl.Document("Nils left the harbour at dawn. " * 500)

    async def main() -> tuple[Answer, Answer]:
        model = "openai:test-model"
        settings = {"base_url": openai_server.url, "constrain": "off"}
        async with Pearl(model, replies=MemoryReplies(), **settings) as asker:  # type: ignore[arg-type]
            plan = '1. why = FIND(CTX, "why") : Find it'
            return await asker.execute(plan, document), await asker.execute(plan, document)

    for answer in asyncio.run(main()):
        assert answer.status == "degraded"
        assert "counts 30 tokens for a prompt of 3," in answer.why


def test_a_text_of_lines_without_a_step_is_an_invalid_plan_and_names_no_file() -> None:
    with pytest.raises(PlanError):
        Pearl().checked("New actions:\n- None\n")
