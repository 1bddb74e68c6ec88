"""Cells as financial tables write them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.numbers import Quantity, is_blank, read_quantity, scale_of


@pytest.mark.parametrize(
    ("text", "value", "unit", "scale"),
    [
        ("$9,000", "9000", "$", 0),
        ("(1,315)", "-1315", "", 0),
        ("$ (1,315)", "-1315", "$", 0),
        ("($1,315)", "-1315", "$", 0),
        ("-$5", "-5", "$", 0),
        ("−5", "-5", "", 0),
        ("12.5%", "12.5", "%", 0),
        ("(2.5)%", "-2.5", "%", 0),
        ("(2.5%)", "-2.5", "%", 0),
        ("1.125%", "1.125", "%", 0),
        ("27 ( 27 % )", "27", "%", 0),
        ("-1315 ( 1315 )", "-1315", "", 0),
        ("$ -3 ( 3 )", "-3", "$", 0),
        ("1,234 (a)", "1234", "", 0),
        ("1,234*", "1234", "", 0),
        ("1\u202f234\u202f567", "1234567", "", 0),
        ("$5.687 billion", "5.687", "$", 9),
        ("$3m", "3", "$", 6),
        ("3m", "3", "m", 0),
        ("30 mg", "30", "mg", 0),
        ("0.125", "0.125", "", 0),
        ("€ 12", "12", "€", 0),
        ("EUR 30", "30", "€", 0),
        ("US$ 1.2 billion", "1.2", "$", 9),
        ("138.0 (in millions)", "138.0", "", 6),
        ("**1,234**", "1234", "", 0),
        ("minus 5", "-5", "", 0),
        ("1\u202f234,50", "1234.50", "", 0),
        ("(1'234,5)", "-1234.5", "", 0),
        ("TEUR 5", "5", "€", 3),
        ("-2,5 T€", "-2.5", "€", 3),
        ("12k€", "12", "€", 3),
        ("MNOK 3.5", "3.5", "nok", 6),
    ],
)
def test_what_is_read(text: str, value: str, unit: str, scale: int) -> None:
    assert read_quantity(text) == Quantity(Decimal(value), unit, scale)


@pytest.mark.parametrize(
    "text",
    ["", "—", "n/a", "12 (1)", "12 ( 13 )", "-(5)", "(-5)", "((5))", "(5", "1.250", "1.234.56", "1,23,456",
     "12,34", "5%%", "$5%", "12-31", "1/2/2020", "⅓", "9" * 61, "1 to 2", "ten", "5 (", "10^5", "007",
     "- 5", "- $5", "<20", "~30", "1st", "5+", "12-15", "5 (est.)", "Q$5",
     "1\u202f234,567", "TEUR 1.250", "TEUR 5 million", "1.250 T€"],
)  # fmt: skip
def test_an_ambiguous_number_is_none(text: str) -> None:
    assert read_quantity(text) is None


def test_a_point_is_decimal_where_the_caller_says_so() -> None:
    assert read_quantity("1.250", decimal=".") == Quantity(Decimal("1.250"))


@pytest.mark.parametrize("text", ["", " ", "-", "—", "N/A", "nm", "$ -"])
def test_blanks(text: str) -> None:
    assert is_blank(text)
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "scale"),
    [("($ in millions)", 6), ("In Thousands, except per share", 3), ("billions of euros", 9),
     ("thousands and millions", None), ("millionaires", None), ("", None),
     ("£'000", 3), ("£2,000", None), ("£1'000", None), ("US$ 000s", 3), ("in 2000", None), ("(000's)", 3),
     ("Umsatz (TEUR)", 3), ("Amateure", None), ("k€", 3), ("km", None), ("MNOK", 6),
     ("£m", 6), ("5 m", None), ("Cost (EUR) B", None), ("EUR bn", 9), ("bn", None),
     ("Umsatz in Mio. EUR", 6), ("Mio, 5 years", None), ("(Mrd.)", 9), ("in Tsd.", 3)],
)  # fmt: skip
def test_scales_of_captions(text: str, scale: int | None) -> None:
    assert scale_of(text) == scale


@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 2),
    st.sampled_from(["plain", "grouped", "brackets", "money", "percent", "restated"]),
)
def test_numbers_come_back_whatever_the_form(digits: int, places: int, form: str) -> None:
    number = Decimal(digits).scaleb(-places)
    size, sign = abs(number), "-" if number < 0 else ""
    text = {
        "plain": f"{number:f}",
        "grouped": f"{number:,f}",
        "brackets": f"({size:,f})" if number < 0 else f"{size:,f}",
        "money": f"{sign}${size:,f}",
        "percent": f"{number:f}%",
        "restated": f"{sign}{size:f} ( {size:f} )",
    }[form]
    found = read_quantity(text)
    assert found is not None
    assert found.value == number


@given(st.text(max_size=30))
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = read_quantity(text)
    assert found is None or found.value.is_finite()
