"""`pearl config`: the settings in force, their origins, and trust in folders."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pearl.cli import settings
from pearl.cli.options import CONFIG, as_json, server_notice
from pearl.cli.settings import NAME, found_in, read_settings, settings_in_force
from pearl.errors import DataError


@click.group()
def command() -> None:
    """Show the settings in force, and trust folders to set them.

    A pearl.toml in the working folder may set servers, models, libraries and domains once you trust
    the file. Trust ends when the file is changed or moved.
    """


@command.command()
@as_json
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show every setting with its origin, and the key of each server."""
    files = read_settings(ctx.meta.get(CONFIG))
    rows = settings_in_force(ctx, files)
    server = server_notice({row["setting"]: row["value"] for row in rows})
    if as_json:
        about = [{"path": str(f.path), "found": f.is_found, "trusted": f.is_trusted} for f in files]
        told = {"settings": rows, "files": about, "server": server}
        click.echo(json.dumps(told, indent=2, default=str))
        return
    for row in rows:
        value = "" if row["value"] is None else _format_value(row["value"])
        click.echo(f"{row['setting']:<20} {value:<28} {row['from']}".rstrip())
    for file in files:
        click.echo(f"file: {file.path}{'' if file.is_trusted else ', not trusted'}", err=True)
    if server:
        click.echo(server, err=True)


@command.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
def trust(folder: str) -> None:
    """Let the pearl.toml of FOLDER set everything until it is changed."""
    found = found_in(Path(folder))
    if found is None:
        raise DataError(
            f"no {NAME} in this folder", path=Path(folder).absolute(), help="name its folder"
        )
    for name, value in found.values.items():
        click.echo(f"{name} = {_format_value(value)}")
    settings.trust(found.path, found.content)
    click.echo(f"trusted: {found.path}", err=True)


@command.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
def untrust(folder: str) -> int:
    """Revoke the trust in the pearl.toml of FOLDER."""
    path = Path(folder).resolve() / NAME
    was_trusted = settings.untrust(path)
    click.echo(f"{'no longer' if was_trusted else 'was not'} trusted: {path}", err=True)
    return 0 if was_trusted else 1


def _format_value(value: object) -> str:
    """ASCII JSON, because a file may contain control characters."""
    return json.dumps(value, default=str)
