"""Reports the progress of calls, with their task, to one listener."""

from __future__ import annotations

from collections.abc import Callable

from pearl.llm import Completion, Model, Request, Task
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import CallProgress, News, listening

OnProgress = Callable[[Task, News], None]
"""Callback with the task of a call and its progress, its wait, or an attempt that ended."""


class ProgressListener(Wrapper):
    """Reports each call: when it is requested, and whenever it reports something."""

    def __init__(self, model: Model, on_progress: OnProgress) -> None:
        super().__init__(model)
        self._on_progress = on_progress

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        self._on_progress(request.task, CallProgress("asked"))
        with listening(lambda event: self._on_progress(request.task, event)):
            return await self._model.complete(request)
