"""Which answers confirm each other, and which only look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.values import Scalar, Value
from pearl.documents.document import Document
from pearl.documents.rows import Rows, document_rows
from pearl.interpreter.agreement import are_same_answer

NO_ROWS = Rows(())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9.5%", "9.47368%"),
        ("9.5%", "0.0947368"),
        ("9.5 %", "It grew by 9.47%."),
        ("$3.2 million", "3,200,000"),
        (206588, "$206,588"),
        (Scalar(3, NO_ROWS), "3"),
        ("-5", "(5)"),
        (True, "Yes."),
        (False, "No, he never did."),
        ("Yes, because of the rain.", "yes: it rained"),
        ("1 May 2023", "2023-05-01"),
        ("June 2023", "2023-06"),
        ("03/04/2023", "03/04/2023"),
        ("The boat.", "boat"),
        (["Oslo", "Bergen"], ["bergen", "the Oslo"]),
        (["Oslo", "Bergen"], "- Bergen\n- Oslo"),
        ("Nils sold the old boat in May 2023 to Ada", "Nils sold the boat in May 2023 to Ada."),
        ("", ""),
    ],
)
def test_the_same(one: Value, other: Value) -> None:
    assert are_same_answer(one, other)
    assert are_same_answer(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9.5%", "9.6%"),
        ("9.5", "9.5%"),
        ("9.5% higher", "9.5% lower"),
        ("5 apples", "Ada had 5 pears."),
        ("< 5", "> 5"),
        ("more than 5", "5"),
        ("no 5", "5"),
        ("5", "-5"),
        ("$5", "€5"),
        ("$5", "5%"),
        ("3.2 million", "3.2"),
        ("101", "102"),
        ("2008", "2009"),
        ("2008", "May 2008"),
        ("03/04/2023", "3 April 2023"),
        (True, False),
        ("Yes, because of the rain.", "No, because of the rain."),
        ("No boat was sold.", "no"),
        ("Sold in 2008 by Ada", "Bought in 2008 by Nils"),
        ("In 2008", "sold in 2008 to Ada"),
        ("Nils sold the boat in May 2023", "Nils sold the boat in June 2023"),
        ("Nils sold the old boat to Ada in 2022", "Nils sold the old boat to Ada in 2023"),
        ("He did stop the drug that day", "He did not stop the drug that day"),
        ("Ada Smith", "Ada Jones"),
        ("Ada paid Nils for the boat", "Nils paid Ada for the boat"),
        ("Mara lost the ticket of her brother", "Mara lost the ticket of her sister"),
        (["Oslo"], ["Oslo", "Bergen"]),
        (["Oslo"], "Bergen"),
        ("", "boat"),
    ],
)
def test_not_the_same(one: Value, other: Value) -> None:
    assert not are_same_answer(one, other)
    assert not are_same_answer(other, one)


def test_rows_are_compared_by_what_they_say() -> None:
    rows = document_rows(Document("Ada: the boat", "a.txt"))
    assert are_same_answer(rows, rows)
    assert not are_same_answer(rows, document_rows(Document("Ada: the mill", "a.txt")))


VALUES = st.one_of(
    st.text(max_size=30),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.text(max_size=9), max_size=4),
    st.sampled_from(["5%", "0.05", "$5", "1 May 2023", "yes", "no", "2023", "1/2/2023"]),
)


@given(VALUES, VALUES)
def test_any_values_have_one_verdict_either_way(one: Value, other: Value) -> None:
    assert are_same_answer(one, other) == are_same_answer(other, one)
    assert are_same_answer(one, one)
