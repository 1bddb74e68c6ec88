"""Replies with values alone: where they stand is looked up, or asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pearl import Answer, Document, Pearl
from pearl.dsl.fields import parse_fields
from pearl.llm import ActionTask
from pearl.llm.backends.scripted import Scripted
from pearl.replies.extracted import extraction_constraint, form_of

TEXT = """Discharge letter
Keller, Maria, born on 3 May 1970, paid 1,315.63 euros. She came on 4 May 2022; she
left on 6 May 2022. Mark my words. The creatinine was 2.5 mg/dl, five weeks ago 186 mg/dl. Her
room was no. 186. Ines Marchal saw her. Ines Marchal wrote this. Ines Marchal left. Ines Marchal
came back. O’Brien Ltd. has the bill of 6 May 2022. Nurse: Ada
Finch.
"""


def extract(fields: str, *replies: dict[str, Any], **settings: Any) -> tuple[Answer, Scripted]:
    left = iter(replies)
    model = Scripted(lambda _: json.dumps(next(left)))
    step = f'1. record = EXTRACT(CTX, "{fields}") : Take them'
    answer = asyncio.run(Pearl(model, **settings).execute(step, Document(TEXT, "letter.txt")))
    return answer, model


@pytest.mark.parametrize(("field", "value", "found", "shown"), [
    ("born: date", "1970-05-03", "1970-05-03", ["born on 3 May 1970, paid"]),
    ("came: date", "2022-05-04", "2022-05-04", ["She came on 4 May 2022"]),
    ("paid: number (in euros)", 1315.63, 1315.63, ["paid 1,315.63 euros"]),
    ("creatinine: number (in mg/dl)", 2.5, 2.5, ["The creatinine was 2.5 mg/dl"]),
    ("nurse: str", "ada finch", "ada finch", ["Nurse: Ada"]),
    ("payer: str", "O'Brien Ltd.", "O'Brien Ltd.", ["O’Brien Ltd. has the bill"]),
])  # fmt: skip
def test_a_value_has_the_line_or_sentence_in_which_it_stands(
    field: str, value: Any, found: Any, shown: list[str]
) -> None:
    name = field.partition(":")[0]
    answer, model = extract(field, {name: value})
    result = answer.fields[name]
    assert (result.state, result.value, len(model.requests)) == ("found", found, 1)
    assert [
        each in " ".join(e.text.split()) for each, e in zip(shown, result.evidence, strict=True)
    ] == [True]
    assert len(result.evidence[0].text) < 200
    assert result.basis == "judged"  # nobody has checked it


@pytest.mark.parametrize(("field", "value"), [
    ("left: date", "2022-05-06"),  # twice
    ("room: int", 186),  # twice
    ("weeks: number", 5),  # too short
    ("author: str", "Ines Marchal"),  # more often than a checker is shown
    ("doctor: str", "Ada"),  # too short
    ("grade: str", "mark"),  # `Mark`
    ("nurse: str", "Nurse"),  # the caption
    ("total: number", 1315.6), ("total: number", 315.63), ("total: number", 0),
    ("ill: bool", True), ("kind: letter|bill", "letter"), ("about: text", "Keller"),
    ("who: str", "Maria Kellermann"), ("day: date", "5.6."),
])  # fmt: skip
def test_one_without_a_certain_place_is_asked_for_again_with_its_quote(
    field: str, value: Any
) -> None:
    name = field.partition(":")[0]
    pair = {"value": value, "quote": "not in the text"}
    answer, model = extract(
        f"{field}, born: date", {name: value, "born": "1970-05-03"}, {name: pair}
    )
    assert answer.fields["born"].state == "found"
    assert answer.fields[name].state == "undecided"
    assert (
        "its quote is not in the document" in answer.fields[name].why
        or "quote" in answer.fields[name].why
    )
    first, second = (request.task for request in model.requests)
    assert isinstance(first, ActionTask)
    assert isinstance(second, ActionTask)
    assert (first.is_quoted, second.is_quoted) == (False, True)
    assert "born" not in dict(second.arguments)["FIELDS"]
    assert first.document == second.document
    assert form_of(parse_fields(field), is_quoted=True) in model.requests[1].prompt


def test_the_second_reply_decides_if_it_proves_the_value() -> None:
    alone = {"left": "2022-05-06", "weeks": 5}
    pair = {"value": "2022-05-06", "quote": "left on 6 May 2022"}
    answer, _ = extract("left: date, weeks: int", alone, {"left": pair, "weeks": None})
    assert answer.fields["left"].value == "2022-05-06"
    assert [e.text for e in answer.fields["left"].evidence] == ["left on 6 May 2022"]
    # what the first reply gave is not taken back by a "not stated"
    assert answer.fields["weeks"].state == "undecided"
    assert "the reply gives 5 without a quote" in answer.fields["weeks"].why


def test_a_budget_of_tokens_is_not_spent_on_a_second_request() -> None:
    model = Scripted(lambda _: '{"weeks": 5}')
    step = '1. record = EXTRACT(CTX, "weeks: int") : Take them'
    pearl = Pearl(model)
    answer = asyncio.run(pearl.execute(step, Document(TEXT, "letter.txt"), token_budget=5_000))
    assert (answer.fields["weeks"].state, len(model.requests)) == ("undecided", 1)


@pytest.mark.parametrize(
    "fields", ["a: int, a_quote: str", "a: int, quote: str", "price_quote: number", "Misquote: str"]
)
def test_fields_with_names_of_the_form_are_asked_for_with_pairs(fields: str) -> None:
    wanted = parse_fields(fields)
    assert form_of(wanted) == form_of(wanted, is_quoted=True)
    one, other = (extraction_constraint(wanted, is_quoted=each) for each in (False, True))
    assert one.rendered("json-schema") == other.rendered("json-schema")


def test_a_field_called_quote_is_no_quote_of_another() -> None:
    answer, _ = extract(
        "weeks: int, weeks_quote: str", {"weeks": 5, "weeks_quote": "five weeks ago"}, {}
    )
    assert answer.fields["weeks"].state == "undecided"
    assert answer.fields["weeks_quote"].value == "five weeks ago"
