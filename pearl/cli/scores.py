"""Scores and comparisons as tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from pearl.evals import report
from pearl.evals.stats import Interval

if TYPE_CHECKING:
    from rich.table import Table

    from pearl.evals.log import EvalLog
    from pearl.evals.report import Cluster, Comparison, Score

__all__ = ["print_comparisons", "print_scores"]

WIDTH = 120
"""Columns where stdout is no terminal, so that a file has whole lines."""


def print_scores(log: EvalLog, cluster: Cluster) -> None:
    """What every method reached, on all samples and on each subset, and how they compare."""
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
    for subset, group in groupby(scores, key=lambda score: score.subset):
        _say("")
        _show(_scores(list(group), subset))
    seeded = [score for score in scores if score.subset == "all" and len(score.by_seed) > 1]
    for score in seeded:
        shares = ", ".join(f"{100 * share:.1f}" for share in score.by_seed)
        _say(f"{score.method} by seed: {shares} %")
    found = [one for one in report.comparisons(log, cluster=cluster) if one.subset == "all"]
    if found:
        _say("")
        print_comparisons(found)
    for error, n in report.errors(log):
        click.echo(f"failed {n} times: {error}", err=True)


def _scores(scores: Sequence[Score], subset: str) -> Table:
    table = _table(subset)
    columns = (
        "accuracy %",
        "95 %",
        "right",
        "of",
        "failed",
        "fell back",
        "unmapped",
        "tokens",
        "s",
    )
    costs = any(score.cost_usd is not None for score in scores)
    for name in [*columns, *(["USD"] if costs else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for score in scores:
        cells = [
            score.method,
            f"{100 * score.accuracy.estimate:.1f}",
            _ends(score.accuracy),
            f"{score.n_correct:,}",
            f"{score.n:,}",
            f"{score.n_failed:,}",
            f"{score.n_fell_back:,}",
            f"{score.n_unmapped:,}",
            f"{score.tokens_per_record:,.0f}",
            f"{score.latency_p50_s:.2f}",
        ]
        if costs:
            cells.append("?" if score.cost_usd is None else f"{score.cost_usd:,.3f}")
        table.add_row(*cells)
    return table


def print_comparisons(found: Sequence[Comparison]) -> None:
    """Paired differences in percentage points, with both tests; a table a subset."""
    for subset, group in groupby(found, key=lambda one: one.subset):
        table = _table("paired" if subset == "all" else f"paired, {subset}")
        for name in ("n", "points", "95 %", "1st only", "2nd only", "McNemar p", "bootstrap p"):
            table.add_column(name, justify="right", no_wrap=True)
        for one in group:
            test = one.mcnemar
            table.add_row(
                f"{one.first} - {one.second}",
                f"{one.n:,}",
                f"{100 * one.difference.estimate:+.1f}",
                _ends(one.difference),
                f"{test.n_first_only:,}" if test else "",
                f"{test.n_second_only:,}" if test else "",
                _p(test.p_value) if test else "",
                _p(one.bootstrap_p),
            )
        _show(table)


def _table(head: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(head, no_wrap=True)
    return table


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _ends(interval: Interval) -> str:
    return f"{100 * interval.low:.1f}..{100 * interval.high:.1f}"


def _show(table: Table) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDTH
    Console(highlight=False, width=width).print(table)


def _say(text: str) -> None:
    click.echo(text)
