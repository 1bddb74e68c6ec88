"""The store on the command line: its options, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pearl import plugins

if TYPE_CHECKING:
    from pearl.runs.store import Store

__all__ = [
    "executor_options",
    "notice",
    "opened_folder",
    "run_options",
    "store_option",
    "written_store",
]

Command = TypeVar("Command", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    envvar="PEARL_STORE",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Where runs and replies are kept [default: pearl in $XDG_DATA_HOME or ~/.local/share].",
)


def run_options(command: Command) -> Command:
    """`--store`, `--fresh` and, for `pearl runs resume` alone, the hidden `--run`."""
    for option in (
        click.option("--run", hidden=True),
        click.option(
            "--fresh", is_flag=True, help="Start over: a new run, and replies asked for anew."
        ),
        store_option,
    ):
        command = option(command)
    return command


def executor_options(where: str, *, more: str, work: str) -> Callable[[Command], Command]:
    """`--executor`, `--max-errors` and `--shard`.

    Args:
        where: The help of `--executor`.
        more: What is begun no more after too many failures.
        work: What a shard is a part of.
    """
    options = (
        click.option(
            "--shard", metavar="I/N",
            help=f"Only part I of N of {work}, a run of its own; `pearl runs merge` unites them.",
        ),
        click.option(
            "--max-errors", type=click.IntRange(min=0), metavar="N",
            help=f"Begin no {more} once more than N have failed [default: go on].",
        ),
        click.option(
            "--executor", type=click.Choice(plugins.names("pearl.runs.executors")), default="local",
            show_default=True, help=where,
        ),
    )  # fmt: skip

    def add(command: Command) -> Command:
        for option in options:
            command = option(command)
        return command

    return add


def opened_folder(store: str | None) -> Path:
    """The folder that `--store` stands for, as an absolute path.

    Raises:
        StoreError: None is named and there is no home.
    """
    from pearl.runs.store import default_folder

    return (default_folder() if store is None else Path(store)).absolute()


def notice(line: str) -> None:
    """Print a notice to stderr."""
    click.echo(f"pearl: {line}", err=True)


@contextmanager
def written_store(store: str | None) -> Iterator[Store]:
    """The store that `--store` stands for, to be written; what is wrong with it goes to stderr.

    Raises:
        StoreError: It cannot be used.
    """
    from pearl.runs.session import opened_store

    with opened_store(opened_folder(store), notice) as opened:
        yield opened
