"""The whole line: every draft is accounted for, the same replies give the same bytes."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import format_library, library_names, load_library, read_library
from pearl.documents.tokens import Counter
from pearl.dsl.printer import print_action
from pearl.errors import DataError, ModelError
from pearl.llm import Completion, Model, Request
from pearl.llm.backends import create_model
from pearl.llm.backends.scripted import Scripted
from pearl.mining.merging import Rules
from pearl.mining.refinement import Refinement, compared, library_text, lineage
from pearl.mining.refining import Drafts, RefineSettings, read_drafts, refine_actions
from tests.examples import examples
from tests.mining.refine.drafts import PLAIN, mined, pairs, row, task_of
from tests.shared import shared

THINGS = [
    "boat",
    "horse",
    "lamp",
    "river",
    "tower",
    "mirror",
    "bridge",
    "letter",
    "garden",
    "engine",
    "piano",
    "winter",
    "doctor",
    "market",
    "forest",
    "anchor",
    "candle",
    "desert",
    "hammer",
    "island",
    "jacket",
    "kettle",
    "ladder",
    "magnet",
    "needle",
    "orchard",
    "pepper",
    "quarry",
    "rocket",
    "saddle",
]


def unlike(n: int) -> str:
    """So many drafts that have nothing in common."""
    return "".join(
        f"FIND_{word.upper()}(CTX, X) : Find the {word} that X owns\n" for word in THINGS[:n]
    )


def refine(
    found: Drafts | str,
    reply: Callable[[Request], str] | Model = pairs,
    *,
    rules: Rules | None = None,
    **wanted: int,
) -> Refinement:
    found = read_drafts(found, "drafts") if isinstance(found, str) else found
    model = Scripted(reply) if callable(reply) else reply
    return asyncio.run(refine_actions(found, model, RefineSettings(**wanted), rules=rules))


def assert_accounted(refinement: Refinement) -> None:
    """Every draft has one fate, and the library says the same."""
    assert [draft.number for draft in refinement.drafts] == list(range(len(refinement.drafts)))
    names = [action.name for action in refinement.actions]
    assert len(names) == len(set(names))
    holders = [(n, action.name) for action in refinement.actions for n in action.drafts]
    expected = [(draft.number, draft.into) for draft in refinement.drafts if draft.into]
    assert sorted(holders) == expected
    for draft in refinement.drafts:
        assert (draft.fate == "dropped") == (draft.into is None) == (draft.why is not None)
        assert (draft.fate == "kept") == (draft.stage is None)
        assert (draft.round > 0) == (draft.stage == "model")
    texts = {action.name: action.text for action in refinement.actions}
    kept = [draft for draft in refinement.drafts if draft.fate == "kept"]
    assert len({draft.into for draft in kept}) == len(kept)
    for draft in kept:
        assert texts[draft.into or ""].split(" : ")[0].startswith(f"{draft.name}(")


def assert_a_library(refinement: Refinement) -> None:
    text = library_text(refinement)
    assert format_library(text) == text
    assert list(read_library(text, "x")) == [action.name for action in refinement.actions]


def test_what_fits_is_merged_by_rule_and_no_model_is_asked() -> None:
    def never(request: Request) -> str:
        raise AssertionError(request)

    refinement = refine(PLAIN, never)
    assert refinement.rounds == ()
    assert [action.name for action in refinement.actions] == [
        "CONCAT", "FIND_EFFECT", "FIND_NOT_REASON", "FIND_REASON", "FIND_WEATHER",
    ]  # fmt: skip
    clash = next(draft for draft in refinement.drafts if "Y" in draft.text and draft.why)
    assert clash.why == "the name is taken by FIND_REASON(CTX, X)"
    assert_accounted(refinement)
    assert_a_library(refinement)


@pytest.mark.parametrize("name", library_names())
def test_a_library_that_was_made_by_hand_comes_out_as_it_went_in(name: str) -> None:
    library = load_library(name)
    refinement = refine("\n".join(map(print_action, library.values())), max_actions=500)
    assert {action.text for action in refinement.actions} == set(
        map(print_action, library.values())
    )
    assert refinement.count("kept") == len(library)


def test_shards_are_small_enough_for_the_window() -> None:
    model = Scripted(pairs, window=1_000)
    refine(unlike(30), model, max_actions=10)
    assert max(len(task_of(request).drafts) for request in model.requests) == 6


def test_the_library_says_what_it_stands_for() -> None:
    text = library_text(refine(PLAIN))
    assert (
        "# stands for: FIND_REASON, FIND_REASONS, IDENTIFY_CAUSE\n"
        "FIND_REASON(CTX, X) : Find the reason for X\n"
    ) in text
    assert "# stands for: FIND_WEATHER x2\n" in text
    many = "".join(f"FIND_{i}_{'LONG_' * 4}NAME(CTX, X) : Find {i}\n" for i in range(20))
    wide = library_text(refine(many, lambda r: f"FIND(CTX, X) : Find X {list(range(1, 21))}",
                               max_actions=1))  # fmt: skip
    assert max(map(len, wide.splitlines())) <= 100


def test_the_model_merges_in_shards_and_rounds_until_it_fits() -> None:
    refinement = refine(unlike(30), max_actions=8, shard_size=10)
    assert len(refinement.actions) == 8
    assert [(r.n_before, r.n_after) for r in refinement.rounds] == [(30, 15), (15, 8)]
    assert [len(r.shards) for r in refinement.rounds] == [3, 2]
    assert refinement.count("merged", "model") == 22
    assert {draft.round for draft in refinement.drafts} == {0, 1, 2}
    assert_accounted(refinement)
    assert_a_library(refinement)


def test_a_new_action_stands_for_its_drafts_and_none_of_them_is_kept() -> None:
    refinement = refine(
        unlike(3), lambda r: "FIND(CTX, X, Y) : Find X [1, 2]\ndrop [3] : no use", max_actions=2
    )
    (action,) = refinement.actions
    assert action.text == "FIND(CTX, X, Y) : Find X"
    assert [draft.fate for draft in refinement.drafts].count("merged") == 2
    (dropped,) = [draft for draft in refinement.drafts if draft.fate == "dropped"]
    assert (dropped.stage, dropped.round, dropped.why) == ("model", 1, "no use")
    assert_accounted(refinement)


def test_native_actions_and_seeds_are_kept() -> None:
    rows = [row(i, *unlike(20).splitlines()[i::4], "COUNT(ITEMS) : Count ITEMS") for i in range(4)]
    refinement = refine(mined(*rows), lambda r: "nothing to say", max_actions=3)
    assert [action.name for action in refinement.actions][:2] == ["COUNT", "FIND"]
    count, seed, _ = refinement.actions
    assert (count.is_native, len(count.drafts), len(count.questions)) == (True, 4, 4)
    assert seed.is_seed
    assert_accounted(refinement)


def test_natives_are_never_shown_to_the_model() -> None:
    model = Scripted(pairs)
    refine(f"{unlike(6)}COUNT(ITEMS) : Count ITEMS\n", model, max_actions=3)
    assert all(d.name != "COUNT" for r in model.requests for d in task_of(r).drafts)
    assert all("COUNT(" not in request.prompt for request in model.requests)


def test_the_token_budget_counts_what_a_planner_reads() -> None:
    whole = refine(unlike(20))
    small = refine(unlike(20), max_tokens=whole.n_tokens // 3)
    assert small.n_tokens <= whole.n_tokens // 3
    prompt = "\n".join(f"- {action.text}" for action in small.actions)
    assert small.n_tokens == Counter().count(prompt)
    assert_accounted(small)


def test_one_failing_shard_goes_on_unchanged_and_is_counted() -> None:
    def reply(request: Request) -> str:
        if any(draft.name == "FIND_BOAT" for draft in task_of(request).drafts):
            raise ModelError("the line is dead", kind="transport")
        return pairs(request)

    refinement = refine(unlike(30), reply, max_actions=20, shard_size=10, max_rounds=1)
    statuses = [shard.status for shard in refinement.rounds[0].shards]
    assert sorted(statuses) == ["failed", "merged", "merged"]
    assert refinement.rounds[0].n_after == 20
    (failed,) = [s for s in refinement.rounds[0].shards if s.status == "failed"]
    assert (failed.n_before, failed.n_after, failed.problems) == (10, 10, ("the line is dead",))
    assert_accounted(refinement)


def test_a_model_that_never_answers_is_an_error() -> None:
    def reply(request: Request) -> str:
        raise ModelError("no key", kind="auth")

    with pytest.raises(ModelError, match=r"none of the calls .*: no key") as caught:
        refine(unlike(30), reply, max_actions=5, shard_size=10)
    assert caught.value.kind == "auth"
    assert "--rounds 0" in str(caught.value.help)


def test_a_model_that_fails_later_leaves_the_rest_to_the_rules() -> None:
    def reply(request: Request) -> str:
        if len(task_of(request).drafts) == 15:
            raise ModelError("gone", kind="transport")
        return pairs(request)

    refinement = refine(unlike(30), reply, max_actions=5)
    assert [round.shards[0].status for round in refinement.rounds] == ["merged", "failed"]
    assert len(refinement.actions) == 5
    assert refinement.count("dropped", "room") == 20
    assert_accounted(refinement)


@pytest.mark.parametrize("text", ["All good.", "FIND(CTX, X) : Find X [1, 99]"])
def test_replies_of_no_use_are_counted_and_room_is_made_by_rule(text: str) -> None:
    refinement = refine(unlike(12), lambda r: text, max_actions=9)
    assert refinement.calls("unusable") == refinement.calls() == 1
    assert refinement.rounds[0].shards[0].problems
    assert {draft.why for draft in refinement.drafts if draft.why} == {"no room"}
    assert len(refinement.actions) == 9
    assert_accounted(refinement)


def test_room_is_made_by_folding_what_is_close_and_least_wanted() -> None:
    keys = ["FIND_OLD_KEY(CTX) : Find the old key of a door", "FIND_KEY(CTX) : Find a key of it"]
    rows = [row(0, *keys), row(1, keys[1]), row(2, "FIND_TOWER(CTX) : Find a tower")]
    found = read_drafts(mined(*rows, row(3, "FIND_TOWER(CTX) : Find a tower")), "x")
    refinement = refine(found, max_actions=3, max_rounds=0)
    (folded,) = [draft for draft in refinement.drafts if draft.stage == "room"]
    assert (folded.name, folded.into, folded.fate) == ("FIND_OLD_KEY", "FIND_KEY", "merged")
    assert_accounted(refinement)


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(DataError, match="nothing remains of 3 drafts") as caught:
        refine(unlike(3), lambda r: "drop [1, 2, 3] : bad", max_actions=2)
    assert caught.value.exit_code == 3


class Late(Scripted):
    """Replies come in another order every time."""

    def __init__(self, seed: int) -> None:
        super().__init__(pairs)
        self._random = random.Random(seed)

    async def complete(self, request: Request) -> Completion:
        for _ in range(self._random.randrange(9)):
            await asyncio.sleep(0)
        return await super().complete(request)


def test_the_order_of_replies_and_rows_changes_nothing() -> None:
    rows = [row(i, *unlike(30).splitlines()[i : i + 9]) for i in range(22)]
    expected = refine(mined(*rows), max_actions=9, shard_size=5)
    for seed in range(4):
        random.Random(seed).shuffle(rows)
        again = refine(mined(*rows), Late(seed), max_actions=9, shard_size=5)
        assert again == expected
        assert library_text(again) == library_text(expected)


def test_a_refinement_round_trips_as_json() -> None:
    other = read_library("FIND_REASON(CTX, X) : Why X\nFIND_CAUSES(CTX) : Find a reason", "other")
    refinement = compared(refine(PLAIN), other)
    assert Refinement.model_validate_json(refinement.model_dump_json()) == refinement


def test_a_comparison_names_the_nearest_of_ours() -> None:
    text = "FIND_REASON(CTX, X) : Why X\nSEEK_WEATHER(CTX) : Find what the weather is like\n"
    comparison = compared(refine(PLAIN), read_library(text, "other")).comparison
    assert comparison is not None
    assert comparison.in_both == ("FIND_REASON",)
    assert "CONCAT" in comparison.only_ours
    (theirs,) = comparison.only_theirs
    assert (theirs.name, theirs.nearest) == ("SEEK_WEATHER", "FIND_WEATHER")
    assert theirs.likeness > 0.5


lines = st.sampled_from([*PLAIN.splitlines()[1:], *unlike(12).splitlines()])


def replies(seed: int) -> Callable[[Request], str]:
    """A model that merges, drops, rewords and talks at random, the same for the same seed."""

    def reply(request: Request) -> str:
        dice = random.Random(f"{seed} {request.prompt}")
        n = len(task_of(request).drafts)
        said = []
        for _ in range(dice.randrange(n + 2)):
            numbers = dice.sample(range(1, n + 1 + (dice.random() < 0.1)), dice.randint(1, n))
            draft = dice.choice(task_of(request).drafts)
            said.append(
                dice.choice([
                    f"{draft.signature} : {draft.definition} {numbers}",
                    f"FIND_{dice.randrange(3)}(CTX, X) : Find X {numbers}",
                    f"COUNT(ITEMS) : Count {numbers}",
                    f"drop {numbers[:1]} : no use",
                    "Well, that is all.",
                ])
            )  # fmt: skip
        return "\n".join(said) or "."

    return reply


@given(
    rows=st.lists(st.lists(lines, max_size=5), min_size=1, max_size=8),
    seed=st.integers(0, 999),
    wanted=st.integers(1, 12),
    size=st.integers(2, 9),
)
@examples(60)
def test_every_draft_is_accounted_for(
    rows: Sequence[Sequence[str]], seed: int, wanted: int, size: int
) -> None:
    found = read_drafts(mined(*(row(i, *actions) for i, actions in enumerate(rows))), "x")
    try:
        refinement = refine(found, replies(seed), max_actions=wanted, shard_size=size)
    except DataError:  # the model dropped everything
        return
    native = sum(action.is_native for action in refinement.actions)
    assert len(refinement.actions) <= max(wanted, native)
    assert_accounted(refinement)
    assert_a_library(refinement)


@pytest.mark.parametrize("model", ["scripted", "extractive"])
def test_the_published_drafts_are_refined_the_same_every_time(model: str) -> None:
    found = read_drafts(
        shared("pearl_traces/actions_mined.txt").read_text(encoding="utf-8"), "mined"
    )
    made = [
        refine(found, pairs if model == "scripted" else create_model("extractive"))
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert library_text(made[0]) == library_text(made[1])
    assert len(made[0].drafts) == 143
    assert len(made[0].actions) <= 80
    assert made[0].calls("merged") == made[0].calls()
    assert made[0].count("dropped", "malformed") == 1
    assert_accounted(made[0])
    assert_a_library(made[0])


def test_opposites_of_the_published_drafts_stay_apart_by_rule() -> None:
    found = read_drafts(
        shared("pearl_traces/actions_mined.txt").read_text(encoding="utf-8"), "mined"
    )
    refinement = refine(found, max_rounds=0)
    for action in refinement.actions:
        names = [re.sub(r" x\d+| \(seed\)", "", name) for name in lineage(refinement, action)]
        negated = {"NOT" in name or "LEAST" in name or name == "EXCEPT" for name in names}
        assert len(negated) == 1
