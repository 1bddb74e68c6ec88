"""What a name is, where it is defined and used; `‸` is the cursor."""

from __future__ import annotations

import pytest

from pearl.contrib.editor.features import complete, definition, hover, known_actions
from tests.contrib.editor.cursor import at_cursor
from tests.root import ROOT

SEED = known_actions("seed")
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
