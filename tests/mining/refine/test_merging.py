"""Merging by rule: what is the same, and what only looks like it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pearl.actions.library import read_actions
from pearl.actions.likeness import (
    Matrix,
    agreement,
    by_embedding,
    by_words,
    have_same_name,
    may_merge,
)
from pearl.dsl.signatures import Action
from pearl.mining.merging import Draft, LibraryEntry, Rules, entry_of, merge_by_rule
from pearl.mining.refining import read_drafts
from tests.mining.refine.drafts import PLAIN, mined, row


def action(text: str) -> Action:
    (found,) = read_actions(text)[0]
    return found


def entries(text: str) -> list[LibraryEntry]:
    return [entry_of(d, d.action) for d in read_drafts(text, "x").drafts if d.action]


def merged(text: str, rules: Rules | None = None) -> dict[str, set[str | None]]:
    """Signature → the stages of its drafts."""
    found = merge_by_rule(entries(text), rules or Rules())
    return {
        entry.action.signature: {stage.name if stage else None for stage in entry.drafts.values()}
        for entry in found
    }


def test_the_same_is_merged_and_the_rest_stays_apart() -> None:
    assert merged(PLAIN) == {
        "FIND_REASON(CTX, X)": {None, "name"},
        "FIND_EFFECT(CTX, X)": {None},
        "FIND_NOT_REASON(CTX, X)": {None},
        "FIND_REASON(CTX, X, Y)": {None},
        "FIND_WEATHER(CTX)": {None, "exact"},
        "CONCAT(S1, S2, ...)": {None},
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FIND_CAUSE(CTX, X) : Find it", "FIND_EFFECT(CTX, X) : Find it"),
        ("FIND_REASON(CTX, X) : Find it", "FIND_OUTCOME(CTX, X) : Find it"),
        ("FIND_FIRST(CTX, X) : Find it", "FIND_LAST(CTX, X) : Find it"),
        ("FIND_TRUE(CTX, X) : Find it", "FIND_NOT_TRUE(CTX, X) : Find it"),
        ("FIND_CORRECT(CTX, X) : Find it", "FIND_INCORRECT(CTX, X) : Find it"),
        ("FIND_LIKELY(CTX, X) : Find it", "FIND_LEAST_LIKELY(CTX, X) : Find it"),
        ("FIND_X(CTX, X) : Find it", "FIND_X(CTX, X, Y) : Find it"),
        ("FIND_X(CTX, X) : Find it", "FIND_X(X, Y) : Find it"),
        ("JOIN(A, B) : Join them", "JOIN(A, B, ...) : Join them"),
    ],
)
def test_opposites_and_other_shapes_never_merge(one: str, other: str) -> None:
    assert not may_merge(action(one), action(other))
    assert not may_merge(action(other), action(one))
    by_all = Rules(lambda actions: np.ones((len(actions), len(actions))))
    assert len(merge_by_rule(entries(f"{one}\n{other}"), by_all)) == 2


def test_names_are_alike_in_inflection_verb_and_synonym() -> None:
    def alike(one: str, other: str) -> bool:
        return have_same_name(Action(one, ()), Action(other, ()))

    assert alike("FIND_REASON", "FIND_REASONS")
    assert alike("LOCATE_REASON", "IDENTIFY_MOTIVE")
    assert not alike("FIND_REASON", "EXPLAIN_REASON")
    assert not alike("FIND_REASON", "FIND_REASON_BEHIND")


def test_names_that_are_alike_by_chance_stay_apart() -> None:
    one = action("FIND_INTEREST(CTX, X) : Find what makes people care about X")
    other = action("FIND_INTERESTS(CTX, X) : Find the hobbies of X")
    assert agreement(one, other) == 0
    assert len(merged(f"{one.signature} : {one.definition}\n{other.signature} : hobbies")) == 2


def test_a_seed_stands_for_others_then_the_most_wanted_then_the_clearest() -> None:
    rows = [row(i, "FIND_KEY(CTX) : Find the key of the old house") for i in range(2)]
    other = row(2, "FIND_KEYS(CTX) : Find keys of the house")
    seed = row(3, "SEARCH(CTX, X) : Search CTX for X and return it")
    found = merge_by_rule(entries(mined(*rows, other, seed)), Rules())
    assert [entry.text for entry in found] == [
        "FIND(CTX, X) : Search CTX for X and return it",
        "FIND_KEY(CTX) : Find the key of the old house",
    ]
    assert found[1].support == 3


def test_native_actions_stay_as_they_are() -> None:
    text = "COUNT(ITEMS) : Count ITEMS\nCOUNT(X) : Tell how many\nTALLY(X) : Count ITEMS\n"
    found = merge_by_rule(entries(text), Rules())
    assert [(e.action.name, len(e.drafts)) for e in found] == [("COUNT", 2), ("TALLY", 1)]


def embed(texts: Sequence[str]) -> Matrix:
    """Sweet things here, salty ones there."""
    sweet = ("cake", "honey")
    return np.array([[1.0, 0.0] if any(s in t for s in sweet) else [0.0, 1.0] for t in texts])


def test_an_embedder_may_measure_likeness() -> None:
    text = "FIND_CAKE(CTX) : Find cake\nSEEK(CTX) : Look for honey\nFIND_SALT(CTX) : Find salt\n"
    assert len(merged(text)) == 3
    assert merged(text, Rules.for_embedder(embed)) == {
        "SEEK(CTX)": {None, "definition"},
        "FIND_SALT(CTX)": {None},
    }


def test_likeness_is_symmetric_and_of_nothing_is_nothing() -> None:
    found = by_words([action(line) for line in PLAIN.splitlines()[1:9]])
    assert (found == found.T).all()
    assert (np.diag(found) == 1).all()
    assert 0 <= found.min() <= found.max() <= 1
    for likeness in (by_words, by_embedding(embed)):
        assert likeness([]).shape == (0, 0)


def test_drafts_may_be_of_no_question() -> None:
    draft = Draft(0, "FIND(CTX) : Find", action("FIND(CTX) : Find it"))
    assert entry_of(draft, action(draft.text)).support == 1
