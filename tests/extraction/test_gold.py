"""Honest replies about generated documents: every leaf is right and has its place, and every result is valid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pearl.data.schemas import load_schema
from tests.extraction.comparing import Figures, compare, run
from tests.extraction.documents import Case, case, leaves
from tests.extraction.shapes import SHAPES, schema_of
from tests.suite import Trial

WINDOWS = {"flat": 24_000, "names": 4_000}
"""Of a model that reads a long document in parts; 3,000 for the other shapes."""


def cases(n_leaves: int, seed: int) -> Iterator[tuple[Case, int | None]]:
    """Documents of all shapes with this number of leaves in all; one in three is read in parts, by the window."""
    n, turn = 0, 0
    while n < n_leaves:
        for name, shape in SHAPES.items():
            if name == "flat" and turn % 4:  # it has as many leaves as twenty others
                continue
            is_long = turn % 3 == 1
            made = case(name, shape, seed * 1_000 + turn, is_long=is_long)
            n += sum(1 for _ in leaves(made.gold))
            yield made, WINDOWS.get(name, 3_000) if is_long else None
        turn += 1


def seed_of(trial: Trial, request: pytest.FixtureRequest) -> int:
    """The suite draws its seed; an ordinary run of the tests has always the same."""
    return trial.seed if request.config.option.size else 1


@pytest.mark.row("R40", "extraction: leaves of generated documents, honest replies")
def test_honest_replies_are_right_leaf_by_leaf(
    trial: Trial, request: pytest.FixtureRequest
) -> None:
    figures = Figures()
    n_parts = 0
    for made, window in cases(
        trial.n(ci=450, nightly=10_000, release=50_000), seed_of(trial, request)
    ):
        answer, checker = run(made, window=window)
        compare(made, answer, figures)
        n_parts += window is not None
        figures.refused += checker.refused
    trial.figure("leaves", figures.n)
    trial.figure("documents", figures.n_documents)
    trial.figure("documents in parts", n_parts)
    trial.figure(
        "right and with their place, in %", 100 * figures.n_right / figures.n, at_least=99.5
    )
    trial.figure("wrong and not undecided", len(figures.wrong), at_most=0)
    trial.figure("neither in the result nor undecided", len(figures.lost), at_most=0)
    trial.figure("results that are not valid", len(figures.invalid), at_most=0)
    is_right = not (figures.wrong or figures.lost or figures.invalid)
    assert is_right, (figures.told, figures.flaws[:20])


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_accepted(name: str) -> None:
    assert load_schema(schema_of(SHAPES[name])).fields
