"""A calculator of another package, which CONTRIBUTING.md shows."""

from __future__ import annotations

from tests.plugins.test_foreign import KINDS, Mine, mine

__all__ = ["mine"]


def test_calculator_plug_in(mine: Mine) -> None:
    assert "pearl.contrib.finance.calculators" in KINDS
    (mine.folder / "sale.plan").write_text(
        '1. ans = CALCULATE("mine", "$80", "$20") : What is left\n'
    )
    told = mine("execute", "sale.plan", "story.mine", "--library", "finance", "--model", "mine:x")
    assert "75%" in told.splitlines()
