"""Editor support as functions of a text: findings, fixes, the canonical form, completions, names; `‸` is the cursor."""

from __future__ import annotations

import pytest

from pearl.actions.library import load_library
from pearl.contrib.editor.features import (
    Suggestion,
    complete,
    definition,
    findings,
    fixed,
    formatted,
    hover,
    known_actions,
)
from tests.root import ROOT

SEED = known_actions("seed")


def at_cursor(text: str) -> tuple[str, int]:
    """The text without its cursor, and where that was."""
    before, after = text.split("‸")
    return before + after, len(before)


BROKEN = "1) a = FIND_EVNT(CTX, “x”) : f\n2. b = COUNT(A) : g"


def test_findings_are_those_of_the_check_and_the_semantic_ones_need_the_library() -> None:
    plan = '1. a = FIND_EVNT(CTX, "x" : f\n2. b = NOPE(a) : g\n'
    assert [each.code for each in findings(plan, "plan", SEED.library)] == [
        "syntax",
        "unknown-action",
    ]
    assert [each.code for each in findings(plan, "plan", None)] == ["syntax"]


def test_an_action_file_needs_no_library() -> None:
    text = "FIND(CTX) : a\nFIND(CTX) : b\nLOOK(CTX)\n"
    codes = [each.code for each in findings(text, "actions", None)]
    assert codes == ["duplicate-name", "empty-definition"]


def test_all_automatic_fixes_are_applied_at_once() -> None:
    text = fixed(BROKEN, "plan", SEED.library)
    assert text == '1. a = FIND_EVENT(CTX, "x") : f\n2. b = COUNT(a) : g\n'
    assert findings(text, "plan", SEED.library) == []
    assert fixed(text, "plan", SEED.library) == text


def test_the_canonical_form() -> None:
    text = '7. a = FIND(CTX,"x"): f'
    assert formatted(text, "plan") == 'New actions:\n- None\n\n1. a = FIND(CTX, "x") : f\n'
    assert formatted(" FIND(CTX,X)# a", "actions") == "FIND(CTX, X) : a\n"


@pytest.mark.parametrize("text", [BROKEN, "", "1. a = FIND(", "1. a = FIND(CTX) : f\n2. b = "])
def test_an_unreadable_plan_has_no_canonical_form(text: str) -> None:
    assert formatted(text, "plan") is None
    assert formatted("FIND(CTX : a", "actions") is None


ABOVE = """\
Question: What is 🔑?

New actions:
- LOOK(CTX, X) -> List : Look for X in CTX

1. key = LOOK(CTX, "the 🔑") : a
2. keys = COUNT(key) : b
"""


def offered(text: str) -> list[Suggestion]:
    return complete(*at_cursor(text), SEED)


def taken(text: str, label: str) -> str:
    """The text after one of what is offered is taken."""
    plain, _ = at_cursor(text)
    (found,) = (each for each in offered(text) if each.label == label)
    return plain[: found.span.start] + found.label + plain[found.span.end :]


@pytest.mark.parametrize("line", ["3. c = ‸", "3. c =‸", "c = ‸", "  3) c = ‸", "3. c = ‸("])
def test_every_action_is_offered_where_a_call_begins(line: str) -> None:
    labels = [each.label for each in offered(ABOVE + line)]
    assert labels[0] == "LOOK"  # the plan's own first
    assert {*load_library("seed"), "SPLIT", "FILTER", "RETRIEVE"} <= set(labels)


def test_the_whole_name_is_replaced() -> None:
    assert taken(ABOVE + "3. c = SUM‸MAR(CTX) : d", "SUMMARIZE").endswith(
        "3. c = SUMMARIZE(CTX) : d"
    )


def test_actions_for_each_row_are_offered_once_they_are_begun() -> None:
    labels = [each.label for each in offered(ABOVE + "3. c = EACH_FIND_M‸")]
    assert labels == ["EACH_FIND_MORAL"]
    assert "EACH_FIND" not in [each.label for each in offered(ABOVE + "3. c = ‸")]


@pytest.mark.parametrize(
    "arguments", ["(‸", "(‸)", "(CTX, ‸", "([‸", '(["x", ‸', '(CTX, "a, (b", ‸', "(CTX, ‸) : d"]
)
def test_names_above_are_offered_as_arguments_the_nearest_first(arguments: str) -> None:
    found = offered(f"{ABOVE}3. c = FIND{arguments}\n4. later = FIND(CTX, 1) : e")
    assert [each.label for each in found] == ["keys", "key", "CTX"]
    assert found[0].detail == "step 2, COUNT -> Number"
    assert found[1].detail == "step 1, LOOK -> List"


@pytest.mark.parametrize(
    "place", ['(CTX, "‸', '(CTX, "the k‸ey")', '(CTX, "a \\" k‸', "(CTX, 3) : k‸", "(CTX, 3)‸"]
)
def test_nothing_is_offered_in_strings_explanations_and_behind(place: str) -> None:
    assert offered(f"{ABOVE}3. c = FIND{place}") == []


def test_nothing_is_offered_for_the_name_of_an_output() -> None:
    assert offered(ABOVE + "3. k‸ = FIND(CTX, 1) : d") == []


@pytest.mark.parametrize("typed", ["", '"', '"ent', '"ent‸ry"'])
def test_literals_that_may_stand_there_are_offered(typed: str) -> None:
    line = f"{ABOVE}3. c = SPLIT(CTX, {typed}"
    line = line if "‸" in line else f"{line}‸"
    found = [each.label for each in offered(line) if each.kind == "literal"]
    assert '"entry"' in found
    assert ('"page"' in found) == ("ent" not in typed)
    assert taken(line, '"entry"') == f'{ABOVE}3. c = SPLIT(CTX, "entry"'


PLAN = """\
New actions:
- LOOK(CTX, X) -> List : Look for X in CTX

1. key = LOOK(CTX, "key 🔑") : the key
2. n = COUNT(key) : b
3. ans = CONCAT(key, [n, key]) : c
"""


def cursor(before: str, line: int) -> tuple[str, int]:
    """The plan, and the place right after some text of a line (from 1)."""
    lines = PLAN.split("\n")
    assert before in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(before, f"{before}‸", 1)
    return at_cursor("\n".join(lines))


@pytest.mark.parametrize(
    ("before", "line", "code", "text"),
    [
        ("LOO", 4, "LOOK(CTX, X) -> List", "Look for X in CTX\n\nAn action of this plan, carried out by a model."),
        ("- LO", 2, "LOOK(CTX, X) -> List", "Look for X in CTX\n\nAn action of this plan, carried out by a model."),
        ("COUN", 5, "COUNT(ITEMS) -> Number", "Return how many entries ITEMS has, as a number\n\nAn action of library seed, computed in Python."),
        ("COUNT(", 5, '1. key = LOOK(CTX, "key 🔑") : the key', "Output of step 1. It is a List."),
        ("[n", 6, "2. n = COUNT(key) : b", "Output of step 2. It is a Number."),
        ("LOOK(CT", 4, "CTX", "The document: whatever the plan is run over."),
    ],
)  # fmt: skip
def test_hover(before: str, line: int, code: str, text: str) -> None:
    found = hover(*cursor(before, line), "plan", SEED)
    assert found is not None
    assert (found.code, found.text) == (code, text)


def test_declared_names_are_known_while_a_plan_is_typed() -> None:
    head = "Parameters:\n- drug : what was stopped\n\nSources:\n- rules : the rules\n\n"
    text, at = at_cursor(f"{head}1. a = FIND(rules, dr‸")
    assert [(each.label, each.detail) for each in complete(text, at, SEED)] == [("drug", "what was stopped")]  # fmt: skip
    text, at = at_cursor(f"{head}1. a = FIND(rules, dr‸ug) : x")
    found = hover(text, at, "plan", SEED)
    assert found is not None
    assert (found.code, found.text) == ("drug", "what was stopped")
    place = definition(text, at, "plan", SEED)
    assert place is not None
    assert (place.span.start, place.span.end) == (text.index("drug"), text.index("drug") + 4)


@pytest.mark.parametrize(
    ("before", "line"), [('"ke', 4), (": the ke", 4), ("New", 1), ("(key)", 5)]
)
def test_words_in_strings_and_explanations_have_no_hover(before: str, line: int) -> None:
    assert hover(*cursor(before, line), "plan", SEED) is None
    assert definition(*cursor(before, line), "plan", SEED) is None


@pytest.mark.parametrize(
    ("before", "line", "name", "at"),
    [
        ("COUNT(ke", 5, "key", PLAN.index("key = ")),
        ("[n, ke", 6, "key", PLAN.index("key = ")),
        ("= LOO", 4, "LOOK", PLAN.index("LOOK")),
        ("2. n", 5, "n", PLAN.index("n = COUNT")),
    ],
)
def test_definition_in_the_plan(before: str, line: int, name: str, at: int) -> None:
    place = definition(*cursor(before, line), "plan", SEED)
    assert place is not None
    assert place.path is None
    assert (place.span.start, PLAN[place.span.start : place.span.end]) == (at, name)


@pytest.mark.parametrize("call", ["COUNT", "EACH_FIND_MORAL"])
def test_definition_in_the_library(call: str) -> None:
    place = definition(*at_cursor(f"1. a = ‸{call}(CTX) : b"), "plan", SEED)
    assert place is not None
    assert place.path == ROOT / "actions/seed.actions"
    text = place.path.read_text(encoding="utf-8")
    assert text[place.span.start : place.span.end] == call.removeprefix("EACH_")
    assert text[place.span.start - 1] == "\n"
