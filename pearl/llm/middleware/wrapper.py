"""Base class of the wrappers."""

from __future__ import annotations

from functools import cached_property

from pearl.llm import Constrains, Model


class Wrapper:
    """A model that delegates to another one."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    # Kept, for every call asks for them, through all wrappers.
    @cached_property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @cached_property
    def identity(self) -> str:
        """The wrapped model's identity."""
        return self._model.identity

    @property
    def window(self) -> int | None:
        """The wrapped model's window, in tokens."""
        return self._model.window

    @property
    def notice(self) -> str:
        """The wrapped model's notice."""
        return self._model.notice

    @property
    def constrains(self) -> Constrains:
        """The wrapped model's support for constraints."""
        return self._model.constrains

    @property
    def reads_prompts(self) -> bool:
        """Whether the wrapped model reads the messages of a request."""
        return self._model.reads_prompts

    async def aclose(self) -> None:
        """Close the wrapped model's connections."""
        await self._model.aclose()
