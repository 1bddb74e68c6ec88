"""Questions that count rows: which ones do, and the steps that answer them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import load_library, read_library
from pearl.actions.operators import operators, with_operators
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.nodes import print_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.embedded.planner import write_plan
from pearl.embedded.row_planner import row_question

PLAIN = load_library("quality")
LIBRARY = with_operators(PLAIN)
ENTRIES = 'rows = SPLIT(CTX, "entry")'


def plan(question: str, library: ActionLibrary = LIBRARY) -> CheckedPlan:
    return compile_plan(write_plan(question, library), library)


def calls(question: str) -> list[str]:
    """The steps without numbers and explanations."""
    lines = print_plan(plan(question).plan).split("\n")[3:]
    return [line.partition(". ")[2].partition(" : ")[0] for line in lines if line]


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        ("How many patients had chest pain?",
         [ENTRIES, 'kept = FILTER(rows, "patients had chest pain")', "number = COUNT(kept)"]),
        ("How many patients are there?", [ENTRIES, "number = COUNT(rows)"]),
        ("According to the records, how many patients smoke?",
         [ENTRIES, 'kept = FILTER(rows, "patients smoke")', "number = COUNT(kept)"]),
        ("How many letters mention a blood thinner?",
         ['rows = SPLIT(CTX, "document")', 'kept = FILTER(rows, "letters mention a blood thinner")', "number = COUNT(kept)"]),
        ("How many negative reviews are there about the food?",
         [ENTRIES, 'kept = FILTER(rows, "negative reviews about the food")', "number = COUNT(kept)"]),
        ("How many different users mention refunds?",
         [ENTRIES, 'kept = FILTER(rows, "users mention refunds")', 'groups = GROUP(kept, "User")', "number = COUNT(groups)"]),
        ("How many messages were sent before June 2023?",
         [ENTRIES, 'chosen = WHERE(rows, "Date", "before", "June 2023")', "number = COUNT(chosen)"]),
        ("How many messages between 2023-01-01 and 2023-02-01 mention refunds?",
         [ENTRIES, 'chosen = WHERE(rows, "Date", "at least", "2023-01-01")',
          'chosen_2 = WHERE(chosen, "Date", "at most", "2023-02-01")',
          'kept = FILTER(chosen_2, "messages mention refunds")', "number = COUNT(kept)"]),
        ("How many reviews were sent before Round 12, 2023?",
         [ENTRIES, 'kept = FILTER(rows, "reviews were sent before Round 12, 2023")', "number = COUNT(kept)"]),
        ("How many patients per specialty?", [ENTRIES, 'counts = COUNT_BY(rows, "specialty")']),
        ("What is the number of tickets about billing for each month?",
         [ENTRIES, 'kept = FILTER(rows, "tickets about billing")', 'counts = COUNT_BY(kept, "Date by month")']),
        ("Which user posted the most messages?",
         [ENTRIES, 'counts = COUNT_BY(rows, "User")', "most = MOST(counts)"]),
        ("What share of the reviews are positive?",
         [ENTRIES, 'verdict = CLASSIFY(rows, ["yes", "no"], "reviews are positive")', 'share = SHARE_OF(verdict, "verdict", "yes")']),
        ("Are there more messages about billing than about delivery?",
         [ENTRIES, 'kept = FILTER(rows, "messages about billing")', "number = COUNT(kept)",
          'kept_2 = FILTER(rows, "messages about delivery")', "number_2 = COUNT(kept_2)",
          "relation = RELATION(number, number_2)"]),
    ],
)  # fmt: skip
def test_the_steps_of_a_question_about_rows(question: str, steps: list[str]) -> None:
    assert calls(question) == steps


@pytest.mark.parametrize(
    "question",
    [
        "How many animals does the farmer have?",
        "How many letters did Ada write to Otto?",
        "How many messages did she leave?",
        "How many patients does Dr. Ray see a day?",
        "How many patients died in the story?",
        "How many pages does the report have?",
        "How many words are in the first chapter?",
        "How many users posted more than twice?",
        "Who wrote the most letters?",
        "What is the most common complaint about the mill?",
        "Which user wrote the second most reviews?",
        "Which user manual is used?",
        "What percentage of the alcohol is lost?",
        "How many patients had pain, and why did they come?",
        "How many patients per doctor had a fever?",
        "Only consider the users 12 and 34. How many messages are there?",
        "Among instances with user IDs 12, how many messages are there?",
        "",
    ],
)
def test_questions_that_count_no_rows_use_no_row_operators(question: str) -> None:
    assert row_question(question) is None
    if question:
        assert write_plan(question, LIBRARY) == write_plan(question, PLAIN)


@pytest.mark.parametrize("lacking", ["FILTER", "COUNT", "SPLIT"])
def test_a_library_without_the_operators_is_used_unchanged(lacking: str) -> None:
    question = "How many patients had chest pain?"
    own = read_library(f"{lacking}(ITEMS, X, Y) : Something else", "own")
    for library in (PLAIN, LIBRARY.extended(own.values())):
        assert [step.action for step in plan(question, library).plan.steps] == ["FIND"]
    assert len(plan(question, operators()).plan.steps) == 3


WORDS = [
    "how many", "which", "what is", "was", "the most", "least", "patients", "users", "user", "messages", "letters",
    "date", "per", "for each", "month", "before", "after", "2023-05-01", "June 2023", "what share of", "more", "common",
    "than", "about", "had", "mention", "are there", "often", "and", "or", "in", "between", "?", ",",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_every_plan_is_valid(question: str) -> None:
    if question.strip():
        plan(question)
