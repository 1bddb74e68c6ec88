"""Reports the progress of calls, with their task, to one listener."""

from __future__ import annotations

from collections.abc import Callable

from pearl.llm import Completion, Model, Request, Task
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import CallProgress, CallWait, listening

__all__ = ["OnProgress", "ProgressListener"]

OnProgress = Callable[[Task, CallProgress | CallWait], None]
"""Callback with the task of a call and its progress or wait."""


class ProgressListener(Wrapper):
    """Reports each call: when it is requested, and whenever it reports progress or a wait.

    Args:
        model: The model to ask.
        tell: The callback.
    """

    def __init__(self, model: Model, tell: OnProgress) -> None:
        super().__init__(model)
        self._tell = tell

    async def complete(self, request: Request) -> Completion:
        """Send one request.

        Raises:
            ModelError: The model gave no usable reply.
        """
        self._tell(request.task, CallProgress("asked"))
        with listening(lambda news: self._tell(request.task, news)):
            return await self._model.complete(request)
