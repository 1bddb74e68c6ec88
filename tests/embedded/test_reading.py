"""The embedded default: what it quotes is in the document, best first, and it says so if nothing is."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl import Document, Pearl
from pearl.documents.evidence import find_quotes
from pearl.dsl.fields import parse_fields
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.embedded import ExtractiveModel
from pearl.llm import ActionTask, ChooseTask, Request, Task
from tests.models import answer_task

STORY = """\
The Mill at Orrin

Ada Brandt bought the mill in the spring of 1911. She painted the doors green,
and for a while all went well. Otto Farkas never liked it.

In October 1913 Ada sold the mill because the river had changed its course and the
wheel stood still. The buyer was Otto Farkas. He paid forty crowns for it.

- The wheel was burned that winter.
- The stones lie in the yard of the inn.

Why did he buy it? Nobody knew. Ada was ashamed and moved to Averton, where her sister
Greta kept a small hotel near the harbour.
Otto should have asked the miller first, said the neighbours.
"""

CTX = Parameter("CTX", ValueType.CONTEXT)
X, Y = Parameter("X"), Parameter("Y")


def action(name: str, *parameters: Parameter, definition: str = "") -> Action:
    return Action(name, (CTX, *parameters), definition)


def reply(task: Task, model: ExtractiveModel | None = None) -> str:
    completion = asyncio.run((model or ExtractiveModel()).complete(Request((), task)))
    return completion.text


def quotes(text: str) -> list[str]:
    return re.findall(r"^> (.*)$", text, re.M)


def step(
    name: str,
    *values: str,
    question: str = "",
    inputs: frozenset[str] = frozenset(),
    document: str | None = STORY,
    definition: str = "",
) -> ActionTask:
    parameters = (X, Y)[: len(values)]
    arguments = tuple((p.name, value) for p, value in zip(parameters, values, strict=True))
    return ActionTask(
        "out", action(name, *parameters, definition=definition), arguments, document, "", question, inputs
    )  # fmt: skip


@pytest.mark.parametrize(
    ("task", "first"),
    [
        (step("FIND_REASON", "Ada sell the mill"), "In October 1913 Ada sold the mill because"),
        (step("FIND_TIME", "the mill bought by Ada"), "Ada Brandt bought the mill in the spring"),
        (step("IDENTIFY", "the buyer of the mill"), "The buyer was Otto Farkas."),
        (step("FIND", "How many crowns did Otto pay?"), "He paid forty crowns for it."),
        (step("FIND_PLACE", "the stones"), "The stones lie in the yard of the inn."),
        (step("FIND_EMOTION", "Ada", "moving to Averton"), "Ada was ashamed and moved to Averton"),
        (step("FIND_RECOMMENDED_CHANGES", "Otto"), "Otto should have asked the miller first"),
        (
            step("FIND", "the hotel of Ada's sister"),
            "Ada was ashamed and moved to Averton, where her",
        ),
        (answer_task("Why was the mill sold by Ada?", STORY), "In October 1913 Ada sold the mill"),
        (answer_task("Who sold it?", "Often it was sold. Ben sold it. It often was."), "Ben sold"),
    ],
)
def test_the_best_sentence_comes_first(task: Task, first: str) -> None:
    found = quotes(reply(task))
    assert found[0].startswith(first)
    assert len(found) <= 3


def test_lists_come_in_document_order_and_give_more() -> None:
    text = reply(step("LIST_ALL", "what is said of the mill, the wheel, the stones, Ada and Otto"))
    found = quotes(text)
    places = [" ".join(STORY.split()).find(quote) for quote in found]
    assert len(found) > 3
    assert places == sorted(places)


@pytest.mark.parametrize(
    "head", ["region,product,amount", "| region | product | amount |\n|---|---|---|"]
)
def test_rows_that_match_alike_answer_no_question_for_a_number(head: str) -> None:
    """A sum was answered by the rows that share its words."""
    cells = [
        ("North", "pumps", 120),
        ("South", "pumps", 80),
        ("North", "valves", 40),
        ("West", "pumps", 60),
    ]
    form = "| {} | {} | {} |" if head[0] == "|" else "{},{},{}"
    table = "\n".join([head, *(form.format(*row) for row in cells)])
    for question in ("What is the sum of the amounts of pumps?", "How many pumps were sold?"):
        said = reply(step("FIND", question, document=f"{table}\n"))
        assert said.startswith("Nothing found")
        assert not quotes(said)
    said = reply(step("FIND", "How many pumps did the West get?", document=f"{table}\n"))
    assert quotes(said) == [form.format("West", "pumps", 60)]


def test_a_reply_without_a_match_contains_no_quote() -> None:
    text = reply(step("FIND", 'the "president of France in the year of the plague"'))
    assert text.startswith("Nothing found: no passage of the document matches")
    assert not find_quotes(text)
    assert not quotes(reply(answer_task("Does the dragon smoke?", STORY)))


def test_a_sentence_that_only_repeats_the_question_is_not_the_answer() -> None:
    document = "Why did Ada leave? So Ada did leave. Ada left, since it rained in May."
    assert quotes(reply(answer_task("Why did Ada leave?", document)))[0].startswith("Ada left")


@pytest.mark.parametrize("by", [{"document": STORY}, {"answer": "It stood still."}])
def test_an_option_is_chosen_by_what_it_alone_says(by: dict[str, str]) -> None:
    for options, said in ((("old wheel", "wheel stood still"), "B"), (("wheel", "wheel"), "none")):
        assert reply(ChooseTask("Why did Ada sell the mill?", options, **by)) == said


def test_a_pronoun_refers_to_the_sentence_before_it() -> None:
    document = (
        "The weather was fine. Greta Novak had a boat. It was sold to a cook. "
        "Nothing else was ever sold in Orrin. A hat was sold to a priest."
    )
    found = quotes(reply(answer_task("To whom was Greta Novak's boat sold?", document)))
    assert "It was sold to a cook." in found


def test_an_answer_is_found_by_the_question_before_it() -> None:
    document = (
        "Notes of the day.\n\nDoctor: How is the cough?\n\nPatient: A little better, thanks.\n\n"
        "Doctor: And do you still smoke?\n\nPatient: Only on Sundays.\n\nDoctor: Fine.\n\n"
        "Patient: That was the bus.\n"
    )
    found = quotes(reply(answer_task("Does the patient smoke?", document)))
    assert found[0] == "Patient: Only on Sundays."
    assert not quotes(reply(answer_task("the doctor", document)))  # only labels say it


def test_earlier_results_are_combined() -> None:
    one, two = "> Ada Brandt bought the mill.", "> The buyer was Otto Farkas."
    text = reply(step("COMPARE", one, two, inputs=frozenset({"X", "Y"}), document=None))
    assert quotes(text) == [one[2:], two[2:]]


def test_a_finding_of_an_earlier_step_points_to_its_neighbours() -> None:
    event = "> In October 1913 Ada sold the mill because the river had changed its course and the wheel stood still."
    found = quotes(reply(step("IDENTIFY", event, question="", inputs=frozenset({"X"}))))
    assert "The buyer was Otto Farkas." in found


def test_parts_are_combined_by_their_best_quotes() -> None:
    parts = (
        "> Ada Brandt bought the mill in the spring of 1911.\n\n> Otto Farkas never liked it.",
        "Nothing found: no passage of the document matches: Ada sell the mill",
        "> In October 1913 Ada sold the mill because the river had changed.",
    )
    text = reply(replace(step("FIND_REASON", "Ada sell the mill"), parts=parts))
    assert quotes(text)[0] == parts[2][2:]
    assert reply(replace(step("FIND", "x"), parts=parts[1:2])) == parts[1]


def test_chinese_is_matched_by_pairs_of_characters() -> None:
    document = "城里下雨。王先生在一九一一年买了磨坊。他姐姐开了一家旅馆。"
    assert quotes(reply(answer_task("谁买了磨坊？", document)))[0] == "王先生在一九一一年买了磨坊。"


WORDS = st.lists(
    st.sampled_from(
        ["Ada", "sold", "the", "mill", ".", "?", "\n", "\n\n", "who", "why", '"', ">", "-", "1911", ":",
         "é", "他", "\\", "(", "\u2028", "\x0b", "in", "[x]", "a.b", "..."]
    ),
    min_size=1,
    max_size=60,
)  # fmt: skip


@given(WORDS, WORDS)
def test_every_quote_is_in_the_document(asked: list[str], told: list[str]) -> None:
    document = " ".join(told)
    for task in (
        answer_task(" ".join(asked), document),
        step("FIND_REASON", " ".join(asked), document=document),
        step("LIST_ALL", " ".join(asked), document=document),
        step("SUMMARIZE", document=document),
    ):
        text = reply(task)
        assert text.strip()
        plain = " ".join(document.split())
        assert all(quote in plain for quote in quotes(text))


@pytest.mark.parametrize(
    "sought", ['["crossing", "zebra"]', '"anything but a zebra; yet it smokes"']
)
def test_texts_that_match_nothing_are_not_found(sought: str) -> None:
    plan = f'1. a = FIND(CTX, {sought}) : A\n2. b = FIND(CTX, ["wheel", "burned"]) : B\n3. ans = FIRST_FOUND(a, b) : C'
    answer = asyncio.run(Pearl("extractive").execute(plan, Document(STORY)))
    assert [step.state for step in answer.steps] == ["nothing", "found", "found"]
    assert "The wheel was burned that winter." in answer.text


def test_only_a_line_that_gives_one_short_value_is_read() -> None:
    text = f"Name: Ada Brandt\nRoom: 5\nRoom: 6\nNote: {'so ' * 9}\nPlace: Orrin. It rains\nSeat: {'a ' * 8}"
    pearl = Pearl(ExtractiveModel())
    plan = pearl.plan_extraction(
        parse_fields("name: str, room: int, note: str, place: str, seat: str")
    )
    found = asyncio.run(pearl.execute(plan, Document(text))).fields
    read = {name: field.value for name, field in found.items() if field.state == "found"}
    assert read == {"name": "Ada Brandt", "seat": "a a a a a a a a"}
