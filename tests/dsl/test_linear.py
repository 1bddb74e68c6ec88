"""Reading takes time in proportion to the length of the text, whatever the text.

A ratio within one run, with a wide bound; the figures are those of the benchmark.
"""

from __future__ import annotations

import pytest

from experiments.bench.plan_scaling import STEP, TEXTS, seconds, text_of


@pytest.mark.slow
@pytest.mark.parametrize("kind", TEXTS)
def test_four_times_the_text_takes_about_four_times_as_long(kind: str) -> None:
    seconds(STEP)
    pairs = ((seconds(text_of(kind, 20_000)), seconds(text_of(kind, 80_000))) for _ in range(9))
    # Quadratic is sixteen times. On a busy machine one pair in nine is left alone.
    assert any(long < 0.1 or long < 10 * short for short, long in pairs)
