"""`--data` and what belongs to it → samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.options import Command, with_options
from pearl.errors import DataError, UsageError, suggest

if TYPE_CHECKING:
    from pearl.data.samples import Sample


def data_options(command: Command) -> Command:
    """Everything `read_data` takes, but for the domain, which is a setting."""
    options = [
        click.option(
            "--data", type=click.Path(), metavar="FILE|NAME",
            help="Samples: JSONL, CSV, Parquet or a dataset, read as the domain reads them.",
        ),
        click.option("--split", metavar="NAME", help="Which part of a dataset."),
        click.option(
            "--column", "columns", multiple=True, metavar="FIELD=COLUMN",
            help="Which column of the data holds a field of a sample, as question=text.",
        ),
        click.option("--subset", metavar="NAME", help="Samples of this subset only, as hard."),
        click.option(
            "--limit", type=click.IntRange(min=1), metavar="N", help="The first N samples only.",
        ),
        click.option(
            "--allow-outside", is_flag=True,
            help="Rows may name documents outside the folder of their file.",
        ),
    ]  # fmt: skip
    return with_options(command, options)


def check_data(settings: dict[str, Any]) -> None:
    """Reject data options without `--data`."""
    said = {f"--{name}" for name in ("split", "subset", "limit") if settings[name] is not None}
    said |= {"--column"} if settings["columns"] else set()
    if settings["data"] is None and said:
        raise UsageError(f"{', '.join(sorted(said))} without --data", help="--data FILE")


def read_data(settings: dict[str, Any]) -> tuple[list[Sample], list[DataError]]:
    """The samples of `--data`, with an error for every invalid row."""
    found = list(open_samples(settings))
    samples = [one for one in found if not isinstance(one, DataError)]
    return samples, [one for one in found if isinstance(one, DataError)]


def open_samples(settings: dict[str, Any]) -> Iterator[Sample | DataError]:
    """As `read_data`, one by one in the order of the data."""
    from pearl.data.domains import Source, read_samples

    columns = dict(map(_column, settings["columns"]))
    source = Source(
        settings["data"], settings["split"], columns, allow_outside=settings["allow_outside"]
    )
    subset, limit = settings["subset"], settings["limit"]
    n_samples, subsets = 0, set[str]()
    for sample in read_samples(settings["domain"], source):
        if isinstance(sample, DataError):
            yield sample
            continue
        subsets |= sample.subsets
        if subset is None or subset in sample.subsets:
            yield sample
            n_samples += 1
            if n_samples == limit:
                return
    if subset is not None and subset not in subsets:
        help = suggest(subset, sorted(subsets), "subsets")
        raise UsageError(f"no sample is in subset '{subset}'", help=help)


def _column(said: str) -> tuple[str, str]:
    field, equals, column = said.partition("=")
    if not (field and equals and column):
        raise UsageError(f"--column {said}: not FIELD=COLUMN", help="--column question=text")
    return field.strip(), column.strip()
