"""Models for tests that need more than scripted replies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.llm import ActionTask, Completion, Constrains, Request, Usage


class Acting:
    """A model whose replies are an asynchronous function of the request."""

    name = "acting"
    notice = ""
    constrains = Constrains()

    def __init__(
        self, act: Callable[[Request], Awaitable[str]], *, window: int | None = None
    ) -> None:
        self.window = window
        self.requests: list[Request] = []
        self._act = act

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        return Completion(await self._act(request), self.name, Usage(10, 1, 0))

    async def aclose(self) -> None:
        """Nothing to let go of."""


def output_of(request: Request) -> str:
    """The step that a request is for."""
    assert isinstance(request.task, ActionTask)
    return request.task.output


def answer_task(question: str, document: str) -> ActionTask:
    """The one step of a plan that answers a question as it stands."""
    action = Action(
        "ANSWER", (Parameter("CTX", ValueType.CONTEXT), Parameter("QUESTION")), "Answer"
    )
    arguments = (("QUESTION", question),)
    return ActionTask("answer", action, arguments, document, question=question)
