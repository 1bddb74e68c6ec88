"""The drawing of a plan: every step, every dependency, and the chain that took longest."""

from __future__ import annotations

from pearl.dsl.parser import parse
from pearl.view.page import HEIGHT, draw_plan

PLAN = parse("""\
1. one = FIND(CTX, "one") : First
2. two = FIND(CTX, one) : Second
3. three = FIND(CTX, "three") : Third
4. ans = CONCAT(two, three, one) : All""")


def test_steps_stand_below_what_they_take() -> None:
    drawn = draw_plan(PLAN, {})
    y = {box.output: box.y for box in drawn.boxes}
    assert y["one"] == y["three"] < y["two"] < y["ans"]
    assert len(drawn.lines) == 4  # one-two, and three to ans
    assert drawn.height == y["ans"] + HEIGHT
    assert drawn.text.endswith("Step 4, ans, CONCAT, takes one, two, three.")
    assert "Step 2, two, FIND, takes the document and one." in drawn.text


def test_the_longest_chain_is_by_seconds_not_by_steps() -> None:
    drawn = draw_plan(PLAN, {"one": 1.0, "two": 1.0, "three": 5.0, "ans": 0.5})
    assert drawn.critical == ("three", "ans")
    assert drawn.critical_s == 5.5
    assert [box.output for box in drawn.boxes if box.is_critical] == ["three", "ans"]
    assert sum(line.is_critical for line in drawn.lines) == 1
    drawn = draw_plan(PLAN, {"one": 3.0, "two": 3.0, "three": 5.0})
    assert drawn.critical == ("one", "two", "ans")
