"""Conversations: turns, files of conversations, untrusted files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Conversation, Document, Pearl
from pearl.data.samples import Turn
from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import ActionTask, PlanTask, Request, StandaloneTask
from pearl.llm.backends.scripted import Scripted
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from pearl.testing import Fake
from pearl.trace import QuestionUnderstood, Trace
from tests.models import Acting

STORY = Document("Ada sold the boat because it leaked.\n\nOtto slept all day.", "story.txt")
PLAN = 'New actions:\n- None\n\n1. a = FIND(CTX, "the boat") : Find it'


def reply(request: Request) -> str:
    match request.task:
        case StandaloneTask(question=question):
            return f"After ANSWER_1: {question}"
        case PlanTask():
            return PLAN
    return "It leaked."


def talk(*questions: str, model: Scripted | None = None) -> Conversation:
    conversation = Conversation(Pearl(model or Scripted(reply)), STORY)

    async def ask() -> None:
        for question in questions:
            await conversation.ask(question)

    asyncio.run(ask())
    return conversation


def test_question_is_interpreted_with_earlier_ones() -> None:
    model = Scripted(reply)
    conversation = talk("Who sold it?", "  And\nwhy? ", model=model)
    assert conversation.turns == (
        Turn("Who sold it?", "It leaked."),
        Turn("And why?", "It leaked."),
    )
    tasks = [each.task for each in model.requests]
    assert [task for task in tasks if isinstance(task, StandaloneTask)] == [
        StandaloneTask("And why?", (Turn("Who sold it?", "ANSWER_1"),))
    ]
    assert conversation.last is not None
    assert conversation.last.understood is not None
    assert conversation.last.understood.question == 'After "It leaked.": And why?'


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ('{"name": {"value": "Ada", "quote": "Ada sold"}}', 'Why did "Ada" sell the boat?'),
        ('{"name": {"value": "Otto", "quote": "Otto sold"}}', ""),  # no words of the answer
        ('{"name": null}', ""),
    ],
)
def test_an_answer_of_a_sentence_is_referred_to_by_what_it_names(said: str, question: str) -> None:
    answer = "Ada sold the boat because it leaked."

    def replied(request: Request) -> str | None:
        match request.task:
            case StandaloneTask():
                return "Why did ANSWER_1 sell the boat?"
            case ActionTask() if request.task.action.extracts:
                assert request.document == answer
                return said
        return None

    model = Fake(replied)
    conversation, trace = Conversation(Pearl(model), STORY), Trace()
    assert asyncio.run(conversation.ask("Who sold the boat?")).text == answer
    if not question:
        with pytest.raises(
            UsageError, match=r"^say who or what this asks about, or repeat it[^\n]*$"
        ):
            asyncio.run(conversation.ask("And why?"))
        assert len(conversation.turns) == 1
        found = asyncio.run(conversation.ask("And why?"))  # repeated
        assert found.understood is not None
        assert found.understood.question == "And why?"
        assert "could not be made standalone" in found.understood.notes[0]
        return
    found = asyncio.run(conversation.ask("And why?", trace=trace))
    assert found.understood is not None
    assert found.understood.question == question
    planned = [r.prompt for r in model.requests if isinstance(r.task, PlanTask)]
    assert not any(answer in prompt for prompt in planned)
    # Both calls are told: the question made clear, and the name.
    assert sum(e.n_calls for e in trace if isinstance(e, QuestionUnderstood)) == 2


def test_failed_turn_is_not_kept() -> None:
    fails = [False]

    def sometimes(request: Request) -> str:
        if fails[0] and isinstance(request.task, PlanTask):
            raise ModelError("no", kind="bad_request")
        return reply(request)

    conversation = talk("Who sold it?", model=Scripted(sometimes))
    before = conversation.to_jsonl()
    fails[0] = True
    with pytest.raises(ModelError):
        asyncio.run(conversation.ask("And why?"))
    with pytest.raises(UsageError):
        asyncio.run(conversation.ask(" "))
    assert conversation.to_jsonl() == before
    fails[0] = False
    asyncio.run(conversation.ask("And why?"))
    assert len(conversation.turns) == 2


def test_concurrent_questions_wait_for_each_other() -> None:
    seen: list[int] = []

    async def act(request: Request) -> str:
        await asyncio.sleep(0)
        if isinstance(request.task, StandaloneTask):
            seen.append(len(request.task.history))
        return reply(request)

    conversation = Conversation(Pearl(Acting(act)), STORY)

    async def together() -> None:
        await asyncio.gather(*(conversation.ask(f"Why {n}?") for n in range(3)))

    asyncio.run(together())
    assert seen == [1, 2]
    assert [turn.question for turn in conversation.turns] == ["Why 0?", "Why 1?", "Why 2?"]


def test_undo_and_clear() -> None:
    conversation = talk("Who sold it?", "And why?")
    assert conversation.undo() == Turn("And why?", "It leaked.")
    assert conversation.last is None
    assert len(conversation.turns) == 1
    conversation.clear()
    assert conversation.turns == ()
    assert conversation.undo() is None


def test_conversation_is_continued_from_its_file() -> None:
    first = talk("Who sold it?", "And why?")
    text = first.to_jsonl()
    again = Conversation.from_jsonl(text, Pearl(Scripted(reply)), STORY)
    assert again.turns == first.turns
    assert again.to_jsonl() == text
    asyncio.run(again.ask("When?"))
    assert again.to_jsonl().startswith(text)
    row = json.loads(again.lines[-1])
    assert (row["question"], row["answer"], row["plan"]) == ("When?", "It leaked.", row["plan"])
    assert "FIND(CTX" in row["plan"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [], "not a conversation"),
        (lambda lines: ["{}"], "not a conversation"),
        (lambda lines: [lines[0].replace('"v": 1', '"v": 2'), *lines[1:]], "not a conversation"),
        (lambda lines: [lines[0].replace("story", "tale").replace('256": "', '256": "0'), ""],
         "another document"),
        (lambda lines: [lines[0], '{"question": "Why?"}', ""], "line|answer"),
        (lambda lines: [lines[0], '{"question": " ", "answer": ""}', ""], "question is empty"),
        (lambda lines: [lines[0], '{"question": 7, "answer": ""}', ""], "question"),
        (lambda lines: [lines[0], "[" * 100_000, ""], "not a turn"),
        (lambda lines: [lines[0], '{"question": "\\ud800", "answer": ""}', ""], "not a turn"),
    ],
)  # fmt: skip
def test_invalid_conversation_is_an_error(change: object, message: str) -> None:
    lines = talk("Who sold it?").to_jsonl().split("\n")
    text = "\n".join(change(lines))  # type: ignore[operator]
    with pytest.raises(DataError, match=message):
        Conversation.from_jsonl(text, Pearl(Scripted(reply)), STORY)


@given(st.text())
def test_any_text_is_a_conversation_or_an_error(text: str) -> None:
    head = Conversation(Pearl(Scripted(reply)), STORY).to_jsonl()
    for whole in (text, head + text, f"{head}{text}\n"):
        try:
            found = Conversation.from_jsonl(whole, Pearl(Scripted(reply)), STORY)
        except DataError:
            continue
        assert all(turn.question for turn in found.turns)


def test_incomplete_last_line_is_left_out() -> None:
    text = talk("Who sold it?", "And why?").to_jsonl()
    found = Conversation.from_jsonl(text[:-30], Pearl(Scripted(reply)), STORY)
    assert [turn.question for turn in found.turns] == ["Who sold it?"]
    found = Conversation.from_jsonl(text.rstrip(), Pearl(Scripted(reply)), STORY)
    assert [turn.question for turn in found.turns] == ["Who sold it?", "And why?"]


def test_conversation_is_continued_over_a_changed_corpus() -> None:
    def corpus(*texts: str) -> Document:
        found = [CorpusDocument(f"{n}.txt", text) for n, text in enumerate(texts)]
        return Index.build(found).document("folder")

    old = corpus("Ada sold the boat because it leaked.", "Otto slept.")
    conversation = Conversation(Pearl(), old)
    asyncio.run(conversation.ask("Who sold the boat?"))
    new = corpus("Ada sold the boat because it leaked.", "Otto slept.", "Ines came.")
    again = Conversation.from_jsonl(conversation.to_jsonl(), Pearl(), new)
    answer = asyncio.run(again.ask("Why did she sell the boat?"))
    assert "because it leaked" in answer.text


def test_the_text_of_an_answer_stays_data(tmp_path: Path) -> None:
    conversation = talk("Who sold \x1b[31m it\u2028?", model=Scripted(reply))
    path = tmp_path / "talk.jsonl"
    path.write_text(conversation.to_jsonl(), encoding="utf-8")
    assert "\x1b" not in path.read_text(encoding="utf-8")
    found = Conversation.from_jsonl(path.read_text(encoding="utf-8"), Pearl(), STORY)
    assert found.turns == conversation.turns
