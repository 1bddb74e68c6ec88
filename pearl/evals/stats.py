"""Compute accuracies with intervals from correct and wrong answers, and paired tests of two methods.

Intervals are percentile intervals of the bootstrap, the paired test is McNemar's, exact. Questions
about one document are correlated: pass the documents as `clusters` to resample whole documents.
Needs scipy, of the extra `eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from pearl.errors import UsageError
from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

N_DRAWS_AT_ONCE = 1_000_000  # Draws per batch in memory; about 30 bytes each

MIN_CLUSTERS = 20
"""Minimum clusters for a bootstrap p: with fewer, percentile intervals are too narrow to serve as
tests."""

CONFIDENCE = 0.95
N_RESAMPLES = 10_000  # resamples of the bootstrap
SEED = 0  # of the resampling: the same log gives the same intervals


class Interval(Struct, frozen=True):
    """An estimate and its 95 % interval."""

    estimate: float
    low: float
    high: float


class McNemar(Struct, frozen=True):
    """How many samples each of two methods got right, and the exact test of their difference."""

    n_both: int
    n_first_only: int
    n_second_only: int
    n_neither: int
    p_value: float


def accuracy(correct: Sequence[float], *, clusters: Sequence[str] | None = None) -> Interval:
    """The fraction of correct answers, 0 to 1, with its percentile bootstrap interval.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13; Clopper and
        Pearson, Biometrika 26 (1934).

    Example:
        >>> accuracy([True] * 30 + [False] * 10)
        Interval(estimate=0.75, low=0.625, high=0.875)
        >>> round(accuracy([True, True, True]).low, 2)  # not 1.0
        0.29
    """
    sums, sizes = _per_cluster(correct, clusters)
    return _interval(sums, sizes, least=0)


def difference(
    first: Sequence[float], second: Sequence[float], *, clusters: Sequence[str] | None = None
) -> Interval:
    """The accuracy of `first` minus that of `second`, -1 to 1, with its paired bootstrap interval.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    Example:
        >>> difference([True] * 30 + [False] * 10, [True] * 20 + [False] * 20)
        Interval(estimate=0.25, low=0.125, high=0.4)
    """
    sums, sizes = _per_cluster(_differences(first, second), clusters)
    return _interval(sums, sizes, least=-1)


def bootstrap_p(
    first: Sequence[float], second: Sequence[float], *, clusters: Sequence[str] | None = None
) -> float:
    """The two-sided p value, 0 to 1, of the paired bootstrap for a difference of 0.

    Source:
        Davison and Hinkley, Bootstrap Methods and their Application (1997), section 4.2 for the
        plus one, section 5.2 for a test as the inverse of an interval.

    Example:
        >>> bootstrap_p([True] * 30 + [False] * 10, [True] * 20 + [False] * 20) < 0.01
        True
        >>> bootstrap_p([True, True, False], [True, True, False])
        1.0
    """
    sums, sizes = _per_cluster(_differences(first, second), clusters)
    if _is_uniform(sums, sizes):  # resamples would not differ: the sign test over the clusters
        n_in_favour = sum(sums != 0)
        return float(_scipy().binomtest(n_in_favour, n_in_favour).pvalue) if n_in_favour else 1.0
    resampled = _bootstrap((*sums,), (*sizes,)).bootstrap_distribution
    n_tail = min((resampled <= 0).sum(), (resampled >= 0).sum())
    return min(1.0, 2 * (1 + int(n_tail)) / (1 + len(resampled)))


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """McNemar's exact test: do the discordant samples favour one of two methods?

    Source:
        McNemar, Psychometrika 12 (1947); exact form: Fay, Biostatistics 11 (2010).

    Example:
        >>> mcnemar([True] * 5 + [False], [False] * 5 + [True])
        McNemar(n_both=0, n_first_only=5, n_second_only=1, n_neither=0, p_value=0.21875)
    """
    differences = _differences(first, second)
    n_both = sum(map(lambda one, other: bool(one and other), first, second))
    n_first_only, n_second_only = differences.count(1), differences.count(-1)
    n_discordant = n_first_only + n_second_only
    p_value = _scipy().binomtest(n_first_only, n_discordant).pvalue if n_discordant else 1.0
    return McNemar(
        n_both=n_both,
        n_first_only=n_first_only,
        n_second_only=n_second_only,
        n_neither=len(differences) - n_both - n_discordant,
        p_value=float(p_value),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p values of several tests by Holm's method, which bounds the chance of any false positive.

    Source:
        Holm, Scandinavian Journal of Statistics 6 (1979).

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    adjusted, least = [0.0] * len(p_values), 0.0
    for n_before, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - n_before) * p_values[i]))
        adjusted[i] = least
    return adjusted


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Paired score differences: 1 if only the first is correct, -1 if only the second is."""
    if len(first) != len(second):
        raise UsageError(
            f"{len(first):,} answers cannot be paired with {len(second):,}",
            help="give both methods' answers to the same samples, in the same order",
        )
    return [float(one) - float(other) for one, other in zip(first, second, strict=True)]


def _per_cluster(
    values: Sequence[float], clusters: Sequence[str] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and count of the values of each cluster, sorted by name."""
    import numpy as np

    if not len(values):
        raise UsageError("no answers to count", help="give at least one")
    if clusters is None:
        return np.asarray(values, dtype=float), np.ones(len(values))
    if len(clusters) != len(values):
        raise UsageError(
            f"{len(clusters):,} clusters do not match {len(values):,} answers",
            help="name one cluster for each answer",
        )
    place = {cluster: i for i, cluster in enumerate(sorted(set(clusters)))}
    members = [place[cluster] for cluster in clusters]
    sums, sizes = np.bincount(members, weights=values), np.bincount(members)
    return sums.astype(float), sizes.astype(float)


def _is_uniform(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> bool:
    """Whether every cluster has the same mean, compared exactly."""
    return bool((sums * sizes[0] == sums[0] * sizes).all())


def _interval(sums: NDArray[np.float64], sizes: NDArray[np.float64], *, least: int) -> Interval:
    """The interval of the mean of values that lie between `least` and 1."""
    mean = float(sums.sum() / sizes.sum())
    if _is_uniform(sums, sizes):
        # A bootstrap interval would have no width. Of n clusters none deviated, so at most Clopper and
        # Pearson's upper share for 0 of n does, each at worst to the end of the scale.
        ends = _scipy().binomtest(0, len(sums)).proportion_ci(CONFIDENCE, method="exact")
        most = float(ends.high)
        return Interval(mean, mean - most * (mean - least), mean + most * (1 - mean))
    ends = _bootstrap((*sums,), (*sizes,)).confidence_interval
    return Interval(mean, float(ends.low), float(ends.high))


def _scipy() -> Any:
    """`scipy.stats`, imported on use: it takes half a second; `Any`, since scipy has no types."""
    require_extra("eval", "an evaluation", "scipy")
    import scipy.stats

    return scipy.stats


@lru_cache(maxsize=1)  # an interval and the p value after it are of the same resamples
def _bootstrap(sums: tuple[float, ...], sizes: tuple[float, ...]) -> Any:
    """Scipy's bootstrap of the mean over clusters."""

    def mean(sums: NDArray[np.float64], sizes: NDArray[np.float64], axis: int) -> Any:
        return sums.sum(axis) / sizes.sum(axis)

    return _scipy().bootstrap(
        (sums, sizes),
        mean,
        paired=True,
        vectorized=True,
        n_resamples=N_RESAMPLES,
        batch=max(1, N_DRAWS_AT_ONCE // len(sums)),
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=SEED,
    )
