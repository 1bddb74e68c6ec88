"""`pearl plan`: what is printed of a plan."""

from __future__ import annotations

import json

from tests.cli.terminal import Terminal


def test_a_plan_by_rule_takes_no_attempt_of_the_model(pearl: Terminal) -> None:
    asked = ("plan", "What was the change in net sales from 2011 to 2012?", "--domain", "finance")
    assert 'CALCULATE("difference", ' in pearl(*asked)
    row = json.loads(pearl(*asked, "--json"))
    assert (row["attempts"], row["outputs"]) == (0, ["difference"])
    assert "shape" not in row
