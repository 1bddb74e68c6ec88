"""Options of runs: their limits and prices, the store, the executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pearl import plugins
from pearl.cli.options import price_option, with_options
from pearl.cli.writing import force_option

Command = TypeVar("Command", bound=Callable[..., Any])

store_option = click.option(
    "--store", envvar="PEARL_STORE", type=click.Path(file_okay=False), metavar="FOLDER",
    help="Where runs and replies are kept [default: pearl in $XDG_DATA_HOME or ~/.local/share].",
)  # fmt: skip


def limit_options(command: Command) -> Command:
    """Limits of a run, prices, and `--telemetry`."""
    options = [
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
            "--telemetry", envvar="PEARL_TELEMETRY", is_flag=True,
            help="Send spans to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names; extra telemetry.",
        ),
    ]  # fmt: skip
    return with_options(command, options)


def budget_options(command: Command) -> Command:
    """Limits of a run, prices, and `--dry-run`."""
    options = [
        click.option(
            "--dry-run", is_flag=True,
            help="Print what it takes (calls, tokens, money, time) and ask no model.",
        ),
        limit_options,
        click.option(
            "--seconds-per-call", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
            help="How long a call takes, for the time of --dry-run.",
        ),
    ]  # fmt: skip
    return with_options(command, options)


def run_options(command: Command) -> Command:
    """`--store`, `--fresh` and, for `pearl runs resume` alone, the hidden `--run`."""
    fresh = click.option(
        "--fresh", is_flag=True, help="Start over: a new run, and replies asked for anew."
    )
    return with_options(command, [store_option, fresh, click.option("--run", hidden=True)])


def executor_options(where: str, *, more: str, work: str) -> Callable[[Command], Command]:
    """`--executor`, `--max-errors` and `--shard`."""
    options = [
        click.option(
            "--executor", type=click.Choice(plugins.names("pearl.runs.executors")), default="local",
            show_default=True, help=where,
        ),
        click.option(
            "--max-errors", type=click.IntRange(min=0), metavar="N",
            help=f"Begin no {more} once more than N have failed [default: go on].",
        ),
        click.option(
            "--shard", metavar="I/N",
            help=f"Only part I of N of {work}, a run of its own; `pearl runs merge` unites them.",
        ),
    ]  # fmt: skip
    return lambda command: with_options(command, options)


def unit_options(command: Command) -> Command:
    """What `run_units` takes, but for the model's: limits, store, executor, shard, `--force`."""
    where = "Where it runs: here, or on a Ray cluster; batch is for `execute` only."
    executor = executor_options(where, more="more", work="the work")
    return with_options(command, [budget_options, run_options, executor, force_option])
