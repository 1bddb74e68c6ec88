"""Replies that are no answer: never taken as certain, whatever their words are."""

from __future__ import annotations

import asyncio
import json
import tomllib

import pytest

from pearl.documents.document import Document
from pearl.documents.evidence.finding import find_quotes, is_passage
from pearl.dsl.signatures import ValueType
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.answer import Answer
from pearl.interpreter.model_calls import is_unproven
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.replies.step_replies import read_reply
from pearl.trace import ModelCalled, Trace
from tests.models import Reading, written
from tests.root import ROOT
from tests.server import Canned, Server, completion

KEYS = {
    ValueType.TEXT: "answer", ValueType.LIST: "entries", ValueType.NUMBER: "value", ValueType.BOOL: "verdict",
}  # fmt: skip
DOCUMENT = Document("Ada sold the boat. The hull leaked. Nils has a dog.")
TEXTS = tomllib.loads((ROOT / "tests/replies/no_replies.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["refused", "transport", "empty"])
@pytest.mark.parametrize("wanted", KEYS)
def test_what_is_no_answer_is_out_of_the_form_or_a_text_without_a_quote(
    kind: str, wanted: ValueType
) -> None:
    for reply in TEXTS[kind]:
        for text in (reply, json.dumps({KEYS[wanted]: reply})):
            read = read_reply(text, wanted, source=DOCUMENT.text)
            # A quotation is looked up in the document.
            is_quoting = any(map(is_passage, find_quotes(read.plain)))
            assert read.state != "found" or is_unproven(read, wanted) or is_quoting, text


def test_what_is_not_stated_is_nothing_and_what_says_more_is_an_answer() -> None:
    for reply in TEXTS["not_stated"]:
        for text in (reply, json.dumps({"answer": reply})):
            read = read_reply(text, ValueType.TEXT)
            assert (read.state, read.value) == ("nothing", reply)
    answers = TEXTS["stated"]
    assert [a for a in answers if read_reply(a, ValueType.TEXT).state != "found"] == []


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


@pytest.mark.parametrize("reply", [REFUSAL, json.dumps({"answer": REFUSAL, "quotes": []})])
def test_a_text_without_a_quote_is_never_certain(reply: str) -> None:
    answer = run(ONE, model(reply))
    assert (answer.status, answer.text) == ("degraded", REFUSAL)
    assert answer.why == "step 'why' (FIND): the reply quotes no passage"
    with pytest.raises(ExecutionError, match="quotes no passage"):
        run(ONE, model(reply), strict=True)
    assert run(ONE, model(f"{reply}\n> The hull sank.")).status == "degraded"
    # What a person has scripted needs no proof.
    assert run(ONE, Scripted(lambda request: reply)).status == "answered"


def test_lone_surrogates_of_a_model_reach_no_answer() -> None:
    for reply in (
        "It \ud800 leaked.\n> The hull leaked.",
        '{"answer": "It \\ud800 leaked.", "quotes": []}',
    ):
        assert run(ONE, model(reply)).text == "It \ufffd leaked."
    assert run(ONE, model('{"answer": "\\ud83d\\ude00", "quotes": []}')).text == "\U0001f600"


def test_a_refused_step_leaves_no_answer_of_those_after_it() -> None:
    def reply(request: Request) -> str:
        if '"two"' in request.prompt:
            raise ModelError("it refuses", kind="refused")
        return "It leaked."

    answer = run(TWO, Reading(reply))
    assert (answer.status, answer.steps[0].text) == ("refused", "It leaked.")


@pytest.mark.parametrize(
    ("question", "reply", "why"),
    [
        ("Why?", "It leaked.\n> The hull was rotten.", "'The hull was rotten.'"),
        ("How many dogs are there?", "Nils has a dog.\n> Nils has a dog.", ""),
        ("How many dogs are there?", "There are 1919.\n> Nils has a dog.", ""),
        ("Why do a number of people sell boats?", "They leak.\n> The hull leaked.", ""),
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


@pytest.mark.parametrize(
    "reply", ["<html>\n<head><title>502 Bad Gateway</title>", "</s>", "<think>hm</think>"]
)
def test_pages_and_blanks_are_asked_again(reply: str) -> None:
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
         "", "1"),
    ],
)  # fmt: skip
def test_reasoning_reaches_no_reader_and_the_trace(
    plan: str, reply: str, text: str, is_reading: bool
) -> None:
    def reason(request: Request) -> str:
        return THOUGHTS + (reply or written(request.prompt, ["no", "no", "yes"]))

    scripted, trace = Scripted(reason), Trace()
    scripted.reads_prompts = is_reading
    answer = run(plan, scripted, trace)
    assert (answer.text, answer.status) == (text, "answered")
    (called,) = (event for event in trace if isinstance(event, ModelCalled))
    assert called.reasoning == "- a dog\n- a cat, perhaps"
    assert THOUGHTS + called.reply == reason(scripted.requests[0])


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


def test_a_reply_held_to_json_is_read_behind_its_reasoning(openai_server: Server) -> None:
    plan = '1. all = LIST_ALL(CTX, "animals") : List\n2. n = COUNT(all) : Count'
    reply = THOUGHTS + '{"entries": [{"entry": "a dog", "quote": ""}]}'

    openai_server.takes_constraints = True

    async def count() -> Answer:
        settings = {"base_url": openai_server.url, "server": "vllm", "constrain": "json"}
        async with Pearl("openai:test-model", library="seed", **settings) as pearl:  # type: ignore[arg-type]
            return await pearl.execute(plan, DOCUMENT)

    openai_server.next(Canned(completion(reply)))
    assert asyncio.run(count()).text == "1"
