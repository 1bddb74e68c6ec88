"""Summarise logs: accuracy by method and subset, paired comparisons, baselines, kinds of outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, groupby, product
from statistics import fmean, quantiles
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pearl.dsl.parser import read
from pearl.errors import PlanningError, UsageError
from pearl.evals import stats
from pearl.evals.log import EvalLog, EvalRecord, PlanShape
from pearl.evals.stats import Interval, McNemar
from pearl.llm import Usage

LONGEST = "longest"
MAJORITY = "majority"
BASELINES = (LONGEST, MAJORITY)


def baseline_records(records: Iterable[EvalRecord]) -> tuple[EvalRecord, ...]:
    """Records of the baselines for the samples of other records; empty unless all of them have options."""
    samples = {record.sample: record for record in records}
    if not samples or not all(r.options and r.gold is not None for r in samples.values()):
        return ()
    golds = Counter(record.gold for record in samples.values())
    made: list[EvalRecord] = []
    for name in BASELINES:
        for record in samples.values():
            sizes = [len(option) for option in record.options]
            if name == MAJORITY:
                sizes = [golds[i] for i in range(len(record.options))]
            best = [i for i, size in enumerate(sizes) if size == max(sizes)]
            made.append(
                EvalRecord(
                    sample=record.sample, method=name, status="answered", question=record.question,
                    document=record.document, subsets=record.subsets, options=record.options,
                    gold=record.gold, choice=best[0], score=(record.gold in best) / len(best),
                )
            )  # fmt: skip
    return tuple(made)


Cluster = Literal["sample", "document"]


class Score(Struct, frozen=True):
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

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON data, with fractions also in percent to one decimal."""
        return {**msgspec.to_builtins(self), "accuracy_pct": round(100 * self.accuracy.estimate, 1)}


class MethodComparison(Struct, frozen=True):
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
    n_tests: int = 1
    """Pairs compared on the subset; if there are several, report Holm's p values."""
    bootstrap_p_holm: float | None = None
    mcnemar_p_holm: float | None = None


def chance(records: Iterable[EvalRecord]) -> float | None:
    """Expected accuracy of guessing, per sample; None if a sample has no options."""
    sizes = [len(options) for _, options in {(r.sample, r.options) for r in records}]
    return fmean(1 / size for size in sizes) if sizes and all(sizes) else None


def is_below(score: Score, guess: float | None) -> bool:
    """Whether a method's interval lies below the accuracy of guessing."""
    return guess is not None and score.accuracy.high < guess


def scores(log: EvalLog, *, cluster: Cluster = "sample") -> list[Score]:
    """One score per method, for all samples and for each subset."""
    if not log.records:
        raise UsageError("the log has no records", help="run `pearl eval` again to resume it")
    return [
        score_of(method, subset or "all", records, cluster=cluster)
        for subset in (None, *log.subsets)
        for method in log.methods
        if (records := log.of(method, subset))
    ]


def baselines(log: EvalLog, *, cluster: Cluster = "sample") -> list[Score]:
    """The scores of the baselines, for all samples and each subset; [] unless all samples have options."""
    guesses = EvalLog(log.header, baseline_records(log.records))
    return scores(guesses, cluster=cluster) if guesses.records else []


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
        latency_p50_s=percentile(latencies, 50),
        latency_p95_s=percentile(latencies, 95),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """A percentile of at least one value, between the two nearest values."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _clusters(records: Sequence[EvalRecord], cluster: Cluster) -> list[str]:
    return [record.document if cluster == "document" else record.sample for record in records]


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
                f"sample '{record.sample}' has a different question in the other log",
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
    difference, p_value, mcnemar = stats.difference(ones, twos, clusters=clusters), None, None
    if n_clusters >= stats.MIN_CLUSTERS:
        p_value = stats.bootstrap_p(ones, twos, clusters=clusters)
    if is_independent and is_right_or_wrong and cluster == "sample":
        mcnemar = stats.mcnemar([one == 1.0 for one in ones], [two == 1.0 for two in twos])
    return MethodComparison(
        *names, subset, len(pairs), n_samples, n_clusters, difference, p_value, mcnemar
    )


def comparisons(log: EvalLog, *, cluster: Cluster = "sample") -> list[MethodComparison]:
    """Every pair of methods of a log, on all samples and on each subset."""
    return _compared(log, log, list(combinations(log.methods, 2)), cluster)


def across(
    first: EvalLog, second: EvalLog, *, cluster: Cluster = "sample"
) -> list[MethodComparison]:
    """Pair the methods of two logs by name; if they share no name, make all pairs."""
    common = [name for name in first.methods if name in second.methods]
    pairs = [(name, name) for name in common] or list(product(first.methods, second.methods))
    return _compared(first, second, pairs, cluster)


def _compared(
    first: EvalLog, second: EvalLog, pairs: Sequence[tuple[str, str]], cluster: Cluster
) -> list[MethodComparison]:
    subsets = [name for name in first.subsets if name in second.subsets]
    found = (
        compare(
            first.of(one, subset),
            second.of(two, subset),
            (one, two),
            subset=subset or "all",
            cluster=cluster,
        )
        for subset in (None, *subsets)
        for one, two in pairs
    )
    compared = [comparison for comparison in found if comparison is not None]
    by_subset = groupby(compared, key=lambda one: one.subset)
    return [one for _, group in by_subset for one in corrected(list(group))]


def corrected(found: Sequence[MethodComparison]) -> list[MethodComparison]:
    """Replace the p values of comparisons that test one question by Holm's."""
    raw = [(one.bootstrap_p, one.mcnemar and one.mcnemar.p_value) for one in found]
    by_test = []
    for values in zip(*raw, strict=True):
        adjusted = iter(stats.holm([value for value in values if value is not None]))
        by_test.append([None if value is None else next(adjusted) for value in values])
    return [
        replace(one, n_tests=len(found), bootstrap_p_holm=boot, mcnemar_p_holm=exact)
        for one, boot, exact in zip(found, *by_test, strict=True)
    ]


def served(log: EvalLog) -> list[str]:
    """The models that replied, as their servers name them, with fingerprint and the temperature that was sent."""
    found = {
        (call.model, call.fingerprint, call.temperature)
        for record in log.records
        for call in record.calls
    }
    return sorted(
        f"{model}{f' ({mark})' if mark else ''}, {'no temperature' if sent is None else f'temperature {sent:g}'}"
        for model, mark, sent in found
    )


def errors(log: EvalLog) -> list[tuple[str, int]]:
    """The five most frequent reasons of failures, with counts."""
    counts = Counter(record.error for record in log.records if record.error)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]


KINDS = ("right", "partly", "wrong", "unmapped", "undecided", "no plan", "failed")
"""Outcomes of a sample: full, partial or no score; no option named; undecided; no valid plan; another failure."""


class Outcomes(Struct, frozen=True):
    """The number of records of a method of each of `KINDS`."""

    method: str
    n: int
    n_of: dict[str, int]


class PlanFigures(Struct, frozen=True):
    """Figures of the plans of a method."""

    method: str
    n: int
    n_different: int
    steps: float
    calls: float
    depth: float
    width: float
    actions: float
    n_actions: int
    most_used: tuple[tuple[str, int], ...]


def outcomes(log: EvalLog) -> list[Outcomes]:
    """The outcomes of each method, in the order of the log."""
    counted = {method: Counter(map(_kind, log.of(method))) for method in log.methods}
    return [
        Outcomes(method, found.total(), {kind: found[kind] for kind in KINDS})
        for method, found in counted.items()
    ]


def _kind(record: EvalRecord) -> str:
    error = record.error or ""
    if error.startswith("undecided:"):
        return "undecided"
    if record.status == "failed":
        return "no plan" if error.startswith(PlanningError.__name__) else "failed"
    if record.is_unmapped:
        return "unmapped"
    return "right" if record.is_correct else "partly" if record.credit else "wrong"


def plan_figures(log: EvalLog) -> list[PlanFigures]:
    """The figures of each method whose records have plans."""
    shaped = {
        method: [(one.plan, one.shape) for one in log.of(method) if one.plan and one.shape]
        for method in log.methods
    }
    return [figures_of(method, plans) for method, plans in shaped.items() if plans]


def figures_of(method: str, plans: Sequence[tuple[str, PlanShape]]) -> PlanFigures:
    """The figures of one or more plans, from their shapes."""
    read_plans = [plan for text, _ in plans if (plan := read(text).plan) is not None]
    actions = [[step.action for step in plan.steps] for plan in read_plans]
    used = Counter(name for each in actions for name in each)
    shapes = [shape for _, shape in plans]
    return PlanFigures(
        method=method,
        n=len(plans),
        n_different=len({plan for plan, _ in plans}),
        steps=fmean(shape.n_steps for shape in shapes),
        calls=fmean(shape.n_calls for shape in shapes),
        depth=fmean(shape.depth for shape in shapes),
        width=fmean(shape.width for shape in shapes),
        actions=fmean(len(set(each)) for each in actions) if actions else 0.0,
        n_actions=len(used),
        most_used=tuple(used.most_common(5)),
    )
