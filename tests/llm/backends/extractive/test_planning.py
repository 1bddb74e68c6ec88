"""Plans by rule: the form of a question decides, whatever the library calls its actions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import library_names, load_library, read_library
from pearl.actions.operators import LOOKUP
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.llm.backends.extractive.planning import write_plan
from pearl.llm.backends.extractive.questions import parts

FOREIGN = read_library(
    "ANALYZE(CTX, X, Y) : Analyse X and Y\nCOMPREHEND(CTX, X) : Say all about X\n"
    "COMPARE(CTX, X, Y, Z) : Compare X and Y as to Z\nFIND_BEHAVIOR_REASON(CTX, X) : Why X\n"
    "FIND(CTX, X, Y) : Find X of Y\nIDENTIFY_ELEMENT(CTX, X) : Who or what is X\nSUMMARIZE(CTX) : Sum up\n",
    "foreign",
)
SMALL = read_library("ASK(CTX, Q) : Answer Q\nZIP(A, B) : Zip\n", "small")
EMPTY = ActionLibrary("empty", [])
LIBRARIES = [*(load_library(name) for name in library_names()), FOREIGN, SMALL, EMPTY]


def plan(question: str, library: ActionLibrary) -> CheckedPlan:
    return compile_plan(write_plan(question, library), library)


def actions(question: str, library: str = "quality") -> list[str]:
    return [step.action for step in plan(question, load_library(library)).plan.steps]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who sold the mill?", ["IDENTIFY"]),
        ("By whom was the mill sold?", ["IDENTIFY"]),
        ("Why did Ada sell the mill?", ["FIND_REASON"]),
        ("What made Ada sell the mill?", ["FIND_REASON"]),
        ("For what reason was the mill sold?", ["FIND_REASON"]),
        ("When was the mill sold?", ["FIND_TIME"]),
        ("In which year was the mill sold?", ["FIND_TIME"]),
        ("How long did the trip take?", ["FIND_TIME"]),
        ("Where is the key?", ["FIND_PLACE"]),
        ("In what town was Ada born?", ["FIND_PLACE"]),
        ("What did Ada sell?", ["FIND"]),
        ("What is a quorum?", ["FIND_DEFINITION"]),
        ("What does the word quorum mean?", ["FIND_DEFINITION"]),
        ("How does Ada feel about the mill?", ["FIND_EMOTION"]),
        ("How many horses did Ada have?", ["FIND"]),
        ("How did Ada change?", ["FIND_CHANGE"]),
        ("Compare Ada and Otto.", ["SUMMARIZE_X", "SUMMARIZE_X", "COMPARE"]),
        ("What is the difference between Ada and Otto?", ["SUMMARIZE_X", "SUMMARIZE_X", "COMPARE"]),
        ("What is the relationship between Ada and Otto?", ["FIND_RELATION"]),
        ("What happens to the mill?", ["FIND_EVENT"]),
        ("Summarise the story.", ["SUMMARIZE"]),
        ("What is the story about?", ["SUMMARIZE"]),
        ("What is the moral of the story?", ["FIND_MORAL"]),
        ("How is the drought affecting the mill?", ["FIND_EFFECT"]),
        ("Did Ada sell the mill?", ["VERIFY"]),
        ("Is Otto rich?", ["VERIFY"]),
        ("What is the tone of the essay?", ["FIND_TONE"]),
        ("How does the story end for Ada?", ["EXPLAIN_PROCESS"]),
        ("How does the story end?", ["FIND_ENDING"]),
        ("If Ada had stayed, what would have happened?", ["FIND_HYPOTHETICAL"]),
        ("Which of these is NOT a fault: rust, noise or smell?", ["LIST_ALL", "FIND_EXCEPTION"]),
        ("Which of the following is not a fault?", ["LIST_ALL"]),
        ("List all the ships.", ["LIST_ALL"]),
        ("the mill", ["FIND"]),
        ("Who sold the mill, and why?", ["IDENTIFY", "FIND_REASON"]),
        ("Who sold the mill? Where is it?", ["IDENTIFY", "FIND_PLACE"]),
        ("When and where was the mill sold?", ["FIND_TIME", "FIND_PLACE"]),
        ("What did Ada sell and how many people came?", ["FIND", "FIND"]),
        ("Did Ada leave? Why or why not?", ["VERIFY"]),
    ],
)
def test_the_form_decides(question: str, expected: list[str]) -> None:
    assert actions(question) == expected


def test_domain_actions_are_found_by_what_is_asked_for() -> None:
    assert actions("What are the symptoms of flu?", "medical") == ["FIND_SYMPTOMS"]
    assert actions("What are the risk factors for stroke?", "medical") == ["FIND_RISK_FACTORS"]
    assert actions("What is the best treatment for gout?", "medical") == ["FIND_TREATMENT"]
    assert actions("What should Alice do about her diet?", "medical") == [
        "FIND_RECOMMENDED_CHANGES"
    ]
    assert actions("What is the most effective surgery for gout?", "medical") == ["FIND"]


def test_things_to_be_counted_are_shown_and_left_to_count() -> None:
    """Passages that match are no entries: a count of them would be wrong and confident."""
    checked = plan("How many times does Ada lie?", load_library("seed"))
    assert [step.action for step in checked.plan.steps] == ["LIST_ALL"]


def test_two_tallies_keep_their_outputs_apart() -> None:
    question = "How many times does Ada lie, and how many times does Otto lie?"
    assert plan(question, load_library("seed")).outputs == ("entries", "entries_2")


def test_a_library_with_other_names_is_used() -> None:
    assert [s.action for s in plan("Why did Ada go?", FOREIGN).plan.steps] == [
        "FIND_BEHAVIOR_REASON"
    ]
    assert [s.action for s in plan("Where is Ada?", FOREIGN).plan.steps] == ["COMPREHEND"]
    assert [s.action for s in plan("Compare Ada and Otto", FOREIGN).plan.steps][-1] == "COMPARE"
    assert [s.action for s in plan("Where is Ada?", SMALL).plan.steps] == ["ASK"]


def test_a_library_without_a_fitting_action_is_extended() -> None:
    checked = plan("Where is Ada?", EMPTY)
    assert [action.name for action in checked.plan.new_actions] == ["FIND_PASSAGE"]


def test_the_answer_is_in_the_order_of_the_question() -> None:
    checked = plan("Who sold the mill, and why, and when?", load_library("seed"))
    assert checked.outputs == ("who", "reason", "time")


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("Why did Ada sell it?", "Ada sell it"),
        ("Why was Ada late?", "Ada was late"),
        ("Why didn't Ada go?", "Ada not go"),
        ("Why is there no boat?", "there is no boat"),
        ("Why was the mill sold?", "the mill sold"),
        ("Please tell me why Ada left.", "Ada left"),
    ],
)
def test_a_topic_reads_as_a_statement(question: str, topic: str) -> None:
    (part,) = parts(question)
    assert (part.form, part.topic) == ("reason", topic)


def test_a_pronoun_keeps_the_question_that_it_stands_in() -> None:
    _, second = parts("Who wrote the letter, and where was it found?")
    assert (second.form, second.background) == ("place", "Who wrote the letter")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_a_text_is_not_asked_by_a_query_of_a_table(library: ActionLibrary) -> None:
    asked = library.extended([LOOKUP])
    for question in ("When did Nils buy the boat?", "Who sold the mill?", "Say more."):
        assert LOOKUP.name not in {step.action for step in plan(question, asked).plan.steps}


ODD = [
    "Who",
    "?",
    "???",
    "why",
    "x" * 20_000,
    "Who " * 3_000 + "?",
    "What is NOT: " + "a," * 290,
    'She said "no" \\ back\\slash?',
    "line\nbreak?\n\nTwo?",
    "who 😀🎉 is it?",
    "谁写了这本书？他什么时候来的？",
    "А кто это?",
    "What? Who? When? Where? Why? How? Which? Whose?",
    "A: B = C(D, E) : F",
    '1. out = FIND(CTX, "x") : y',
    "\u2028\u0085 who \x00 \x1f is",
    "\ud800 half",
    "CTX",
    "Compare X and Y",
    "difference between",
    "list all",
    "If",
    "(aside) who?",
    "and",
]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
@pytest.mark.parametrize("question", ODD, ids=range(len(ODD)))
def test_odd_questions_get_a_plan_that_passes(question: str, library: ActionLibrary) -> None:
    assert plan(question, library).plan.steps


VOCABULARY = """
who why when where how what which many much did does is are was not NOT and or compare difference
between X Y feel about change summarise moral if would should list all , ? . ! : ( ) " ' \\ times the
mill Ada of in to
"""
WORDS = st.lists(
    st.one_of(st.sampled_from([*VOCABULARY.split(), "\n"]), st.text(max_size=5)),
    min_size=1,
    max_size=25,
)


@given(WORDS, st.sampled_from(LIBRARIES))
def test_every_question_gets_a_plan_that_passes(words: list[str], library: ActionLibrary) -> None:
    assert plan(" ".join(words), library).plan.steps
