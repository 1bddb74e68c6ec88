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
    short = min(seconds(text_of(kind, 20_000)) for _ in range(3))
    long = min(seconds(text_of(kind, 80_000)) for _ in range(3))
    if long >= 10 * short:  # a busy machine: once more, with more chances to be left alone
        short = min(seconds(text_of(kind, 20_000)) for _ in range(9))
        long = min(seconds(text_of(kind, 80_000)) for _ in range(9))
    assert long < 0.1 or long < 10 * short  # quadratic would be sixteen times
