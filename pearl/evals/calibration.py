"""Confidence and correctness of answers → how well the first foretells the second; calls no model.

Confidence is the share of different plans that agree (`pearl.interpreter.agreement.Agreement`). Correct
is what has the whole credit; a score below 1 counts as wrong here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from pearl.errors import UsageError
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.stats import Interval, proportion

N_BINS = 10
"""Bins of equal width, as in most of what is published."""

MIN_ANSWERS = 100
"""With fewer answers the expected calibration error is mostly the noise of its bins: of ten answers in a
bin, the share that is right is off by 16 points in one case of three."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers of similar confidence."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: Interval


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left where only answers of some confidence are kept."""

    threshold: float
    n: int
    coverage: float
    accuracy: Interval


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well confidence foretells correctness."""

    method: str
    n: int
    n_tried: int
    n_alone: int
    bins: tuple[Bin, ...]
    ece: float
    brier: float
    kept: tuple[Kept, ...]

    @property
    def is_scarce(self) -> bool:
        """Whether there are too few answers for figures that mean much."""
        return self.n < MIN_ANSWERS

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {**asdict(self), "is_scarce": self.is_scarce}


def calibration(
    confidences: Sequence[float],
    correct: Sequence[bool],
    *,
    method: str = "",
    n_tried: int | None = None,
    n_alone: int = 0,
) -> Calibration:
    """Compare confidences with what is right.

    With B bins of n_b of the n answers, of mean confidence c_b and accuracy a_b, the expected calibration
    error is the sum of n_b / n * |a_b - c_b|. The Brier score is the mean of (confidence - correct)².
    The first is 0 where shares are right; the second is not, unless they are all 0 or 1. Both treat
    answers as independent, as Wilson's intervals do: several seeds of a sample
    are not.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning
        (2015); Guo et al., On Calibration of Modern Neural Networks (2017), section 2; Brier, Monthly
        Weather Review 78 (1950), for two outcomes; Wilson, JASA 22 (1927); accuracy by coverage: El-Yaniv and
        Wiener, JMLR 11 (2010).

    Example:
        >>> found = calibration([1.0, 1.0, 0.5, 0.5], [True, True, True, False])
        >>> found.ece, found.brier
        (0.0, 0.125)
        >>> [(kept.threshold, kept.coverage, kept.accuracy.estimate) for kept in found.kept]
        [(1.0, 0.5, 1.0), (0.5, 1.0, 0.75)]
    """
    if not confidences or len(confidences) != len(correct):
        raise UsageError(
            f"{len(confidences):,} confidences for {len(correct):,} answers",
            help="give one for each answer, and at least one",
        )
    if not all(0 <= each <= 1 for each in confidences):
        raise UsageError("a confidence is a share", help="give numbers from 0 to 1")
    answers = list(zip(confidences, correct, strict=True))
    edges = [i / N_BINS for i in range(N_BINS + 1)]
    placed: list[list[tuple[float, bool]]] = [[] for _ in range(N_BINS)]
    for confidence, is_right in answers:
        placed[bisect_right(edges, confidence, 1, N_BINS) - 1].append((confidence, is_right))
    bins = tuple(
        Bin(edges[i], edges[i + 1], len(some), fmean(c for c, _ in some), _accuracy(some))
        for i, some in enumerate(placed)
        if some
    )
    n = len(answers)
    n_tried = n if n_tried is None else n_tried
    kept = []
    for threshold in sorted(set(confidences), reverse=True):
        some = [each for each in answers if each[0] >= threshold]
        kept.append(Kept(threshold, len(some), len(some) / n_tried, _accuracy(some)))
    return Calibration(
        method=method,
        n=n,
        n_tried=n_tried,
        n_alone=n_alone,
        bins=bins,
        ece=sum(b.n / n * abs(b.accuracy.estimate - b.confidence) for b in bins),
        brier=fmean((confidence - is_right) ** 2 for confidence, is_right in answers),
        kept=tuple(kept),
    )


def calibrations(log: EvalLog) -> list[Calibration]:
    """One for each method that has answers with a confidence."""
    found = (of_records(method, log.of(method)) for method in log.methods)
    return [each for each in found if each is not None]


def of_records(method: str, records: Iterable[EvalRecord]) -> Calibration | None:
    """The calibration of the records of a method; None where no answer has a confidence."""
    records = tuple(records)
    answered = [record for record in records if record.status != "failed"]
    sure = [(r.confidence, r.is_correct) for r in answered if r.confidence is not None]
    if not sure:
        return None
    return calibration(
        [confidence for confidence, _ in sure],
        [is_right for _, is_right in sure],
        method=method,
        n_tried=len(records),
        n_alone=sum(record.confidence is None for record in answered),
    )


def _accuracy(answers: Sequence[tuple[float, bool]]) -> Interval:
    return proportion(sum(is_right for _, is_right in answers), len(answers))
