"""Lists of backends, servers with short names, and prices; only `served_models` and `running_servers` send requests."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl import plugins
from pearl.documents.tokens import known_window
from pearl.errors import PearlError, UsageError
from pearl.llm.backends import (
    ModelSettings,
    Provider,
    abilities_of,
    address_of,
    create_model,
    description_of,
    providers,
)
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.sessions import listed_window
from pearl.llm.prices import Price, read_prices
from pearl.plugins.extras import extras


class Served(Struct, frozen=True):
    """A model that a server lists."""

    id: str
    window: int | None
    is_told: bool
    price: Price | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; prices are in US dollars per million tokens."""
        return {
            "id": self.id,
            "window": self.window,
            "is_told": self.is_told,
            "price": self.price and self.price.to_dict(),
        }


class Running(Struct, frozen=True):
    """The models of a server on this machine, or why it did not list them."""

    name: str
    address: str
    models: tuple[Served, ...]
    failure: str = ""


def backend_rows() -> list[dict[str, Any]]:
    """Every backend with its abilities, as JSON data."""
    missing, rows = extras(), list[dict[str, Any]]()
    for name in plugins.names("pearl.llm.backends"):
        row: dict[str, Any] = {
            "name": name,
            "about": description_of(name),
            "address": address_of(name),
        }
        if (able := abilities_of(name)) is not None:
            told = ("takes", "extra", "key", "tokenizes", "embeddings")
            row |= {field: getattr(able, field) for field in told}
            row |= {"is_installed": not missing.get(able.extra), "key_is_set": key_is_set(able.key)}
            row["constrains"] = None if able.constrains is None else sorted(able.constrains.by)
        rows.append(row)
    return rows


def key_is_set(variable: str) -> bool:
    """Whether an environment variable contains a key."""
    return bool(os.environ.get(variable, "").strip())


async def served_models(spec: str, settings: ModelSettings | None = None) -> list[Served]:
    """The models that a server lists; listing is free of charge."""
    backend, _, name = spec.partition(":")
    # With a given window, the server is not asked for one; the name is not sent.
    settings = replace(settings or ModelSettings(), window=1)
    model: Any = None if address_of(backend) is None else create_model(f"{backend}:any", settings)
    if not hasattr(model, "listing"):
        create_model(spec, settings)  # Raises an error if there is no such backend or file
        raise UsageError(
            f"{backend} has no server that lists models", help="pearl models lists the servers"
        )
    try:
        listed = await model.listing()
    finally:
        await model.aclose()
    prices = read_prices()
    served = []
    for each in listed:
        if name in each.id:
            told = listed_window(each)
            window = told or known_window(each.id)
            served.append(Served(each.id, window, told is not None, prices.of(each.id)))
    return served


async def running_servers() -> list[Running]:
    """The servers on this machine with their models, queried concurrently and without a key."""
    local = [each for each in providers().values() if Endpoint(each.url, "", "").is_local]
    ollama = Provider("ollama", "Ollama", address_of("ollama") or "")
    return await asyncio.gather(*map(_running, [ollama, *local]))


async def _running(server: Provider) -> Running:
    try:
        models = await served_models(f"{server.name}:", ModelSettings(server.url, api_key_env=""))
    except PearlError as error:
        return Running(server.name, server.url, (), error.message)
    return Running(server.name, server.url, tuple(models))
