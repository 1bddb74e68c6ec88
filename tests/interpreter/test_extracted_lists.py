"""Lists of extraction: each rule of entries and its nearest neighbour, read whole and in parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted

WINDOWS = (None, 2_000, 1_300)


def rows_of(
    fields: str,
    text: str,
    reply: Callable[[Request], str],
    window: int | None,
    model: Any = Scripted,
) -> Any:
    model = model(reply)
    if window is not None:
        model.window = window
    plan = f'1. record = EXTRACT(CTX, "{fields}") : Extract'
    answer = asyncio.run(Pearl(model).execute(plan, Document(text, "bill.txt")))
    assert answer.record is not None
    return next(iter(answer.record.fields.values())), len(model.requests)


OPEN = "?"  # undecided

DRUGS = "name: str, dose: number? (in mg)"
A5 = {"name": ("Aspirin", "Name: Aspirin"), "dose": (5, "Dose: 5 mg")}
R10 = {"name": ("Ramipril", "Name: Ramipril"), "dose": (10, "Dose: 10 mg")}
COFFEE = {"item": ("Coffee", "Coffee 2.50 EUR"), "price": (2.5, "Coffee 2.50 EUR")}
HOUSE = {"item": ("Coffee", "Coffee of the house ... 2.50 EUR a cup")}
BARE = {"item": ("Coffee", "Coffee"), "price": (2.5, "2.50 EUR")}
GIVEN = [
    {"name": (name, f"Name: {name}"), "dose": (dose, f"given at {dose} mg")}
    for name, dose in (("Aspirin", 5), ("Ramipril", 10))
]


@pytest.mark.parametrize(
    ("fields", "text", "entries", "wanted"),
    [  # each rule, and below it its nearest neighbour: what stands there, what a reply lists, and the result
        # a mention is no entry, a repeated record or line is one
        ("[str]", "Allergic to latex.\nGloves of latex are avoided.", ["latex"], [["latex"]]),
        ("[str]", "- latex\nNone of the others.\n- latex", ["latex"], OPEN),
        ("[str]", "1. latex\nNone of the others.\n2. latex", ["latex"], OPEN),
        ("item: str, price: number", "1 Coffee 2.50 EUR, noon\n2 Coffee 2.50 EUR, one", [COFFEE], OPEN),
        ("item: str", "1 Coffee 2.50 EUR, noon\n2 Coffee 2.50 EUR, one", [{"item": ("Coffee", "Coffee")}], [["Coffee"]]),
        ("[str]", "Anna went to see Anna again.", [("Anna", "Anna went to see Anna again")], [["Anna"]]),
        ("[str]", "Seen: Anna, Karl, Anna.", [(name, "Seen: Anna, Karl, Anna") for name in ("Anna", "Karl", "Anna")], [["Anna"], ["Karl"], ["Anna"]]),
        ("[str]", "Seen: Anna, Karl.", [(name, "Seen: Anna, Karl") for name in ("Anna", "Karl", "Anna")], OPEN),
        # the places of the whole entry, not those of one quote
        ("item: str, price: number", "Coffee is good.\n- Coffee 2.50 EUR\n- Coffee 2.50 EUR", [BARE, BARE], [["Coffee", 2.5]] * 2),
        ("item: str, price: number", "Coffee is good.\n- Coffee 2.50 EUR\n- Coffee 2.50 EUR", [BARE], OPEN),
        # one entry quotes the mark of its line, the other does not
        ("item: str, price: number", "- Coffee 2.50 EUR\n- Coffee 2.50 EUR",
         [COFFEE, {k: (v, f"- {q}") for k, (v, q) in COFFEE.items()}], [["Coffee", 2.5]] * 2),
        # a short quote, if there are as many entries as places
        ("[int]", "Marks\n2\n1\n2\nend", [(2, "2"), (1, "1"), (2, "2")], [[2], [1], [2]]),
        ("[int]", "Marks in room 2\n2\n1\n2\nend", [(2, "2"), (1, "1"), (2, "2")], [[2], [1], [2]]),
        ("name: str, dose: number, times: int", "Name: Aspirin\nDose: 5 mg, 2 times\nRoom 2",
         [{**A5, "times": (2, "2")}], [["Aspirin", 5, 2]]),
        ("[str]", "Seen that day: Anna, Karl, and after the walk Anna.",
         [("Anna", "Seen that day: Anna ... after the walk Anna")] * 2, [["Anna"], ["Anna"]]),
        # a quote of several lines stands on its first one
        ("item: str", "Coffee of the house, hot,\nat 2.50 EUR a cup, and\nCoffee of the house, hot,\nat 2.50 EUR a cup at noon", [HOUSE], OPEN),
        ("item: str", "Coffee of the house, hot,\nat 2.50 EUR a cup\nCoffee of the house, cold,\nat 2.50 EUR a cup", [HOUSE], [["Coffee"]]),
        # values and names on lines of their own
        (DRUGS, "Name: Aspirin\nDose: 5 mg\nName: Ramipril\nDose: 10 mg", [A5, R10], [["Aspirin", 5], ["Ramipril", 10]]),
        (DRUGS, "Dose: 5 mg\nName: Aspirin\nDose: 10 mg\nName: Ramipril", [A5, R10], [["Aspirin", 5], ["Ramipril", 10]]),
        (DRUGS, "Name: Aspirin\nName: Ramipril\nDose: 5 mg\nDose: 10 mg", [A5, R10], [["Aspirin", 5], ["Ramipril", 10]]),
        (DRUGS, "Name: Aspirin\nName: Ramipril\nDose: 10 mg", [{**A5, "dose": None}, R10], [["Aspirin", None], ["Ramipril", 10]]),
        (DRUGS, "Name: Aspirin\nName: Ramipril\nRamipril was given at 10 mg.\nAspirin was given at 5 mg.",
         GIVEN, [["Aspirin", 5], ["Ramipril", 10]]),
        # values and names on one line
        (DRUGS, "Name: Aspirin, Dose: 5 mg\nName: Ramipril, Dose: 10 mg", [A5, {**R10, "dose": None}], [["Aspirin", 5], ["Ramipril", None]]),
        # what stands nowhere is one entry, however often it is listed
        ("[str]", "Allergic to latex.", [("iron", "iron ore")] * 3, [[OPEN]]),
    ],
)  # fmt: skip
def test_each_rule_and_its_neighbour(
    fields: str, text: str, entries: list[Any], wanted: list[list[Any]] | str
) -> None:
    def claim(one: tuple[Any, str] | None) -> dict[str, Any] | None:
        return one and {"value": one[0], "quote": one[1]}

    said = [
        {name: claim(one) for name, one in entry.items()} if isinstance(entry, dict)
        else claim(entry if isinstance(entry, tuple) else (entry, entry))
        for entry in entries
    ]  # fmt: skip
    shown = fields if fields.startswith("[") else f"[{{{fields}}}]"
    reply = json.dumps({"rows": said})
    result, _ = rows_of(f"rows: {shown}", text, lambda request: reply, None)
    if wanted is OPEN:
        assert (result.state, bool(result.why)) == ("undecided", True)
        return
    values = [
        [OPEN if f.state == "undecided" else f.value for f in entry.values()]
        for entry in result.entries
    ]
    assert (result.state, values) == ("found", wanted)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_equal_entries_stand_at_places_of_their_own(n: int) -> None:
    text = "- latex\n- iron\n- latex\n"
    reply = json.dumps({"rows": [{"value": "latex", "quote": "latex"}] * n})
    result, _ = rows_of("rows: [str]", text, lambda request: reply, None)
    places = [[e.span.start for e in entry["value"].evidence] for entry in result.entries]
    assert places == ([[2, 17]] if n == 1 else [[2], [17]])  # which one is meant is open
    assert (result.state == "found") == (n == 2)


@pytest.mark.parametrize(("text", "quotes"), [  # `|`: where the dose of each entry stands
    ("5 mg is low.\n- Aspirin |5 mg\n- Ramipril |5 mg, then 5 mg again", ["Aspirin", "Ramipril"]),
    ("5 mg is low.\n- 5 mg Aspirin |5 mg daily", ["Aspirin 5 mg"]),
    ("5 mg is low.\n- |5 mg Aspirin 5 mg daily", ["5 mg Aspirin"]),
    ("5 km to go.\nAspirin |5 mg", ["Aspirin"]),
    (f"5 mg is low. {'It rained. ' * 20}Aspirin is given at |5 mg.", ["Aspirin"]),  # far away
    ("|5 mg is low.\nAspirin\n|5 mg is high.", ["Aspirin"]),  # all of its places
])  # fmt: skip
def test_a_short_quote_stands_beside_the_others_of_its_entry(text: str, quotes: list[str]) -> None:
    places = []
    while "|" in text:
        places.append(text.index("|"))
        text = text.replace("|", "", 1)
    said = [
        {"name": {"value": q.strip(" 5mg"), "quote": q}, "dose": {"value": 5, "quote": "5"}}
        for q in quotes
    ]
    reply = json.dumps({"rows": said})
    result, _ = rows_of(f"rows: [{{{DRUGS}}}]", text, lambda request: reply, None)
    found = [e.span.start for entry in result.entries for e in entry["dose"].evidence]
    assert (result.state, found) == ("found", places)


def test_a_reply_that_repeats_what_stands_in_another_part_adds_nothing() -> None:
    text = "".join(f"- Item{i} {i}.50 EUR\n\n{'waited at the door ' * 60}{i}\n\n" for i in range(6))
    rows = [
        {"item": {"value": f"Item{i}", "quote": f"Item{i} {i}.50 EUR"}, "price": None}
        for i in range(6)
    ]
    reply = json.dumps({"rows": rows})
    fields = "rows: [{item: str, price: number?}]"
    whole, _ = rows_of(fields, text, lambda request: reply, None)
    in_parts, n_calls = rows_of(fields, text, lambda request: reply, 1_300)
    assert n_calls > 1
    assert in_parts == whole
    assert len(whole.entries) == 6


DIAGNOSIS = "Torn meniscus of the left knee"


def test_a_value_that_stands_twice_cites_both_places() -> None:
    name, text = "postoperative_diagnosis", f"PREOPERATIVE: {DIAGNOSIS}\nPOSTOPERATIVE: {DIAGNOSIS}"
    filler = "".join(f"\n\nRemark {i} on {'walks at the lake ' * 60}\n\n" for i in range(4))
    text = text.replace("\n", filler)

    def reply(request: Request) -> str:
        is_there = DIAGNOSIS in (request.document or "")
        return json.dumps(
            {"rows": {"value": DIAGNOSIS, "quote": DIAGNOSIS} if is_there else None}
        ).replace("rows", name)

    results = [rows_of(f"{name}: str", text, reply, window)[0] for window in WINDOWS]
    assert results == results[:1] * len(WINDOWS)
    result = results[0]
    places = [text.index(DIAGNOSIS), text.rindex(DIAGNOSIS)]
    assert [e.span.start for e in result.evidence] == places


def test_the_entries_of_a_row_are_those_of_the_row_alone() -> None:
    text = "First visit\n- latex\n\nSecond visit\n- latex\n\nThird visit\n- latex\n- latex\n"
    latex = {"value": "latex", "quote": "- latex"}
    replies = {"First": [latex], "Second": [latex, latex], "Third": [latex, latex]}

    def reply(request: Request) -> str:
        first = (request.document or "").split()[0]
        return json.dumps({"rows": replies[first]})

    plan = """1. visits = SPLIT(CTX, "paragraph") : Split
2. rows = EACH_EXTRACT(visits, "rows: [str]") : Extract"""
    answer = asyncio.run(Pearl(Scripted(reply)).execute(plan, Document(text)))
    assert [row.fields["rows"] for row in answer.row_evidence] == ["latex", None, "latex; latex"]
