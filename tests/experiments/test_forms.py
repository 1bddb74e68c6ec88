"""The cases of forms of reply: an oracle is right in the form that is kept, and its places are those that are known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.reader import forms
from pearl.dsl.fields import parse_fields

CASES = forms.cases()


def oracle(case: forms.Case) -> str:
    reply: dict[str, Any] = {}
    for field in parse_fields(case["fields"]):
        reply[field.name] = value = case["gold"][field.name]
        if value is not None and field.type in (*forms.QUOTED_TYPES, "int"):
            reply[f"{field.name}_quote"] = case["where"][field.name][0]
    return json.dumps(reply)


def test_what_a_case_states_stands_in_it() -> None:
    assert len({case["id"] for case in CASES}) == 40
    for case in CASES:
        stated = {name for name, value in case["gold"].items() if value is not None}
        assert stated == set(case["where"])
        assert all(each in case["document"] for places in case["where"].values() for each in places)


@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: str(case["id"]))
def test_an_oracle_is_right(case: forms.Case) -> None:
    found = forms.decided("kept", case, oracle(case))
    verdicts = {name: forms.verdict(result, name, case) for name, result in found.items()}
    # a range of days, or a day in words, is no date that PEARL reads
    assert set(verdicts.values()) <= {"right", "undecided, value right"}
    assert list(verdicts.values()).count("right") >= 5


def test_a_wrong_value_and_a_wrong_place_are_told_apart() -> None:
    case = next(case for case in CASES if case["id"] == "hand-06")
    reply = {
        "team": 2021,
        "team_quote": "from 2021 on",
        "ended_by": "employee",
        "ended_by_quote": "She led a team of six",
    }
    found = forms.decided("kept", case, json.dumps(reply))
    assert forms.verdict(found["team"], "team", case) == "wrong"
    assert forms.verdict(found["ended_by"], "ended_by", case) == "right, other place"
    assert forms.verdict(found["phone"], "phone", case) == "undecided"
    request = forms.request("numbers of sentences", case)
    assert "[1] To whom it may concern" in request["messages"][-1]["content"]
