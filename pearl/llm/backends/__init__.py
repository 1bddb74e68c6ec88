"""`BACKEND:NAME` → `Model`. Every other module of this folder is one backend.

A short name of a server in `providers.toml` stands for the backend `openai` at its address.

A backend module has `DESCRIPTION` (one line) and `create(name, settings) -> Model`. Backends raise
`ModelError` for every unusable reply; `middleware` retries.

A backend with a server also has `address(settings) -> str`, "" for the vendor's own. It may have
`ADDRESS_VARIABLE`, the environment variable for the address, and `key_variable(url, is_named=...)
-> str`, the default variable of the key for a server, "" for none. Any may have `ABILITIES`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from pearl import plugins
from pearl.errors import UsageError, did_you_mean
from pearl.llm import Constrains, Model


class ModelSettings(Struct, frozen=True):
    """Settings of a backend, with the meaning they have in `pearl.llm.client.ClientSettings`."""

    base_url: str | None = None
    timeout_s: float = 600.0
    window: int | None = None
    server: str | None = None
    api_key_env: str | None = None
    is_asked: bool = True
    embeddings: str | None = None


class Abilities(Struct, frozen=True):
    """Arguments and capabilities of a backend, for listings.

    Attributes:
        takes: The argument after the colon; "" for none.
        constrains: As `Model.constrains`; None if it depends on the kind of the server.
        extra: The extra of the package that it needs; "" for none.
        key: The environment variable of its key; "" for none.
        tokenizes: Whether the model's own tokenizer counts tokens; None if it depends on the server.
        embeddings: Whether it compares texts by the vectors of `--embeddings`.
    """

    takes: str
    constrains: Constrains | None = field(default_factory=Constrains)
    extra: str = ""
    key: str = ""
    tokenizes: bool | None = False
    embeddings: bool = False


class Backend(Protocol):
    """The interface of a backend module."""

    DESCRIPTION: str

    def create(self, name: str, settings: ModelSettings) -> Model:
        """Create the model of a name, which may be ""; raise a `UsageError` if there is none."""


CONTRACT = Backend


def backend_names() -> tuple[str, ...]:
    """Names allowed before the colon: backends, and short names of servers."""
    return (*plugins.names(__name__), *providers())


def description_of(spec: str) -> str:
    """One-line description of a backend."""
    return str(_optional(spec, "DESCRIPTION"))


def abilities_of(spec: str) -> Abilities | None:
    """The abilities of a backend; None if it does not define them."""
    abilities: Abilities | None = _optional(spec, "ABILITIES")
    return abilities


def address_of(spec: str, settings: ModelSettings | None = None) -> str | None:
    """Address of a model's server; "" for the backend's default, None for no server."""
    address = _optional(spec, "address")
    return None if address is None else str(address(settings or ModelSettings()))


def address_variable(spec: str) -> str:
    """The environment variable with the address of a model's server; "" if it is not set."""
    variable: str = _optional(spec, "ADDRESS_VARIABLE") or ""
    return variable if variable and os.environ.get(variable, "").strip() else ""


def default_key_variable(spec: str, url: str) -> str | None:
    """The default key variable of a server; "" for none, None if a key is sent only on request."""
    variable = _optional(spec, "key_variable")
    return None if variable is None else str(variable(url, is_named=False))


def own_key_variable(spec: str) -> str | None:
    """The environment variable of the backend's own key; None if the backend has none, or it is not set."""
    abilities = abilities_of(spec)
    variable = abilities.key if abilities else _optional(spec, "key")
    return variable if variable and os.environ.get(variable, "").strip() else None


def _optional(spec: str, name: str) -> Any:
    """An attribute of a backend module; None if the module does not define it."""
    return getattr(_backend(spec.partition(":")[0]), name, None)


def _backend(name: str) -> Any:
    """The backend module, or the server with this short name; None if unknown."""
    return plugins.load(__name__, name) if plugins.exists(__name__, name) else providers().get(name)


def create_model(spec: str, settings: ModelSettings | None = None) -> Model:
    """Create the model of `BACKEND` or `BACKEND:NAME`."""
    backend, _, name = spec.partition(":")
    known = backend_names()
    if backend not in known:
        if close := did_you_mean(backend, known):
            help = f"did you mean '{close}{':' + name if name else ''}'?"
        else:
            guess = "" if name else f"did you mean 'openai:{backend}'? "
            help = f"{guess}backends: {', '.join(known)}"
        raise UsageError(f"unknown model '{spec}'", help=help)
    module: Backend = _backend(backend)
    return module.create(name, settings or ModelSettings())


class Provider(Struct, frozen=True):
    """A server with a short name: the backend `openai` at its address.

    Attributes:
        server: The kind of the server; `hosted` for one without special features.
        fields: Additional fields of every request.
        names: The server's names of request parameters, by their names in the API.
    """

    name: str
    about: str
    url: str
    key: str = ""
    server: str = "hosted"
    fields: Mapping[str, Any] = {}
    names: Mapping[str, str] = {}

    def create(self, name: str, settings: ModelSettings) -> Model:
        """Create the model `name` of this server; `settings` may override the address."""
        from pearl.llm.backends.openai import servers

        url, key = self.address(settings), settings.api_key_env
        own_settings = replace(
            settings,
            base_url=url,
            api_key_env=self.key_variable(url) if key is None else key,
        )
        kind = servers.load(self.server)
        title = self.about if self.server == "hosted" else kind.title
        server = replace(kind, title=title, fields=self.fields, names=self.names)
        model: Model = _backend("openai").create_named(self.name, name, own_settings, server)
        return model

    def address(self, settings: ModelSettings) -> str:
        """The address of the server."""
        return settings.base_url or self.url

    def key_variable(self, url: str, *, is_named: bool = True) -> str:
        """The variable of this server's key; for another address, that of the `openai` backend."""
        from pearl.llm.backends.openai.endpoint import ANY_KEY, key_variable

        variable = key_variable(url, is_named=is_named)
        is_own = url.rstrip("/") == self.url and variable != ANY_KEY
        return self.key if is_own else variable


@cache
def providers() -> Mapping[str, Provider]:
    """The servers with a short name, by name."""
    text = Path(__file__).parent.with_name("providers.toml").read_text(encoding="utf-8")
    return {name: Provider(name, **table) for name, table in tomllib.loads(text).items()}
