"""A number that a model reads stands in one of its quotes, or it is not certain."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from pearl import Answer, Document, Pearl
from pearl.actions.library import read_library
from pearl.dsl.signatures import ActionLibrary
from pearl.llm import CheckTask, Request
from tests.models import Reading, verdicts

READ = read_library("HOW_MANY(CTX, X) -> Number : Say how many X CTX has\n", "test")
COUNTING = ActionLibrary("counting", [replace(READ["HOW_MANY"], traits=frozenset({"counts"}))])
KENNEL = Document(
    "The dogs number 7. There are seven cats. One owl sleeps. It cost $1,250 in May. The share of hens is 7 %. "
    "Sales came to 3.2 million euros, at a loss of (45) in June. | Net income | 138.0 |",
    "kennel.txt",
)


def asked(
    value: object, quote: object, what: str = "dogs", verdict: str = "", library: ActionLibrary = READ,
) -> tuple[Answer[Any], int]:  # fmt: skip
    """The answer of a plan of one step to a reply, and how often a checker with this verdict was asked."""

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdicts(verdict)
        return json.dumps({"value": value, "quote": quote})

    model = Reading(reply)
    pearl = Pearl(model, library=library, check="auto" if verdict else "off")
    answer = asyncio.run(pearl.execute(f'1. n = HOW_MANY(CTX, "{what}") : Count', KENNEL))
    return answer, sum(isinstance(each.task, CheckTask) for each in model.requests)


@pytest.mark.parametrize(
    ("value", "quote", "refused"),
    [
        ("7", "The dogs number 7.", "8"),
        ("7 dogs", "The dogs number 7.", "17 dogs"),
        ("7", "There are seven cats.", "6"),
        ("1", "One owl sleeps.", "2"),
        ("1250", "It cost $1,250 in May.", "125"),
        ("$1,250", "It cost $1,250 in May.", "€1,250"),
        ("7 %", "The share of hens is 7 %.", "70 %"),
        ("0.07", "The share of hens is 7 %.", "0.7"),
        ("7", "The share of hens is 7 %.", "700"),
        ("3.2 million", "Sales came to 3.2 million euros", "3.2 billion"),
        ("3200000", "Sales came to 3.2 million euros", "3.2"),
        ("-45", "at a loss of (45) in June", "-54"),
        ("138.0 million", "| Net income | 138.0 |", "13.8 million"),  # a caption has the scale
    ],
)
def test_a_number_that_was_read_stands_in_its_quote(value: str, quote: str, refused: str) -> None:
    answer, _ = asked(value, quote)
    assert (answer.status, answer.why) == ("answered", "")
    answer, _ = asked(refused, quote)
    assert answer.status == "undecided"
    assert "no quote has" in answer.why


@pytest.mark.parametrize(
    "quote", [None, [], "", "The dogs number 8.", ["They are 8.", "8 of them bark."]]
)
def test_a_number_without_a_verified_quote_of_it_is_undecided(quote: object) -> None:
    answer, n_checks = asked("8", quote, verdict="supported")
    assert (answer.status, answer.text.startswith("undecided")) == ("undecided", True)
    assert n_checks == 0  # there is no passage to be shown


@pytest.mark.parametrize(("verdict", "status"), [("supported", "answered"), ("contradicted", "undecided")])  # fmt: skip
def test_a_checker_is_asked_about_a_number_that_its_quote_does_not_have(
    verdict: str, status: str
) -> None:
    quotes = ["The dogs number 7.", "There are seven cats."]
    answer, n_checks = asked("14", quotes, "animals", verdict)
    assert (answer.status, n_checks) == (status, 1)
    assert asked("7", quotes, "animals", verdict)[1] == 0


def test_a_scale_that_the_step_names_need_not_be_in_the_value() -> None:
    quote = "Sales came to 3.2 million euros"
    assert asked("3.2", quote, "sales in million euros")[0].status == "answered"
    assert asked("3.2", quote, "sales in thousand euros")[0].status == "undecided"


def test_a_number_that_a_model_counts_itself_is_marked_so() -> None:
    answer, _ = asked("14", ["The dogs number 7."], library=COUNTING)
    assert (answer.status, answer.text) == ("degraded", "14")
    assert "counted by the model" in answer.why
    assert asked("14", None, library=COUNTING)[0].status == "degraded"
    assert asked("7", "The dogs number 7.", library=COUNTING)[0].status == "answered"
