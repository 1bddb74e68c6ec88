"""The strict reader: exactly the grammar, and every broken line at once."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from pearl.dsl.nodes import ListLiteral, Number, Reference, String
from pearl.dsl.parser import parse, parse_action, read
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import Diagnostic, PlanSyntaxError, Span
from tests.dsl.sampling import accepts
from tests.dsl.strategies import broken_texts, plan_texts


def parses(text: str) -> bool:
    try:
        parse(text)
    except PlanSyntaxError:
        return False
    return True


@given(plan_texts)
def test_accepts_what_the_grammar_accepts(text: str) -> None:
    assert accepts(text, "file")
    assert parses(text)


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


@given(plan_texts)
def test_a_plan_without_a_question_is_what_decoders_write(text: str) -> None:
    assert accepts(text, "start") == (
        not text.startswith(("Question: ", "Parameters:", "Sources:"))
    )


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


def test_every_kind_of_argument() -> None:
    (step,) = parse('1. a = F(CTX, b, "c, \\"d\\"", -1.5, [], ["e", 2, CTX]) : x').steps
    assert step.arguments == (
        Reference("CTX"),
        Reference("b"),
        String('c, "d"'),
        Number(-1.5),
        ListLiteral(()),
        ListLiteral((String("e"), Number(2), Reference("CTX"))),
    )
    assert [r.name for r in step.references()] == ["CTX", "b", "CTX"]


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


@pytest.mark.parametrize("line_break", ["\r\n", "\r", "\n"])
def test_line_breaks_of_any_system(line_break: str) -> None:
    text = "New actions:\n- None\n\n1. a = F(CTX) : x\n2. b = G(a) : y\n"
    assert parse(text.replace("\n", line_break)) == parse(text)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert parse("\ufeff1. a = F(CTX) : x").steps[0].output == "a"


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


@pytest.mark.parametrize(
    ("line", "signature", "definition"),
    [
        ("FIND(CTX, X) : Find X", "FIND(CTX, X)", "Find X"),
        ("FIND(CTX,X): Find X", "FIND(CTX, X)", "Find X"),
        ("FIND(CTX, X) # Find X", "FIND(CTX, X)", "Find X"),
        ("FIND(CTX, X) #Find X", "FIND(CTX, X)", "Find X"),
        ("FIND(CTX, X) #", "FIND(CTX, X)", ""),
        ("FIND(CTX, X)", "FIND(CTX, X)", ""),
        ("CONCAT(S1, S2, ...) : Join", "CONCAT(S1, S2, ...)", "Join"),
        ("TODAY() : The day", "TODAY()", "The day"),
        ("検索(CTX) : a : b # c", "検索(CTX)", "a : b # c"),
    ],
)
def test_actions_of_a_library(line: str, signature: str, definition: str) -> None:
    action = parse_action(line)
    assert isinstance(action, Action)
    assert (action.signature, action.definition) == (signature, definition)
    assert [p.type is ValueType.CONTEXT for p in action.parameters] == [
        p.name == "CTX" for p in action.parameters
    ]


def test_an_action_that_cannot_be_read_is_a_diagnostic_in_the_text_around_it() -> None:
    text = "# mine\nFIND CTX) : x"
    found = parse_action(text, Span(7, len(text)))
    assert isinstance(found, Diagnostic)
    assert found.span.position(text) == (2, 5)
