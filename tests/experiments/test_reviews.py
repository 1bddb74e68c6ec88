from __future__ import annotations

import asyncio

from experiments.reviews import ask_all


def test_ten_questions_over_reviews_are_answered_exactly() -> None:
    outcomes = asyncio.run(ask_all(300, seed=3))
    assert [each.question for each in outcomes if not each.is_right] == []
    assert [each.answer.status for each in outcomes] == ["answered"] * 10
    few, *_ = outcomes
    assert few.n_calls == 1, "it stops once five reviews passed"
