"""An `EvalLog` → one score per method and subset, and paired comparisons; calls no model.

Failures and unmapped replies count as wrong: the denominator is every sample that was tried.
Seeds of one sample are not independent, so intervals resample samples or documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, product
from statistics import fmean, quantiles
from typing import Any, Literal

from pearl.errors import UsageError
from pearl.evals import stats
from pearl.evals.baselines import BASELINES, baseline_records
from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.stats import Interval, McNemar
from pearl.llm import Usage

Cluster = Literal["sample", "document"]


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a method on a subset of the samples."""

    method: str
    subset: str
    n: int
    n_samples: int
    n_clusters: int
    n_answered: int
    n_fell_back: int
    n_failed: int
    n_unmapped: int
    n_correct: int
    accuracy: Interval
    by_seed: tuple[float, ...]
    usage: Usage
    n_calls: int
    cost_usd: float | None
    latency_p50_s: float
    latency_p95_s: float

    @property
    def tokens_per_record(self) -> float:
        """Mean input and output tokens."""
        return (self.usage.n_input_tokens + self.usage.n_output_tokens) / self.n

    @property
    def cost_per_record_usd(self) -> float | None:
        """Mean cost; None if prices are unknown."""
        return None if self.cost_usd is None else self.cost_usd / self.n

    def to_json(self) -> dict[str, Any]:
        """The score as JSON data, with fractions also in percent to one decimal."""
        return {**asdict(self), "accuracy_pct": round(100 * self.accuracy.estimate, 1)}


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """A paired comparison of two methods on their common samples."""

    first: str
    second: str
    subset: str
    n: int
    n_samples: int
    n_clusters: int
    difference: Interval
    bootstrap_p: float | None
    mcnemar: McNemar | None


def chance(records: Iterable[EvalRecord]) -> float | None:
    """Expected accuracy of guessing, per sample; None if a sample has no options."""
    sizes = [len(options) for _, options in {(r.sample, r.options) for r in records}]
    return fmean(1 / size for size in sizes) if sizes and all(sizes) else None


def is_below(score: Score, guess: float | None) -> bool:
    """Whether a method's interval lies below the accuracy of guessing."""
    return guess is not None and score.accuracy.high < guess


def scores(log: EvalLog, *, cluster: Cluster = "sample") -> list[Score]:
    """One score per method, for all samples and for each subset.

    Where many questions share a document, `cluster="document"` gives wider, more accurate intervals.
    """
    if not log.records:
        raise UsageError("the log has no record", help="run `pearl eval` again to go on with it")
    return [
        score_of(method, subset or "all", records, cluster=cluster)
        for subset in (None, *log.subsets)
        for method in log.methods
        if (records := log.of(method, subset))
    ]


def baselines(log: EvalLog, *, cluster: Cluster = "sample") -> list[Score]:
    """The scores of what reads nothing, where all samples have options, for all samples and for each subset."""
    return [
        score_of(name, subset or "all", records, cluster=cluster)
        for subset in (None, *log.subsets)
        for name in BASELINES
        if (
            records := [
                record
                for record in baseline_records(log.records)
                if record.method == name and (subset is None or subset in record.subsets)
            ]
        )
    ]


def score_of(
    method: str, subset: str, records: Sequence[EvalRecord], *, cluster: Cluster = "sample"
) -> Score:
    """The score of one method on its non-empty records of one subset."""
    statuses = Counter(record.status for record in records)
    seeds = sorted({record.seed for record in records})
    costs = [record.cost_usd for record in records if record.cost_usd is not None]
    latencies = [record.duration_s for record in records]
    return Score(
        method=method,
        subset=subset,
        n=len(records),
        n_samples=len({record.sample for record in records}),
        n_clusters=len(set(_clusters(records, cluster))),
        n_answered=statuses["answered"],
        n_fell_back=statuses["fell_back"],
        n_failed=statuses["failed"],
        n_unmapped=sum(record.is_unmapped for record in records),
        n_correct=sum(record.is_correct for record in records),
        accuracy=stats.accuracy(
            [record.credit for record in records], clusters=_clusters(records, cluster)
        ),
        by_seed=tuple(fmean(r.credit for r in records if r.seed == seed) for seed in seeds),
        usage=sum((record.usage for record in records), Usage()),
        n_calls=sum(record.n_calls for record in records),
        cost_usd=sum(costs) if len(costs) == len(records) else None,
        latency_p50_s=_quantile(latencies, 50),
        latency_p95_s=_quantile(latencies, 95),
    )


def _quantile(values: Sequence[float], percent: int) -> float:
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _clusters(records: Sequence[EvalRecord], cluster: Cluster) -> list[str]:
    name: Callable[[EvalRecord], str] = (
        (lambda r: r.document) if cluster == "document" else (lambda r: r.rotation_of or r.sample)
    )
    return [name(record) for record in records]


def compare(
    first: Sequence[EvalRecord],
    second: Sequence[EvalRecord],
    names: tuple[str, str],
    *,
    subset: str = "all",
    cluster: Cluster = "sample",
) -> MethodComparison | None:
    """Compare two sets of records on their common samples and seeds; None if there are none."""
    others = {(record.sample, record.seed): record for record in second}
    pairs = [
        (record, other)
        for record in first
        if (other := others.get((record.sample, record.seed))) is not None
    ]
    for record, other in pairs:
        if (record.question, record.gold) != (other.question, other.gold):
            raise UsageError(
                f"sample '{record.sample}' is another question in the other log",
                help="compare logs of the same data",
            )
    if not pairs:
        return None
    ones = [record.credit for record, _ in pairs]
    twos = [other.credit for _, other in pairs]
    is_right_or_wrong = {*ones, *twos} <= {0.0, 1.0}
    clusters = _clusters([record for record, _ in pairs], cluster)
    n_clusters = len(set(clusters))
    n_samples = len({record.sample for record, _ in pairs})
    is_independent = n_samples == len(pairs)
    return MethodComparison(
        *names,
        subset,
        len(pairs),
        n_samples,
        n_clusters,
        stats.difference(ones, twos, clusters=clusters),
        stats.bootstrap_p(ones, twos, clusters=clusters)
        if n_clusters >= stats.MIN_CLUSTERS
        else None,
        stats.mcnemar([one == 1.0 for one in ones], [two == 1.0 for two in twos])
        if is_independent and is_right_or_wrong and cluster == "sample"
        else None,
    )


def comparisons(log: EvalLog, *, cluster: Cluster = "sample") -> list[MethodComparison]:
    """Every pair of methods of a log, on all samples and on each subset."""
    return _compared(log, log, list(combinations(log.methods, 2)), cluster)


def across(
    first: EvalLog, second: EvalLog, *, cluster: Cluster = "sample"
) -> list[MethodComparison]:
    """Pairs of methods of two logs: those with equal names, or all pairs if there are none."""
    common = [name for name in first.methods if name in second.methods]
    pairs = [(name, name) for name in common] or list(product(first.methods, second.methods))
    return _compared(first, second, pairs, cluster)


def _compared(
    first: EvalLog, second: EvalLog, pairs: Sequence[tuple[str, str]], cluster: Cluster
) -> list[MethodComparison]:
    subsets = [name for name in first.subsets if name in second.subsets]
    found = [
        compare(
            first.of(one, subset),
            second.of(two, subset),
            (one, two),
            subset=subset or "all",
            cluster=cluster,
        )
        for subset in (None, *subsets)
        for one, two in pairs
    ]
    return [comparison for comparison in found if comparison is not None]


def errors(log: EvalLog, n: int = 5) -> list[tuple[str, int]]:
    """The most frequent reasons of failures, with counts."""
    counts = Counter(record.error for record in log.records if record.error)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]
