"""`pearl config`: which settings are in force and from where, and which folders are trusted."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pearl.cli import settings
from pearl.cli.options import CONFIG, as_json, server_notice
from pearl.cli.settings import NAME, SettingsFile, found_in, read_settings, settings_in_force
from pearl.errors import DataError


@click.group()
def command() -> None:
    """Show the settings in force, and say which folders may set them.

    What a pearl.toml in the working folder says of servers, models, libraries and domains holds
    once you trust the file, as it is now: changed or moved, it is a stranger's again.
    """


@command.command()
@as_json
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show every setting, where it is from, and which server is sent which key."""
    files = read_settings(ctx.meta.get(CONFIG))
    rows = settings_in_force(ctx, files)
    server = server_notice({row["setting"]: row["value"] for row in rows})
    if as_json:
        about = [{"path": str(f.path), "found": f.is_found, "trusted": f.is_trusted} for f in files]
        told = {"settings": rows, "files": about, "server": server}
        click.echo(json.dumps(told, indent=2, default=str))
        return
    for row in rows:
        value = "" if row["value"] is None else _shown(row["value"])
        click.echo(f"{row['setting']:<20} {value:<28} {row['from']}".rstrip())
    for file in files:
        click.echo(f"file: {file.path}{'' if file.is_trusted else ', not trusted'}", err=True)
    if server:
        click.echo(server, err=True)


@command.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
def trust(folder: str) -> None:
    """Let the pearl.toml of FOLDER set everything, as long as it stays as it is."""
    found = _found(folder)
    for name, value in found.values.items():
        click.echo(f"{name} = {_shown(value)}")
    settings.trust(found.path, found.content)
    click.echo(f"trusted: {found.path}", err=True)


@command.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False))
def untrust(folder: str) -> int:
    """Trust the pearl.toml of FOLDER no longer."""
    path = Path(folder).resolve() / NAME
    was_trusted = settings.untrust(path)
    click.echo(f"{'no longer' if was_trusted else 'was not'} trusted: {path}", err=True)
    return 0 if was_trusted else 1


def _found(folder: str) -> SettingsFile:
    found = found_in(Path(folder))
    if found is None:
        raise DataError(
            f"no {NAME} in this folder", path=Path(folder).absolute(), help="name its folder"
        )
    return found


def _shown(value: object) -> str:
    """ASCII JSON, because a file may contain control characters."""
    return json.dumps(value, default=str)
