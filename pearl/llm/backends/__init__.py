"""`BACKEND:NAME` → `Model`. Every other module of this folder is one backend.

A backend module has `DESCRIPTION` (one line) and `create(name, settings) -> Model`; `NAME` of
`--model BACKEND:NAME` is passed through. Backends raise `ModelError`, of the right kind, for
everything that is not a usable reply; they never retry (`middleware` does).

One that asks a server has, too, `address(settings) -> str`: where that is, "" for its maker's own. It may
have `ADDRESS_VARIABLE`, the environment variable that says so, and `key_variable(url, is_named=...) -> str`:
the variable whose key goes to a server where no other is said, "" for none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Protocol

from pearl import plugins
from pearl.errors import UsageError, did_you_mean
from pearl.llm import Model

__all__ = [
    "CONTRACT",
    "Backend",
    "ModelSettings",
    "address_of",
    "address_variable",
    "create_model",
    "default_key_variable",
]


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a backend may be told.

    Attributes:
        base_url: Where the server is; None for the backend's own place.
        timeout_s: Seconds that one call may take in all.
        window: Tokens of the window, where the user knows better.
        server: Kind of the server, as `pearl.llm.backends.openai.servers` names them; None to find out.
        api_key_env: Name of the environment variable whose key is sent; "" to send none, None for
            `PEARL_API_KEY`, else `OPENAI_API_KEY`.
        is_asked: Whether anything is sent; if not, no key is needed.
    """

    base_url: str | None = None
    timeout_s: float = 600.0
    window: int | None = None
    server: str | None = None
    api_key_env: str | None = None
    is_asked: bool = True


class Backend(Protocol):
    """What a module of this folder looks like to its users."""

    DESCRIPTION: str

    def create(self, name: str, settings: ModelSettings) -> Model:
        """The model of that name, which may be "".

        Raises:
            UsageError: There is none of that name, or it cannot be set up.
        """
        ...


CONTRACT = Backend


def address_of(spec: str, settings: ModelSettings | None = None) -> str | None:
    """Where the server of a model is; "" for the backend's own place, None where there is no server.

    Args:
        spec: `BACKEND` or `BACKEND:NAME`; what names no backend has no server.
        settings: As in `create_model`.
    """
    address = _optional(spec, "address")
    return None if address is None else str(address(settings or ModelSettings()))


def address_variable(spec: str) -> str:
    """The environment variable that says where the server of a model is; "" where none does."""
    variable: str = _optional(spec, "ADDRESS_VARIABLE") or ""
    return variable if variable and os.environ.get(variable, "").strip() else ""


def default_key_variable(spec: str, url: str) -> str | None:
    """The environment variable whose key goes to a server that the user has not named; "" for no key.

    Args:
        spec: As in `address_of`.
        url: Of the server.

    Returns:
        None for a backend that sends no key unless it is told which.

    Raises:
        UsageError: `url` is not the address of a server.
    """
    variable = _optional(spec, "key_variable")
    return None if variable is None else str(variable(url, is_named=False))


def _optional(spec: str, name: str) -> Any:
    """What a backend may have, or None; what names no backend has nothing."""
    backend = spec.partition(":")[0]
    if not plugins.is_there(__name__, backend):
        return None
    return getattr(plugins.load(__name__, backend), name, None)


def create_model(spec: str, settings: ModelSettings | None = None) -> Model:
    """The model that `BACKEND` or `BACKEND:NAME` stands for.

    Raises:
        UsageError: There is no such backend, or the backend cannot be set up.
    """
    backend, _, name = spec.partition(":")
    known = plugins.names(__name__)
    if backend not in known:
        close = did_you_mean(backend, known)
        if close:
            help = f"did you mean '{close}{':' + name if name else ''}'?"
        elif not name:
            help = f"did you mean 'openai:{backend}'? Backends: {', '.join(known)}"
        else:
            help = f"backends: {', '.join(known)}"
        raise UsageError(f"unknown model '{spec}'", help=help)
    module: Backend = plugins.load(__name__, backend)
    return module.create(name, settings or ModelSettings())
