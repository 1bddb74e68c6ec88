"""A function from messages to text as a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction
from typing import Any
from uuid import uuid4

from pearl.errors import ModelError, PearlError
from pearl.llm import Completion, ModelBase, Request

Function = Callable[[list[dict[str, str]]], str | Awaitable[str]]
"""Messages, each with a `role` and its `content` → the reply."""


class FunctionModel(ModelBase):
    """Asks a function, in a thread if it is not asynchronous; its identity is new each time, as nobody knows what replies depend on."""

    def __init__(self, function: Function) -> None:
        self.name = f"function:{getattr(function, '__qualname__', type(function).__name__)}"
        self.identity = f"{self.name} {uuid4().hex}"
        self._function: Callable[..., Any] = function
        self._is_async = iscoroutinefunction(function) or iscoroutinefunction(
            type(function).__call__
        )

    async def complete(self, request: Request) -> Completion:
        """Call the function."""
        messages = [{"role": each.role, "content": each.content} for each in request.messages]
        try:
            text = (
                self._function(messages)
                if self._is_async
                else await asyncio.to_thread(self._function, messages)
            )
            if isawaitable(text):
                text = await text
        except PearlError:
            raise
        except (ConnectionError, TimeoutError) as error:
            raise self._failed(error, "transport") from error
        except Exception as error:
            raise self._failed(error, "bad_request") from error
        if not isinstance(text, str):
            raise ModelError(
                f"{self.name} returned {type(text).__name__}, not text", kind="bad_request"
            )
        return Completion(text, self.name)

    def _failed(self, error: Exception, kind: Any) -> ModelError:
        return ModelError(f"{self.name}: {type(error).__name__}: {error}", kind=kind)
