"""Models for tests that need more than scripted replies."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import ModelError
from pearl.interpreter.prompt import items_messages
from pearl.llm import (
    ActionTask,
    Completion,
    ConstrainBy,
    Constrains,
    ItemsTask,
    Model,
    Request,
    Task,
    Usage,
)
from pearl.llm.backends.scripted import Scripted
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.wrappers import ProgressListener
from pearl.llm.progress import CallProgress, CallWait
from tests.dsl.sampling import grammar_of, sentence


def telling_waits(model: Model, tell: Callable[[CallWait], object]) -> Model:
    """The model; what its calls wait for is told."""

    def hear(task: Task, news: CallProgress | CallWait) -> None:
        if isinstance(news, CallWait):
            tell(news)

    return ProgressListener(model, hear)


class MemoryReplies(Replies):
    """Replies that outlive a client, in memory."""

    def __init__(self) -> None:
        self.replies: dict[bytes, Completion] = {}

    async def among(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        return {key: self.replies[key] for key in keys if key in self.replies}

    async def keep_all(self, completions: Mapping[bytes, Completion]) -> None:
        self.replies.update(completions)


class Reading(Scripted):
    """Replies by the prompt, as a language model does: replies may be kept."""

    reads_prompts = True


class Small(Reading):
    """A model that says that it is too small to plan and to check."""

    is_small = True


class Acting:
    """A model whose replies are an asynchronous function of the request."""

    name = identity = "acting"
    notice = ""
    reads_prompts = False
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


class RandomWriter:
    """A decoder with random weights: keeps to any constraint, and means nothing by what it writes.

    Args:
        by: The forms of constraint that it takes.
        refuses: The names of constraints that it cannot be held to.
        ignores: Whether it takes a constraint and does without.
    """

    name = identity = "random"
    notice = ""
    reads_prompts = False
    window: int | None = None

    def __init__(
        self,
        by: Collection[ConstrainBy] = ("grammar",),
        *,
        refuses: Collection[str] = (),
        ignores: bool = False,
    ) -> None:
        self.constrains = Constrains(frozenset(by), max_text=20)
        self.requests: list[Request] = []
        self._refuses = refuses
        self._ignores = ignores

    async def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        constraint = request.constraint
        if constraint is None or self._ignores:
            return Completion("I would rather talk about the weather.", self.name, Usage(10, 1, 0))
        assert request.constrain_by in self.constrains.by
        if constraint.name in self._refuses:
            raise ModelError("grammar too complex", kind="unconstrained")
        seed = len(self.requests)
        text = sentence(constraint.lark or grammar_of(constraint), seed, stop=0.1)
        return Completion(text, self.name, Usage(10, 1, 0))

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


def item_lines(request: Request, say: Callable[[str], str | None]) -> str:
    """A reply about items in the form that is asked for; items of which nothing is said are left out."""
    task = request.task
    assert isinstance(task, ItemsTask)
    return written(task, [say(item) for item in task.items])


def verdicts_on(items: Sequence[str], *said: str) -> str:
    """A reply of yes or no about these items, however they are asked about."""
    action = Action("FILTER", (Parameter("CTX", ValueType.CONTEXT), Parameter("X")), "Say of each")
    return written(
        ItemsTask("rows", action, (("X", "so"),), tuple(items), "yes_no", is_named=True), said
    )


def verdicts(*said: str, first: int = 1) -> str:
    """A reply about claims, in their order."""
    return json.dumps({"verdicts": [{"id": i, "verdict": v} for i, v in enumerate(said, first)]})


_ITEM = re.compile(r"<item (\d+)>\n(.*?)\n</item \1>", re.DOTALL)
_CHECKED = re.compile(
    r"Behind (every number|the numbers [\d, ]+) also write the (first|last)(?: (\d+) words| word) of"
)


def item_keys(prompt: str) -> list[str]:
    """How the reply to a prompt calls its items: by their numbers, and some by words as well."""
    numbers, which, n_words = found.groups() if (found := _CHECKED.search(prompt)) else ("", "", 0)
    n, is_all, asked, keys = (
        int(n_words or 1),
        numbers == "every number",
        re.findall(r"\d+", numbers),
        [],
    )
    for number, text in _ITEM.findall(prompt):
        words = text.split()[:n] if which == "first" else text.split()[-n:]
        keys.append(" ".join([number, *words]) if is_all or number in asked else number)
    return keys


def written(asked: ItemsTask | str, values: Sequence[str | int | None]) -> str:
    """A reply about the items of a task or a prompt, in the form that is asked for; those without a value are left out."""
    prompt = asked if isinstance(asked, str) else items_messages(asked)[1].content
    keys = item_keys(prompt)
    said = {key: value for key, value in zip(keys, values, strict=True) if value is not None}
    if "one line for every item" in prompt:
        return "\n".join(f"{key} {value}" for key, value in said.items()) or "{}"
    is_quoted = "under q and the number" in prompt
    return json.dumps(said | {f"q{key.split()[0]}": None for key in said if is_quoted})
