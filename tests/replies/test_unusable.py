"""Replies that are no reply: told apart from answers, asked again, never kept or shown."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path

import pytest

from pearl.documents.document import Document
from pearl.dsl.signatures import ValueType
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.answer import Answer
from pearl.llm import Completion, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.replies.typed import read_reply
from pearl.replies.unusable import unusable
from pearl.trace import ModelCalled, Trace
from tests.models import MemoryReplies, Reading
from tests.root import ROOT
from tests.server import Canned, Server, completion

TEXTS = tomllib.loads((ROOT / "tests/replies/no_replies.toml").read_text(encoding="utf-8"))


def test_what_is_no_reply_is_told_from_what_only_looks_like_it() -> None:
    for kind in ("refused", "transport", "empty"):
        for reply in TEXTS[kind]:
            problem = unusable(reply)
            assert problem is not None, reply
            assert problem.kind == (kind if "filter" not in reply else "refused"), reply
    assert [reply for reply in TEXTS["usable"] if unusable(reply) is not None] == []


def test_what_is_not_stated_is_nothing_and_what_says_more_is_an_answer() -> None:
    for reply in TEXTS["not_stated"]:
        read = read_reply(reply, ValueType.TEXT)
        assert (read.state, read.value) == ("nothing", reply)
    answers = TEXTS["stated"]
    assert [a for a in answers if read_reply(a, ValueType.TEXT).state != "found"] == []


def test_a_quote_of_the_source_is_a_reply() -> None:
    said = "I'm sorry, I can't help with that."
    assert unusable(said, f"The bot wrote: {said}\n\nThen it stopped.") is None
    assert unusable(f"{said}\n> {said}") is None


DOCUMENT = Document("Ada sold the boat. The hull leaked. Nils has a dog.")
ONE = '1. why = FIND(CTX, "the sale") : Find why'
TWO = '1. a = FIND(CTX, "one") : One\n2. b = FIND(CTX, "two") : Two\n3. c = CONCAT(a, b) : Both'
REFUSAL = "I'm sorry, but I can't help with that."


def model(*replies: str) -> Reading:
    """One that gives these in turn, the last one again and again."""
    left = list(replies)
    return Reading(lambda request: left.pop(0) if len(left) > 1 else left[0])


def run(plan: str, scripted: Scripted, trace: Trace | None = None, **settings: object) -> Answer:
    pearl = Pearl(scripted, library="seed", **settings)  # type: ignore[arg-type]
    return asyncio.run(pearl.execute(plan, DOCUMENT, trace=trace))


def test_a_refusal_is_asked_again_and_then_said_and_never_kept() -> None:
    scripted, replies, trace = model(REFUSAL), MemoryReplies(), Trace()
    answer = run(ONE, scripted, trace, replies=replies)
    assert (answer.status, answer.steps[0].state) == ("refused", "refused")
    assert "sorry" not in answer.text
    assert answer.why == f"step 'why' (FIND): scripted refuses: {REFUSAL}"
    assert answer.to_dict()["why"] == answer.why
    assert (len(scripted.requests), replies.replies) == (2, {})
    assert run(ONE, model(REFUSAL, "It leaked.")).text == "It leaked."


def test_what_a_store_kept_before_is_read_in_the_same_way() -> None:
    replies = MemoryReplies()
    run(ONE, model("It leaked."), replies=replies)
    (key,) = replies.replies
    replies.replies[key] = Completion("<think>Hm.</think>It sank.", "m")
    assert run(ONE, model("It leaked."), replies=replies).text == "It sank."
    replies.replies[key] = Completion(REFUSAL, "m")
    assert run(ONE, model("It leaked."), replies=replies).text == "It leaked."


def test_lone_surrogates_of_a_model_reach_no_answer() -> None:
    answer = run(ONE, model("It \ud800 leaked.\n> The hull leaked."))
    assert answer.text == "It \ufffd leaked."


def test_a_refused_step_leaves_no_answer_of_those_after_it() -> None:
    def reply(request: Request) -> str:
        return REFUSAL if '"two"' in request.prompt else "It leaked."

    answer = run(TWO, Reading(reply))
    assert (answer.status, answer.steps[0].text) == ("refused", "It leaked.")
    assert "sorry" not in answer.text


def test_strict_fails_the_step() -> None:
    with pytest.raises(ExecutionError) as caught:
        run(ONE, model(REFUSAL), strict=True)
    assert caught.value.exit_code == ModelError.exit_code


@pytest.mark.parametrize(
    ("question", "reply", "why"),
    [
        ("Why?", "It leaked.\n> The hull was rotten.", "'The hull was rotten.'"),
        ("How many dogs are there?", "Nils has a dog.\n> Nils has a dog.", ""),
        ("How many dogs are there?", "Nils has it.\n> Nils has a dog.", "no number"),
        (
            "How many dogs are there?",
            "Nils has a boat since 1919 [2].\n> Nils has a dog.",
            "no number",
        ),
        ("How many dogs are there?", "There are 1919.\n> Nils has a dog.", ""),
        ("How many dogs are there?", "A ventilator; the sex is open.", "no number"),
        ("Wie viele Hunde gibt es?", "Nils hat welche.", "no number"),
        ("What is the number of dogs?", "Nils has it.", "no number"),
        ("Why do a number of people sell boats?", "They leak.", ""),
        ("How many dogs are there?", "Nothing found.", ""),
    ],
)
def test_an_answer_that_may_be_wrong_is_degraded(question: str, reply: str, why: str) -> None:
    plan = f"Question: {question}\n\n{ONE}"
    answer = run(plan, model(reply))
    status = "nothing_found" if "Nothing" in reply else "answered"
    assert (answer.status, bool(answer.why)) == ("degraded" if why else status, bool(why))
    assert why in answer.why
    if why:
        with pytest.raises(ExecutionError, match="degraded"):
            run(plan, model(reply), strict=True)


@pytest.mark.parametrize("reply", ["502 Bad Gateway", "</s>", "<think>hm</think>", "null"])
def test_errors_and_blanks_are_asked_again(reply: str) -> None:
    assert run(ONE, model(reply, "It leaked."), first_wait_s=0.01).text == "It leaked."
    with pytest.raises(ExecutionError) as caught:
        run(ONE, model(reply), first_wait_s=0.01)
    assert caught.value.exit_code == ModelError.exit_code


THOUGHTS = "<think>\n- a dog\n- a cat, perhaps\n</think>\n\n"


@pytest.mark.parametrize("is_reading", [True, False])
@pytest.mark.parametrize(
    ("plan", "reply", "text"),
    [
        (ONE, "It leaked.\n> The hull leaked.", "It leaked."),
        ('1. all = LIST_ALL(CTX, "animals") : List\n2. n = COUNT(all) : Count', "- a dog", "1"),
        ('1. s = SPLIT(CTX, "sentence") : Split\n2. k = FILTER(s, "has a dog") : Keep\n3. n = COUNT(k) : Count',
         "1 | Ada sold the: no\n2 | The hull leaked: no\n3 | Nils has a: yes", "1"),
    ],
)  # fmt: skip
def test_reasoning_reaches_no_reader_and_the_trace(
    plan: str, reply: str, text: str, is_reading: bool
) -> None:
    scripted, trace = Scripted(lambda request: THOUGHTS + reply), Trace()
    scripted.reads_prompts = is_reading
    answer = run(plan, scripted, trace)
    assert (answer.text, answer.status) == (text, "answered")
    (called,) = (event for event in trace if isinstance(event, ModelCalled))
    assert (called.reply, called.reasoning) == (reply, "- a dog\n- a cat, perhaps")


def test_reasoning_without_an_end_is_asked_again_with_more_room() -> None:
    scripted = model("<think>He left. It may be that", "It leaked.")
    assert run(ONE, scripted).text == "It leaked."
    first, second = (request.max_output_tokens or 0 for request in scripted.requests)
    assert second == 2 * first
    answer = run(ONE, model("<think>He left. It may be that"))
    assert (answer.status, "He left" in answer.text) == ("undecided", False)


def test_plans_and_choices_are_read_without_reasoning() -> None:
    def reply(request: Request) -> str:
        if "Options:" in request.prompt:
            return "<think>Answer: A</think>\n\nAnswer: B"
        if "> " in request.prompt and "carry out" in request.prompt:
            return "It leaked."
        return f"<think>{ONE.replace('FIND', 'FIND_REASON')}</think>\n\n{ONE}"

    async def main() -> tuple[Answer, int | None]:
        pearl = Pearl(Reading(reply), library="seed")
        answer = await pearl.ask("Why was it sold?", DOCUMENT)
        return answer, (await pearl.choose("Why?", ["rust", "a leak"], answer="water")).index

    answer, index = asyncio.run(main())
    assert (answer.steps[0].action, answer.text, index) == ("FIND", "It leaked.", 1)


def test_the_command_says_so(
    openai_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from pearl.cli import run as pearl_cli

    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(DOCUMENT.text)
    Path("why.plan").write_text(f"Question: Why?\n\nNew actions:\n- None\n\n{ONE}\n")
    command = ["execute", "why.plan", "a.txt", "--model", "openai:test-model", "--base-url", openai_server.url]  # fmt: skip
    for _ in range(2):
        openai_server.next(Canned(completion(REFUSAL)))
    assert pearl_cli([*command, "--json"]) == ModelError.exit_code
    row = json.loads(capsys.readouterr().out)
    assert (row["status"], "sorry" in row["answer"]) == ("refused", False)
    assert "sorry" in row["why"]
    openai_server.next(Canned(completion("<think>Hm.</think>It leaked.\n> The hull leaked.</s>")))
    assert pearl_cli([*command, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["status"], row["answer"]) == ("answered", "It leaked.")


def test_a_reply_held_to_json_is_read_behind_its_reasoning(openai_server: Server) -> None:
    plan = '1. all = LIST_ALL(CTX, "animals") : List\n2. n = COUNT(all) : Count'
    reply = THOUGHTS + '{"entries": [{"entry": "a dog", "quote": ""}]}'

    openai_server.sees_probes = True

    async def count() -> Answer:
        settings = {"base_url": openai_server.url, "server": "vllm", "constrain": "json"}
        async with Pearl("openai:test-model", library="seed", **settings) as pearl:  # type: ignore[arg-type]
            return await pearl.execute(plan, DOCUMENT)

    openai_server.next(
        Canned(completion('{"sentence": "Seven umbrellas hum in quartz"}')),
        Canned(completion(reply)),
    )
    assert asyncio.run(count()).text == "1"


def test_reasoning_beside_the_reply_is_in_the_trace(openai_server: Server) -> None:
    async def ask() -> Trace:
        trace = Trace()
        async with Pearl("openai:test-model", library="seed", base_url=openai_server.url) as pearl:
            await pearl.execute(ONE, DOCUMENT, trace=trace)
        return trace

    openai_server.next(Canned(completion("It leaked.", reasoning_content="Hm.")))
    (called,) = (event for event in asyncio.run(ask()) if isinstance(event, ModelCalled))
    assert (called.reply, called.reasoning) == ("It leaked.", "Hm.")
