"""Entries of lists: their order, equal ones on a line, those that the border of parts cuts, rows in entries."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from pearl import Answer, Document, Pearl
from pearl.data.schemas import load_schema
from pearl.llm import ActionTask, Request
from tests.extraction.shapes import SHAPES, schema_of
from tests.models import Reading, verdicts


def told(value: Any, quote: str | None = None) -> dict[str, Any]:
    return {"value": value, "quote": str(value) if quote is None else quote}


def extract(
    schema: str, text: str, reply: Any, *, window: int | None = None
) -> tuple[Answer, Reading]:
    """The answer to a reply, or to one for each part by its words; every claim is said to be supported."""

    def said(request: Request) -> str:
        if "<claim 1>" in request.prompt:
            return verdicts(*["supported"] * request.prompt.count("</claim"))
        assert isinstance(request.task, ActionTask)
        part = request.task.document or ""
        of_part = (each for words, each in reply.items() if words in part)
        return json.dumps(next(of_part, {}) if window else reply)

    model = Reading(said, window=window)
    return asyncio.run(Pearl(model).extract(schema, Document(text, "file.txt"))), model


def test_an_entry_of_which_a_part_has_lists_alone_is_that_of_the_part_before() -> None:
    filler = "The weather was mild that week, and nothing else was said. " * 18
    first = "Order\n\nArticle: red bolt\nQuantity: 40\n\n"
    second = "Deliveries\n12 pieces by Northbrook\n28 pieces by Calder\n"
    schema = "lines: [{article: str, quantity: int, deliveries: [{pieces: int, by: str}]}]"
    replies = {
        "Article": {"lines": [{"article": told("red bolt"), "quantity": told(40, "Quantity: 40"), "deliveries": []}]},
        "Deliveries": {"lines": [{"article": None, "quantity": None, "deliveries": [
            {"pieces": told(12, "12 pieces"), "by": told("Northbrook")}, {"pieces": told(28, "28 pieces"), "by": told("Calder")},
        ]}]},
    }  # fmt: skip
    answer, model = extract(schema, f"{first}{filler}\n\n{second}{filler}", replies, window=1_000)
    assert sum("<claim 1>" not in each.prompt for each in model.requests) == 2
    deliveries = [{"pieces": 12, "by": "Northbrook"}, {"pieces": 28, "by": "Calder"}]
    assert answer.value == {
        "lines": [{"article": "red bolt", "quantity": 40, "deliveries": deliveries}]
    }


FILLER = "The weather was mild that week, and nothing else was said. " * 20
KRC, SAMIR = (
    {"name": told("KRC-4475"), "editor": None},
    {"name": None, "editor": told("Samir Weber")},
)


@pytest.mark.parametrize(
    ("schema", "first", "second", "undecided"),
    [  # the path that is undecided
        ("sections: [{name: str, editor: str}]", [KRC], [SAMIR], "sections[0].editor"),
        ("sections: [{name: str?, editor: str?}]", [KRC], [SAMIR], "sections[0].editor"),
        ("sections: [{name: str, editor: str?}]", [KRC], [SAMIR], "sections[0].editor"),
        ("sections: [{name: str, editor: str}]", [KRC | {"editor": told("matte")}], [SAMIR], ""),
        ("sections: [{name: str, editor: str?}]", [KRC | {"editor": told("matte")}], [SAMIR], "sections"),
        (
            "sections: [{title: str, parts: [{name: str, editor: str}]}]",
            [{"title": told("matte"), "parts": [KRC]}], [{"title": None, "parts": [SAMIR]}],
            "sections[0].parts[0].editor",
        ),
    ],
)  # fmt: skip
def test_an_entry_that_a_border_of_parts_cuts_is_not_taken_for_two(
    schema: str, first: list[Any], second: list[Any], undecided: str
) -> None:
    text = f"Title: matte\n\nName: KRC-4475\n\n{FILLER}\n\n{FILLER}\n\nEditor: Samir Weber"
    replies = {"Title": {"sections": first}, "Editor": {"sections": second}}
    answer, _ = extract(schema, text, replies, window=1_000)
    assert answer.undecided == tuple(filter(None, [undecided]))
    if undecided.endswith("editor"):
        result = answer.fields[undecided]
        assert [each.value for each in result.candidates] == ["Samir Weber"]
        assert result.why == "it may be of another entry: a border of parts is before it"
    elif undecided:
        why = "an entry has no name: it may continue an entry of another part"
        assert answer.fields[undecided].why == why


BOLT, BY_NORTHBROOK = "Article: red bolt\nQuantity: 40\n\n", "12 pieces by Northbrook\n\n"


@pytest.mark.parametrize("is_twin_behind", [False, True])
def test_equal_entries_of_which_a_border_of_parts_cuts_one_stay_two(is_twin_behind: bool) -> None:
    own = {"pieces": told(12, "12 pieces"), "by": told("Northbrook")}
    line = {"article": told("red bolt"), "quantity": told(40, "Quantity: 40")}
    whole, head = line | {"deliveries": [own]}, line | {"deliveries": []}
    rest = {"article": None, "quantity": None, "deliveries": [own]}
    gap = f"{FILLER}\n\n{FILLER}\n\n"
    if is_twin_behind:
        text = f"First.\n\n{BOLT}{gap}{BY_NORTHBROOK}{BOLT}{BY_NORTHBROOK}"
        replies = {"First": {"lines": [head]}, "Northbrook": {"lines": [rest, whole]}}
    else:
        text = f"First.\n\n{BOLT}{BY_NORTHBROOK}{BOLT}{gap}{BY_NORTHBROOK}"
        replies = {"First": {"lines": [whole, head]}, "Northbrook": {"lines": [rest]}}
    schema = "lines: [{article: str, quantity: int, deliveries: [{pieces: int, by: str}]}]"
    answer, _ = extract(schema, text, replies, window=1_000)
    line = {
        "article": "red bolt",
        "quantity": 40,
        "deliveries": [{"pieces": 12, "by": "Northbrook"}],
    }
    assert answer.value == {"lines": [line, line]}


def test_the_claim_on_a_row_in_an_entry_shows_whose_row_it_is() -> None:
    text = "Station Oulu\n\nReadings\n11; 12\n13\n\nStation Cork\n\nReadings\n21\n"
    schema = "stations: [{name: str, readings: [[int]]}]"
    stations = [
        {
            "name": told(name, f"Station {name}"),
            "readings": [[told(n, row) for n in ns] for ns, row in rows],
        }
        for name, rows in (
            ("Oulu", [((11, 12), "11; 12"), ((13,), "13")]),
            ("Cork", [((21,), "21")]),
        )
    ]
    answer, model = extract(schema, text, {"stations": stations})
    assert answer.value == {
        "stations": [
            {"name": "Oulu", "readings": [[11, 12], [13]]},
            {"name": "Cork", "readings": [[21]]},
        ]
    }
    prompt = model.requests[-1].prompt
    claims = dict(re.findall(r"<claim (\d+)>(.*?)</claim", prompt, re.DOTALL))
    passages = dict(re.findall(r"<passage (\d+)>(.*?)</passage", prompt, re.DOTALL))
    (n,) = [n for n, claim in claims.items() if claim.startswith("21 ")]
    assert "Cork" in claims[n]
    assert "Station Cork" in passages[n]


def test_a_field_of_several_kinds_of_objects_names_all_of_them() -> None:
    (payments,) = (f for f in load_schema(schema_of(SHAPES["unions"])).fields if f.is_list)
    about = {field.name: field.description for field in payments.fields}
    assert about["amount"] == "if method is card or transfer"
    assert about["cashier"] == "if method is cash"


def test_a_group_of_fields_without_values_is_no_flaw_of_the_others() -> None:
    many = ", ".join(f"town_{i}: str?" for i in range(20))  # more than one reply has room for
    schema = f"name: str?, children: [{{name: str?, children: [{{name: str?, {many}}}]?}}]?"
    said = {"name": told("Anna Weber"), "children": []}
    answer, model = extract(schema, "Name: Anna Weber.", said)
    assert sum("<claim 1>" not in each.prompt for each in model.requests) == 2
    assert (answer.status, answer.value) == ("answered", {"name": "Anna Weber", "children": None})
    answer, _ = extract(schema, "Name: Anna Weber.", said | {"children": [{"name": told("Bob")}]})
    assert (answer.status, answer.partial["name"]) == ("degraded", "Anna Weber")


def test_a_value_of_another_row_is_not_that_of_this_one() -> None:
    first, second = "11; 12; 13", "21; 22; 23"
    rows = [
        [told(n, first) for n in (11, 12, 13)],
        [told(21, second), told(12, first), told(23, second)],
    ]
    answer, _ = extract("grid: [[int]]", "Grid:\n11; 12; 13\n21; 22; 23\n", {"grid": rows})
    assert answer.undecided == ("grid[1][0]",)  # in the order of the document
    assert answer.partial["grid"][1][1:] == [21, 23]
    lines = ["11; 12", "21; 22", "11"]
    rows = [
        [told(11, lines[0]), told(12, lines[0])],
        [told(21, lines[1]), told(22, lines[1])],
        [told(11)],
    ]
    answer, _ = extract("grid: [[int]]", "\n".join(lines), {"grid": rows})
    assert answer.partial == {"grid": [[11, 12], [21, 22], [None]]}
