"""`pearl compare`: two logs → paired differences."""

from __future__ import annotations

import json

import click

from pearl.cli.options import as_json
from pearl.errors import UsageError


@click.command()
@click.argument("first", metavar="LOG")
@click.argument("second", metavar="LOG")
@click.option(
    "--by-document", is_flag=True, help="Intervals resample documents, not samples: more honest."
)
@as_json
def command(first: str, second: str, by_document: bool, as_json: bool) -> int:
    """Compare two logs of `pearl eval`, sample by sample.

    Methods of the same name are compared with each other; where there are none, each with each.
    """
    from pearl.cli.scores import print_comparisons
    from pearl.evals import report
    from pearl.evals.log import read_log

    logs = read_log(first), read_log(second)
    if logs[0] == logs[1]:
        click.echo("pearl: both logs are the same", err=True)
    found = report.across(*logs, cluster="document" if by_document else "sample")
    if not found:
        raise UsageError(
            "the logs have no sample in common", help="compare logs of the same data and seeds"
        )
    if as_json:
        click.echo(json.dumps([comparison.to_json() for comparison in found], indent=2))
        return 0
    if logs[0].header.data_sha256 != logs[1].header.data_sha256:
        click.echo("pearl: the logs are of different data; compared where both have it", err=True)
    for name in (
        "model",
        "mapper",
        "library",
        "bank",
        "n_actions",
        "nearest",
        "token_budget",
        "context",
    ):
        one, two = getattr(logs[0].header, name), getattr(logs[1].header, name)
        if one != two:
            click.echo(f"{name.replace('_', ' ')}: {one} | {two}")
    print_comparisons(found)
    return 0
