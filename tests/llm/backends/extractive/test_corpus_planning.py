"""The embedded planner searches where that is surely asked for, and counts nothing that was searched."""

from __future__ import annotations

import pytest

from pearl import Pearl
from pearl.actions.operators import REWRITE, SUBQUERIES
from pearl.llm import ActionTask
from pearl.llm.backends.extractive.planning import build_plan, write_plan
from pearl.llm.backends.extractive.queries import made_query

PEARL = Pearl()
CORPUS, ONE = PEARL.material.actions_for("corpus"), PEARL.material.actions_for()


def actions(question: str) -> list[str]:
    PEARL.compile(write_plan(question, CORPUS))
    return [step.action for step in build_plan(question, CORPUS).steps]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Find the passages about robots that think", ["RETRIEVE"]),
        ("Which documents mention Kal-Jmar?", ["SPLIT", "WHERE", "FIELD"]),
        ("In which of the reports: who?", None),
        ("How many letters mention “iron”?", ["SPLIT", "WHERE", "COUNT"]),
        ("How many letters mention Nils Berg?", ["SPLIT", "WHERE", "COUNT"]),
    ],
)
def test_what_is_surely_asked_of_a_corpus(question: str, wanted: list[str] | None) -> None:
    got = actions(question)
    assert got == wanted if wanted else "RETRIEVE" not in got


@pytest.mark.parametrize(
    "question",
    ["How many documents mention the flood?", "Which documents mention Ada?", "How many reports are about robots?"],
)  # fmt: skip
def test_what_may_be_said_in_other_words_is_no_search_for_words(question: str) -> None:
    assert not {"RETRIEVE", "WHERE"} & set(actions(question))


@pytest.mark.parametrize("question", ["Find the passages about robots", "Which documents mention Kal-Jmar?"])  # fmt: skip
def test_for_one_document_nothing_is_searched(question: str) -> None:
    assert "RETRIEVE" not in {step.action for step in build_plan(question, ONE).steps}


def test_queries_are_made_of_the_words_of_the_question() -> None:
    task = ActionTask("a", SUBQUERIES, (("QUESTION", "Who sold the mill, and why?"),), None)
    assert made_query(task) == "- Who sold the mill\n- why (Who sold the mill)"
    history = "- What were net sales in 2008?\n- And the change?"
    task = ActionTask("a", REWRITE, (("QUESTION", "And in 2009?"), ("HISTORY", history)), None)
    assert made_query(task) == "And in 2009? (What were net sales in 2008?; And the change?)"
    task = ActionTask("a", REWRITE, (("QUESTION", "Who?"), ("HISTORY", "Nothing found.")), None)
    assert made_query(task) == "Who?"
