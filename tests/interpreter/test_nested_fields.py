"""Lists in lists, decimals, and names of fields of any kind, from the plan to the record and back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.record import Record
from pearl.dsl.fields import Field, parse_fields, print_fields
from pearl.interpreter.row import restored_record
from pearl.llm import CheckTask, Request
from pearl.llm.backends.scripted import Scripted
from tests.models import Reading, verdicts


def said(value: Any, quote: Any = None) -> dict[str, Any]:
    return {"value": value, "quote": str(value) if quote is None else quote}


def extracted(fields: str, text: str, reply: Any, model: Any = None, **settings: Any) -> Record:
    shown = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    model = model or Scripted(lambda request: shown)
    answer: Answer = asyncio.run(
        Pearl(model, **settings).execute(
            Pearl(model).plan_extraction(parse_fields(fields)), Document(text, "sheet.txt")
        )
    )
    assert answer.record is not None
    # what is stored is read back
    assert restored_record(json.loads(answer.to_json())) == answer.record
    return answer.record


WARD = """\
Ward A
Anna Keller: aspirin 5 mg at 8 h, 10 mg at 20 h; iron 5 mg at 8 h.
Bo Lind: aspirin 5 mg at 8 h.
Ward B
Cy Okafor: aspirin 5 mg at 8 h.
"""
WARDS = "wards: [{name: str, patients: [{who: str, drugs: [{drug: str, doses: [number]}]}]}]"


def drug(name: str, *doses: str) -> dict[str, Any]:
    return {"drug": said(name), "doses": [said(int(dose.split()[0]), dose) for dose in doses]}


NESTED = {
    "wards": [
        {"name": said("Ward A"), "patients": [
            {"who": said("Anna Keller"), "drugs": [
                drug("aspirin", "5 mg at 8 h", "10 mg at 20 h"), drug("iron", "5 mg at 8 h"),
            ]},
            {"who": said("Bo Lind"), "drugs": [drug("aspirin", "5 mg at 8 h")]},
        ]},
        {"name": said("Ward B"), "patients": [
            {"who": said("Cy Okafor"), "drugs": [drug("aspirin", "5 mg at 8 h")]},
        ]},
    ]
}  # fmt: skip


def test_lists_in_lists_have_their_values_at_their_own_places() -> None:
    record = extracted(WARDS, WARD, NESTED)
    wards = record.fields["wards"]
    assert wards.state == "found"
    assert wards.plain == [
        {"name": "Ward A", "patients": [
            {"who": "Anna Keller", "drugs": [
                {"drug": "aspirin", "doses": [5, 10]}, {"drug": "iron", "doses": [5]}]},
            {"who": "Bo Lind", "drugs": [{"drug": "aspirin", "doses": [5]}]},
        ]},
        {"name": "Ward B", "patients": [{"who": "Cy Okafor", "drugs": [{"drug": "aspirin", "doses": [5]}]}]},
    ]  # fmt: skip
    paths = record.paths
    assert record.undecided == ()
    assert paths["wards[0].patients[0].drugs[0].doses[1].value"].value == 10
    lines = [
        WARD.count("\n", 0, e.span.start)
        for path, f in paths.items() for e in f.evidence if path.endswith("].value") or ".drug" in path
    ]  # fmt: skip
    assert lines == [1, 1, 1, 1, 1, 2, 2, 4, 4]
    assert record.lines[0][0] == (
        "wards 1: name: Ward A, patients: [who: Anna Keller, drugs: [drug: aspirin, doses: [5; 10]; "
        "drug: iron, doses: [5]]; who: Bo Lind, drugs: [drug: aspirin, doses: [5]]]"
    )
    assert record.n_values == sum(not f.entries for f in paths.values())


def test_the_checker_is_told_where_an_entry_belongs() -> None:
    claims: list[str] = []

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            claims.extend(claim for claim, _ in request.task.claims)
            # 10 mg is refused; everything else stands
            return verdicts(
                *(("10" not in c and "supported") or "not stated" for c, _ in request.task.claims)
            )
        return json.dumps(NESTED)

    record = extracted(WARDS, WARD, {}, Reading(reply))
    assert (
        "10 is one of `doses` of `drug` aspirin of `drugs` of `who` Anna Keller of `patients` of "
        "`name` Ward A of `wards`"
    ) in claims
    assert record.undecided == ("wards[0].patients[0].drugs[0].doses[1].value",)
    assert {f.basis for f in record.paths.values() if f.state == "found" and not f.entries} == {
        "copied"
    }


@pytest.mark.parametrize(
    ("text", "value", "wanted", "basis"),
    [
        ("Price: 0.10 EUR", 0.1, "0.10", "copied"),
        ("Price: 0.10 EUR", "0.10", "0.10", "copied"),
        ("Sum 12345678901234567890.123 in all", "12345678901234567890.123", "12345678901234567890.123", "copied"),
        ("Price: 1,250.50 EUR", 1250.5, "1250.50", "normalised"),
        ("Loss: -0.50 EUR", -0.5, "-0.50", "normalised"),
        ("Sales of 3.20 million", 3200000, "3200000", "normalised"),
        ("Price: 0.10 EUR", 0.11, None, ""),
        ("Sum 12345678901234567890.123 in all", "12345678901234567890.124", None, ""),
        ("Sum 1234567890123456789012345678.91 in all", "1234567890123456789012345678.94", None, ""),
    ],
)  # fmt: skip
def test_a_decimal_keeps_its_digits(text: str, value: Any, wanted: str | None, basis: str) -> None:
    record = extracted("p: decimal", text, {"p": said(value, text)})
    result = record.fields["p"]
    assert result.value == wanted
    if wanted is None:
        assert result.state == "undecided"
        assert [c.value for c in result.candidates] == [str(value)]
    else:
        # nobody checked what the quote means
        assert result.basis == "judged"
        checked = extracted("p: decimal", text, {}, Reading(lambda request: (
            verdicts("supported") if isinstance(request.task, CheckTask)
            else json.dumps({"p": said(value, text)})
        )))  # fmt: skip
        assert checked.fields["p"].basis == basis


ODD = [
    "document", "value", "quote", "status", "entries", "undecided", "why", "rows", "state", "record", "اسم المريض",
    "की", "का", "a_b", "ab", "?!", "x" * 500, "it's", 'say "no"',
]  # fmt: skip


def test_fields_may_have_any_name() -> None:
    text = "".join(f"Line {i} has the code K{i:03}.\n" for i in range(len(ODD)))
    fields = tuple(Field(name) for name in ODD)
    reply = {name: said(f"K{i:03}") for i, name in enumerate(ODD)}
    record = extracted(print_fields(fields), text, reply)
    assert {name: f.value for name, f in record.fields.items()} == {
        name: f"K{i:03}" for i, name in enumerate(ODD)
    }
    nested = print_fields(
        [Field("things", is_list=True, fields=fields), *(Field(f"box.{name}") for name in ODD)]
    )
    record = extracted(nested, text, {"things": [reply], "box": reply})
    assert record.fields["things"].plain == [{name: f"K{i:03}" for i, name in enumerate(ODD)}]
    assert [f.value for f in record.fields.values()][1:] == [f"K{i:03}" for i in range(len(ODD))]
    assert record.undecided == ()


TEAM = "Anna Keller, Bert Moor and Cleo Abt came."


def quoted(rows: Any, quotes: list[str]) -> list[list[dict[str, Any]]]:
    return [[said(n, quote) for n in row] for row, quote in zip(rows, quotes, strict=True)]


LINES = ["| 1 | 2 | 2 |", "| 3 | 4 | 5 |", "| 1 | 2 | 2 |"]
READINGS = [[1, 2, 2], [3, 4, 5], [1, 2, 2]]
TWO, ROWS = [[11, 12, 13], [21, 22, 23]], ["11; 12; 13", "21; 22; 23"]
STRUTS = "Allergies: pollen, wide strut, wide strut\n"
RATES = (
    "Price: variable\n\nRates:\n- on request\n- see annex\n- variable\n- 12.5\n\nLimit: see annex\n"
)
DOSES = "Metformin 5 mg. Ramipril 7 mg."
MEDICINES = [
    {"name": "Metformin", "doses": [{"amount": 5}], "quote": "Metformin 5 mg"},
    {"name": "Ramipril", "doses": [{"amount": 7}], "quote": "Ramipril 7 mg"},
]
BILL = "She came on 4 May 2022. The sum was 186, five weeks ago. Her room\nwas no. 186. Ada came on 3 May 1970."
FIVE = ["five weeks ago"]
OPEN = "undecided"


@pytest.mark.parametrize(
    ("fields", "text", "reply", "wanted"),
    [  # of the first field: its value, or "undecided" with what else may tell
        # rows of a table
        ("g: [[int]]", "\n".join(LINES), {"g": quoted(READINGS, LINES)}, READINGS),
        ("g: [[int]]", "\n".join(LINES), {"g": []}, None),
        ("g: [[int]]", "\n".join(ROWS), {"g": quoted(TWO, ROWS)}, TWO),
        ("g: [[int]]", "[[1, 2], [3, 4]]\n", {"g": quoted([[1, 2], [3, 4]], ["[[1, 2], [3, 4]]"] * 2)}, [[1, 2], [3, 4]]),
        # an entry that is not stated keeps its place
        ("g: [str]", TEAM, {"g": ["Anna Keller", None, "Bert Moor"]}, ["Anna Keller", None, "Bert Moor"]),
        ("g: [int]", "Q1: 14, -, -, 9", {"g": [said(14), None, None, said(9)]}, [14, None, None, 9]),
        ("g: [[int]]", "14 | - | 9\n- | 8", {"g": [[said(14), "-", said(9)], [None, said(8)]]}, [[14, None, 9], [None, 8]]),
        ("g: [str]", TEAM, {"g": ["Anna Keller", "n/a"]}, ["Anna Keller", None]),
        ("g: [str]", TEAM, {"g": ["n/a"]}, None),
        # equal entries need a place each; the order is that of the reply where values stand elsewhere, too
        ("g: [str]", TEAM, {"g": ["Anna Keller"] * 4}, (OPEN, "'Anna Keller' (4 times), the document has it once")),
        ("g: [str]", f"{TEAM} Anna Keller left.", {"g": ["Anna Keller"] * 2}, ["Anna Keller"] * 2),
        ("g: [str]", STRUTS, {"g": [said("pollen"), *[said("wide strut")] * 2]}, ["pollen", "wide strut", "wide strut"]),
        ("g: [str]", STRUTS, {"g": [said("pollen"), *[said("wide strut")] * 3]}, (OPEN, "")),
        ("g: [str]", RATES, {"g": [said("on request"), said("see annex"), said("variable"), said("12.5")]}, ["on request", "see annex", "variable", "12.5"]),
        # a quote behind a value, in each of several ways, or one for the values of an entry
        ("n: int", BILL, {"n": 5, "n_quote": FIVE[0]}, 5),
        ("n: int", BILL, {"n": [5], "N Quote": FIVE}, 5),
        ("t.n: int", BILL, {"t": {"n": 5, "n_quote": FIVE[0]}}, 5),
        ("t.n: int", BILL, {"t.n": 5, "t.n_quote": FIVE[0]}, 5),
        ("n: int", BILL, {"n": said(5, FIVE[0])}, 5),
        ("n: int", BILL, {"n": [186, 5], "n_quote": ["room\nwas no. 186", *FIVE]}, (OPEN, "the document says 186 (sheet")),
        ("m: [{name: str, amount: number}]", DOSES, {"m": [{"name": "Metformin", "amount": 5, "quote": "Metformin 5 mg"}]}, [{"name": "Metformin", "amount": 5}]),
        ("m: [{name: str, doses: [{amount: number}]}]", DOSES, {"m": MEDICINES}, [{"name": "Metformin", "doses": [{"amount": 5}]}, {"name": "Ramipril", "doses": [{"amount": 7}]}]),
        # several values
        ("d: date", BILL, {"d": ["2022-05-04", "1970-05-03"]}, (OPEN, "the document says '2022-05-04'")),
        ("p: decimal", "Price 0.10 here, and 0.1 there", {"p": [said("0.10", "Price 0.10"), said("0.1", "and 0.1 there")]}, "0.10"),
        ("p: decimal", "Price 0.10 here, or 0.2", {"p": [said("0.10", "Price 0.10"), said("0.2", "or 0.2")]}, (OPEN, "")),
    ],
)  # fmt: skip
def test_a_reply_becomes_a_value(fields: str, text: str, reply: Any, wanted: Any) -> None:
    result = next(iter(extracted(fields, text, reply).fields.values()))
    if isinstance(wanted, tuple):
        assert result.state == OPEN
        assert wanted[1] in result.why
    else:
        assert (result.state, result.plain) == ("not_stated" if wanted is None else "found", wanted)


def test_an_entry_without_a_quote_is_asked_for_at_its_path() -> None:
    requests: list[str] = []

    def bare(request: Request) -> str:
        requests.append(dict(request.task.arguments)["FIELDS"])  # type: ignore[union-attr]
        return json.dumps({"m": [{k: v for k, v in e.items() if k != "quote"} for e in MEDICINES]})

    extracted("m: [{name: str, doses: [{amount: number}]}]", DOSES, {}, Scripted(bare))
    assert "'m[1].doses[0].amount': number? (of 'Ramipril'; " in requests[1]


def test_a_word_for_nothing_that_the_text_has_is_asked_for_at_its_own_path() -> None:
    asked: list[str] = []

    def reply(request: Request) -> str:
        fields = dict(request.task.arguments)["FIELDS"]  # type: ignore[union-attr]
        if "[0]" not in fields:
            return json.dumps({"figures": [["Q2", "17", "n/a", "5"]]})
        asked.extend(field.name for field in parse_fields(fields))
        cells = ("Q2", "17", "n/a", "5")
        return json.dumps({f"figures[0].value[{i}].value": said(c) for i, c in enumerate(cells)})

    record = extracted("figures: [[str]]", "Q2   17   n/a   5", {}, Scripted(reply))
    assert asked == [f"figures[0].value[{i}].value" for i in range(4)]
    assert record.fields["figures"].plain == [["Q2", "17", "n/a", "5"]]
