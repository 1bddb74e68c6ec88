"""Replies that are no reply: told apart from answers, asked again, never kept or shown."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pearl.documents.document import Document
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.answer import Answer
from pearl.llm import Completion, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.replies.unusable import unusable
from pearl.trace import ModelCalled, Trace
from tests.models import MemoryReplies, Reading
from tests.server import Canned, Server, completion

REFUSALS = """
I'm sorry, but I can't help with that request.
I'm sorry, but I can't help with that.
I’m sorry, I can’t assist with that.
Sorry, I can't do that.
I apologize, but I cannot provide that information.
I cannot fulfill this request. I am just an AI model.
I can't satisfy your request, I'm just an AI.
As an AI language model, I cannot access external documents.
I won't be able to help with that.
I must decline to answer.
I'm unable to assist with this request. However, I can offer general information.
I don't feel comfortable continuing with this conversation.
Unfortunately, I am not able to comply.
I'm not able to help with that, but I'm happy to talk about something else.
**I'm sorry, but I can't assist with that.**
- I'm sorry, I can't help with that.
This request violates our usage policies.
The response was filtered due to the prompt triggering Azure OpenAI's content management policy.
[error: content filtered]
Content filtered.
I'm sorry.
Es tut mir leid, aber dabei kann ich nicht helfen.
Tut mir leid, ich kann Ihnen dabei nicht weiterhelfen.
Leider kann ich diese Anfrage nicht beantworten.
Als KI-Sprachmodell kann ich das nicht tun.
Je suis désolé, mais je ne peux pas vous aider avec cette demande.
Désolé, je ne peux pas répondre à cette question.
Lo siento, pero no puedo ayudar con eso.
Desculpe, mas não posso ajudar com isso.
Mi dispiace, ma non posso aiutarti con questa richiesta.
Het spijt me, maar daar kan ik je niet mee helpen.
抱歉，我无法提供帮助。
很抱歉，我不能协助完成这个请求。
对不起，我无法回答这个问题。
作为一个人工智能，我没有看法。
申し訳ございませんが、そのリクエストにはお応えできません。
申し訳ありませんが、お手伝いできません。
죄송합니다. 그 요청은 도와드릴 수 없습니다.
Извините, я не могу помочь с этим.
Przepraszam, ale nie mogę w tym pomóc.
Please provide the text.
Sure! How can I help you today?
Let me know if you have any other questions.
Hello! How can I assist you today?
I'd be happy to help! Please share the document.
Could you please provide the document you would like me to read?
It seems you didn't provide any text. Please paste it.
I don't see any text in your message.
Understood.
Bitte geben Sie mir den Text.
Wie kann ich Ihnen helfen?
Veuillez fournir le texte.
请提供文本。
有什么可以帮您？
I need to decline this request.
I'd rather not discuss this.
I don't understand the question.
What would you like me to do with this text?
You haven't provided a document.
I apologize for the confusion.
Your request was flagged by our safety system.
This content is blocked.
Ich bin leider nicht in der Lage, diese Frage zu beantworten.
Je ne peux pas répondre à cette demande.
No puedo ayudarte con eso.
Não posso responder a isso.
Non posso aiutarti con questo.
我不能提供此类信息。
お答えできません。
답변을 드릴 수 없습니다.
Я не могу ответить на этот вопрос.
Beklager, men jeg kan ikke hjelpe med det.
Sure!
Let me think step by step.
FIND_REASON(CTX, "the captain turns back")
<tool_call>{"name": "search", "arguments": {}}</tool_call>
{"name": "search", "arguments": {"q": "x"}}
<function=search>{"q": 1}</function>
[TOOL_CALLS] [{"name": "search", "arguments": {}}]
Apologies, but this isn't something I'm able to help with.
I don't have access to the document you mention.
I'm Qwen, created by Alibaba Cloud. I'm not able to process this.
I can only answer questions about cooking.
My guidelines don't allow me to discuss this.
That's outside what I can do.
This conversation cannot continue because it violates our policies.
这个话题我还没有学会，换个话题吧。
Maaf, saya tidak bisa membantu.
Tôi không thể giúp bạn.
Sajnálom, de ebben nem tudok segíteni.
Λυπάμαι, δεν μπορώ να βοηθήσω.
Sure, I can help with that!
""".strip().split("\n")

ERRORS = """
502 Bad Gateway
Error: 500 Internal Server Error
Error 503
HTTP 503 Service Unavailable
HTTP/1.1 429 Too Many Requests
429 Too Many Requests
<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>
<!DOCTYPE html><html><body>Just a moment...</body></html>
{"error": "rate limit exceeded"}
{"error": {"message": "The server is overloaded", "type": "server_error"}}
{"detail": "Internal error"}
[ERROR] upstream timeout
upstream connect error or disconnect/reset before headers. reset reason: overflow
Internal Server Error
error code: 502
Rate limit exceeded. Please try again later.
Timeout
API error
Oops! Something went wrong.
The server is overloaded. Please try again later.
RuntimeError: CUDA out of memory
openai.error.RateLimitError: Rate limit reached
{"code": 500, "message": "internal error"}
Error: Request timed out.
You exceeded your current quota, please check your plan and billing details.
Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000
The server is overloaded or not ready yet.
The model `gpt-5` does not exist or you do not have access to it.
This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.
openai.APIError: boom
error code: 1020
fetch failed
ECONNREFUSED
Unauthorized
Invalid API key provided.
{"message":"Forbidden"}
{"code":429,"msg":"too many requests"}
data: {"choices":[]}
<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>
""".strip().split("\n")

EMPTY = (
    "Sure, here is the answer:",
    "Answer:",
    "[Your answer here]",
    "assistant",
    '{"answer": ""}',
    "null",
    "undefined",
    "....",
    "…",
    "---",
    "\ufffd" * 40,
    "a���������",
    "```\n```",
    '""',
)

ANSWERS = """
The captain apologised: he could not help.
"I'm sorry, I can't help you," said the captain.
“I cannot help you,” he says.
He is sorry that he cannot help.
Unfortunately, the ship sank.
Unfortunately for the crew, they could not help.
We can't help with refunds after 30 days.
I understand that the ship left at dawn.
I cannot find the captain's name in the text.
I'm sorry, but the text does not mention the captain.
Thank you letters
503
502 patients
The server returned 502 errors twice a day.
404
Error rates rose to 5 % in May.
The error was caused by a wrong chart.
Errors in navigation: the mate misread the chart.
An error occurred in the count of votes, which led to a recount.
Rate limits were introduced in 2020.
The connection was lost
The model is unavailable to customers in Japan.
Forbidden love between two families
Content moderation teams were dismissed.
The report is about content moderation and how posts are flagged.
Request denied
Of course
Yes
no
-
€
👍
{"limit": 1}
The clerk asks him to please provide the text.
Here is where the ship sank.
You can see the harbour from there.
What can I do? she asks herself.
If you drink it, you die.
Bitte
Er bat um Hilfe, aber leider konnte niemand helfen.
Elle ne peut pas répondre à cette lettre.
抱歉，文中没有提到船长的名字。
船长无法回答这个问题。
Function of the kidney
Nothing found.
1: I'm sorry, I can't help with that.
If there's a fire, please leave the building.
If you provide the form late, the agency will help only in cases of hardship.
Once you have signed, I will deliver the goods.
When you need help, ask the crew.
You can try again after 30 days.
You may contact the seller for more information.
Please contact the office for details.
Kindly include your name in the letter.
You didn't give the seller notice.
How can I live without you?
The file is missing
That question was inappropriate.
This content was harmful to minors.
The request was blocked by the mayor.
That is outside the scope of the treaty.
As an AI startup, the firm could not get a loan.
Rate limits fell.
Unauthorized persons opened the safe.
The server returned 502 Bad Gateway, so the job was rescheduled.
""".strip().split("\n")


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        *(("refused", reply) for reply in REFUSALS),
        *(("transport", reply) for reply in ERRORS),
        *(("empty", reply) for reply in EMPTY),
    ],
)
def test_what_is_no_reply(kind: str, reply: str) -> None:
    problem = unusable(reply)
    assert problem is not None
    assert (problem.kind if "filter" not in reply else "refused") == kind


@pytest.mark.parametrize("reply", ANSWERS)
def test_what_is_a_reply(reply: str) -> None:
    assert unusable(reply) is None


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
    assert answer.to_json()["why"] == answer.why
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


def test_a_refused_step_leaves_no_answer_of_those_after_it() -> None:
    def reply(request: Request) -> str:
        return REFUSAL if 'X = "two"' in request.prompt else "It leaked."

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
    reply = THOUGHTS + '{"value": ["a dog"], "passages": []}'

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
