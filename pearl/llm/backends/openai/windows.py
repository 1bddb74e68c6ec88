"""Context windows that servers tell: in their lists of models, or, llama.cpp's, at `/props`.

A window that is told is that of the server as it was started, which no table of names can know. What
cannot be one is passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pearl.errors import ModelError
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.replies import Listed
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.session import LIST_TIMEOUT_S, HttpSession

FIELDS = (
    "max_model_len",  # vLLM, SGLang
    "context_length",  # OpenRouter, Together AI, Fireworks AI
    "context_window",  # Groq
    "max_context_length",  # Mistral AI
)

LEAST, MOST = 256, 10**8
"""Tokens that a window may have."""


def listed_window(model: Listed) -> int | None:
    """The window in tokens that a list tells of a model, the smallest where it tells several.

    Example:
        >>> listed_window(Listed(id="m", max_model_len=8192))
        8192
        >>> listed_window(Listed(id="m", context_window="large")) is None
        True
    """
    told = model.model_extra or {}
    meta = told.get("meta")
    of_llamacpp = meta.get("n_ctx") if isinstance(meta, dict) else None  # n_ctx_train is another
    windows = map(_window, [of_llamacpp, *(told.get(field) for field in FIELDS)])
    return min((window for window in windows if window is not None), default=None)


async def find_window(endpoint: Endpoint, server: Server | None) -> int | None:
    """The window in tokens that a server tells of a model; None if it tells none, or does not answer."""
    session = HttpSession(endpoint, LIST_TIMEOUT_S)
    session.connect()  # the import must not count towards the timeout
    try:
        listed = await session.listed()
        its_own = _its_own(listed, endpoint.model)
        if its_own is not None and (window := listed_window(its_own)) is not None:
            return window
        kind = server or servers.by_owner({str(model.owned_by) for model in listed})
        return await _window_of_props(endpoint) if kind and kind.tells_props else None
    except (StatusError, ModelError, ValueError, TimeoutError):
        return None
    finally:
        await session.aclose()


def beside(endpoint: Endpoint) -> Endpoint:
    """The same server without `/v1`, where kinds of servers have paths of their own."""
    parts = urlsplit(endpoint.url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return replace(endpoint, url=urlunsplit(parts._replace(path=path)))


def _its_own(listed: Sequence[Listed], name: str) -> Listed | None:
    """What the list says of a model; of the only one where that has another name."""
    found = [model for model in listed if model.id == name]
    return next(iter(found or (listed if len(listed) == 1 else ())), None)


async def _window_of_props(endpoint: Endpoint) -> int | None:
    """What llama.cpp says: the window of one of its slots."""
    session = HttpSession(beside(endpoint), LIST_TIMEOUT_S)
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            told = json.loads(await session.connect().get("/props"))
    except RecursionError:
        return None
    finally:
        await session.aclose()
    settings = told.get("default_generation_settings") if isinstance(told, dict) else None
    return _window(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _window(told: Any) -> int | None:
    is_number = isinstance(told, int) and not isinstance(told, bool)
    return told if is_number and LEAST <= told <= MOST else None
