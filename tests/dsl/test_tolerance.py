"""The tolerant reader: what it forgives, what it never does, and that it never does so silently."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given

from pearl.dsl.literals import quote
from pearl.dsl.nodes import Plan, String
from pearl.dsl.parser import parse, read
from pearl.dsl.tolerance import lines, mend
from pearl.errors import PlanSyntaxError, apply_fixes
from tests.dsl.strategies import broken_texts, plan_texts, string_values

STEP = '1. ans = FIND(CTX, "x") : Find x'


def is_plan(text: str) -> bool:
    try:
        parse(text)
    except PlanSyntaxError:
        return False
    return True


def plan_of(reply: str) -> Plan:
    reading = read(reply, tolerant=True)
    assert reading.plan is not None
    assert reading.errors == ()
    return reading.plan


@pytest.mark.parametrize(
    "heading", ["## Question 2: Who?", "## Question?", "## New actions needed:"]
)
def test_headings_of_the_parts_of_a_plan_are_no_comments(heading: str) -> None:
    first, *_ = lines(f"{heading}\n{STEP}", with_comments=True)
    assert first.role == "surplus"


@pytest.mark.parametrize(
    "comment", ["# Question 2: Who?", "## Questions", "## New", "## - Question"]
)
def test_other_headings_are_comments(comment: str) -> None:
    first, *_ = lines(f"{comment}\n{STEP}", with_comments=True)
    assert first.role == "comment"


@given(plan_texts)
def test_a_strictly_valid_plan_is_left_as_it_is(text: str) -> None:
    assert mend(text) == (text, [])
    reading = read(text, tolerant=True)
    assert reading.text == text
    assert reading.notes == ()
    assert reading.plan == parse(text)


@given(broken_texts())
@example("New actions:")
@example("New actions:\nprose\n\n1. a = F() : x")
@example("Question: Who?\n- G(X)\n1. a = G(CTX)")
@example("```\n1. a = F() : x")
def test_every_change_is_in_the_notes(text: str) -> None:
    mended, notes = mend(text)
    assert all(note.fix and note.severity == "note" and note.message for note in notes)
    assert apply_fixes(text, [note.fix for note in notes if note.fix]) == mended
    fixes = sorted(note.fix.span for note in notes if note.fix)
    for before, after in pairwise(fixes):
        assert before.end <= after.start  # overlapping fixes would be left out


@given(broken_texts())
@example("New actions: None\n- c = F(CTX, [a, b]) # x\n1. a")
@example("Question: 0\n\nParameters:\n- A : 0\n- \n\nNew actions:\n- None\n\n1. A = A() : 0")
@example("Question: 0\n\nSources:\n- : 0\n\n1. A = A() : 0")
@example("Sources:\n* A : 0\n- b:c\n- d  : e\n- f :  g\n\nNew actions:\n- None\n\n1. A = A() : 0")
def test_what_can_be_mended_is_a_plan_afterwards_and_needs_no_more_mending(text: str) -> None:
    found = lines(text)
    if any(line.role == "step" for line in found) and all(d.fix for x in found for d in x.found):
        mended, _ = mend(text)
        assert is_plan(mended)
        assert mend(mended) == (mended, [])


@given(broken_texts())
def test_the_strict_reader_offers_as_fixes_what_the_tolerant_one_forgives(text: str) -> None:
    strict, tolerant = read(text), read(text, tolerant=True)
    if tolerant.errors == () and tolerant.notes:
        assert [(e.message, e.span, e.fix) for e in strict.errors] == sorted(
            ((n.message, n.span, n.fix) for n in tolerant.notes), key=lambda note: note[1]
        )


@given(string_values)
def test_quotes_of_another_kind_keep_what_is_quoted(value: str) -> None:
    inside = quote(value)[1:-1].replace('\\"', '"')
    if "”" not in inside and '"' not in inside:
        (step,) = plan_of(f"1. a = F(CTX, “{inside}”) : x").steps
        assert step.arguments[1] == String(value)


@pytest.mark.parametrize(
    "reply",
    [
        f"```\n{STEP}\n```",
        f"~~~plan\n{STEP}\n~~~",
        f"Here is the plan:\n\n{STEP}\n\nI hope this helps.",
        f"1. First, I read the question.\n2. Then I plan.\n\n{STEP}",
        f"1. First, I read the question.\n{STEP}",
        f"1. FIND(CTX, X) could help.\n\nNew actions:\n- None\n\n{STEP}",
        f"New actions:\n- None\n\nSteps:\n\n{STEP}",
        f"New actions: none\n{STEP}",
        f"## New Actions\nNone needed.\n## Plan\n{STEP}",
        f"New actions:\n\n\n{STEP}",
        f"{STEP}\n\nNew actions: None",
    ],
)
def test_it_is_forgiven(reply: str) -> None:
    assert plan_of(reply) == parse(STEP)
    assert read(reply, tolerant=True).notes
    errors = read(reply).errors
    assert errors
    assert all(error.fix for error in errors)


@pytest.mark.parametrize(
    "reply",
    [
        f"{STEP}\n2. Then I sum it up.",
        '1. hello\n2. ans = FIND(CTX, "x") : Find x',
        'FIND(CTX)\nans = FIND(CTX, "x") : Find x',
        f"New actions:\n- None\n\n1. First, I read.\n{STEP}",
        "New actions:\n- COUNT X : Count\n\n" + STEP,
        '1. ans = FIND(CTX, X="x") : Find x',
        "1. ans = FIND(CTX, the key) : Find x",
        '1. ans = FIND(CTX, "x : Find x',
        '1. ans = FIND(CTX, "x" : Find x (again)',
        '1. ans = FIND(CTX, "a" "b") : Find x',
        '1. ans = FIND(CTX, "5" nail") : Find x',
        '1. ans = FIND(CTX, "x") Find x',
        f'{STEP}\n2. b := FIND(CTX, "y") : Find y',
        f"{STEP}\nreturn SUMMARIZE(ans)",
        f"{STEP}\nlet b = SUMMARIZE(ans)",
        f"{STEP}\nb: str = SUMMARIZE(ans)",
        f"{STEP}\nb <- SUMMARIZE(ans)",
        f"{STEP}\n\nNew actions:\n- G(X) : draft",
    ],
)
def test_it_is_not_guessed(reply: str) -> None:
    reading = read(reply, tolerant=True)
    assert reading.errors
    assert any(error.fix is None for error in reading.errors)


# Which of several plans is the one

DRAFT, FINAL = "1. draft = F(CTX) : x", "1. final = F(CTX) : x"
DECLARED = "New actions:\n- G(X) : draft\n\n1. a = G(CTX) : x\n"
UNDECLARED = "New actions:\n- None\n\n1. b = F(CTX) : x"
CALLED = "1. a = G(CTX) : x"


@pytest.mark.parametrize(
    ("reply", "outputs", "declared"),
    [
        # the last closed fence with steps
        (f"```\n{DRAFT}\n```\nBetter:\n```\n{FINAL}\n```\nDone.", "final", ""),
        (f"```\n{FINAL}\n```\n```\nno steps here\n```", "final", ""),
        (f"```\n{FINAL}\n```\n```\n1. cut off = F(", "final", ""),
        (f"```\n{FINAL}\n```\n\n1. Step 1 finds it.\n2. That is all.", "final", ""),
        # a plan, or its heading, in fences of their own
        ("```\n1. a = F(CTX) : x\n```\nand\n```\n2. b = G(a) : y\n```", "a b", ""),
        (f"**New actions:**\n```\n- G(X) : y\n```\nSteps:\n```\n{CALLED}\n```", "a", "G"),
        # a draft above a heading
        (f"{DECLARED}\nNo, wait.\n\n{UNDECLARED}", "b", ""),
        (f"```\n{DECLARED}\n```\nNo, wait.\n\n{UNDECLARED}", "b", ""),
        ("1. a = F(CTX) : x\n\nand then\n\n1. b = G(a) : y", "a b", ""),
        # declarations without a heading, in prose, with numbers
        (f"- G(X) : y\n- H(CTX) # z\n\n{CALLED}", "a", "G H"),
        (f"I can use:\n- G(X) : y\n\nThe plan:\n\n{CALLED}", "a", ""),
        (f"New actions:\n1. G(X): y\n2. H(CTX): z\n\n{CALLED}", "a", "G H"),
    ],
)
def test_the_plan_that_is_meant(reply: str, outputs: str, declared: str) -> None:
    plan = plan_of(reply)
    assert [step.output for step in plan.steps] == outputs.split()
    assert [action.name for action in plan.new_actions] == declared.split()
