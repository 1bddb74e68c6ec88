from __future__ import annotations

import asyncio

from experiments.reviews import ask_all


def test_ten_questions_over_reviews_are_answered_exactly() -> None:
    outcomes = asyncio.run(ask_all(300, seed=3))
    assert [question for question, *_, is_right in outcomes if not is_right] == []
    assert [answer.status for _, answer, *_ in outcomes] == ["answered"] * 10
    assert outcomes[0][2].n_calls == 1, "it stops once five reviews passed"
