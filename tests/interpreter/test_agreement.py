"""Which answers confirm each other, and which group of answers is the answer."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.values import Scalar, Value
from pearl.documents.document import Document
from pearl.documents.rows import Rows, document_rows
from pearl.interpreter.agreement import Agreement, PlanAnswer, are_same_answer


def of(*values: str | None, n_plans: int | None = None) -> Agreement:
    """Answers of different plans; None is one that failed, "" one that found nothing."""
    answers = tuple(
        PlanAnswer(f"plan {i}", (i,), "failed", "it broke")
        if value is None
        else PlanAnswer(f"plan {i}", (i,), "answered" if value else "nothing_found", value, value)
        for i, value in enumerate(values, start=1)
    )
    return Agreement(n_plans or len(values), answers)


@pytest.mark.parametrize(
    ("values", "chosen", "n_agreeing", "confidence"),
    [
        (("5", "6", "5"), 0, 2, 2 / 3),
        (("6", "5", "5"), 1, 2, 2 / 3),
        (("5", "5.0", "$5", None), 0, 3, 3 / 4),
        ((None, "5"), 1, 1, 1 / 2),
        (("", "", "5"), 0, 2, 2 / 3),
        (("5", "6"), None, 1, None),
        (("5", "", "5", ""), None, 2, None),
        ((None, None), None, 0, None),
        (("5",), 0, 1, None),
    ],
)
def test_the_largest_group_has_the_answer(
    values: tuple[str | None, ...], chosen: int | None, n_agreeing: int, confidence: float | None
) -> None:
    found = of(*values)
    assert (found.chosen, found.n_agreeing) == (chosen, n_agreeing)
    assert found.confidence == confidence
    assert found.is_tied == (chosen is None and n_agreeing > 0)


def test_members_of_a_group_all_agree_with_each_other() -> None:
    # 9.47 and 9.5 are the same as far as 9.5 shows it, and so are 9.45 and 9.5; 9.47 and 9.45 are not.
    for values in permutations(["9.47%", "9.5%", "9.45%"]):
        found = of(*values)
        assert found.n_agreeing == 2
        assert found.chosen is not None
        assert found.answers[found.chosen].text == "9.5%"


def test_a_tie_says_what_the_plans_say() -> None:
    found = of("five boats", "six mills", None)
    assert found.why == (
        "the plans disagree: 1 of 3 different plans: five boats; 1 of 3 different plans: six mills"
    )
    assert found.others == found.answers
    assert str(found) == "none: 2 answers by 1 of 3 different plans each"


def test_as_json_each_answer_says_whether_it_agrees() -> None:
    found = of("5", "6", "5", None).to_dict()
    assert [each["agrees"] for each in found["answers"]] == [True, False, True, False]
    assert (found["agreeing"], found["different"], found["confidence"]) == (2, 4, 0.5)


@given(st.lists(st.sampled_from(["a boat", "a mill", "7", None]), min_size=1, max_size=20))
def test_where_sameness_is_plain_equality_the_group_is_the_most_frequent(
    values: list[str | None],
) -> None:
    found = of(*values)
    counts = {value: values.count(value) for value in values if value is not None}
    most = max(counts.values(), default=0)
    assert found.n_agreeing == most
    best = [value for value, n in counts.items() if n == most]
    if len(best) == 1:
        assert found.chosen == values.index(best[0])
        assert len(found.others) == len(values) - most
    else:
        assert found.chosen is None
        assert found.confidence is None


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
