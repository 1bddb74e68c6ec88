"""`pearl doctor`: whether the model can be reached, and what is installed and kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from pearl.cli.options import as_json, setting_options
from pearl.cli.run_options import store_option
from pearl.errors.escaping import to_json

_MARKS = {"ok": "ok", "missing": "-", "failed": "FAILED"}


@click.command()
@setting_options("model", "base_url", "api_key_env", "server", "window", "timeout_s")
@store_option
@as_json
def command(store: str | None, as_json: bool, **settings: Any) -> int:
    """Look whether PEARL works here: model, keys by name, extras, weights, store, settings.

    Nothing is spent: a server is asked for the list of its models only. Exit code 1 if anything
    that is needed does not work.
    """
    from pearl.cli.checks import run_checks

    checks = list(run_checks(settings, store))
    if as_json:
        click.echo(to_json([asdict(check) for check in checks], indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{_MARKS[check.status]:<6} {check.name:<{width}}  {check.about}")
            if check.help:
                click.echo(f"{'':<{width + 9}}{check.help}")
    return 1 if any(check.status == "failed" for check in checks) else 0
