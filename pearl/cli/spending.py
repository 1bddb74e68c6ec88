"""Options of budgets and forecasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pearl.cli.options import price_option

__all__ = ["budget_options"]

Command = TypeVar("Command", bound=Callable[..., Any])


def budget_options(command: Command) -> Command:
    """Limits of a run, prices, and `--dry-run`."""
    options = [
        click.option(
            "--dry-run", is_flag=True,
            help="Print what it takes (calls, tokens, money, time) and ask no model.",
        ),
        click.option(
            "--max-cost", type=click.FloatRange(min=0), metavar="USD",
            help="Start no call that could take the run's cost beyond this.",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=0), metavar="TOKENS",
            help="Start no call that could take the run's input and output tokens beyond this.",
        ),
        click.option(
            "--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
            help="Start no call after this, and end those that are under way then.",
        ),
        click.option(
            "--max-calls", type=click.IntRange(min=0), metavar="N",
            help="Start no more calls than this, failed ones included.",
        ),
        price_option,
        click.option(
            "--prices", envvar="PEARL_PRICES", type=click.Path(), metavar="FILE",
            help="TOML file of prices in place of the shipped one.",
        ),
        click.option(
            "--seconds-per-call", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
            help="How long a call takes, for the time of --dry-run.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command
