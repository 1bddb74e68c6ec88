"""What a model is told: every word of it is in the digest that tells one wording from another."""

from __future__ import annotations

import pytest

from pearl.dsl.signatures import ValueType
from pearl.interpreter import prompt as reading
from pearl.runs.identity import prompts_sha256


@pytest.mark.parametrize("form", reading.FORMS)
def test_how_a_form_is_asked_for_is_part_of_the_wording(
    form: ValueType, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = prompts_sha256()
    monkeypatch.setitem(reading.FORMS, form, f"{reading.FORMS[form]} Be brief.")  # type: ignore[arg-type]
    assert prompts_sha256.__wrapped__() != before


def test_how_it_is_asked_once_more_is_part_of_the_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts_sha256()
    monkeypatch.setattr("pearl.runs.identity.again_messages", lambda messages, *_: messages)
    assert prompts_sha256.__wrapped__() != before


def test_rules_for_rows_are_part_of_the_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompts_sha256()
    monkeypatch.setattr("pearl.planner.prompt._ROW_RULES", "Count by yourself.")
    assert prompts_sha256.__wrapped__() != before
