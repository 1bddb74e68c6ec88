"""Drafts → a refined library: read, merged by rule and by a model, pruned."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.actions.library import (
    format_library,
    read_actions,
    read_library,
)
from pearl.documents.tokens import Counter
from pearl.dsl.nodes import print_action
from pearl.errors import DataError, ModelError
from pearl.llm import Completion, Model, Request
from pearl.llm.backends.scripted import Scripted
from pearl.mining.refinement import Refinement, library_text
from pearl.mining.refining import Drafts, RefineSettings, read_drafts, read_reply, refine_actions
from tests.examples import examples
from tests.mining.drafts import PLAIN, header, mined, pairs, refined, row, task_of

FIND_A = "FIND_A(CTX) : Find the first letter"
FIND_B = "FIND_B(CTX) : Find the second letter"


def test_seeds_come_first_and_rows_by_index_whatever_their_order() -> None:
    rows = [row(i, FIND_A, FIND_B) for i in range(5)]
    expected = read_drafts(mined(*rows), "x")
    assert [draft.question for draft in expected.drafts] == [None] + [
        f"q{i}" for i in range(5) for _ in "ab"
    ]
    assert [draft.is_seed for draft in expected.drafts] == [True] + [False] * 10
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert read_drafts(mined(*rows), "x") == expected


def test_failed_and_repeated_rows_are_reported() -> None:
    text = mined(
        row(0, FIND_A, status="unreadable", diagnostics=["reply:1:1: error: odd\n |"]),
        row(1, status="failed", error="no route"),
        row(2, FIND_B),
        row(2, FIND_A),
    )
    found = read_drafts(text, "x")
    assert len(found.drafts) == 3
    assert found.unread == (
        "question q0: reply:1:1: error: odd",
        "question q1: no reply: no route",
        "question q2: a second row of the same question, left out",
    )


def test_a_cut_last_line_and_broken_lines_are_forgiven() -> None:
    text = mined(row(0, FIND_A), {"odd": 1}) + json.dumps(row(1, FIND_B))[:40]
    found = read_drafts(text, "x")
    assert [draft.text for draft in found.drafts][1:] == [FIND_A]
    assert found.unread[1] == "line 4: the line is truncated"
    assert found.unread[0].startswith("line 3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no drafts"),
        ("# only a comment\n", "the file has no drafts"),
        ("Once upon a time\nthere was a plan.\n", "no draft of 2 can be read; the first: "),
        (mined(head=header(v=2)), "of another version"),
        (json.dumps(row(0, FIND_A)), "not a file of this kind"),
        ('{"kind": "pearl-mined", "v": 1}\n', "not a file of this kind"),
        ("{not json}\n", "not a file of this kind"),
        ('{"a": ' + "[" * 100_000, "not a file of this kind"),
        ('{"a": 1', "not a file of this kind"),
        (mined(head=header(seed_actions=[])), "the file has no drafts"),
    ],
)
def test_files_without_drafts_are_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_drafts(text, "x")
    assert caught.value.exit_code == 3
    assert caught.value.help


def merged(text: str) -> dict[str, set[str | None]]:
    """Signature → the stages of its drafts, without a model."""
    found = refine(text, max_rounds=0)
    stages = {draft.number: draft.stage for draft in found.drafts}
    return {
        action.text.partition(" : ")[0]: {stages[n] for n in action.drafts}
        for action in found.actions
    }


def test_equal_names_are_merged_and_others_stay_apart() -> None:
    assert merged(PLAIN) == {
        "FIND_REASON(CTX, X)": {None},
        "FIND_REASONS(CTX, X)": {None},
        "IDENTIFY_CAUSE(CTX, X)": {None},
        "FIND_EFFECT(CTX, X)": {None},
        "FIND_NOT_REASON(CTX, X)": {None},
        "FIND_WEATHER(CTX)": {None, "name"},
        "CONCAT(S1, S2, ...)": {None},
    }


def test_a_seed_stands_for_others_then_the_most_wanted_then_the_clearest() -> None:
    rows = [row(i, "FIND_KEY(CTX) : Find the key of the old house") for i in range(2)]
    other = row(2, "FIND_KEY(CTX) : Keys of the house")
    seed = row(3, "FIND(CTX, X) : Seek X in CTX, and give it")
    first, second = refine(mined(*rows, other, seed), max_rounds=0).actions
    assert first.text == "FIND(CTX, X) : Search CTX for X and return it"
    assert second.text == "FIND_KEY(CTX) : Find the key of the old house"
    assert len(second.questions) == 3


DRAFTS, _ = read_actions(
    "FIND_A(CTX, X) : Find A\nFIND_B(CTX, X) : Find B\nFIND_C(CTX) : Find C\nFIND_D(CTX) : Find D\n"
)


AB, C = "FIND_AB(CTX, X) : Find A or B", "FIND_C(CTX) : Find C"


@pytest.mark.parametrize(
    ("text", "merges", "drops", "problem"),
    [
        (refined((AB, [1, 2])), {AB: (1, 2)}, {}, ""),
        (f"Here:\n```json\n{refined((AB, [2, 1]))}\n```\nDone.", {AB: (1, 2)}, {}, ""),
        (refined((AB, [1]), dull=[3], **{"": [4]}), {AB: (1,)}, {3: "dull", 4: "the model gave no reason"}, ""),
        (refined((AB, [1, 2]), (C, [2])), {AB: (1, 2)}, {}, "draft 2 is named twice; the first place counts"),
        (refined((AB, [1]), (C, [])), {AB: (1,)}, {}, "FIND_C does not name a draft"),
        (refined((AB, [1, 2]), no=[99], dull=[3]), {AB: (1, 2)}, {3: "dull"}, "unknown draft 99"),
        (refined(("FIND_A(CTX, X, X) : Find A", [1]), (C, [3])), {C: (3,)}, {}, "action 'FIND_A' has two parameters"),
        (refined(("find_a(CTX, X) : Find A", [1]), (C, [3])), {C: (3,)}, {}, "'find_a' is not a name of an action"),
        (refined((f"{C}\n{AB}", [1]), (C, [3])), {C: (3,)}, {}, "spans several lines"),
        (refined((AB, [1, 9])), {}, {}, "unknown draft 9"),
        (refined((AB, [0])), {}, {}, "actions.0.drafts.0: 0 is less than"),
        (refined(), {}, {}, "the reply does not name a draft"),
        (refined((AB, [1])) * 2, {}, {}, "it is not one JSON object"),
        ('{"actions": []}', {}, {}, '"dropped" is a required property'),
        ('{"actions": [', {}, {}, "the reply cannot be read"),
        (f"{AB} [1, 2]", {}, {}, "it is not one JSON object"),
    ],
)  # fmt: skip
def test_replies_of_the_model(
    text: str, merges: dict[str, tuple[int, ...]], drops: dict[int, str], problem: str
) -> None:
    reply = read_reply(text, DRAFTS)
    assert {print_action(action): numbers for action, numbers in reply.merges} == merges
    assert dict(reply.drops) == drops
    assert len(reply.problems) == bool(problem)
    assert problem in "".join(reply.problems)
    assert reply.is_usable == bool(merges or drops)


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
    **wanted: int,
) -> Refinement:
    found = read_drafts(found, "drafts") if isinstance(found, str) else found
    model = Scripted(reply) if callable(reply) else reply
    return asyncio.run(refine_actions(found, model, RefineSettings(**wanted)))


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
    # The summary: what came in is kept, merged or dropped, and what came out is kept or worded anew.
    figures = {label: (n, note) for label, n, note in refinement.figures}
    ends = [label for label in figures if label.partition(",")[0].partition(" ")[0] == "merged"]
    ends += ["malformed", "dropped", "kept"]
    assert figures["drafts"][0] == sum(figures[label][0] for label in ends)
    n_new, _, is_told = figures["actions"][1].partition("at most, ")[2].partition(" of them worded")
    assert figures["actions"][0] == figures["kept"][0] + int(n_new if is_told else 0)


def assert_a_library(refinement: Refinement) -> None:
    text = library_text(refinement)
    assert format_library(text) == text
    assert list(read_library(text, "x")) == [action.name for action in refinement.actions]


def test_no_model_is_asked_if_the_rules_suffice() -> None:
    def never(request: Request) -> str:
        raise AssertionError(request)

    refinement = refine(PLAIN, never)
    assert refinement.rounds == ()
    assert [action.name for action in refinement.actions] == [
        "CONCAT", "FIND_EFFECT", "FIND_NOT_REASON", "FIND_REASON", "FIND_REASONS", "FIND_WEATHER", "IDENTIFY_CAUSE",
    ]  # fmt: skip
    clash = next(draft for draft in refinement.drafts if "Y" in draft.text and draft.why)
    assert clash.why == "the name is taken by FIND_REASON(CTX, X)"
    assert_accounted(refinement)
    assert_a_library(refinement)


def test_shards_are_small_enough_for_the_window() -> None:
    model = Scripted(pairs, window=1_000)
    refine(unlike(30), model, max_actions=10)
    assert max(len(task_of(request).drafts) for request in model.requests) == 6


def test_the_model_merges_in_shards_and_rounds_until_it_fits() -> None:
    refinement = refine(unlike(30), max_actions=8, shard_size=10)
    assert len(refinement.actions) == 8
    assert [(r.n_before, r.n_after) for r in refinement.rounds] == [(30, 15), (15, 8)]
    assert [len(r.shards) for r in refinement.rounds] == [3, 2]
    assert refinement.count("merged", "model") == 22
    assert {draft.round for draft in refinement.drafts} == {0, 1, 2}
    assert_accounted(refinement)
    assert_a_library(refinement)


def test_native_actions_and_seeds_are_kept() -> None:
    rows = [row(i, *unlike(20).splitlines()[i::4], "COUNT(ITEMS) : Count ITEMS") for i in range(4)]
    refinement = refine(mined(*rows), lambda r: "nothing to say", max_actions=3)
    assert [action.name for action in refinement.actions][:2] == ["COUNT", "FIND"]
    count, seed, _ = refinement.actions
    assert (count.is_native, len(count.drafts), len(count.questions)) == (True, 4, 4)
    assert seed.is_seed
    assert_accounted(refinement)


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

    with pytest.raises(ModelError, match=r"every call failed.*: no key") as caught:
        refine(unlike(30), reply, max_actions=5, shard_size=10)
    assert caught.value.kind == "auth"
    assert "--rounds 0" in str(caught.value.help)


@pytest.mark.parametrize("text", ["All good.", refined(("FIND(CTX, X) : Find X", [1, 99]))])
def test_unusable_replies_are_counted_and_rules_make_room(text: str) -> None:
    refinement = refine(unlike(12), lambda r: text, max_actions=9)
    assert refinement.calls("unusable") == refinement.calls() == 1
    assert refinement.rounds[0].shards[0].problems
    assert {draft.why for draft in refinement.drafts if draft.why} == {"no room"}
    assert len(refinement.actions) == 9
    assert_accounted(refinement)


def test_room_is_made_by_dropping_what_the_fewest_questions_need() -> None:
    keys = ["FIND_OLD_KEY(CTX) : Find the old key of a door", "FIND_KEY(CTX) : Find a key of it"]
    rows = [row(0, *keys), row(1, keys[1]), row(2, "FIND_TOWER(CTX) : Find a tower")]
    found = read_drafts(mined(*rows, row(3, "FIND_TOWER(CTX) : Find a tower")), "x")
    refinement = refine(found, max_actions=3, max_rounds=0)
    (lost,) = [draft for draft in refinement.drafts if draft.stage == "room"]
    assert (lost.name, lost.fate, lost.why) == ("FIND_OLD_KEY", "dropped", "no room")
    assert_accounted(refinement)


def test_an_empty_library_is_an_error() -> None:
    with pytest.raises(DataError, match="nothing remains of 3 drafts") as caught:
        refine(unlike(3), lambda r: refined(bad=[1, 2, 3]), max_actions=2)
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


lines = st.sampled_from([*PLAIN.splitlines()[1:], *unlike(12).splitlines()])


def replies(seed: int) -> Callable[[Request], str]:
    """A model that merges, drops, rewords and talks at random, the same for the same seed."""

    def reply(request: Request) -> str:
        dice = random.Random(f"{seed} {request.prompt}")
        n = len(task_of(request).drafts)
        merges: list[tuple[str, list[int]]] = []
        drops: list[int] = []
        for _ in range(dice.randrange(n + 2)):
            numbers = dice.sample(range(1, n + 1 + (dice.random() < 0.1)), dice.randint(1, n))
            draft = dice.choice(task_of(request).drafts)
            texts = (
                f"{draft.signature} : {draft.definition}",
                f"FIND_{dice.randrange(3)}(CTX, X) : Find X",
                "COUNT(ITEMS) : Count",
            )
            if dice.random() < 0.2:
                drops += numbers[:1]
            else:
                merges.append((dice.choice(texts), numbers))
        return refined(*merges, no_use=drops)

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
