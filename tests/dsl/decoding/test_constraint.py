"""A constraint is any small language, in every form that decoders take."""

from __future__ import annotations

from typing import Any

import pytest

from pearl.dsl.decoding.constraint import Constraint, require, to_gbnf, validate
from pearl.errors import UsageError
from pearl.plugins.files import read_data
from tests.dsl.sampling import admits, gbnf_admits, lalr_admits

ARITHMETIC = r"""
// A language that has nothing to do with plans.
start: sum
sum: term (("+" | "-") term)*
term: factor
    | factor ("*" | "/") term
factor: NUMBER | "(" sum ")" | call
call: NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z][a-z0-9]{0,3}|\u00e9\-\[/
NUMBER: /-?(?:[0-9]+\.[0-9]{1,2}|[0-9]{1,3})/
"""


@pytest.mark.parametrize(
    ("text", "is_in"),
    [
        ("1", True), ("-12.50+3*(4-5)", True), ("f1()", True), ("max(1,2*é-[(3))", True),
        ("", False), ("1+", False), ("1 + 2", False), ("1.234", False), ("f(1", False),
        ("abcde(1)", False), ("é-(1)", False), ("1234", False),
    ],
)  # fmt: skip
def test_another_language_reads_the_same_everywhere(text: str, is_in: bool) -> None:
    constraint = Constraint("arithmetic", ARITHMETIC)
    validate(constraint.lark)
    assert admits(constraint.lark, text) is is_in
    assert admits(constraint.llguidance, text) is is_in
    assert lalr_admits(constraint.lark, text) is is_in
    assert gbnf_admits(constraint.gbnf, text) is is_in


def test_the_plan_language_is_in_the_dialect() -> None:
    grammar = read_data("grammars", "plan.lark")
    validate(grammar)
    gbnf = to_gbnf(grammar)
    assert gbnf_admits(gbnf, '1. a = FIND(CTX,"x", [é, 2]): Find it\n2. b = F() : c\n')
    assert not gbnf_admits(gbnf, "1. a = FIND(CTX, [[]]) : Find it")


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ('start: "a" b', "uses undefined names: b"),
        ('begin: "a"', "uses undefined names: start"),
        ('start: "a" | A2', "uses undefined names: A2"),
        ("start: /[a/", "llguidance refuses the grammar"),
        ('start: "a"~2..4', "line 1 of the grammar"),
        ('start: "a"\n%ignore " "', "line 2 of the grammar"),
        ('start: "a" -> b', "line 1 of the grammar"),
        ('?start: "a"', "line 1 of the grammar"),
        ('start: "a"\nA.2: "b"', "line 2 of the grammar"),
        ('start: ("a"', "llguidance refuses the grammar"),
        ("start: /(?=a)b/", "llguidance refuses the grammar"),
        ('root ::= "a"', "line 1 of the grammar"),
    ],
)
def test_what_decoders_might_refuse_is_refused(grammar: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]+$") as raised:
        validate(grammar)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("start: /a.b/", "not of the shared dialect"),
        ("start: /a(?!b)/", "not of the shared dialect"),
        (r"start: /\d/", "not of the shared dialect"),
        (r"start: /[\w]/", "not of the shared dialect"),
        (r"start: /\x41/", "not of the shared dialect"),
        ('start: A_b a_b\na_b: "x"\n_a_b: "y"', "a_b and _a_b are the same name"),
    ],
)
def test_what_gbnf_cannot_say_is_refused(grammar: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        to_gbnf(grammar)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: /a|b/ "c"', "ac", "a"),
        ('start: /ab/* "c"', "ababc", "abbc"),
        ("start: /[a\\-z]/", "-", "b"),
        ("start: /[\\^a]/", "^", "b"),
        ('start: /"/', '"', "\\"),
        ("start: /[0-9]{1,2}x?/", "12x", "123"),
    ],
)
def test_expressions_mean_the_same_in_gbnf(grammar: str, good: str, bad: str) -> None:
    gbnf = to_gbnf(grammar)
    assert gbnf_admits(gbnf, good)
    assert not gbnf_admits(gbnf, bad)


_LONG = "a" * 500 + "z" * 500


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        ({}, {"anyOf": [{"enum": ["a"]}, {"type": "object", "required": ["b"]}]}, 'the value: "b" is a required'),
        ([1], {"anyOf": [{"type": "string"}, {"items": {"type": "null"}}]}, "0: 1 is not of type"),
        (_LONG, {"type": "integer"}, 'zzz" is not of type "integer"'),
    ],
)  # fmt: skip
def test_a_value_that_does_not_conform_is_told_shortly_by_its_nearest_alternative(
    value: Any, schema: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        require(value, schema)
    assert len(str(raised.value)) < 500
