"""Printing: it can be read back, it is a fixed point, and it is what it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.literals import quote
from pearl.dsl.nodes import (
    Number,
    Plan,
    print_action,
    print_argument,
    print_plan,
)
from pearl.dsl.parser import formatted, parse, read
from pearl.dsl.signatures import Action, Parameter
from tests.dsl.strategies import wild_plans


@given(wild_plans())
def test_what_is_printed_reads_back_as_the_same_plan(plan: Plan) -> None:
    assert parse(print_plan(plan)) == plan


COMMENTS = st.lists(
    st.sampled_from(['# 1. old = FIND(CTX, "x") : f', "#", "## Why", "# New actions:", "  # indented"]),
    min_size=1, max_size=4,
)  # fmt: skip


@given(wild_plans(), COMMENTS, st.data())
def test_comments_are_ignored_and_kept(
    plan: Plan, comments: list[str], data: st.DataObject
) -> None:
    lines = print_plan(plan).split("\n")
    for comment in comments:
        lines.insert(data.draw(st.integers(0, len(lines))), comment)
    reading = read("\n".join(lines) + "\n")
    assert reading.errors == ()
    assert reading.plan == plan
    text = formatted(reading)
    assert [line for line in text.split("\n") if line.lstrip().startswith("#")] == [
        line.strip() for line in lines if line.lstrip().startswith("#")
    ]
    assert formatted(read(text)) == text
    assert read(text).plan == plan


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("", '""'),
        ("a = b : c, (d) 'e' “f”", "\"a = b : c, (d) 'e' “f”\""),
        ('"\\', '"\\"\\\\"'),
        ("\n\t\0\x85\ufeff\ufffe", '"\\n\\t\\u0000\\u0085\ufeff\\ufffe"'),
        ("鍵 🔑 מפתח", '"鍵 🔑 מפתח"'),
        ("\\n is not a line break", '"\\\\n is not a line break"'),
        ("half \ud83d", '"half \\ufffd"'),
    ],
)
def test_quotes(value: str, literal: str) -> None:
    assert quote(value) == literal


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("7", "7"),
        ("007", "7"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("2.0", "2"),
        ("2.50", "2.5"),
        ("123456.1", "123456.1"),
        ("0.000000000000001", "0.000000000000001"),
        ("99999999999999.999999999999999", "100000000000000"),
        ("-999999999999999", "-999999999999999"),
    ],
)
def test_numbers(written: str, printed: str) -> None:
    (number,) = parse(f"1. a = F({written}) : x").steps[0].arguments
    assert isinstance(number, Number)
    assert print_argument(number) == printed
    assert parse(f"1. a = F({printed}) : x").steps[0].arguments == (number,)


def test_an_action_without_a_definition_is_its_signature() -> None:
    parameters = (Parameter("S1"), Parameter("S2"))
    assert print_action(Action("JOIN", parameters, is_variadic=True)) == "JOIN(S1, S2, ...)"
    assert print_action(Action("JOIN", parameters, "Join them")) == "JOIN(S1, S2) : Join them"
