"""`BACKEND:NAME` → `Model`. Every other module of this folder is one backend.

A backend module has `DESCRIPTION` (one line) and `create(name, settings) -> Model`; `NAME` of
`--model BACKEND:NAME` is passed through. Backends raise `ModelError`, of the right kind, for
everything that is not a usable reply; they never retry (`middleware` does). One that asks a server
has `address(settings) -> str`, too: where that is, "" for its maker's own.
"""

from __future__ import annotations

from dataclasses import dataclass

from pearl import plugins
from pearl.errors import UsageError, did_you_mean
from pearl.llm import Model

__all__ = ["ModelSettings", "address_of", "create_model"]


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
    """

    base_url: str | None = None
    timeout_s: float = 600.0
    window: int | None = None
    server: str | None = None
    api_key_env: str | None = None


def address_of(spec: str, settings: ModelSettings | None = None) -> str | None:
    """Where the server of a model is; "" for the backend's own place, None where there is no server.

    Args:
        spec: `BACKEND` or `BACKEND:NAME`; what names no backend has no server.
        settings: As in `create_model`.
    """
    backend = spec.partition(":")[0]
    if not plugins.exists(__name__, backend):
        return None
    address = getattr(plugins.load(__name__, backend), "address", None)
    return None if address is None else str(address(settings or ModelSettings()))


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
    module = plugins.load(__name__, backend)
    model: Model = module.create(name, settings or ModelSettings())
    return model
