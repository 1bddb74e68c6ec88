"""How well confidence foretells correctness, as tables on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pearl.cli.tables import ends, figures, show
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from rich.table import Table

    from pearl.evals.log import EvalLog
    from pearl.evals.report import Bin, Kept

MAX_THRESHOLDS = 12
"""Lines of a table; of more thresholds the highest ones are shown."""


def print_calibrations(log: EvalLog) -> None:
    """Print the calibration of every method whose answers have a confidence; else nothing, or why."""
    from pearl.evals.report import MIN_ANSWERS, calibrations

    found = calibrations(log)
    if not found and log.header.n_plans > 1:
        click.echo(
            "\nconfidence: no answer has one; questions got one plan only, or plans that disagree"
        )
    for one in found:
        alone = f", {one.n_alone:,} of one plan only have none" if one.n_alone else ""
        few = f"; fewer than {MIN_ANSWERS}: too few for figures that mean much"
        click.echo(
            f"\n{one.method}: confidence of {counted(one.n, 'answer')}{alone}"
            f"{few if one.is_scarce else ''}"
        )
        click.echo(f"expected calibration error {100 * one.ece:.1f} %, Brier score {one.brier:.3f}")
        show(_reliability(one.bins))
        click.echo("")
        show(_kept(one.kept[:MAX_THRESHOLDS]))


def _reliability(bins: tuple[Bin, ...]) -> Table:
    table = figures("confidence", "mean\n%", "accuracy\n%", "95 %", "n")
    for each in bins:
        table.add_row(
            f"{100 * each.low:.0f}..{100 * each.high:.0f}",
            f"{100 * each.confidence:.1f}",
            f"{100 * each.accuracy.estimate:.1f}",
            ends(each.accuracy),
            f"{each.n:,}",
        )
    return table


def _kept(kept: tuple[Kept, ...]) -> Table:
    table = figures("kept from", "coverage\n%", "accuracy\n%", "95 %", "n")
    for each in kept:
        table.add_row(
            f"{100 * each.threshold:.1f}",
            f"{100 * each.coverage:.1f}",
            f"{100 * each.accuracy.estimate:.1f}",
            ends(each.accuracy),
            f"{each.n:,}",
        )
    return table
