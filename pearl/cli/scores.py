"""Scores and comparisons as tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from pearl.cli.conversations import print_conversations
from pearl.cli.tables import ends, figures, show
from pearl.cli.work import report_reasons
from pearl.evals import report, stats
from pearl.evals.report import letter_use
from pearl.evals.scorers import load_scorer

if TYPE_CHECKING:
    from rich.table import Table

    from pearl.evals.log import EvalLog
    from pearl.evals.report import Cluster, MethodComparison, Score


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
    _say(f"{header.data}: {', '.join(filter(None, facts))}")
    if guess is not None:
        _say(f"guessing gets {100 * guess:.1f} %; failed and unmapped count as wrong")
    if any(not record.options for record in log.records):
        about = load_scorer(header.scorer).DESCRIPTION
        _say(f"answers in words are scored by {header.scorer} ({about})")
    n = max(score.n_clusters for score in scores)
    if cluster == "document" or n < stats.MIN_CLUSTERS:
        few = ": too few for intervals that mean much" if n < stats.MIN_CLUSTERS else ""
        _say(f"intervals resample {cluster}s, {n} of them{few}")
    costs = [score.cost_usd for score in scores if score.subset == "all"]
    each = "tokens and USD are means of a record, s is the median"
    known = [cost for cost in costs if cost is not None]
    _say(f"{each}; all together: {sum(known):,.2f} USD" if known else each)
    is_graded = any(0 < record.score < 1 for record in log.records)
    baselines = report.baselines(log, cluster=cluster)
    if baselines:
        _say("longest (option) and majority (the most frequent letter) read nothing")
    for subset, group in groupby(scores, key=lambda score: score.subset):
        _say("")
        nothing = [each for each in baselines if each.subset == subset]
        show(_scores([*group, *nothing], subset, is_graded=is_graded))
    print_conversations(log)
    for score in scores:
        if report.is_below(score, report.chance(log.of(score.method, _subset(score)))):
            _say(f"{score.method} is below chance on {score.subset}: look at its records")
    uses = letter_use(log.records)
    if uses:
        _say("letters replied, and how many with that letter are right:")
    for use in uses:
        _say(f"  {use.method}: {use}")
        if use.is_biased:
            _say(f"{use.method} mostly replies one letter: it hardly reads the options")
    seeded = [score for score in scores if score.subset == "all" and len(score.by_seed) > 1]
    for score in seeded:
        shares = ", ".join(f"{100 * share:.1f}" for share in score.by_seed)
        _say(f"{score.method} by seed: {shares} %")
    found = [one for one in report.comparisons(log, cluster=cluster) if one.subset == "all"]
    if found:
        _say("")
        print_comparisons(found)
    report_reasons((record.error for record in log.records if record.error), n=5)


def _subset(score: Score) -> str | None:
    return None if score.subset == "all" else score.subset


def _scores(scores: Sequence[Score], subset: str, *, is_graded: bool) -> Table:
    costs = any(score.cost_usd is not None for score in scores)
    table = figures(
        subset, "score\n%" if is_graded else "accuracy\n%", "95 %", "right", "failed", "fell\nback", "un-\nmapped", "tokens",
        "s", *(["USD"] if costs else []),
    )  # fmt: skip
    for score in scores:
        cells = [
            score.method,
            f"{100 * score.accuracy.estimate:.1f}",
            ends(score.accuracy),
            f"{score.n_correct:,}/{score.n:,}",
            f"{score.n_failed:,}",
            f"{score.n_fell_back:,}",
            f"{score.n_unmapped:,}",
            f"{score.tokens_per_record:,.0f}",
            f"{score.latency_p50_s:.2f}",
        ]
        if costs:
            each = score.cost_per_record_usd
            cells.append("?" if each is None else f"{each:.4f}")
        table.add_row(*cells)
    return table


def print_comparisons(found: Sequence[MethodComparison]) -> None:
    """Paired differences in percentage points, with both tests; a table a subset."""
    for subset, group in groupby(found, key=lambda one: one.subset):
        table = figures(
            "paired" if subset == "all" else f"paired, {subset}", "n", "points", "95 %",
            "1st\nonly", "2nd\nonly", "McNemar\np", "bootstrap\np",
        )  # fmt: skip
        for one in group:
            test = one.mcnemar
            table.add_row(
                f"{one.first} - {one.second}",
                f"{one.n_samples:,}" + (f" ({one.n:,})" if one.n != one.n_samples else ""),
                f"{100 * one.difference.estimate:+.1f}",
                ends(one.difference),
                f"{test.n_first_only:,}" if test else "",
                f"{test.n_second_only:,}" if test else "",
                p_value(test.p_value if test else None),
                p_value(one.bootstrap_p),
            )
        show(table)


def p_value(value: float | None) -> str:
    """A p value as it is printed; "" for none."""
    if value is None:
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _say(text: str) -> None:
    click.echo(text)
