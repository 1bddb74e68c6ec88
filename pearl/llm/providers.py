"""Servers with a short name, as `providers.toml` lists them: `anthropic:NAME` is `openai:NAME` there, with its key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with a short name."""

    name: str
    about: str
    url: str
    key: str = ""
    server: str | None = None


@cache
def providers() -> Mapping[str, Provider]:
    """Every server that has a short name, by that name."""
    text = Path(__file__).with_name("providers.toml").read_text(encoding="utf-8")
    return {name: Provider(name, **table) for name, table in tomllib.loads(text).items()}
