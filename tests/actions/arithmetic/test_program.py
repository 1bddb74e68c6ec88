"""The language of programs: what is one, what is none, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.arithmetic.evaluation import evaluate
from pearl.actions.arithmetic.program import (
    MAX_STEPS,
    MAX_TEXT,
    BadTokenError,
    MagnitudeError,
    MissingOperandError,
    ProgramError,
    parse,
)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("revenue", "table_sum(revenue, none)"),
        ("revenue", "table_sum(revenue)"),
        ("net cash , total ( a )", "table_max(net cash , total ( a ), none)"),
        ("4.5% ( 4.5 % ) notes due 2019", "table_min(4.5% ( 4.5 % ) notes due 2019)"),
        ("a, b", 'table_average("a, b", none), divide(#0, 2)'),
        ("add", "table_sum(add, none)"),
    ],
)
def test_a_row_is_named_as_it_is_written(row: str, text: str) -> None:
    assert parse(text).steps[0].operands[0].text == row


@pytest.mark.parametrize(
    ("text", "fault", "reason"),
    [
        ("", BadTokenError, "empty"),
        ("mutiply(1, 2)", BadTokenError, "unknown operation 'mutiply'; did you mean 'multiply'"),
        ("Add(1, 2)", BadTokenError, "did you mean 'add'"),
        ("sqrt(2, 3)", BadTokenError, "operations are add, subtract"),
        ("1,000", BadTokenError, "',000' at character 1"),
        ("add(1, 2", BadTokenError, "the end at character 8"),
        ("add(1, 2) add(2, 3)", BadTokenError, "at character 10"),
        ("add(1e5, 2)", BadTokenError, "1e5"),
        ("add(٣, 2)", BadTokenError, "٣"),
        ("add(1)", MissingOperandError, "add takes 2 operands, not 1"),
        ("add(1, none)", MissingOperandError, "not 1"),
        ("add(1, 2, 3)", MissingOperandError, "not 3"),
        ("none", MissingOperandError, "none"),
        ("add(#0, 1)", MissingOperandError, "#0 is not an earlier step"),
        ("add(1, 2), add(#1, 1)", MissingOperandError, "#1 is not an earlier step"),
        (
            "add(1, #99999999999999999999999999999999999999999999)",
            MissingOperandError,
            "not an earlier step",
        ),
        ("table_max(#0, none)", MissingOperandError, "the name of a row"),
        ("table_max(none, none)", BadTokenError, "none"),
        ("9" * 41, MagnitudeError, "more than 40 digits"),
        ("1" * (MAX_TEXT + 1), BadTokenError, "longer than"),
        (", ".join(["add(1, 2)"] * (MAX_STEPS + 1)), BadTokenError, "more than 64 steps"),
        ("__import__('os').system('true')", BadTokenError, "unknown operation"),
    ],
)
def test_invalid_programs(text: str, fault: type[ProgramError], reason: str) -> None:
    with pytest.raises(fault) as caught:
        parse(text)
    assert reason in str(caught.value)


PARTS = ["add(", "table_sum(", "exp(", "divide(", "none", "#0", "#1", ",", ")", "(", " ", "5%", "const_m1",
         "9" * 30, "-", ".", "$", "a b", "x-y", "none)", "0", "\n", "²", "\ud800", '"']  # fmt: skip


@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PARTS), max_size=30).map("".join)))
def test_any_text_has_a_result_or_a_reason(text: str) -> None:
    try:
        result = evaluate(parse(text), lambda name: [])
    except ProgramError as error:
        assert str(error)  # noqa: PT017, the reason is what is tested
    else:
        assert result.text
