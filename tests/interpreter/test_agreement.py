"""Groups of answers: which is the answer, how many agree, and where there is none."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.interpreter.agreement import Agreement, PlanAnswer


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
    found = of("5", "6", "5", None).to_json()
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
