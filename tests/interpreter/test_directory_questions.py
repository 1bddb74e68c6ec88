"""Questions of a directory that models get wrong: other names, columns that are asked about, names of places in names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pearl import Document, Pearl
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted

TEXT = """Name,Type,City,Services,Accessibility,Phone
H&C,Clinic,Tel Aviv-Yafo,Ophthalmology; Cardiology,ramp; no animals,03-5550101
Jerusalem Clinic,Clinic,Tel Aviv-Yafo,Dermatology,,03-5550102
Lod Street Clinic,Clinic,Jerusalem,Pediatrics,service animals welcome,02-5550103
Harbor,Pharmacy,Tel Aviv-Yafo,Pharmacy,ramp,03-5550104
Old Gate,Pharmacy,Jerusalem,Pharmacy,,02-5550105
"""


def where(**conditions: str) -> dict[str, Any]:
    """Conditions by column: `=x` for a value, `x` for a part of it."""
    return {
        "all": [
            {"column": column, "op": "is" if value[0] == "=" else "contains", "value": [value.lstrip("=")]}
            for column, value in conditions.items()
        ]
    }  # fmt: skip


def ask(question: str, *queries: dict[str, Any]) -> tuple[Answer, list[str]]:
    """The answer, and what the model was shown before each of its queries."""
    left = [json.dumps(query) for query in queries]
    model = Scripted(lambda request: left.pop(0))
    plan = f'1. found = LOOKUP(CTX, "{question}") : Ask the directory'
    answer = asyncio.run(Pearl(model).execute(plan, Document(TEXT, "directory.csv")))
    assert not left
    return answer, [request.messages[-1].content for request in model.requests]


def test_a_city_that_the_table_calls_otherwise_is_told_before_and_after() -> None:
    wrong = {"select": ["Name"], "where": where(City="=Tel Aviv", Type="=Pharmacy")}
    right = {"select": ["Name"], "where": where(City="=Tel Aviv-Yafo", Type="=Pharmacy")}
    answer, told = ask("Which pharmacies are in Tel Aviv?", wrong, right)
    assert [row.fields["Name"] for row in answer.rows] == ["Harbor"]
    assert "nearest to the question: Tel Aviv-Yafo" in told[0]
    assert 'no row meets: City is "Tel Aviv" (City has: Tel Aviv-Yafo' in told[1]


def test_a_colloquial_word_is_told_as_the_table_has_it() -> None:
    right = {"select": ["Name"], "where": where(City="=Tel Aviv-Yafo", Services="Ophthalmology")}
    answer, told = ask("Is there an oculist in Tel Aviv?", right)
    assert [row.fields["Name"] for row in answer.rows] == ["H&C"]
    assert "nearest to the question: Ophthalmology" in told[0]


def test_what_is_asked_about_is_shown_and_not_a_condition() -> None:
    """The answer is no, and a filter would find nothing where the column says so."""
    question = "Does H&C clinic allow service animals?"
    filtered = {"select": ["Name"], "where": where(Name="H&C", Accessibility="service animals")}
    shown = {"select": ["Name", "Accessibility"], "where": where(Name="H&C")}
    answer, told = ask(question, filtered, shown)
    assert "ramp; no animals" in answer.text
    assert "welcome" not in answer.text
    assert "select the column, do not filter on it" in told[0]
    assert 'Accessibility contains "service animals"' in told[1]
    assert [row.fields["Accessibility"] for row in answer.rows] == ["ramp; no animals"]


def test_a_clinic_that_is_named_after_another_city_is_found_where_it_is() -> None:
    question = "What is the phone number of the Jerusalem Clinic in Tel Aviv?"
    right = {"select": ["Phone"], "where": where(Name="Jerusalem", City="=Tel Aviv-Yafo")}
    answer, told = ask(question, right)
    assert [row.fields["Phone"] for row in answer.rows] == ["03-5550102"]
    lines = {line.split(":")[0]: line for line in told[0].split("\n") if line.startswith("- ")}
    assert "nearest to the question: Jerusalem Clinic" in lines["- Name"]
    assert {"Tel Aviv-Yafo", "Jerusalem"} <= set(
        lines["- City"].partition("question: ")[2].split("; ")
    )
    assert "because the bakery is in Norwood" in told[0]
