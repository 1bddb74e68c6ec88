"""The grammar for weak planners: whatever it admits is a valid plan about the question, without repeats."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.decoding.constraint import validate
from pearl.dsl.decoding.weak import MAX_SPAN_WORDS, Word, weak_plan_constraint
from pearl.dsl.nodes import String
from pearl.dsl.parser import read
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import LibraryError
from pearl.planner.material import question_words
from tests.dsl.sampling import admits, gbnf_admits, sentence
from tests.examples import examples

SEED = load_library("seed")
LIBRARY = ActionLibrary("few", [SEED[n] for n in ("FIND", "FIND_EMOTION", "SUMMARIZE", "CONCAT")])
QUESTION = 'Why did Nils (the "old" man) sell the boat?'


def _lark(question: str, library: ActionLibrary = LIBRARY, max_steps: int = 3) -> str:
    words = question_words(question)
    return weak_plan_constraint(words, question, library, max_steps=max_steps).lark


QUESTIONS = st.one_of(
    st.sampled_from([QUESTION, "?", "Why?", "What is it about?", "the the boat, the boat and a boat"]),
    st.lists(
        st.sampled_from(
            ["the", "who", "boat", "Boat", "a/b", "x.y?", "[z]", "c*", "\\n", '"q"', "$5", "café",
             "東京", "🔑", "not", "of", "mill,", "(why)", "^", "{2}", "|", "x+y", "#1", "'s", "-"]
        ),
        min_size=1, max_size=30,
    ).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=12),
)  # fmt: skip


@given(QUESTIONS, st.integers(1, 4), st.integers(0, 2**32), st.sampled_from([0.05, 0.5]))
@examples(60)
def test_what_is_admitted_is_a_valid_plan_without_repeats(
    question: str, max_steps: int, seed: int, stop: float
) -> None:
    lark = _lark(question, SEED, max_steps)
    validate(lark)
    text = sentence(lark, seed, stop=stop)
    plan = _compiled(text).plan
    assert 1 <= len(plan.steps) <= max_steps
    calls = [(step.action, step.arguments) for step in plan.steps]
    outputs = {step.output for step in plan.steps}
    assert len(set(calls)) == len(outputs) == len(plan.steps)
    said = [word.text for word in question_words(question)]
    for step in plan.steps:
        for argument in step.arguments[1:]:
            assert isinstance(argument, String)
            assert argument.value == question or _is_in_a_row(argument.value.split(), said)


def _compiled(text: str) -> CheckedPlan:
    return compile_plan(read(text, tolerant=True).text, SEED)


def _is_in_a_row(span: list[str], words: list[str]) -> bool:
    n = len(span)
    assert n <= MAX_SPAN_WORDS + 1  # and the one that leads to them
    return any(words[i : i + n] == span for i in range(len(words)))


@pytest.mark.parametrize(
    ("text", "is_admitted"),
    [
        ('1. v1 = FIND(CTX, "sell the boat")', True),
        ('1. v1 = FIND(CTX, "the boat")', True),
        ('1. v1 = FIND(CTX, "the old man")', True),
        ('1. v1 = FIND(CTX, "sell the")', False),  # ends with no word of content
        ('1. v1 = FIND(CTX, "Nils the old")', False),  # across a bracket
        ('1. v1 = FIND(CTX, "ship")', False),
        ("1. v1 = SUMMARIZE(CTX)", True),
        ('1. v1 = FIND_EMOTION(CTX, "Nils", "the boat")', True),
        ('1. v1 = FIND_EMOTION(CTX, "the boat", "Nils")', False),
        ('1. v1 = FIND(CTX, "Nils")\n2. v2 = FIND(CTX, "the boat")', True),
        ('1. v1 = FIND(CTX, "Nils")\n2. v2 = FIND(CTX, "Nils")', False),
        ('1. v1 = FIND(CTX, "Nils")\n2. v1 = FIND(CTX, "the boat")', False),
        ("1. v1 = SUMMARIZE(CTX)\n2. v2 = SUMMARIZE(CTX)", False),
        ('1. v1 = FIND(CTX, "Nils")\n2. v2 = CONCAT(v1, v1)', False),
        ('1. v1 = FIND(CTX, "Nils")\n2. v2 = FIND(CTX, "old")\n3. v3 = FIND(CTX, "man")', False),
        (f"1. v1 = FIND(CTX, {json.dumps(QUESTION)})", True),
    ],
)
def test_every_decoder_says_the_same(text: str, is_admitted: bool) -> None:
    words = question_words(QUESTION)
    constraint = weak_plan_constraint(words, QUESTION, LIBRARY, max_steps=2)
    assert admits(constraint.lark, text) is is_admitted
    if "\\" not in text:  # llguidance's reader of GBNF mistakes a backslash before a quote
        assert gbnf_admits(constraint.gbnf, text) is is_admitted


def test_a_word_that_comes_twice_begins_one_string() -> None:
    words = [Word("boat", True), Word("is", False), Word("Boat", True), Word("race", True)]
    lark = weak_plan_constraint(words, "boat is Boat race", LIBRARY, max_steps=2).lark
    assert admits(lark, '1. v1 = FIND(CTX, "boat is Boat race")\n2. v2 = FIND(CTX, "race")')
    assert not admits(lark, '1. v1 = FIND(CTX, "boat")\n2. v2 = FIND(CTX, "Boat")')


def test_the_same_as_json() -> None:
    form = weak_plan_constraint((), "Who?", LIBRARY, max_steps=2).json_form
    assert form is not None
    steps = [
        {"action": "FIND_EMOTION", "texts": ['a "b"', "c"]}, {"action": "SUMMARIZE", "texts": []}
    ]  # fmt: skip
    text = form.text_of({"steps": steps})
    assert text == '1. v1 = FIND_EMOTION(CTX, "a \\"b\\"", "c")\n2. v2 = SUMMARIZE(CTX)'
    for wrong in (
        [],
        steps * 2,
        [{"action": "FIND", "texts": []}],
        [{"action": "NO", "texts": []}],
    ):
        with pytest.raises(ValueError, match="steps"):
            form.text_of({"steps": wrong})


def test_a_library_that_reads_no_document_has_no_such_plan() -> None:
    with pytest.raises(LibraryError):
        _lark("Who?", ActionLibrary("none", [SEED["CONCAT"], SEED["SUMMARIZE"]]))
