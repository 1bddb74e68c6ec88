"""Findings, fixes and the canonical form are those of the commands."""

from __future__ import annotations

import pytest

from pearl.contrib.editor.features import findings, fixed, formatted, known_actions

SEED = known_actions("seed").library
BROKEN = "1) a = FIND_EVNT(CTX, “x”) : f\n2. b = COUNT(A) : g"


def test_findings_are_those_of_the_check_and_the_semantic_ones_need_the_library() -> None:
    plan = '1. a = FIND_EVNT(CTX, "x" : f\n2. b = NOPE(a) : g\n'
    assert [each.code for each in findings(plan, "plan", SEED)] == ["syntax", "unknown-action"]
    assert [each.code for each in findings(plan, "plan", None)] == ["syntax"]


def test_an_action_file_needs_no_library() -> None:
    text = "FIND(CTX) : a\nFIND(CTX) : b\nLOOK(CTX)\n"
    codes = [each.code for each in findings(text, "actions", None)]
    assert codes == ["duplicate-name", "empty-definition"]


def test_all_automatic_fixes_are_applied_at_once() -> None:
    text = fixed(BROKEN, "plan", SEED)
    assert text == '1. a = FIND_EVENT(CTX, "x") : f\n2. b = COUNT(a) : g\n'
    assert findings(text, "plan", SEED) == []
    assert fixed(text, "plan", SEED) == text


def test_the_canonical_form() -> None:
    text = '7. a = FIND(CTX,"x"): f'
    assert formatted(text, "plan") == 'New actions:\n- None\n\n1. a = FIND(CTX, "x") : f\n'
    assert formatted(" FIND(CTX,X)# a", "actions") == "FIND(CTX, X) : a\n"


@pytest.mark.parametrize("text", [BROKEN, "", "1. a = FIND(", "1. a = FIND(CTX) : f\n2. b = "])
def test_an_unreadable_plan_has_no_canonical_form(text: str) -> None:
    assert formatted(text, "plan") is None
    assert formatted("FIND(CTX : a", "actions") is None
