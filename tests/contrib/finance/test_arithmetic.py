"""EVALUATE and CALCULATE: where their operands come from, and what they refuse."""

from __future__ import annotations

import pytest

from pearl.actions import native
from pearl.actions.arithmetic.program import (
    AmbiguousRowError,
    DivisionByZeroError,
    MissingOperandError,
    NotGivenError,
    ProgramError,
    UnfitUnitsError,
    UnknownRowError,
)
from pearl.actions.library import load_library
from pearl.actions.operators import operators
from pearl.actions.values import Scalar, Value
from pearl.documents.document import Document
from pearl.documents.rows import Row, Rows, Stated, document_rows

REPORT = """We sold 1,234 boats, at $ 7.50 each.

| in millions | 2008 | 2007 |
|---|---|---|
| net revenue | $5,735 | $5,180 |
| costs | (1,315) | (27) |
| margin | 26.5% | 25% |
| boats | — | 3 |
| twice | 1 | 2 |
| Twice | 3 | 4 |
| plans | soon | 4 |
"""


def run(name: str, *values: Value) -> Scalar:
    result = native.compute(native.known()[name], list(values))
    assert isinstance(result, Scalar)
    return result


def evaluate(program: str, text: str = REPORT) -> Scalar:
    return run("EVALUATE", document_rows(Document(text, "x")), program)


PER_SHARE = """Boats Inc. ($ in millions, except per share and shares)

| item | 2008 | 2007 |
|---|---|---|
| sales | $5,735 | $5,180 |
| earnings per share | $1.25 | $1.10 |
| shares | 120 | 110 |
"""


@pytest.mark.parametrize(
    ("row", "total"),
    [("sales", "$10915 million"), ("earnings per share", "$2.35"), ("shares", "230")],
)
def test_the_scale_of_a_caption_applies_only_to_amounts(row: str, total: str) -> None:
    assert evaluate(f"table_sum({row})", PER_SHARE).value == total


def quoted(result: Scalar) -> list[str]:
    return [REPORT[row.spans[0].start : row.spans[-1].end] for row in result.rows]


def test_a_result_shows_its_formula_and_the_cells_of_its_operands() -> None:
    result = evaluate("subtract(5735, 5180), divide(#0, 5180)")
    assert result.value == "0.10714"
    assert quoted(result) == ["| net revenue | $5,735 | $5,180 |"]
    assert result.rows.notes[-4:] == (
        "(5735 - 5180) / 5180 = 0.107142857143",
        "rounded to 0.10714",
        "5735: row 'net revenue', column '2008'",
        "5180: row 'net revenue', column '2007'",
    )


@pytest.mark.parametrize(
    ("program", "value", "rows"),
    [
        ("table_sum(net revenue, none)", "$10915 million", ["| net revenue | $5,735 | $5,180 |"]),
        ("table_average(Costs)", "-671 million", ["| costs | (1,315) | (27) |"]),
        ("table_max(margin, none)", "26.5%", ["| margin | 26.5% | 25% |"]),
        ("table_sum(boats)", "3 million", ["| boats | — | 3 |"]),
        ("multiply(1234, 7.5)", "9255", ["1,234", "7.50"]),
        ("add(77, 1)", "78", ["| twice | 1 | 2 |"]),
    ],
)
def test_rows_and_numbers_of_the_text(program: str, value: str, rows: list[str]) -> None:
    result = evaluate(program)
    assert (result.value, quoted(result)) == (value, rows)


def test_a_number_that_the_document_does_not_have_is_named() -> None:
    assert "77: not in the document" in evaluate("add(77, 5735)").rows.notes
    assert "1234: in the text, 1 time" in evaluate("add(1234, 5735)").rows.notes
    often = evaluate("add(1234, 1)", "First 1,234, then 1234, and 1,234.0 in the end; not 12345.")
    assert "1234: in the text, 3 times" in often.rows.notes
    assert [row.text for row in often.rows] == ["1,234", "1234", "1,234.0"]


def test_units_of_cells_that_do_not_fit_are_noted_and_ignored() -> None:
    result = evaluate("subtract(5735, 26.5)")
    assert result.value == "5708.5"
    assert any("do not fit" in note for note in result.rows.notes)


@pytest.mark.parametrize(
    ("program", "fault", "reason"),
    [
        ("table_sum(revenue)", UnknownRowError, "did you mean 'net revenue'"),
        ("table_sum(twice)", AmbiguousRowError, "2 rows"),
        ("table_sum(plans)", UnknownRowError, "not a number: 'soon'"),
        ("divide(5735, 0)", DivisionByZeroError, "divide"),
        ("add(5735)", MissingOperandError, "takes 2"),
    ],
)
def test_a_program_without_a_result(program: str, fault: type[ProgramError], reason: str) -> None:
    with pytest.raises(fault, match=reason):
        evaluate(program)


def test_rows_that_were_selected_are_the_table() -> None:
    rows = run_rows("SPLIT", document_rows(Document(REPORT, "x")), "record")
    assert run("EVALUATE", rows, "table_sum(net revenue)").value == "$10915 million"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (("operating margin", "$12 million", "$48 million"), "25%"),
        (("percentage change", 110, 100), "10%"),
        (("percentage change", "3%", "2%"), "50%"),
        (("ratio", "$3.2 billion", "$800 million"), "4"),
        (("difference", "$3.2 billion", "$2,242 million"), "$958000000"),
        (("difference", "5%", "3%"), "2%"),
        (("earnings per share", "$5.2 million", "$200 thousand", "1,000,000"), "$5"),
        (("greater", "$1.1 billion", "$900 million"), "yes"),
        (("greater", "$1.1 billion", "$900 million", "A", "B"), "A"),
        (("greater", "$900 million", "$1.1 billion", "A", "B"), "B"),
        (("greater", "$1.1 billion", "$1,100 million", "A", "B"), "neither: they are equal"),
        (("share", "$3 million", "$12 million"), "25%"),
        (("percentage change", "**$138.0 million**", "USD 124 million"), "11.29%"),
        (("difference", "138.0 (in millions)", "124.0 million"), "14 million"),
        (("difference", ["7"], 5), "2"),
        (("sum", "5%", "0.05"), "10%"),
        (("sum", "$ 3,200 million", "$ 42 million"), "$3242 million"),
        (("product", "$3 million", 4), "$12000000"),
        (("cash flow from operations", "$100", "$20", "$(5)"), "$125"),
        (("current ratio", "about 30 dollars", "15 dollars"), "2"),
    ],
)
def test_calculators(values: tuple[Value, ...], shown: str) -> None:
    assert run("CALCULATE", *values).value == shown


@pytest.mark.parametrize(
    ("values", "fault", "reason"),
    [
        (("ratio", 1, 0), DivisionByZeroError, "divide"),
        (("ratio", 1), MissingOperandError, "numerator, denominator"),
        (("ratio", "soon", 3), MissingOperandError, "numerator: no number"),
        (("ratio", "none", 3), NotGivenError, "numerator is not given"),
        (("ratio", 3, "Nothing found: no figure for 2008"), NotGivenError, "denominator is not given"),
        (("ratio", "$3 (not audited)", 3), MissingOperandError, "numerator may not be given"),
        (("ratio", "3 or 4", 3), MissingOperandError, "numerator: more than one"),
        (("ratio", "I cannot tell. A table says 5.", 3), MissingOperandError, "may not be given"),
        (("difference", "- 138.0", "124.0"), MissingOperandError, "may be below 0"),
        (("ratio", "~5", "$3"), MissingOperandError, "not an exact number"),
        (("ratio", "less than $5", "$3"), MissingOperandError, "numerator: .* is a bound"),
        (("ratio", "1e9999999", 3), MissingOperandError, "not written out"),
        (("ratio", "0x10", 3), MissingOperandError, "not written out"),
        (("difference", "5 bps", "1%"), MissingOperandError, "not written out"),
        (("sum", "5%", "5"), UnfitUnitsError, "second has no unit"),
        (("difference", "5%", "$3"), UnfitUnitsError, "one is in %"),
        (("operating margin", "$12 million", "48"), UnfitUnitsError, "revenue is 48 without a scale"),
        (("percentage change", "$3", "€ 2"), UnfitUnitsError, "one is in"),
        (("operating margin", "$3", "€ 2"), UnfitUnitsError, "different units"),
        (("profit", 1, 2), ValueError, "unknown calculator .*; calculators are cash flow"),
    ],
)  # fmt: skip
def test_invalid_calculations(
    values: tuple[Value, ...], fault: type[ValueError], reason: str
) -> None:
    with pytest.raises(fault, match=reason):
        run("CALCULATE", *values)


def test_an_operand_of_rows_is_one_that_is_decided() -> None:
    one = Rows((Row("$110", text="| revenue | $110 |"),), "2008")
    result = run("CALCULATE", "percentage change", one, "$100")
    assert (result.value, list(result.rows)) == ("10%", list(one))
    assert "new value: | revenue | $110 |, 2008" in result.rows.notes
    for rows in (Rows(()), Rows((Row("1"), Row("2"))), Rows((Row(None),)), Rows((Row("1"),), doubtful=(Row("2"),))):  # fmt: skip
        with pytest.raises(MissingOperandError, match="new value: one row is needed"):
            run("CALCULATE", "percentage change", rows, 100)


def test_an_operand_from_a_table_is_in_the_scale_of_its_header() -> None:
    split = run_rows("SPLIT", document_rows(Document(REPORT, "x")), "record")
    assert "numbers of the table with in millions, 2008, 2007 are in millions, as its header says" in split.notes  # fmt: skip
    revenue = run_rows("WHERE", split, "in millions", "is", "net revenue")
    new, old = (run_rows("FIELD", revenue, year) for year in ("2008", "2007"))
    assert run("CALCULATE", "difference", new, old).value == "$555 million"
    assert run("CALCULATE", "percentage change", new, old).value == "10.714%"
    margin = run_rows("FIELD", run_rows("WHERE", split, "in millions", "is", "margin"), "2008")
    assert run("CALCULATE", "difference", margin, "25%").value == "1.5%"


def run_rows(name: str, *values: Value) -> Rows:
    result = native.compute(native.known()[name], list(values))
    assert isinstance(result, Rows)
    return result


def test_a_result_is_an_operand_with_all_of_its_digits() -> None:
    margins = [run("CALCULATE", "operating margin", *pair) for pair in (("$1", "$3"), ("$1", "$7"))]
    assert [margin.value for margin in margins] == ["33.333%", "14.286%"]
    total = run("CALCULATE", "sum", *margins)
    assert total.value == "47.619%"
    change = run("CALCULATE", "difference", "$30 million", "$20 million")
    assert run("CALCULATE", "ratio", change, total).value == "$21000000"  # 10 / (10 / 21), exactly
    plain = run("CALCULATE", "difference", "30 million", "20 million")
    assert run("CALCULATE", "sum", plain, "$5 million").value == "$15 million"


def test_a_change_from_a_negative_value_is_noted() -> None:
    result = run("CALCULATE", "percentage change", 5, -10)
    assert result.value == "-150%"
    assert any("old value is negative" in note for note in result.rows.notes)


def test_specialised_actions_are_only_in_libraries_that_list_them() -> None:
    finance = load_library("finance")
    for name in ("EVALUATE", "CALCULATE"):
        assert name not in operators()
        assert finance[name].is_native
        assert finance[name].definition == native.known()[name].definition


def test_a_number_that_is_computed_from_a_count_has_its_bounds() -> None:
    n = Scalar(4, Rows(()), low=4, high=4, stated=Stated(4, 6, 2))
    found = native.compute(native.known()["CALCULATE"], ["share", n, 8])
    assert isinstance(found, Scalar)
    assert found.value == "50%"
    assert found.rows.notes[-1] == "what rows do not state: 50% to 75%, with 4 to 6 of 8"
