"""Base class of the wrappers."""

from __future__ import annotations

from pearl.llm import Constrains, Model

__all__ = ["Wrapper"]


class Wrapper:
    """A model that delegates to another one.

    Attributes:
        name: The wrapped model's name.
        identity: The wrapped model's identity.
        reads_prompts: Whether the wrapped model reads the messages of a request.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        # Asked for with every call, through all wrappers.
        self.name = model.name
        self.identity = model.identity
        self.reads_prompts = model.reads_prompts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

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

    async def aclose(self) -> None:
        """Close the wrapped model's connections."""
        await self._model.aclose()
