"""Plans by rule: the form of a question decides, and a form that is not sure is asked as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import library_names, load_library, read_library
from pearl.actions.operators import LOOKUP, REWRITE, SUBQUERIES
from pearl.data.samples import Turn
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.nodes import String
from pearl.dsl.signatures import ActionLibrary
from pearl.embedded.planner import made_query, make_standalone, propose, write_plan
from pearl.embedded.questions import parts
from pearl.llm import ActionTask, StandaloneTask

FOREIGN = read_library(
    "ANALYZE(CTX, X, Y) : Analyse X and Y\nCOMPREHEND(CTX, X) : Say all about X\n"
    "COMPARE(CTX, X, Y, Z) : Compare X and Y as to Z\nFIND_BEHAVIOR_REASON(CTX, X) : Why X\n"
    "FIND(CTX, X, Y) : Find X of Y\nIDENTIFY_ELEMENT(CTX, X) : Who or what is X\nSUMMARIZE(CTX) : Sum up\n",
    "foreign",
)
SMALL = read_library("ASK(CTX, Q) : Answer Q\nZIP(A, B) : Zip\n", "small")
GENERAL = read_library("FIND(CTX, X) : Find X in CTX\n", "general")
EMPTY = ActionLibrary("empty", [])
LIBRARIES = [*(load_library(name) for name in library_names()), FOREIGN, SMALL, EMPTY]


def plan(question: str, library: ActionLibrary) -> CheckedPlan:
    return compile_plan(write_plan(question, library), library)


def steps(question: str, library: str | ActionLibrary = "quality") -> list[tuple[str, ...]]:
    """Each step: its action, and its arguments that are texts."""
    loaded = load_library(library) if isinstance(library, str) else library
    return [
        (step.action, *(arg.value for arg in step.arguments if isinstance(arg, String)))
        for step in plan(question, loaded).plan.steps
    ]


def actions(question: str, library: str | ActionLibrary = "quality") -> list[str]:
    return [name for name, *_ in steps(question, library)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("By whom was the mill sold?", ["IDENTIFY"]),
        ("Why did Ada sell the mill?", ["FIND_REASON"]),
        ("What made Ada sell the mill?", ["FIND_REASON"]),
        ("In which year was the mill sold?", ["FIND_TIME"]),
        ("How long did the trip take?", ["FIND_TIME"]),
        ("In what town was Ada born?", ["FIND_PLACE"]),
        ("What did Ada sell?", ["FIND"]),
        ("What is a quorum?", ["FIND_DEFINITION"]),
        ("What does the word quorum mean?", ["FIND_DEFINITION"]),
        ("How does Ada feel about the mill?", ["FIND_EMOTION"]),
        ("How many horses did Ada have?", ["FIND"]),
        ("Compare Ada and Otto.", ["SUMMARIZE_X", "SUMMARIZE_X", "COMPARE"]),
        ("What is the difference between Ada and Otto?", ["SUMMARIZE_X", "SUMMARIZE_X", "COMPARE"]),
        ("Summarise the story.", ["SUMMARIZE"]),
        ("What is the story about?", ["SUMMARIZE"]),
        ("Did Ada sell the mill?", ["VERIFY"]),
        ("What is the tone of the essay?", ["FIND_TONE"]),
        ("How can Ada mend the boat?", ["EXPLAIN_PROCESS"]),
        ("List all the ships.", ["LIST_ALL"]),
        ("the mill", ["FIND"]),
        ("Who sold the mill, and why?", ["IDENTIFY", "FIND_REASON"]),
        ("Who sold the mill, when was it built, and why?", ["IDENTIFY", "FIND_REASON"]),
        ("Who sold the mill? Where is it?", ["IDENTIFY", "FIND_PLACE"]),
        ("What did Ada sell and how many people came?", ["FIND", "FIND"]),
        ("How many times does Ada lie?", ["LIST_ALL"]),  # passages are shown and not counted
    ],
)
def test_the_form_of_a_question_decides_the_actions(question: str, expected: list[str]) -> None:
    assert actions(question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "How might the harbour master have known?",
        "How was the trip?",
        "When Ada arrives, what does she see?",
        "Where the road forks, who is waiting?",
        "Was it Ada or Otto who lied?",
        "What is Otto hiding?",
        "How do Ada and Otto differ in what they think of the mill?",
        "What did Ada say about the difference between barley and rye?",
        "What is the captain of the ship hiding?",
        "What school bus did Otto take?",
        "Who did NOT sign the lease?",
        "Which of these is not a fault: rust, noise or smell?",
        "What happens to the mill if it rains?",
        "How does Ada know who left and when Otto came?",
    ],
)
def test_a_question_of_uncertain_form_is_searched_for_unchanged(question: str) -> None:
    assert steps(question) == [("FIND", question)]


def test_domain_actions_are_found_by_the_noun_in_the_question() -> None:
    assert actions("What are the symptoms of flu?", "medical") == ["FIND_SYMPTOMS"]
    asked = "What are the side effects of the drops?"
    assert steps(asked, "medical") == [("FIND_SIDE_EFFECTS", "the drops")]
    assert actions("What should Alice do about her diet?", "medical") == [
        "FIND_RECOMMENDED_CHANGES"
    ]
    assert actions("What is the most effective surgery for gout?", "medical") == ["FIND"]


def test_a_library_with_other_names_is_used_or_extended() -> None:
    assert actions("Why did Ada go?", FOREIGN) == ["FIND_BEHAVIOR_REASON"]
    assert actions("Where is Ada?", FOREIGN) == ["COMPREHEND"]
    assert actions("Compare Ada and Otto", FOREIGN)[-1] == "COMPARE"
    assert actions("Where is Ada?", SMALL) == ["ASK"]
    new = plan("Where is Ada?", EMPTY).plan.new_actions
    assert [action.name for action in new] == ["FIND_PASSAGE"]


def test_outputs_are_in_the_order_of_the_question_and_differ() -> None:
    seed = load_library("seed")
    assert plan("Who sold the mill, and why, and when?", seed).outputs == ("who", "reason", "time")
    twice = "How many times does Ada lie, and how many times does Otto lie?"
    assert plan(twice, seed).outputs == ("entries", "entries_2")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who wrote the letter, and where was it found?",
         [("IDENTIFY", "Who wrote the letter?"),
          ("FIND_PLACE", "where was it found? (asked with: Who wrote the letter)")]),
        ("Please tell me why Ada left.", [("FIND_REASON", "why Ada left?")]),
    ],
)  # fmt: skip
def test_the_referents_of_pronouns_are_kept(question: str, expected: list[tuple[str, str]]) -> None:
    assert steps(question) == expected


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_questions_about_a_text_use_no_lookup(library: ActionLibrary) -> None:
    asked = library.extended([LOOKUP])
    for question in ("When did Nils buy the boat?", "Who sold the mill?", "Say more."):
        assert LOOKUP.name not in actions(question, asked)


ODD = [
    "Who", "?", "why", "x" * 20_000, "Who " * 3_000 + "?", "What is NOT: " + "a," * 290,
    'She said "no" \\ back\\slash?', "line\nbreak?\n\nTwo?", "谁写了这本书？他什么时候来的？",
    "What? Who? When? Where? Why? How? Which? Whose?", "A: B = C(D, E) : F", "\u2028\u0085 who \x00 \x1f is",
    "\ud800 half", "CTX", "Compare X and Y", "list all", "(aside) who?", "and",
]  # fmt: skip
QUESTION_WORDS = [
    "who", "why", "when", "where", "how", "what", "many", "much", "did", "is", "was", "NOT", "and", "or", "compare",
    "difference", "between", "X", "feel", "about", "summarise", "should", "list", "all", ",", "?", ".", ":", "(", ")",
    '"', "'", "\\", "times", "the", "mill", "Ada", "of", "in", "\n",
]  # fmt: skip
WORDS = st.lists(st.sampled_from(QUESTION_WORDS) | st.text(max_size=5), min_size=1, max_size=25)


@pytest.mark.parametrize("question", ODD, ids=range(len(ODD)))
def test_odd_questions_get_a_plan_that_passes(question: str) -> None:
    for library in (load_library("quality"), FOREIGN, EMPTY):
        assert plan(question, library).plan.steps


@given(WORDS, st.sampled_from(LIBRARIES))
def test_every_question_gets_a_plan_that_passes(words: list[str], library: ActionLibrary) -> None:
    assert plan(" ".join(words) + "x", library).plan.steps


@pytest.mark.parametrize("junk", ["(", "- ", "why ", "if so, ", "and who ", ", and "])
def test_a_long_question_is_read_in_time_that_grows_as_it_does(junk: str) -> None:
    assert parts(f"{junk * (60_000 // len(junk))}who asked?")


def test_words_of_an_earlier_question_are_no_question() -> None:
    (part,) = parts("And in Braga? (asked with: How many live in Porto)")
    assert part.text == "And in Braga (asked with: How many live in Porto)"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What seems odd to the narrator?", []),
        ("What is the man in the boat doing?", []),
        ("Who did NOT sign the lease?", []),
        ("What are the faults of the mill?", ["FIND_FAULTS"]),
        ("Who sold the mill?", ["IDENTIFY"]),
        ("Is Otto rich?", ["VERIFY"]),
        ("Where is the key?", ["FIND_PLACE"]),
    ],
)
def test_new_actions_are_named_after_the_noun_in_question(question: str, names: list[str]) -> None:
    new = compile_plan(propose(question, GENERAL), GENERAL).plan.new_actions
    assert [action.name for action in new] == names


# Conversations ------------------------------------------------------------------------------------

SALES = (Turn("What were net sales in 2008?"),)


@pytest.mark.parametrize(
    "question",
    ["And in 2009?", "Why?", "How much did it rise?", "Who audited the accounts of Acme?"],
)
def test_a_referring_question_contains_the_earlier_ones(question: str) -> None:
    expected = f"{question} (asked with: What were net sales in 2008)"
    assert make_standalone(StandaloneTask(question, SALES)) == expected


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("And in 2009?", ()),
        ("How many clinics are in Haifa?", (Turn("How many pharmacies are in Lod?"),)),
        ("What was the rent of the mill in 2010?", SALES),
    ],
)
def test_a_clear_question_stays_unchanged(question: str, earlier: tuple[Turn, ...]) -> None:
    assert make_standalone(StandaloneTask(question, earlier)) == question


def test_of_many_earlier_questions_the_first_and_the_last_are_kept() -> None:
    history = tuple(Turn(f"What about mill {i}?" + " and so on" * 12) for i in range(30))
    text = make_standalone(StandaloneTask("Why?", history))
    assert "mill 0" in text
    assert "; ...; " in text
    assert "mill 29" in text
    assert len(text) < 1_000


def test_queries_are_made_of_the_words_of_the_question() -> None:
    task = ActionTask("a", SUBQUERIES, (("QUESTION", "Who sold the mill, and why?"),), None)
    assert made_query(task) == "- Who sold the mill\n- why (Who sold the mill)"
    history = "- What were net sales in 2008?\n- And the change?"
    task = ActionTask("a", REWRITE, (("QUESTION", "And in 2009?"), ("HISTORY", history)), None)
    assert made_query(task) == "And in 2009? (What were net sales in 2008?; And the change?)"
    task = ActionTask("a", REWRITE, (("QUESTION", "Who?"), ("HISTORY", "Nothing found.")), None)
    assert made_query(task) == "Who?"
