"""Servers with a short name: `anthropic:NAME` is `openai:NAME` at that server's address, with its key.

`providers.toml` is the table. A provider has what `pearl.llm.backends` asks of a backend module with a server.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pearl.llm import Model
    from pearl.llm.backends import ModelSettings

__all__ = ["Provider", "providers"]


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with a short name.

    Attributes:
        name: What stands before the colon.
        about: Whose it is.
        url: Its OpenAI-compatible address.
        key: The environment variable of its key; "" for a server that needs none.
        server: Its kind; None to detect it.
    """

    name: str
    about: str
    url: str
    key: str = ""
    server: str | None = None

    def create(self, name: str, settings: ModelSettings) -> Model:
        """The model `name` of this server, or of one like it at the address in `settings`.

        Raises:
            UsageError: The name is empty, or the address is invalid.
            ModelError: The key is missing or invalid.
        """
        from pearl.llm.backends.openai import create_named

        url = self.address(settings)
        key = settings.api_key_env
        if key is None:
            key = self.key_variable(url)
        known = replace(
            settings, base_url=url, api_key_env=key, server=settings.server or self.server
        )
        return create_named(self.name, name, known)

    def address(self, settings: ModelSettings) -> str:
        """The address of the server."""
        return settings.base_url or self.url

    def key_variable(self, url: str, *, is_named: bool = True) -> str:
        """The variable of its key, which is sent to its own address only; elsewhere as `openai:` does."""
        from pearl.llm.backends.openai.endpoint import ANY_KEY, key_variable

        if url.rstrip("/") != self.url:
            return key_variable(url, is_named=is_named)
        return ANY_KEY if os.environ.get(ANY_KEY, "").strip() else self.key


@cache
def providers() -> Mapping[str, Provider]:
    """Every server that has a short name, by that name."""
    text = Path(__file__).with_name("providers.toml").read_text(encoding="utf-8")
    return {name: Provider(name, **table) for name, table in tomllib.loads(text).items()}
