"""A form that is not sure is asked as it is: nothing is turned round, dropped or named by guess."""

from __future__ import annotations

import pytest

from pearl.actions.library import load_library, read_library
from pearl.dsl.checker import compile_plan
from pearl.dsl.nodes import String
from pearl.llm.backends.extractive.drafts import propose
from pearl.llm.backends.extractive.planning import write_plan

GENERAL = read_library("FIND(CTX, X) : Find X in CTX\n", "general")


def steps(question: str, library: str = "quality") -> list[tuple[str, ...]]:
    """Each step: its action, and its arguments that are texts."""
    loaded = load_library(library)
    plan = compile_plan(write_plan(question, loaded), loaded).plan
    return [
        (step.action, *(arg.value for arg in step.arguments if isinstance(arg, String)))
        for step in plan.steps
    ]


def drafted(question: str) -> list[str]:
    """Names of the actions that are proposed for a question."""
    plan = compile_plan(propose(question, GENERAL), GENERAL).plan
    return [action.name for action in plan.new_actions]


@pytest.mark.parametrize(
    "question",
    [
        "How might the harbour master have known?",
        "How would readers characterise the tone of the letter?",
        "How was the trip?",
        "How well does Ada know Otto?",
        "Was it Ada or Otto who lied?",
        "When Ada arrives, what does she see?",
        "Where the road forks, who is waiting?",
        "What is Otto hiding?",
        "What was stolen?",
        "What is Otto's job?",
        "What is held back?",
        "How do Ada and Otto differ in what they think of the mill?",
        "What does Ada mean to Otto?",
        "What is the message Ada left for Otto?",
        "What themes does Ada mention in her letter?",
        "What did Ada say about the difference between barley and rye?",
        "What is the captain of the ship hiding?",
        "What problems does the dust cause?",
        "What school bus did Otto take?",
        "What family history did Ada hide?",
        "Which nurse changes the dressing?",
        "Who did NOT sign the lease?",
        "What happens to the mill if it rains?",
        "What remedies are effective for gout?",
        "What is the tourist's view from the tower?",
    ],
)
def test_an_unsure_form_goes_whole_to_the_general_action(question: str) -> None:
    assert steps(question) == [("FIND", question)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How would one describe the harbour master?", ("FIND", "the harbour master")),
        ("How did Ada change the lock?", ("EXPLAIN_PROCESS", "Ada change the lock")),
        ("How did Ada change over the winter?", ("FIND_CHANGE", "How did Ada change over the winter?")),
        ("Find the captain of the ferry.", ("FIND", "Find the captain of the ferry")),
        ("How can Ada mend the boat?", ("EXPLAIN_PROCESS", "Ada mend the boat")),
        ("What made Ada change her mind?", ("FIND_REASON", "What made Ada change her mind?")),
        ("What causes gout?", ("FIND_REASON", "gout")),
        ("What caused the mill to burn down?", ("FIND_REASON", "What caused the mill to burn down?")),
        ("Why did Ada write the summary of the trial?", ("FIND_REASON", "Ada write the summary of the trial")),
        ("Who ended the friendship between Ada and Otto?",
         ("IDENTIFY", "Who ended the friendship between Ada and Otto?")),
        ("How are Ada's travels best summed up?", ("SUMMARIZE_X", "Ada's travels")),
        ("Which of the following is not a fault of the mill?", ("LIST_ALL", "a fault of the mill")),
        ("What is the tone of the essay on boat building?", ("FIND_TONE", "the essay on boat building")),
        ("Which of these is not a fault: rust, noise or smell?", ("LIST_ALL", "a fault")),
        ("How many times does Ada lie?", ("LIST_ALL", "How many times does Ada lie?")),
        ("What did Ada mean by the old debt?", ("FIND_DEFINITION", "the old debt")),
        ("What effect does the drought have on the mill?",
         ("FIND_EFFECT", "What effect does the drought have on the mill?")),
        ("What happened after the flood?", ("FIND_EVENT", "What happened after the flood?")),
    ],
)  # fmt: skip
def test_a_sure_form_keeps_all_of_the_question(question: str, expected: tuple[str, str]) -> None:
    assert steps(question)[0] == expected


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Why is Halden syndrome rare in adults?", "Halden syndrome rare in adults"),
        ("Why were Ada and Otto late?", "Ada and Otto late"),
        ("Why is that man angry?", "that man angry"),
        ("Why was Ada late?", "Ada was late"),
        ("Why was Ada never told?", "Ada was never told"),
        ("Why was she told in spring?", "she was told in spring"),
        ("Why isn't Halden syndrome treated?", "Why isn't Halden syndrome treated?"),
        ("Why exactly did the bridge fall?", "Why exactly did the bridge fall?"),
    ],
)
def test_a_name_is_not_cut_in_two(question: str, said: str) -> None:
    assert steps(question) == [("FIND_REASON", said)]


def test_an_action_is_for_what_its_name_says_first() -> None:
    asked = "How did Ada's knee change over the winter?"
    assert steps(asked, "medical") == [("FIND", asked)]


def test_what_is_not_so_is_not_asked_for_as_if_it_were() -> None:
    asked = "Which of these is not a fault of the mill?"
    (step,) = compile_plan(write_plan(asked, GENERAL), GENERAL).plan.steps
    assert step.arguments[1] == String(asked)


def test_side_effects_are_no_effect() -> None:
    asked = "What are the side effects of the drops?"
    assert steps(asked, "medical") == [("FIND_SIDE_EFFECTS", "the drops")]


def test_what_was_said_before_is_not_lost() -> None:
    told = "Ada sold the mill in May. Who bought it?"
    assert steps(told) == [("IDENTIFY", "Who bought it? (asked with: Ada sold the mill in May.)")]
    ill = "My brother has gout. Am I at risk?"
    assert steps(ill) == [("VERIFY", "Am I at risk? (asked with: My brother has gout.)")]
    aside = "Who signed the lease? (Name every signatory.)"
    assert steps(aside) == [("IDENTIFY", "Who signed the lease (Name every signatory.)?")]


def test_a_subordinate_question_is_not_asked_apart() -> None:
    asked = "How does Ada know who left and when Otto came?"
    assert steps(asked) == [("FIND", asked)]
    assert len(steps("How does Ada know Otto, and when did he come?")) == 2


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What seems odd to the narrator?", []),
        ("Which of the letters seems to be a forgery?", []),
        ("What is the man in the boat doing?", []),
        ("What is one of the keeper's faults?", []),
        ("What was found behind the wall?", []),
        ("Who did NOT sign the lease?", []),
        ("What are the faults of the mill?", ["FIND_FAULTS"]),
        ("What is the relationship like between Ada and Otto?", ["FIND_RELATION"]),
        ("Who sold the mill?", ["IDENTIFY"]),
        ("Is Otto rich?", ["VERIFY"]),
        ("Where is the key?", ["FIND_PLACE"]),
    ],
)
def test_only_a_noun_that_is_asked_for_names_a_new_action(question: str, names: list[str]) -> None:
    assert drafted(question) == names
