"""Scores and comparisons as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

import click

from pearl.cli.run_commands import report_reasons
from pearl.cli.terminal import print_table
from pearl.evals import report, stats
from pearl.evals.log import EvalLog
from pearl.evals.report import KINDS, Cluster, MethodComparison, Score, outcomes, plan_figures
from pearl.evals.scorers import load_scorer
from pearl.evals.stats import Interval
from pearl.llm.prices import money


def print_scores(log: EvalLog, cluster: Cluster) -> None:
    """Print the scores of every method, on all samples and on each subset, and comparisons."""
    scores = report.scores(log, cluster=cluster)
    header = log.header
    guess = report.chance(log.records)
    facts = [f"{header.n_samples} samples", header.model]
    if header.library:
        facts.append(f"library {header.library} ({header.n_actions} actions)")
    if header.mapper:
        facts.append(f"mapped by {header.mapper}")
    click.echo(f"{header.data}: {', '.join(filter(None, facts))}")
    if replied := report.served(log):
        click.echo(f"replies of {'; '.join(replied)}")
    if guess is not None:
        click.echo(f"guessing gets {100 * guess:.1f} %; failed and unmapped count as wrong")
    if any(not record.options for record in log.records):
        about = load_scorer(header.scorer).DESCRIPTION
        click.echo(f"answers in words are scored by {header.scorer} ({about})")
    n = max(score.n_clusters for score in scores)
    if cluster == "document" or n < stats.MIN_CLUSTERS:
        few = ": too few for reliable intervals" if n < stats.MIN_CLUSTERS else ""
        click.echo(f"intervals resample {cluster}s, {n} of them{few}")
    costs = [score.cost_usd for score in scores if score.subset == "all"]
    each = "tokens and cost are means per record, seconds (s) are the median"
    known = [cost for cost in costs if cost is not None]
    click.echo(f"{each}; all together: {money(sum(known))}" if known else each)
    is_graded = any(0 < record.score < 1 for record in log.records)
    baselines = report.baselines(log, cluster=cluster)
    if baselines:
        click.echo(
            "baselines without reading: longest (option) and majority (the most frequent letter)"
        )
    for name, group in groupby(scores, key=lambda score: score.subset):
        click.echo("")
        nothing = [each for each in baselines if each.subset == name]
        _print_scores([*group, *nothing], name, is_graded=is_graded)
    _print_outcomes(log)
    for score in scores:
        subset = None if score.subset == "all" else score.subset
        if report.is_below(score, report.chance(log.of(score.method, subset))):
            click.echo(f"{score.method} is below chance on {score.subset}: look at its records")
    seeded = [score for score in scores if score.subset == "all" and len(score.by_seed) > 1]
    for score in seeded:
        shares = ", ".join(f"{100 * share:.1f}" for share in score.by_seed)
        click.echo(f"{score.method} by seed: {shares} %")
    found = [one for one in report.comparisons(log, cluster=cluster) if one.subset == "all"]
    if found:
        click.echo("")
        print_comparisons(found)
    report_reasons((record.error for record in log.records if record.error), n=5)


def _print_scores(scores: Sequence[Score], subset: str, *, is_graded: bool) -> None:
    costs = any(score.cost_usd is not None for score in scores)

    def row(score: Score) -> Iterator[Cell]:
        yield from (score.method, percent(score.accuracy.estimate), ends(score.accuracy))
        yield from (f"{score.n_correct:,}/{score.n:,}", score.n_failed, score.n_fell_back)
        yield from (score.n_unmapped, f"{score.tokens_per_record:,.0f}")
        yield f"{score.latency_p50_s:.2f}"
        if costs:
            cost = score.cost_per_record_usd
            yield "?" if cost is None else money(cost)

    heads = (
        subset, "score\n%" if is_graded else "accuracy\n%", "95 %", "right", "failed", "fell\nback",
        "un-\nmapped", "tokens", "s", *(["cost"] if costs else []),
    )  # fmt: skip
    print_table(heads, map(row, scores))


def print_comparisons(found: Sequence[MethodComparison]) -> None:
    """Print paired differences in percentage points, with both tests, one table per subset."""
    for subset, group in groupby(found, key=lambda one: one.subset):
        name, rows = "paired" if subset == "all" else f"paired, {subset}", list(group)
        print_table(
            (name, "n", "points", "95 %", "1st\nonly", "2nd\nonly", "McNemar\np", "bootstrap\np"),
            map(_compared, rows),
        )
        if rows[0].n_tests > 1 and any(one.mcnemar or one.bootstrap_p is not None for one in rows):
            click.echo(f"p: Holm over {rows[0].n_tests} pairs")


def _compared(one: MethodComparison) -> Iterator[Cell]:
    test = one.mcnemar
    yield f"{one.first} - {one.second}"
    yield f"{one.n_samples:,}" + (f" ({one.n:,})" if one.n != one.n_samples else "")
    yield from (f"{100 * one.difference.estimate:+.1f}", ends(one.difference))
    yield from (test.n_first_only, test.n_second_only) if test else (None, None)
    yield from (p_value(one.mcnemar_p_holm), p_value(one.bootstrap_p_holm))


def _print_outcomes(log: EvalLog) -> None:
    """Print tables of the outcomes and plans of a log."""
    click.echo("")
    print_table(
        ("outcomes", *(kind.replace(" ", "\n") for kind in KINDS)),
        ((one.method, *(one.n_of[kind] for kind in KINDS)) for one in outcomes(log)),
    )
    plans = plan_figures(log)
    if plans:
        click.echo("")
    print_table(
        ("plans", "n", "different", "steps", "calls", "depth", "width", "actions", "in all"),
        ((one.method, one.n, one.n_different,
          *(f"{n:.1f}" for n in (one.steps, one.calls, one.depth, one.width, one.actions)), one.n_actions)
         for one in plans),
    )  # fmt: skip
    for one in plans:
        used = ", ".join(f"{name} {n:,}" for name, n in one.most_used)
        click.echo(f"{one.method}, most used: {used}")


Cell: TypeAlias = str | int | None


def p_value(value: float | None) -> str:
    """A p value as text; "" for none."""
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def percent(share: float | None) -> str:
    """A share in percent; "" for none."""
    return "" if share is None else f"{100 * share:.1f}"


def ends(interval: Interval) -> str:
    """The ends of an interval, in percent."""
    return f"{percent(interval.low)}..{percent(interval.high)}"
