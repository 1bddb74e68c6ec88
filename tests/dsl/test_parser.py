"""The strict reader: exactly the grammar, and every broken line at once."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from pearl.dsl.parser import parse, parse_action, read
from pearl.errors import Diagnostic, PlanSyntaxError, Span
from tests.dsl.sampling import accepts
from tests.dsl.strategies import broken_texts


def parses(text: str) -> bool:
    try:
        parse(text)
    except PlanSyntaxError:
        return False
    return True


@given(broken_texts())
@example("New actions:\n- None(CTX) : x\n\n1. a = None(CTX) : x")
@example("Question: Question: Who?\n\n1. a = F() : Question: Who?")
@example("1. a = F(123456789012345.5) : x")
@example("1. a = F(12345678901234.5) : x")
@example("1. a = F() : \u3000")
@example("1. a = F() : \u00a0")
@example("")
@example("\n")
def test_accepts_exactly_what_the_grammar_accepts(text: str) -> None:
    assert parses(text) == accepts(text, "file")


@given(broken_texts())
def test_never_raises_and_says_at_least_one_thing_of_a_broken_text(text: str) -> None:
    reading = read(text)
    assert bool(reading.errors) == (not accepts(reading.text, "file"))
    assert not reading.notes
    for error in reading.errors:
        assert 0 <= error.span.start <= error.span.end <= len(reading.text)
        assert error.severity == "error"
        assert error.message != "this does not follow the grammar"  # nobody is told only that
    positions = [error.span for error in reading.errors]
    assert positions == sorted(positions)


def test_positions_are_those_of_the_text() -> None:
    text = (
        "New actions:\n- COUNT_X(CTX) : x\n\n1. a🔑".replace("🔑", "")
        + ' = F(CTX, ["é", b], c) : y'
    )
    plan = parse(text)
    (step,) = plan.steps
    assert text[slice(*_ends(plan.new_actions[0].span))] == "COUNT_X"
    assert text[slice(*_ends(step.output_span))] == "a"
    assert text[slice(*_ends(step.action_span))] == "F"
    assert [text[slice(*_ends(argument.span))] for argument in step.arguments] == [
        "CTX", '["é", b]', "c",
    ]  # fmt: skip


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


def test_a_broken_plan_is_read_as_far_as_it_goes() -> None:
    reading = read(
        "Question: Who?\n\nNew actions:\n- G(CTX) : x\n- H(CTX, : x\n\n"
        '1. a = F(CTX) : x\n2. b = F(CTX, "x) : y\n3. c = G(a) : z'
    )
    assert reading.plan is not None
    assert reading.plan.question == "Who?"
    assert [action.name for action in reading.plan.new_actions] == ["G"]
    assert [step.output for step in reading.plan.steps] == ["a", "c"]
    assert reading.lost == {"H", "b"}
    assert [error.span.position(reading.text) for error in reading.errors] == [(5, 10), (8, 15)]


def test_the_error_says_where_and_how_many() -> None:
    with pytest.raises(PlanSyntaxError, match=r"plan:1:8: unexpected .* \(and 1 more\)") as caught:
        parse('1. key FIND(CTX, "x") : x\n2. b = F(CTX : y (z)')
    assert [d.span.position(caught.value.text) for d in caught.value.diagnostics] == [
        (1, 8),
        (2, 13),
    ]


def test_an_action_that_cannot_be_read_is_a_diagnostic_in_the_text_around_it() -> None:
    text = "# mine\nFIND CTX) : x"
    found = parse_action(text, Span(7, len(text)))
    assert isinstance(found, Diagnostic)
    assert found.span.position(text) == (2, 5)


def test_positions_in_the_text_count_for_nothing() -> None:
    one, other = (
        parse('1. a = F(CTX, ["x", 1], b) : y').steps,
        parse('1. a = F(CTX,["x",1],b) : y').steps,
    )
    assert one == other
    assert not one[0] != other[0]  # noqa: SIM202 - another operator
    assert {*one} == {*other}
    assert one[0].arguments[1].span != other[0].arguments[1].span
    assert parse('1. a = F(CTX, ["x", 2], b) : y').steps[0] != one[0]
