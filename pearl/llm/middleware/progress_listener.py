"""What calls are doing, told to one listener with what they are for."""

from __future__ import annotations

from collections.abc import Callable

from pearl.llm import Completion, Model, Request, Task
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import CallProgress, CallWait, listening

__all__ = ["OnProgress", "ProgressListener"]

OnProgress = Callable[[Task, CallProgress | CallWait], None]
"""Told what a call is for, and how far it is or what it waits for."""


class ProgressListener(Wrapper):
    """Tells what each call is doing: at once that it was asked for, later what is reported of it.

    Args:
        model: The model to ask.
        tell: Told of every call.
    """

    def __init__(self, model: Model, tell: OnProgress) -> None:
        super().__init__(model)
        self._tell = tell

    async def complete(self, request: Request) -> Completion:
        """Carry out one request.

        Raises:
            ModelError: There is no usable reply.
        """
        self._tell(request.task, CallProgress("asked"))
        with listening(lambda news: self._tell(request.task, news)):
            return await self._model.complete(request)
