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
from pearl.llm.backends.extractive.planning import write_plan
from pearl.llm.backends.extractive.row_questions import row_question

PLAIN = load_library("quality")
LIBRARY = with_operators(PLAIN)


def plan(question: str, library: ActionLibrary = LIBRARY) -> CheckedPlan:
    return compile_plan(write_plan(question, library), library)


def calls(question: str) -> list[str]:
    """The steps without numbers and explanations."""
    lines = print_plan(plan(question).plan).split("\n")[3:]
    return [line.partition(". ")[2].partition(" : ")[0] for line in lines if line]


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        (
            "How many patients had chest pain?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the patient had chest pain")', "number = COUNT(kept)"],
        ),
        ("How many patients are there?", ['rows = SPLIT(CTX, "entry")', "number = COUNT(rows)"]),
        (
            "How many letters mention a blood thinner?",
            ['rows = SPLIT(CTX, "document")', 'kept = FILTER(rows, "the letter mentions a blood thinner")', "number = COUNT(kept)"],
        ),
        (
            "How many negative reviews are there about the food?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the review is negative and the review is one about the food")',
             "number = COUNT(kept)"],
        ),
        (
            "How many different users mention refunds?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the user mentions refunds")', 'groups = GROUP(kept, "User")',
             "number = COUNT(groups)"],
        ),
        (
            "How many messages were sent before June 2023?",
            ['rows = SPLIT(CTX, "entry")', 'chosen = WHERE(rows, "Date", "before", "June 2023")', "number = COUNT(chosen)"],
        ),
        (
            "How many tickets about billing are there per user?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the ticket is one about billing")', 'counts = COUNT_BY(kept, "User")'],
        ),
        ("How many patients per specialty?", ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "specialty")']),
        (
            "How many reviews are there for each product line?",
            ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "product line")'],
        ),
        (
            "What is the number of tickets about billing for each month?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the ticket is one about billing")',
             'counts = COUNT_BY(kept, "Date by month")'],
        ),
        ("How many messages did each user send?", ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "User")']),
        (
            "Which user posted the most messages?",
            ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "User")', "most = MOST(counts)"],
        ),
        (
            "Which user wrote the second most reviews?",
            ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "User")', "second = NTH(counts, 2)"],
        ),
        (
            "Which medical specialty has the fewest records?",
            ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "medical specialty")', "least = LEAST(counts)"],
        ),
        (
            "How many users posted more than twice?",
            ['rows = SPLIT(CTX, "entry")', 'groups = GROUP(rows, "User")', 'fitting = HAVING(groups, "at least", 3)',
             "number = COUNT(fitting)"],
        ),
        (
            "What share of the reviews are positive?",
            ['rows = SPLIT(CTX, "entry")', 'verdict = CLASSIFY(rows, ["yes", "no"], "the review is positive")',
             'share = SHARE_OF(verdict, "verdict", "yes")'],
        ),
        (
            "Are there more messages about billing than about delivery?",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the message is one about billing")', "number = COUNT(kept)",
             'kept_2 = FILTER(rows, "the message is one about delivery")', "number_2 = COUNT(kept_2)",
             "relation = RELATION(number, number_2)"],
        ),
        (
            "Compare how many patients had a fever with how many had a cough.",
            ['rows = SPLIT(CTX, "entry")', 'kept = FILTER(rows, "the patient had a fever")', "number = COUNT(kept)",
             'kept_2 = FILTER(rows, "the patient had a cough")', "number_2 = COUNT(kept_2)",
             "relation = RELATION(number, number_2)"],
        ),
        (
            "In the above data, was label 'spam' more common, less common, or the same frequency before Feb 02, 2023, as "
            "compared to after Feb 02, 2023? Give your final answer in the form 'Answer: [X]'.",
            ['rows = SPLIT(CTX, "entry")', 'label = CLASSIFY(rows, ["spam", "another label"], "its label")',
             'chosen = WHERE(label, "Date", "before", "Feb 02, 2023")', 'before_share = SHARE_OF(chosen, "label", "spam")',
             'chosen_2 = WHERE(label, "Date", "after", "Feb 02, 2023")', 'after_share = SHARE_OF(chosen_2, "label", "spam")',
             "relation = RELATION(before_share, after_share)"],
        ),
        (
            "For the following question, only consider the subset of instances that are associated with user IDs 7, 12, 9. "
            "Among instances associated with these users, which of the labels is the least common? Give your final answer in "
            "the form 'Label: answer' where answer is one of the labels: spam, not spam.",
            ['rows = SPLIT(CTX, "entry")', 'chosen = WHERE(rows, "User", "in", ["7", "12", "9"])',
             'label = CLASSIFY(chosen, ["spam", "not spam"], "its label")', 'counts = COUNT_BY(label, "label")',
             "least = LEAST(counts)"],
        ),
        (
            "For the following question, only consider the subset of instances that occur in May of any year. Among instances "
            "occurring in May, is label 'spam' more common, less common, or the same frequency as label 'ham'?",
            ['rows = SPLIT(CTX, "entry")', 'chosen = WHERE(rows, "Date by month", "contains", "-05")',
             'label = CLASSIFY(chosen, ["spam", "ham", "another label"], "its label")', 'counts = COUNT_BY(label, "label")',
             'number = COUNT_OF(counts, "spam")', 'number_2 = COUNT_OF(counts, "ham")', "relation = RELATION(number, number_2)"],
        ),
        (
            "For the following question, only consider the subset of instances that occur between Jan 03, 2023 and Aug 09, 2023, "
            "inclusive. Among instances occurring in this date range, how many data points should be classified as label 'spam'?",
            ['rows = SPLIT(CTX, "entry")', 'chosen = WHERE(rows, "Date", "at least", "Jan 03, 2023")',
             'chosen_2 = WHERE(chosen, "Date", "at most", "Aug 09, 2023")',
             'label = CLASSIFY(chosen_2, ["spam", "another label"], "its label")', 'counts = COUNT_BY(label, "label")',
             'number = COUNT_OF(counts, "spam")'],
        ),
        (
            "In the above data, which user has more instances with the label 'spam': User 12 or User 34?",
            ['rows = SPLIT(CTX, "entry")', 'chosen = WHERE(rows, "User", "in", ["12", "34"])',
             'label = CLASSIFY(chosen, ["spam", "another label"], "its label")', 'chosen_2 = WHERE(label, "label", "is", "spam")',
             'counts = COUNT_BY(chosen_2, "User")', "most = MOST(counts)"],
        ),
        (
            "In the above data, which date is represented the second most often?",
            ['rows = SPLIT(CTX, "entry")', 'counts = COUNT_BY(rows, "Date")', "second = NTH(counts, 2)"],
        ),
        (
            "How many dates are represented exactly 3 times?",
            ['rows = SPLIT(CTX, "entry")', 'groups = GROUP(rows, "Date")', 'fitting = HAVING(groups, "is", 3)',
             "number = COUNT(fitting)"],
        ),
    ],
)  # fmt: skip
def test_the_steps_of_a_question_about_rows(question: str, steps: list[str]) -> None:
    assert calls(question) == steps


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("How many of the patients were treated?", "the patient was treated"),
        ("How many patients have diabetes?", "the patient has diabetes"),
        ("How many patients did not have a fever?", "the patient did not have a fever"),
        ("How many patients over 65 had surgery?", "the patient over 65 had surgery"),
        ("How many patients who had surgery are there?", "the patient had surgery"),
        ("According to the records, how many patients smoke?", "the patient smokes"),
        ("Please tell me how many patients died in 2020.", "the patient died in 2020"),
        ("Count the reviews about the food", "the review is one about the food"),
        ("How many messages between 2023-01-01 and 2023-02-01 mention refunds?", "the message mentions refunds"),
    ],
)  # fmt: skip
def test_a_condition_is_a_sentence_about_one(question: str, condition: str) -> None:
    asked = row_question(question)
    assert asked is not None
    assert asked.about == (condition,)


@pytest.mark.parametrize(
    "question",
    [
        "How many animals does the farmer have?",
        "How many horses did Ada have?",
        "How many times does Ada lie?",
        "How many letters did Ada write to Otto?",
        "How many letters has Ada written?",
        "How many messages did she leave?",
        "How many patients does Dr. Ray see a day?",
        "How many patients died in the story?",
        "How many pages does the report have?",
        "How many rows of seats did the theatre have?",
        "How many words are in the first chapter?",
        "Who wrote the most letters?",
        "What is the most common complaint about the mill?",
        "Which of the sisters is the most generous?",
        "Which user manual is used?",
        "What percentage of the alcohol is lost?",
        "Was Ada happier before 1920 than after?",
        "Compare Ada and Otto.",
        "Which of the labels is the most common?",
        "Why did the patient stop taking warfarin?",
        "How many patients had pain, and why did they come?",
        "How many patients per doctor had a fever?",
        "the messages",
        "",
    ],
)
def test_what_a_text_tells_of_is_not_counted_as_rows(question: str) -> None:
    assert row_question(question) is None
    if question:
        assert write_plan(question, LIBRARY) == write_plan(question, PLAIN)


@pytest.mark.parametrize("lacking", ["FILTER", "COUNT", "SPLIT"])
def test_a_library_without_the_operators_plans_as_ever(lacking: str) -> None:
    question = "How many patients had chest pain?"
    own = read_library(f"{lacking}(ITEMS, X, Y) : Something else", "own")
    for library in (PLAIN, LIBRARY.extended(own.values())):
        assert [step.action for step in plan(question, library).plan.steps] == ["FIND"]
    assert len(plan(question, operators()).plan.steps) == 3


WORDS = [
    "how many", "which", "what is", "was", "the most", "the second most", "least", "the label", "'spam'", "'ham'", "patients",
    "users", "user", "messages", "letters", "entries", "date", "per", "for each", "month", "before", "after", "2023-05-01",
    "June 2023", "what share of", "more", "common", "than", "about", "had", "mention", "are there", "exactly 3 times",
    "represented", "often", "and", "or", "in", "between", "inclusive.", "Only consider the subset of", "?", ",", ":", "IDs 12",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join))
def test_every_plan_is_valid(question: str) -> None:
    if question.strip():
        plan(question)


def test_what_is_no_date_selects_no_rows_by_date() -> None:
    by_date = row_question("How many reviews were sent before March 12, 2023?")
    assert by_date is not None
    assert by_date.where == (("Date", "before", "March 12, 2023"),)
    by_model = row_question("How many reviews were sent before Round 12, 2023?")
    assert by_model is not None
    assert (by_model.where, by_model.about) == ((), ("the review was sent before Round 12, 2023",))
