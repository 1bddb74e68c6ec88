"""The dialogues of ConvFinQA, as the domain `finance` reads them.

Source:
    Chen et al., ConvFinQA: Exploring the Chain of Numerical Reasoning in Conversational Finance
    Question Answering (EMNLP 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click

from pearl import Document
from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample
from pearl.errors import DataError


@dataclass(frozen=True)
class Turn:
    """One question of a dialogue with what is right."""

    question: str
    answer: str
    program: str
    executed: float | str


@dataclass(frozen=True)
class Dialogue:
    """A dialogue about one page of a report."""

    id: str
    turns: tuple[Turn, ...]
    page: Document


def read_dialogues(path: Path) -> Iterator[Dialogue]:
    """Every dialogue of a file."""
    try:
        samples = (_checked(path, each) for each in read_samples("finance", Source(str(path))))
        for id, turns in groupby(samples, lambda sample: sample.extra.get("dialogue")):
            every = list(turns)
            yield Dialogue(id, tuple(map(_turn, every)), every[0].load())
    except DataError as error:
        raise click.ClickException(str(error)) from error


def _checked(path: Path, sample: Sample | DataError) -> Sample:
    if isinstance(sample, DataError):
        raise sample
    if not (sample.extra.get("dialogue") and sample.extra.get("program") and sample.reference):
        raise DataError(f"sample '{sample.id}' is no turn with a program and its result", path=path)
    return sample


def _turn(sample: Sample) -> Turn:
    reference = sample.reference or ""
    try:
        executed: float | str = float(reference)
    except ValueError:
        executed = reference
    return Turn(
        sample.question, sample.extra.get("said", reference), sample.extra["program"], executed
    )
