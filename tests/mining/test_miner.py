"""Questions become drafts of actions: how replies are read, and what is asked."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.actions.library import read_library
from pearl.dsl.nodes import print_action
from pearl.dsl.parser import parse
from pearl.llm.backends.scripted import Scripted
from pearl.mining.miner import MinedRow, Miner, Question, common_drafts, read_proposal, seeds
from pearl.planner.examples import Example
from tests.dsl import strategies
from tests.models import Acting

SEED = read_library("FIND(CTX, X) : Find X\nFIND_REASON(CTX, X) : Find why\n", "seed")
FULL = SEED.extended(read_library("FIND_PLACE(CTX, X) : Find where\n", "full").values())
MOTIVE = "FIND_MOTIVE(CTX, X) : Find why X acts"
STEP = '1. a = FIND(CTX, "x") : f'

READ: dict[str, tuple[bool, list[str], list[str]]] = {
    # reply: (was it read from end to end, its actions, what the sketch calls)
    f'New actions:\n- {MOTIVE}\n\n1. m = FIND_MOTIVE(CTX, "Ada") : f': (True, [MOTIVE], ["FIND_MOTIVE"]),
    f'My new actions:\n- {MOTIVE}\n\n1. m = FIND_MOTIVE(CTX, "Ada") : f': (True, [MOTIVE], ["FIND_MOTIVE"]),
    f"Sure!\n```\nNew actions:\n- {MOTIVE}\n\n{STEP}\n```\nGood luck.": (True, [MOTIVE], ["FIND"]),
    f'New actions:\n- {MOTIVE}\n\n{STEP}\n2. b = FIND(CTX, a) : g\n3. c = FIND_REASON(CTX, b) : h': (True, [MOTIVE], ["FIND", "FIND_REASON"]),
    f"New actions:\n- None\n\n{STEP}": (True, [], ["FIND"]),
    STEP: (True, [], ["FIND"]),
    # actions alone
    f"New actions:\n- {MOTIVE}": (True, [MOTIVE], []),
    f"My new actions:\n- {MOTIVE}": (True, [MOTIVE], []),
    "**New actions:**\n- **FIND_MOTIVE(CTX, X)** : Find why X acts": (True, [MOTIVE], []),
    f"New actions:\n\n- {MOTIVE}": (True, [MOTIVE], []),
    f"```\nNew actions:\n- {MOTIVE}\n```": (True, [MOTIVE], []),
    MOTIVE: (True, [MOTIVE], []),
    "FIND_MOTIVE(CTX, X) # Find why X acts": (True, [MOTIVE], []),
    f"- {MOTIVE}\n- TELL(CTX, Y) : Tell Y": (True, [MOTIVE, "TELL(CTX, Y) : Tell Y"], []),
    # nothing
    "New actions:\n- None": (True, [], []),
    "New actions: None": (True, [], []),
    "- None": (True, [], []),
    "None": (True, [], []),
    "```\nNone\n```": (True, [], []),
    # prose
    "I would look for the motive.": (False, [], []),
    "Sorry, I cannot help with that.": (False, [], []),
    '{"actions": []}': (False, [], []),
    "No new actions are needed.": (False, [], []),
    # part of it
    f'New actions:\n- {MOTIVE}\n- 3 wishes\n- TELL(CTX, Y) : Tell Y\n\n{STEP}': (False, [MOTIVE, "TELL(CTX, Y) : Tell Y"], ["FIND"]),
    f'New actions:\n- {MOTIVE}\n\n1. a = FIND(CTX, "x : f': (False, [MOTIVE], []),
    f'New actions:\n- {MOTIVE}\n\n1. a = FIND(CTX, "x : f\n2. b = FIND_MOTIVE(CTX, a) : g': (False, [MOTIVE], ["FIND_MOTIVE"]),
    f"Here are my actions:\n{MOTIVE}\nThat is all.": (False, [MOTIVE], []),
    "FIND_MOTIVE(CTX, X) :": (False, ["FIND_MOTIVE(CTX, X)"], []),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "wanted"), READ.items(), ids=range(len(READ)))
def test_replies(reply: str, wanted: tuple[bool, list[str], list[str]]) -> None:
    proposal = read_proposal(reply, SEED)
    found = [print_action(action).removesuffix(" : ") for action in proposal.actions]
    assert (proposal.is_read, found, list(proposal.calls)) == wanted, proposal
    assert proposal.is_read or proposal.diagnostics
    for rendered in proposal.diagnostics:
        assert rendered.startswith("reply:")
        assert "error: " in rendered


@pytest.mark.parametrize(
    ("call", "undeclared", "drafts"),
    [
        ('FIND(CTX, "x")', [], []),
        ('NOPE(CTX, "x")', ["NOPE"], []),
        ('FIND_PLACE(CTX, "x")', [], ["FIND_PLACE(CTX, X) : Find where"]),
        ("EACH_FIND_PLACE(rows)", [], ["FIND_PLACE(CTX, X) : Find where"]),
        ('EACH_NOPE(rows, "x")', ["NOPE"], []),
        ('FILTER(rows, "x")', [], []),  # every library has it
        ('EACH_FIND(rows, "x")', [], []),
    ],
)
def test_calls_without_a_declaration(call: str, undeclared: list[str], drafts: list[str]) -> None:
    """A call is a draft if the prompt declares its action, else it is counted."""
    reply = f'New actions:\n- {MOTIVE}\n\n1. rows = SPLIT(CTX, "line") : f\n2. a = {call} : f\n3. b = {call} : f'
    miner = Miner(Scripted(lambda request: reply), SEED, [EXAMPLE], FULL)
    row = asyncio.run(miner.ask(Question("q", 0, "Why?")))
    assert (row.status, row.undeclared) == ("mined", tuple(undeclared))
    assert row.actions == (MOTIVE, *drafts)
    assert any("unknown-action" in each for each in row.diagnostics) == bool(undeclared)


@given(st.one_of(strategies.broken_texts(), strategies.plan_texts, st.text(max_size=60)))
def test_any_reply_can_be_read(reply: str) -> None:
    proposal = read_proposal(reply, SEED)
    assert proposal.is_read or proposal.diagnostics


# --- asking -----------------------------------------------------------------------------------

EXAMPLE = Example(
    "Where is Ada?", parse('Question: Where is Ada?\n\n1. p = FIND_PLACE(CTX, "Ada") : f')
)


def row_of(model: Scripted | Acting, text: str = "Why did Ada leave?") -> MinedRow:
    return asyncio.run(Miner(model, SEED).ask(Question("q", 3, text)))


def test_the_digest_tells_prompts_apart() -> None:
    model = Scripted(lambda request: STEP)
    digests = [
        Miner(model, SEED).prompt_sha256,
        Miner(model, FULL).prompt_sha256,
        Miner(model, SEED, [EXAMPLE], FULL).prompt_sha256,
    ]
    assert len({*digests}) == 3
    assert Miner(model, SEED).prompt_sha256 == digests[0]
    rows = [row_of(model), row_of(model, "Who?"), row_of(model)]
    assert rows[0].prompt_sha256 == rows[2].prompt_sha256 != rows[1].prompt_sha256


def test_drafts_are_counted_once_a_question() -> None:
    row = row_of(Scripted(lambda request: STEP))
    rows = [
        replace(row, actions=("B(CTX) : b", "A(CTX) : a")),
        replace(row, actions=("A(CTX) : another a", "A(CTX) : and again")),
        replace(row, actions=("C(CTX) : c",)),
        row,
    ]
    assert common_drafts(rows) == [("A(CTX)", 2), ("B(CTX)", 1), ("C(CTX)", 1)]
    assert common_drafts(rows, 1) == [("A(CTX)", 2)]
    assert common_drafts([]) == []


def test_of_the_general_library_a_domain_takes_the_actions_that_its_own_has() -> None:
    assert {*seeds("seed", "quality")} - {*seeds("seed", "medical")} == {"FIND_MORAL"}
