"""`pearl models`: the available models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from pearl import plugins
from pearl.cli.options import Command, as_json, prices_option, setting_options
from pearl.cli.terminal import notice
from pearl.documents.tokens import known_window, known_windows
from pearl.errors.escaping import to_json, visible
from pearl.llm.backends import ModelSettings, providers
from pearl.llm.backends.openai import servers
from pearl.llm.overview import Served, backend_rows, key_is_set
from pearl.llm.prices import read_prices

EMBEDDERS = "pearl.llm.embedders"


@click.command(cls=Command)
@click.argument("spec", default="", metavar="[SERVER:[NAME]]")
@setting_options("base_url", "api_key_env")
@prices_option
@as_json
def command(as_json: bool, spec: str, prices: str | None, **settings: Any) -> None:
    """List backends, servers with a short name, prices and windows.

    With SERVER, it lists the models of that server. SERVER is a backend or a short name with its colon: vllm:, openai:, anthropic:. Listing its
    models costs nothing; NAME selects models whose names contain it. The window of a model is
    the one that the server reports, else the one known for that name.
    """
    from pearl.llm.overview import served_models

    data: Any
    if spec:
        models = asyncio.run(served_models(spec, ModelSettings(**settings)))
        data, lines = [model.to_dict() for model in models], served_lines(models)
        if not models:
            notice(f"{spec} lists no models")
    else:
        data = overview(prices)
        lines = overview_lines(data)
    if as_json:
        click.echo(to_json(data, indent=2))
    else:
        for line in lines:
            click.echo(line)


def overview(prices_file: str | None) -> dict[str, Any]:
    """The overview as JSON data."""
    prices = read_prices(prices_file)
    return {
        "backends": backend_rows(),
        "servers": [
            {**asdict(each), "key_is_set": key_is_set(each.key)} for each in providers().values()
        ],
        "server_kinds": [
            {
                "name": name,
                "title": kind.title,
                "constrains": sorted(kind.by),
                "tokenizes": bool(kind.tokenizes),
            }
            for name, kind in ((name, servers.load(name)) for name in servers.names())
        ],
        "embeddings": [
            {"name": name, "about": plugins.load(EMBEDDERS, name).DESCRIPTION}
            for name in plugins.names(EMBEDDERS)
        ],
        "prices": {
            "as_of": prices.as_of.isoformat(),
            "sources": {vendor: to_builtins(source) for vendor, source in prices.sources.items()},
            "usd_per_million": {
                name: price.to_dict() for name, price in sorted(prices.by_beginning.items())
            },
        },
        "windows": dict(known_windows()),
    }


def overview_lines(data: dict[str, Any]) -> Iterator[str]:
    """The overview as text, under headings."""
    yield "Backends: --model NAME, or NAME:MODEL; --json says what each can do"
    for row in data["backends"]:
        yield f"  {row['name']:<13} {row['about']}{_key(row.get('key') or '')}"
        extra = row.get("extra")
        if extra and not row["is_installed"]:
            yield f"  {'':<13} needs the extra {extra}, which is not installed"
    yield "\nServers with a short name: --model NAME:MODEL"
    for row in data["servers"]:
        yield f"  {row['name']:<13} {row['about']}: {row['url']}{_key(row['key'])}"
    yield "\nKinds of servers, recognised by themselves or by --server"
    for row in data["server_kinds"]:
        held = " and ".join(row["constrains"])
        told = f"replies constrained by {held}" if held else "no constraints"
        yield f"  {row['name']:<13} {row['title']}: {told}"
    yield "\nEmbeddings: --embeddings NAME, or NAME:MODEL"
    yield from (f"  {row['name']:<13} {row['about']}" for row in data["embeddings"])
    as_of, sources, prices = data["prices"].values()
    yield f"\nPrices of {as_of}, US dollars per million tokens; all of a model: --json"
    yield from (f"  {vendor}: {source['at']}" for vendor, source in sources.items())
    width = max(map(len, prices), default=0)
    for name, price in prices.items():
        window = known_window(name)
        told = "" if window is None else f"window {window:,}"
        read, written = f"{price['input_usd']:g}", f"{price['output_usd']:g}"
        yield f"  {name:<{width}}  input {read:<5} output {written:<5} {told}".rstrip()
    yield "\nModels of a server: pearl models NAME: [--base-url URL]; those of this machine: pearl doctor"


def _key(variable: str) -> str:
    is_set = " (set)" if key_is_set(variable) else ""
    return f", key in {variable}{is_set}" if variable else ""


def served_lines(models: Sequence[Served]) -> Iterator[str]:
    """The models of a server, one per line."""
    width = min(60, max((len(visible(model.id)) for model in models), default=0))
    for model in models:
        window = ""
        if model.window is not None:
            window = f"window {model.window:,}{'' if model.is_told else ' (by its name)'}"
        price = "" if model.price is None else f"{model.price}"
        told = ", ".join(filter(None, [window, price]))
        yield f"{visible(model.id):<{width}}  {told}".rstrip()
