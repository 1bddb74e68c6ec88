"""The embedded model on drafts of actions: it folds what is alike in words, and nothing else."""

from __future__ import annotations

import asyncio

from pearl.actions.library import read_actions
from pearl.llm import RefineTask, Request
from pearl.llm.backends import create_model
from pearl.mining.refining import read_reply, refine_messages

DRAFTS = tuple(
    read_actions(
        "FIND_OLD_KEY(CTX, X) : Find the old key of X and where it hangs\n"
        "FIND_KEY(CTX, X) : Find the key of X\n"
        "FIND_NOT_KEY(CTX, X) : Find what is not the key of X\n"
        "FIND_KEY_OWNER(CTX, X, Y) : Find the key of X and whether Y has it\n"
        "FIND_TOWER(CTX, X) : Find the tower that X sees\n"
    )[0]
)


def refined(max_actions: int) -> list[tuple[str, tuple[int, ...]]]:
    task = RefineTask(DRAFTS, max_actions)
    request = Request(refine_messages(task), task)
    texts = {asyncio.run(create_model("extractive").complete(request)).text for _ in range(2)}
    assert len(texts) == 1
    reply = read_reply(texts.pop(), DRAFTS)
    assert reply.problems == ()
    return [(action.name, numbers) for action, numbers in reply.merges]


def test_the_most_alike_are_folded_into_the_more_general_one() -> None:
    assert refined(4) == [
        ("FIND_KEY", (1, 2)),
        ("FIND_NOT_KEY", (3,)),
        ("FIND_KEY_OWNER", (4,)),
        ("FIND_TOWER", (5,)),
    ]


def test_negations_other_shapes_and_strangers_stay_though_fewer_are_wanted() -> None:
    assert refined(1) == refined(4)


def test_what_fits_stays() -> None:
    assert [numbers for _, numbers in refined(5)] == [(1,), (2,), (3,), (4,), (5,)]


def test_the_prompt_numbers_the_drafts_and_says_how_many_are_wanted() -> None:
    prompt = Request(refine_messages(task := RefineTask(DRAFTS, 3)), task).prompt
    assert "Refine these 5 drafts. At most 3 actions" in prompt
    assert prompt.endswith("5. FIND_TOWER(CTX, X) : Find the tower that X sees")
