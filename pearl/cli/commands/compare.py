"""`pearl compare`: the paired differences of two logs."""

from __future__ import annotations

import json

import click
import msgspec

from pearl.cli.options import as_json, by_document_option
from pearl.cli.terminal import notice
from pearl.errors import UsageError

_FACTS = ("model", "library", "bank", "nearest", "token_budget", "context", "seeds")
"""Header fields that are reported if they differ between two logs."""


@click.command()
@click.argument("first", metavar="LOG")
@click.argument("second", metavar="LOG")
@by_document_option
@as_json
def command(first: str, second: str, by_document: bool, as_json: bool) -> int:
    """Compare two logs of `pearl eval`, sample by sample.

    Methods of the same name are compared; if the logs share none, all pairs of methods.
    """
    from pearl.cli.scores import print_comparisons
    from pearl.evals import report
    from pearl.evals.log import read_log

    logs = read_log(first), read_log(second)
    if logs[0] == logs[1]:
        notice("both logs are the same")
    found = report.across(*logs, cluster="document" if by_document else "sample")
    if not found:
        raise UsageError("the logs share no sample", help="compare logs of the same data and seeds")
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=2))
        return 0
    samples = [{record.sample for record in log.records} for log in logs]
    if samples[0] != samples[1]:
        n = len(samples[0] & samples[1])
        notice(f"compared on the {n} samples that both logs have")
    for place, name, log in (("first", first, logs[0]), ("second", second, logs[1])):
        reached = ", ".join(
            f"{method} {100 * report.score_of(method, 'all', log.of(method)).accuracy.estimate:.1f} %"
            for method in log.methods
        )
        click.echo(f"{place}: {name}: {reached}")
    for name in _FACTS:
        one, two = getattr(logs[0].header, name), getattr(logs[1].header, name)
        if one != two and None not in (one, two) and "" not in (one, two):
            click.echo(f"{name.replace('_', ' ')}: {one} | {two}")
    print_comparisons(found)
    return 0
