"""What is offered while a plan is typed; `‸` is the cursor."""

from __future__ import annotations

import pytest

from pearl.actions.library import load_library
from pearl.contrib.editor.features import Suggestion, complete, known_actions
from tests.contrib.editor.cursor import at_cursor

SEED = known_actions("seed")
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
