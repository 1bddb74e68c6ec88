"""An option out of what was said: what is read, what is not, and when nobody is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pearl.data.samples import letter
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.errors import ModelError, UsageError
from pearl.interpreter.chooser import Choice, choose, read_choice
from pearl.interpreter.context import ContextLimits
from pearl.llm import ChooseTask, Model
from pearl.llm.backends.scripted import Scripted
from pearl.trace import CallFailed, OptionChosen, Trace
from tests.dsl import strategies

OPTIONS = ("a boat", "a mill", "Two dogs")

READ = {
    # the letter
    "C": 2, "c": 2, "(C)": 2, "[C]": 2, "C.": 2, "C)": 2, "C:": 2, "(C).": 2, "**C**": 2, "`C`": 2,
    '"C"': 2, "Option C": 2, "option (c)": 2, "Ｃ": 2, "（Ｃ）": 2, " C \n": 2, "**(C)** Two dogs": 2,
    # with its text, cut short or explained
    "C. Two dogs": 2, "C) two dogs.": 2, "(C) Two dogs": 2, "C - Two dogs": 2, "C: Two dogs": 2,
    "C. Two dogs, because they bark": 2, "C (Two dogs)": 2, "Answer: C (Two dogs)": 2, "A. A boat": 0,
    # said
    "Answer: C": 2, "Answer C": 2, "**Answer:** C": 2, "**Answer: C**": 2, "### Answer\nC": 2,
    "Answer:\nC": 2, "The answer is\nC": 2, "The answer is (C).": 2, "The answer is C. Two dogs": 2,
    "Final answer: C": 2, "My choice: B": 1, "The correct option is C.": 2, "answer is B": 1,
    "The best choice is B": 1, "My answer would be C": 2, "The answer is: a mill": 1,
    'The answer: "a mill"': 1, "The correct answer is C. Option A is wrong.": 2,
    "I think of the mill first.\nAnswer: B": 1, "> A\n\nB": 1, "> Answer: A\nB": 1,
    "Answer: A\n> Answer: B": 0, "Answer: A\nNo.\nAnswer: B": 1, "The answer is A. The answer is B": 1,
    "A. Answer: B": 1, "A)\nAnswer: B": 1, "Answer: C\nOption A: it rained": 2,
    "Answer: B\nConfidence: high": 1, "B\nConfidence: high": 1, "A good question.\nB": 1,
    "A) a boat\nB) a mill\nC) two dogs\nAnswer: B": 1, "Sure.\nC": 2, "C\n\nBecause dogs bark.": 2,
    # the text
    "two dogs": 2, "TWO  DOGS": 2, "Two dogs.": 2, "“two dogs”": 2, "'Two dogs.'": 2, "Ｔｗｏ dogs": 2,
    "A boat": 0,
    # two options, or none
    "A and C": None, "A or C": None, "A, C": None, "A/C": None, "A) or B)": None, "(A) (B)": None,
    "Answer: A) + B)": None, "Answer: A) / (B)": None, "Answer: A) , option B)": None, "Answer: A) and/or B)": None,
    "Answer: A (ab) was seen": 0, "Answer: A) B, C": None, "Answer: A\nAnswer: not: A": None, "A non-answer: C": None,
    "(A) and (B)": None, "A. B.": None, "A - B": None, "C. a mill": None, "Answer: A and C": None,
    "Answer: A, C": None, "A\nor rather\nB": None, "A. a boat\nB. a mill\nC. Two dogs": None,
    "A: it is not in the text\nB: it is\nSo the second": None, "C. Not a boat": None,
    # weighed, not named
    "A) is wrong.": None, "A. Not supported by the text.": None, "A: incorrect": None,
    "(A) is wrong, (B) is right": None, "A) no; B) yes": None, "A (it rained)": None,
    "A: no evidence. The right one is C": None, "Answer: A\nNo, the answer is not A.": None,
    "Answer: C\nThis answer is supported by the text.": 2, "Answer: C. Because they bark.": 2,
    "T": None, "t": None, "The dogs": None, "The": None, "Two": None, "two dogs and a mill": None,
    "D": None, "(Z)": None, "Answer: D": None, "none": None, "None": None, "Answer: none": None,
    "": None, "  \n\t": None, "I": None, "> C": None, "The answer is not C": None, "?": None,
    "C because dogs bark": None, "Answer:": None, "Answer: \nAnswer:": None, "Ⅲ": None,
}  # fmt: skip


def test_replies() -> None:
    assert {reply: read_choice(reply, OPTIONS) for reply in READ} == READ


@pytest.mark.parametrize(
    ("options", "reply", "index"),
    [
        (["B", "A"], "B", None),  # the letter of one, the text of another
        (["B", "A"], "B. A", 1),
        (["B", "A"], "A. B", 0),
        (["A", "B"], "a", 0),
        (["x", "x"], "x", None),
        (["x", "x"], "A", 0),
        (["x", "x"], "B. x", 1),
        (["a", "None of the above"], "None of the above", 1),
        (["a cow", "a goat", "A. Smith"], "C. A. Smith did it", 2),  # an initial is no letter
        (["a cow", "a goat", "A. Smith"], "C. A. Miller", None),
        (["a cow", "A. Smith"], "Answer: A. Smith", 1),
        (["a cow", "I. Newton"], "B. I. saw", None),
        (["x", "x y"], "B. x", None),
        (["yes", ""], "", None),
        (["yes", ""], "B", 1),
        (["yes", "."], ".", None),
        (["the answer: A", "no"], "The answer: A", 0),
        (["> cited", "no"], "> cited", 0),
        (["Paris. Answer: B", "no"], "A. Paris. Answer: B", 0),
        ([letter(i).lower() * 3 for i in range(26)], "T", 19),
    ],
)
def test_options_that_look_like_something_else(
    options: list[str], reply: str, index: int | None
) -> None:
    assert read_choice(reply, options) == index


lines = st.text(st.sampled_from("ABCT .:()[]*>\n'\"“ⅠＡıİſ") | strategies.TYPEABLE, max_size=30)
replies = st.lists(
    lines | st.sampled_from(["Answer: ", "The answer is ", "Option ", "A. ", "(B) ", " or ", "\n> "]),
    max_size=6,
).map("".join)  # fmt: skip
options_ = st.lists(lines, min_size=2, max_size=26)


@pytest.mark.slow
@given(replies, options_)
@example("A)answer " * 5_000, ["x", "y"])
@example("Answer: A " * 5_000, ["x", "y"])
@example("Answer: " * 100_000, ["x", "y"])
def test_no_reply_is_too_odd(reply: str, options: list[str]) -> None:
    index = read_choice(reply, options)
    assert index is None or 0 <= index < len(options)


# --- choose -----------------------------------------------------------------------------------


def choice(
    model: Model,
    answer: str | None = None,
    *,
    options: Sequence[str] = OPTIONS,
    document: str | None = None,
    window: int | None = None,
    max_output_tokens: int | None = None,
    is_reasoned: bool = False,
    trace: Trace | None = None,
) -> Choice:
    limits = ContextLimits(Counter.for_model("extractive"), "auto", window, max_output_tokens)
    shown = None if document is None else Document(document)
    return asyncio.run(
        choose(
            "What was sold?", options, model, limits,
            answer=answer, document=shown, is_reasoned=is_reasoned, trace=trace,
        )
    )  # fmt: skip


@pytest.mark.parametrize("answer", ["two dogs", "Two dogs.", "(C) Two dogs", "“Two dogs”"])
def test_an_answer_that_is_an_option_is_not_asked_about(answer: str) -> None:
    model = Scripted(lambda request: "A")
    assert choice(model, answer) == Choice(2, answer, n_calls=0)
    assert model.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        "They sold two dogs.",
        "A. Smith sold it",
        "The",
        "A: it rained",
        "Not Answer: A\nC",
        "C",
        "(C)",
    ],
)
def test_any_other_answer_is_mapped_by_the_model(answer: str) -> None:
    model = Scripted(lambda request: "C. Two dogs")
    assert choice(model, answer) == Choice(2, "C. Two dogs")
    (request,) = model.requests
    assert f"<answer>\n{answer}\n</answer>" in request.prompt
    assert 'reply "none"' in request.prompt
    assert isinstance(request.task, ChooseTask)


def test_by_a_document_the_document_stands_first() -> None:
    model = Scripted(lambda request: "> He sold it.\n\nAnswer: B")
    found = choice(model, document="He sold it.", is_reasoned=True, max_output_tokens=9)
    assert found.index == 1
    (request,) = model.requests
    assert request.messages[1].content.startswith("<text>\nHe sold it.\n</text>")
    assert request.prompt.index("A. a boat") < request.prompt.index("C. Two dogs")
    assert "none" not in request.messages[1].content
    assert request.max_output_tokens == 9


def test_a_choice_needs_options_and_one_thing_to_choose_by_at_most() -> None:
    model = Scripted(lambda request: "A")
    for n in (0, 1, 27):
        with pytest.raises(UsageError, match=f"not {n}"):
            choice(model, "a boat", options=["x"] * n)
    with pytest.raises(UsageError, match="by an answer or by a document"):
        choice(model, "a boat", document="A boat.")


def test_what_the_model_fails_with_comes_through() -> None:
    trace = Trace()
    with pytest.raises(ModelError, match="blank"):
        choice(Scripted(lambda request: " "), document="Ada sold it.", trace=trace)
    (event,) = trace
    assert isinstance(event, CallFailed)
    assert (event.purpose, event.kind) == ("choose", "empty")
    assert "<text: 12 characters>" in event.prompt
    assert trace.n_calls == 1


def test_a_long_document_is_cut_to_its_best_passages() -> None:
    text = "Goats graze on the hill all day.\n\n" * 300 + "Ada sold the mill."
    model = Scripted(lambda request: "B")
    whole, cut = Trace(), Trace()
    choice(model, document=text, trace=whole)
    choice(model, document=text, window=1_000, trace=cut)
    first, second = (request.prompt for request in model.requests)
    assert text in first
    assert "Ada sold the mill." in second
    counted = Counter.for_model("extractive").count(second)
    assert counted <= 750  # a quarter is kept for the reply
    assert [event.coverage for event in whole if isinstance(event, OptionChosen)] == [1.0]
    assert [event.coverage < 1 for event in cut if isinstance(event, OptionChosen)] == [True]  # type: ignore[operator]
