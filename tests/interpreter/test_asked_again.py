"""What is asked for again: values that break a rule, and what further passes find."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.record import Record
from pearl.dsl.fields import parse_fields
from pearl.dsl.graph import build_graph
from pearl.interpreter.cost_ranges import StepCosts
from pearl.interpreter.estimate import CostEstimator
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.trace import ModelCalled, Trace

Reply = Callable[[Request], Any]


def said(value: Any, quote: Any = None) -> dict[str, Any]:
    return {"value": value, "quote": str(value) if quote is None else quote}


def run(
    fields: str, text: str, reply: Reply, window: int | None = None, **settings: Any
) -> tuple[Answer, Record, list[str], Trace]:
    """An answer, its record, what the requests for fields ask for, and the trace."""
    model = Scripted(lambda request: json.dumps(reply(request)))
    if window is not None:
        model.window = window
    pearl, trace = Pearl(model, **settings), Trace()
    plan = pearl.plan_extraction(parse_fields(fields))
    answer = asyncio.run(pearl.execute(plan, Document(text, "sheet.txt"), trace=trace))
    assert answer.record is not None
    graph = build_graph(plan)
    costs = CostEstimator(RequestBuilder(graph, Document(text, "sheet.txt"), pearl.limits))
    estimate = sum(map(costs.step, plan.plan.steps), StepCosts())
    calls = [e for e in trace if isinstance(e, ModelCalled)]
    assert estimate.calls.least <= len(calls) <= estimate.calls.upper
    assert sum(e.usage.n_input_tokens for e in calls) <= estimate.input_tokens.upper
    return answer, answer.record, [dict(r.task.arguments)["FIELDS"] for r in model.requests], trace


LETTER = "The form says: age 140, which is an error. The patient is 14 years old.\n"
AGE = 'age: int {"maximum": 120} (in years), name: str?'


def test_a_value_that_breaks_a_rule_is_asked_for_again_once_with_the_reason() -> None:
    def reply(request: Request) -> Any:
        if 'breaks "maximum"' in dict(request.task.arguments)["FIELDS"]:
            return {"age": said(14, "is 14 years old")}
        return {"age": said(140, "age 140"), "name": None}

    _, record, asked, trace = run(AGE, LETTER, reply)
    assert record.fields["age"].value == 14
    assert asked[1:] == [
        'age: int {"maximum": 120}? (\'in years; the value 140 breaks "maximum": 120\')'
    ] or asked[1:] == ['age: int {"maximum": 120}? (in years; the value 140 breaks "maximum": 120)']
    assert [e.purpose for e in trace if isinstance(e, ModelCalled)] == ["step", "again"]


@pytest.mark.parametrize("second", [said(140, "age 140"), None, said(200, "age 140")])
def test_a_value_that_breaks_it_again_is_undecided_with_the_keyword(second: Any) -> None:
    def reply(request: Request) -> Any:
        is_again = "breaks" in dict(request.task.arguments)["FIELDS"]
        return {"age": second if is_again else said(140, "age 140"), "name": None}

    _, record, asked, _ = run(AGE, LETTER, reply)
    result = record.fields["age"]
    assert (result.state, len(asked)) == ("undecided", 2)
    if second is None or second["value"] == 140:
        assert result.why == 'the value 140 breaks "maximum": 120'
        assert [(c.value, bool(c.evidence)) for c in result.candidates] == [(140, True)]


def test_a_value_that_the_document_does_not_have_is_not_asked_for_again() -> None:
    _, record, asked, _ = run(
        AGE, LETTER, lambda request: {"age": said(130, "age 140"), "name": None}
    )
    assert (record.fields["age"].state, len(asked)) == ("undecided", 1)


LIST = "Aspirin: 140 mg, in truth 14 mg. Iron: 5 mg. Zinc: 900 mg.\n"


def test_one_request_asks_for_all_broken_values_of_a_reply_and_for_nothing_else() -> None:
    def reply(request: Request) -> Any:
        fields = dict(request.task.arguments)["FIELDS"]
        if "breaks" in fields:
            return {"drugs[0]": {"mg": said(14, "14 mg")}, "drugs[2].mg": None}
        return {"drugs": [
            {"name": said("Aspirin"), "mg": said(140, "140 mg")}, {"name": said("Iron"), "mg": said(5, "Iron: 5 mg")},
            {"name": said("Zinc"), "mg": said(900, "900 mg")},
        ], "n": said(5, "5 mg")}  # fmt: skip

    fields = 'drugs: [{name: str, mg: number {"maximum": 100}}], n: int {"minimum": 1}'
    _, record, asked, _ = run(fields, LIST, reply)
    entries = record.fields["drugs"].entries
    assert [entry["mg"].value for entry in entries] == [14, 5, None]
    assert entries[2]["mg"].why == 'the value 900 breaks "maximum": 100'
    assert len(asked) == 2
    assert [f.name for f in parse_fields(asked[1])] == ["drugs[0].mg", "drugs[2].mg"]
    assert "of 'Aspirin'" in parse_fields(asked[1])[0].description


# ---------------------------------------------------------------------------------------------
# Long documents

PADDING = (
    "The nurse noted that the day was calm and that nothing else had happened on the ward. " * 12
)


def ward(drugs: list[tuple[str, int]], gap: str = f"\n\n{PADDING}\n\n") -> str:
    return gap.join(f"Drug: {name}\nDose: {mg} mg" for name, mg in drugs)


DRUGS = [(f"Drugname{i:02}", 10 + i) for i in range(12)]


def in_part(drugs: list[tuple[str, int]], part: str) -> list[dict[str, Any]]:
    """The entries of a part, each with what the part has of it."""
    entries = [
        {"name": said(name, f"Drug: {name}") if f"Drug: {name}\n" in f"{part}\n" else None,
         "mg": said(mg, f"Dose: {mg} mg") if f"Dose: {mg} mg" in part else None}
        for name, mg in drugs
    ]  # fmt: skip
    return [entry for entry in entries if any(entry.values())]


@pytest.mark.parametrize("gap", ["\n\n", f"\n\n{PADDING}\n\n"])
@pytest.mark.parametrize("window", [None, 2_600, 1_900])
def test_an_entry_that_the_border_of_parts_cuts_is_one(gap: str, window: int | None) -> None:
    # the name and the dose of a drug stand in paragraphs of their own, so that parts begin between them
    text = f"\n\n{PADDING}\n\n".join(f"Drug: {name}{gap[:2]}Dose: {mg} mg" for name, mg in DRUGS)
    _, record, asked, _ = run(
        "drugs: [{name: str, mg: number}]",
        text,
        lambda r: {"drugs": in_part(DRUGS, r.document or "")},
        window,
    )
    assert (len(asked) > 1) == (window is not None)
    result = record.fields["drugs"]
    assert result.state == "found"
    assert [(e["name"].value, e["mg"].value) for e in result.entries] == DRUGS


def test_every_cut_of_a_list_gives_the_same_entries() -> None:
    text = ward(DRUGS, "\n\n")
    for window in range(1_250, 1_400, 10):
        _, record, _, _ = run(
            "drugs: [{name: str, mg: number}]", PADDING + "\n\n" + text.replace("\n", "\n\n") + "\n\n" + PADDING,
            lambda r: {"drugs": in_part(DRUGS, r.document or "")}, window,
        )  # fmt: skip
        entries = record.fields["drugs"].entries
        assert [(e["name"].value, e["mg"].value) for e in entries] == DRUGS, window


def test_a_value_of_the_next_part_may_be_of_another_entry() -> None:
    # the drug at the end of the first part has no dose, and that of the next part has no name
    text = f"{PADDING}\n\nDrug: Aspirin\n\n{PADDING}\n\n{PADDING}\n\nDose: 12 mg\n\n{PADDING}"
    _, record, _, _ = run(
        "drugs: [{name: str, mg: number}]", text,
        lambda r: {"drugs": in_part([("Aspirin", 12)], r.document or "")}, 1_250,
    )  # fmt: skip
    (entry,) = record.fields["drugs"].entries
    assert (entry["name"].value, entry["mg"].state) == ("Aspirin", "undecided")
    assert [each.value for each in entry["mg"].candidates] == [12]


def test_a_list_in_an_entry_goes_on_in_the_next_part() -> None:
    doses = [f"Dose: {10 + i} mg" for i in range(12)]
    text = "Drug: Aspirin\n\n" + f"\n\n{PADDING}\n\n".join(doses)
    fields = "drugs: [{name: str, doses: [number]}]"

    def reply(request: Request) -> Any:
        part = request.document or ""
        mine = [said(10 + i, dose) for i, dose in enumerate(doses) if dose in part]
        name = said("Aspirin") if "Aspirin" in part else None
        return {"drugs": [{"name": name, "doses": mine}] if mine or name else []}

    for window in (None, 1_900):
        record = run(fields, text, reply, window)[1]
        values = [value for entry in record.fields["drugs"].plain for value in entry["doses"]]
        assert values == list(range(10, 22))
    # only halves that stand close to each other are known to be one
    assert record.fields["drugs"].plain[0]["name"] == "Aspirin"


def test_contradictions_between_parts_have_both_places() -> None:
    text = "Age: 54.\n\n" + f"{PADDING}\n\n" * 6 + "Age: 61.\n"
    _, record, asked, _ = run(
        "age: int", text,
        lambda r: {"age": next((said(n, f"Age: {n}") for n in (54, 61) if f"Age: {n}" in (r.document or "")), None)},
        1_250,
    )  # fmt: skip
    result = record.fields["age"]
    assert (len(asked) > 1, result.state) == (True, "undecided")
    assert [c.value for c in result.candidates] == [54, 61]
    assert all(c.evidence for c in result.candidates)


# ---------------------------------------------------------------------------------------------
# Passes


def lazy(request: Request) -> Any:
    """A model that first reads the half, and gives the rest if it is asked for it."""
    fields = dict(request.task.arguments)["FIELDS"]
    entries = in_part(DRUGS, request.document or "")
    if "known already" in fields or "not found by a first reading" in fields:
        entries = [e for e in entries if e["name"] and e["name"]["value"] not in fields]
        extra = (
            {"age": said(54, "Age: 54")} if "Age: 54" in (request.document or "") else {"age": None}
        )
        return {"drugs": entries, **extra, "ward": said("Ward 9")}
    return {"drugs": entries[::2], "age": None, "ward": said("Ward 7", "Ward seven")}


WARD = f"Age: 54. This is Ward 9.\n\n{ward(DRUGS)}"


@pytest.mark.parametrize("window", [None, 2_600])
def test_further_passes_find_what_is_missing(window: int | None) -> None:
    fields = "drugs: [{name: str, mg: number}], age: int?, ward: str"
    _, once, asked_once, _ = run(fields, WARD, lazy, window)
    assert once.fields["age"].state == "not_stated"
    assert once.fields["ward"].state == "undecided"
    assert len(once.fields["drugs"].entries) < len(DRUGS)
    _, twice, asked, trace = run(fields, WARD, lazy, window, passes=2)
    assert [(e["name"].value, e["mg"].value) for e in twice.fields["drugs"].entries] == DRUGS
    assert [twice.fields[name].value for name in ("age", "ward")] == [54, "Ward 9"]
    assert len(asked) == 2 * len(asked_once)
    assert any("known already: name: Drugname00, mg: 10; " in fields for fields in asked)
    assert {e.purpose for e in trace if isinstance(e, ModelCalled)} == {
        "again", "step" if window is None else "part",
    }  # fmt: skip


def test_a_pass_adds_only_what_is_checked_and_nothing_twice() -> None:
    def reply(request: Request) -> Any:
        every = in_part(DRUGS, request.document or "")
        if "known already" not in dict(request.task.arguments)["FIELDS"]:
            return {"drugs": every[:5], "age": None}
        # all of it once more with other quotes, an entry that is nowhere, and a value that is not there
        more = [
            {**e, "name": said(e["name"]["value"], e["name"]["value"] + "\nDose")}
            for e in every[:4]
        ]
        return {
            "drugs": [*more, {"name": said("Nothing"), "mg": said(3)}],
            "age": said(99, "Age: 99"),
        }

    fields = "drugs: [{name: str, mg: number}], age: int?"
    record = run(fields, WARD, reply, passes=2)[1]
    kept = [(e["name"].value, e["mg"].value) for e in record.fields["drugs"].entries]
    assert kept == DRUGS[:5]
    assert record.fields["age"].state == "not_stated"


def test_passes_end_when_one_finds_nothing() -> None:
    fields = "drugs: [{name: str, mg: number}], age: int?"
    whole = lambda r: {"drugs": in_part(DRUGS, r.document or ""), "age": said(54, "Age: 54")}  # noqa: E731
    assert len(run(fields, WARD, whole, passes=5)[2]) == 2
    assert len(run("age: int?", WARD, whole, passes=5)[2]) == 1


def test_a_repeated_entry_that_a_pass_repeats_stays_undecided() -> None:
    text = "Drug: Iron 5 mg\nThen\nDrug: Iron 5 mg\nAge: 54\n"
    entry = {"name": said("Iron", "Drug: Iron 5 mg"), "mg": said(5, "Drug: Iron 5 mg")}
    one = run("drugs: [{name: str, mg: number}]", text, lambda r: {"drugs": [entry]})[1]
    assert one.fields["drugs"].state == "undecided"
    two = run("drugs: [{name: str, mg: number}]", text, lambda r: {"drugs": [entry]}, passes=3)[1]
    assert two.fields["drugs"].state == "undecided"


def test_rows_are_asked_again_too() -> None:
    text = "Anna is 140, no, 14 years old. She has 3 boats: Ada, Bea.\n\nBo is 15 years old. He has no boat.\n"

    def reply(request: Request) -> str:
        fields = dict(request.task.arguments)["FIELDS"]  # type: ignore[union-attr]
        part, is_again = request.document or "", "breaks" in fields
        boats = [[said("Ada")], [said("Bea")]] if "Ada" in part else []
        age = 15 if "Bo" in part else 14 if is_again else 140
        if "first reading" in fields or "known already" in fields:
            return json.dumps({"boats": boats, "name": said("Bo" if "Bo" in part else "Anna")})
        values = {
            "age": said(age, f"Bo is {age}" if "Bo" in part else str(age)),
            "boats": boats[:1],
        }
        return json.dumps(values | {"name": None})

    plan = (
        '1. rows = SPLIT(CTX, "paragraph") : Rows\n'
        '2. read = EACH_EXTRACT(rows, "name: str?, age: int {\\"maximum\\": 120}, boats: [[str]]") : Read'
    )
    answer = asyncio.run(
        Pearl(Scripted(reply), passes=2).execute(plan, Document(text, "sheet.txt"))
    )
    assert [dict(row.fields) for row in answer.row_evidence] == [
        {"name": "Anna", "age": "14", "boats": "[Ada]; [Bea]"},
        {"name": "Bo", "age": "15", "boats": ""},
    ]
