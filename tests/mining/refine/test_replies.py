"""Replies of a model: read with what stands around them, refused where they make things up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import read_actions
from pearl.dsl.printer import print_action
from pearl.mining.refining import read_reply
from tests.dsl.strategies import texts

DRAFTS, _ = read_actions(
    "FIND_A(CTX, X) : Find A\nFIND_B(CTX, X) : Find B\nFIND_C(CTX) : Find C\nFIND_D(CTX) : Find D\n"
)


def merges(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(print_action(action), numbers) for action, numbers in read_reply(text, DRAFTS).merges]


@pytest.mark.parametrize(
    "line",
    [
        "FIND_AB(CTX, X) : Find A or B [1, 2]",
        "- FIND_AB(CTX, X) : Find A or B [1,2]",
        "1. `FIND_AB(CTX, X) : Find A or B [1; 2]`",
        "* **FIND_AB(CTX, X)** : Find A or B [1-2].",
        "2) FIND_AB(CTX, X) # Find A or B [2, 1]",
        "> FIND_AB(CTX,X): Find A or B [ 1–2 ]",
        "Here you are:\n```\nFIND_AB(CTX, X) : Find A or B [1, 2]\n```\nI hope this helps!",
    ],
)
def test_an_action_is_read_with_its_numbers(line: str) -> None:
    assert merges(line) == [("FIND_AB(CTX, X) : Find A or B", (1, 2))]
    assert read_reply(line, DRAFTS).problems == ()


def test_drafts_may_be_dropped_with_a_reason() -> None:
    reply = read_reply("- drop [3] : nobody can\nDROP: [4]\nFIND_A(CTX, X) : Find A [1]", DRAFTS)
    assert reply.drops == ((3, "nobody can"), (4, "the model gave no reason"))
    assert [numbers for _, numbers in reply.merges] == [(1,)]


def test_the_first_place_of_a_number_counts() -> None:
    reply = read_reply("FIND_A(CTX, X) : Find A [1, 2]\nFIND_B(CTX, X) : Find B [2]", DRAFTS)
    assert [numbers for _, numbers in reply.merges] == [(1, 2)]
    assert reply.problems == ("draft 2 is named twice; the first place counts",)


def test_a_line_without_numbers_says_that_its_draft_stays() -> None:
    assert merges("FIND_C(CTX) : Find C\n") == [("FIND_C(CTX) : Find C", (3,))]
    reply = read_reply("FIND_A(CTX, X) : Find A [1]\nFIND_NEW(CTX) : Find news", DRAFTS)
    assert reply.problems == ("FIND_NEW names no draft",)


@pytest.mark.parametrize(
    "line",
    [
        "FIND_AB(CTX, X, X) : Find A [1, 2]",
        "FIND_AB(CTX, X) : [1, 2]",
        "find_ab(CTX, X) : Find A [1, 2]",
    ],
)
def test_a_broken_action_leaves_its_drafts_alone(line: str) -> None:
    reply = read_reply(f"{line}\nFIND_C(CTX) : Find C [3]", DRAFTS)
    assert reply.is_usable
    assert [numbers for _, numbers in reply.merges] == [(3,)]
    assert len(reply.problems) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("All of these are fine, I would not change a thing.", "the reply names no draft"),
        ("FIND_A(CTX, X) : Find A [1, 9]", "there is no draft 9"),
        ("FIND_A(CTX, X) : Find A [0]", "there is no draft 0"),
        ("drop [5-9999999] : all", "there is no draft 5, 6, "),
        ("FIND_A(CTX, X) : Find A [1-99]", "there is no draft 5, 6, "),
        ("drop [] : none", "the reply names no draft"),
    ],
)
def test_prose_and_invented_numbers_are_refused(text: str, problem: str) -> None:
    reply = read_reply(text, DRAFTS)
    assert not reply.is_usable
    assert (reply.merges, reply.drops) == ((), ())
    assert reply.problems[-1].startswith(problem)


@given(
    st.lists(
        st.one_of(
            texts(),
            st.lists(st.integers(0, 6)).map(lambda n: f"FIND_Z(CTX) : Find it {n}"),
            st.lists(st.integers(0, 6)).map(lambda n: f"drop {n} : odd"),
        ),
        max_size=6,
    ).map("\n".join)
)
def test_any_reply_names_a_draft_once_at_most(text: str) -> None:
    reply = read_reply(text, DRAFTS)
    named = [number for _, numbers in reply.merges for number in numbers]
    named += [number for number, _ in reply.drops]
    assert len(named) == len(set(named))
    assert set(named) <= set(range(1, len(DRAFTS) + 1))
    assert bool(named) == reply.is_usable


def test_a_line_with_an_invented_number_does_not_spoil_the_others() -> None:
    reply = read_reply("FIND_A(CTX, X) : Find A [1, 2]\ndrop [99] : no\ndrop [3] : dull", DRAFTS)
    assert reply.is_usable
    assert [numbers for _, numbers in reply.merges] == [(1, 2)]
    assert reply.drops == ((3, "dull"),)
    assert reply.problems == ("there is no draft 99",)
