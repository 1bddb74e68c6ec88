"""How far calls are, told to one listener with what they are for."""

from __future__ import annotations

from collections.abc import Callable

from pearl.llm import Completion, Model, Request, Task
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import CallProgress, listening

__all__ = ["ProgressListener"]


class ProgressListener(Wrapper):
    """Tells how far each call is: at once that it was asked for, later what the backend reports.

    Args:
        model: The model to ask.
        tell: Told what a call is for, and how far it is.
    """

    def __init__(self, model: Model, tell: Callable[[Task, CallProgress], None]) -> None:
        super().__init__(model)
        self._tell = tell

    async def complete(self, request: Request) -> Completion:
        """Carry out one request.

        Raises:
            ModelError: There is no usable reply.
        """
        self._tell(request.task, CallProgress("asked"))
        with listening(lambda progress: self._tell(request.task, progress)):
            return await self._model.complete(request)
