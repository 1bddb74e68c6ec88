"""Replies in which one leaf in twenty is a lie: with an honest checker, no kind of lie is in the result."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.extraction.comparing import is_covered, run
from tests.extraction.documents import case, leaves, plain
from tests.extraction.lies import KINDS_OF_LIES, UNSEEN, Liar, Lie, false_paths, pattern_of
from tests.extraction.test_gold import cases, seed_of
from tests.suite import Trial


def kind_of(path: str, lies: tuple[Lie, ...]) -> str:
    """The kind of the lie that is told at a path, or beside it."""
    at = pattern_of(path.partition(" ")[0])
    near = [
        each.kind
        for each in lies
        if at.startswith(pattern_of(each.path)) or pattern_of(each.path).startswith(at)
    ]
    return near[0] if near else "none told"


@pytest.mark.row("R41", "extraction: lies in replies, an honest checker")
def test_few_lies_are_accepted(trial: Trial, request: pytest.FixtureRequest) -> None:
    seed = seed_of(trial, request)
    liar = Liar(random.Random(seed))
    told: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    noticed = n_leaves = 0
    examples: list[str] = []
    for i, (made, window) in enumerate(
        cases(trial.n(ci=450, nightly=10_000, release=50_000), seed)
    ):
        lying = liar.lying(made, case(made.name, made.shape, 900_000_000 + seed + i))
        answer, _ = run(made, teller=lying.teller, window=window)
        n_leaves += sum(1 for _ in leaves(made.gold))
        told.update(each.kind for each in lying.lies)
        noticed += sum(
            each.kind == UNSEEN and is_covered(each.path, answer.undecided) for each in lying.lies
        )
        for path in false_paths(answer.partial, plain(made.gold)):
            if not is_covered(path.partition(" ")[0], answer.undecided):
                kind = kind_of(path, lying.lies)
                accepted[kind] += 1
                examples.append(f"{made.name}: {path}: {kind}")
    rows = [
        {"kind": kind, "told": told[kind], "accepted": accepted[kind]}
        for kind in (*KINDS_OF_LIES, "none told")
    ]
    trial.table("lies in extractions", rows)
    n_lies = told.total() - told[UNSEEN]
    trial.figure("leaves", n_leaves)
    trial.figure("lies", n_lies)
    trial.figure("accepted, in %", 100 * accepted.total() / n_lies, at_most=1)
    for kind in (*KINDS_OF_LIES, "none told"):
        trial.figure(f"{kind}: told", told[kind])
        trial.figure(f"{kind}: accepted", accepted[kind])
    trial.figure(f"{UNSEEN}: noticed", noticed)
    assert accepted.total() <= 0.01 * n_lies, examples[:20]
