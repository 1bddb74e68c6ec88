"""Log-likelihoods from a file: a real model of random weights, in a real child process."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pearl.llm.backends import ModelSettings
from pearl.llm.backends.llamacpp import LlamaCppModel, create
from tests.llm.backends.asking import used
from tests.models import log_likelihoods

CANDIDATES = ("the captain", "the boat", "the captain and the boat", "a letter")


def rated(weights: Path, *asked: tuple[str, ...]) -> list[tuple[float, ...]]:
    async def rate(model: LlamaCppModel) -> list[tuple[float, ...]]:
        return [await log_likelihoods(model, "Who had the letter?", each) for each in asked]

    return used(create(str(weights), ModelSettings(timeout_s=60.0)), rate)


def test_other_candidates_do_not_change_a_likelihood(weights: Path) -> None:
    together, *alone = rated(weights, CANDIDATES, *((each,) for each in CANDIDATES))
    assert together == pytest.approx([value for (value,) in alone], abs=1e-3)
    assert together[2] < together[0]  # it begins with it
    assert len(set(together)) == len(CANDIDATES)


def test_probabilities_of_first_tokens_add_up_to_one(weights: Path) -> None:
    """Bytes are tokens of every vocabulary of this kind, and the most of this one."""
    letters = tuple(map(chr, range(ord("a"), ord("z") + 1)))
    (values,) = rated(weights, letters)
    assert 0 < sum(map(math.exp, values)) <= 1 + 1e-3
