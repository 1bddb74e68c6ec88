"""Broken plans by the thousand: a plan or a `PlanError`, and the same one every time."""

from __future__ import annotations

import pytest

from experiments.fuzz_plans import run


def test_some_broken_plans() -> None:
    counts = run(60, seed=0)
    assert sum(counts.values()) == 2 * 60
    assert counts["tolerant: valid"] > counts["strict: valid"] > 0


@pytest.mark.slow
def test_thousands_of_broken_plans() -> None:
    assert sum(run(4_000, seed=1).values()) == 2 * 4_000
