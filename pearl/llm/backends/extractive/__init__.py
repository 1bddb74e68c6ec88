"""The embedded default: quotes the passages of a document that bear on a question.

No network, no weights, no language model. It answers `Request.task`, not the prompt: plans come by
rule from the form of the question (`planning`), results are ranked sentences (`reading`). The same
request always gets the same reply.
"""

from __future__ import annotations

from functools import lru_cache

from pearl.errors import UsageError
from pearl.llm import (
    ActionTask,
    ChooseTask,
    CombineTask,
    Completion,
    Constrains,
    MineTask,
    Model,
    PlanTask,
    RefineTask,
    Request,
)
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.extractive.choosing import choose_option
from pearl.llm.backends.extractive.drafts import propose, refine
from pearl.llm.backends.extractive.planning import write_other_plan, write_plan
from pearl.llm.backends.extractive.ranking import SentenceIndex
from pearl.llm.backends.extractive.reading import carry_out, combine

__all__ = ["DESCRIPTION", "ExtractiveModel", "create"]

DESCRIPTION = "quotes passages of the document; no network, no language model (the default)"

_MAX_INDEXES = 8
"""Texts whose sentences are kept in memory; steps of one plan read few different ones."""


def create(name: str, settings: ModelSettings) -> Model:
    """The model; there is only one, and nothing to set.

    Raises:
        UsageError: A name is given.
    """
    if name:
        raise UsageError(
            f"the backend extractive has no model '{name}'", help="write --model extractive"
        )
    return ExtractiveModel()


class ExtractiveModel:
    """Answers tasks by rule; safe to be shared by many runs of one event loop."""

    name = identity = "extractive"
    window: int | None = None
    notice = "extractive: quotes passages of the document; no language model is used"
    constrains = Constrains()
    reads_prompts = False

    def __init__(self) -> None:
        self._index = lru_cache(_MAX_INDEXES)(SentenceIndex)

    async def complete(self, request: Request) -> Completion:
        """Send one request. It never fails: what is not found is said so."""
        match request.task:
            case PlanTask() as task:
                write = write_other_plan if task.n_rejected else write_plan
                text = write(task.question, task.library)
            case ActionTask() as task:
                text = carry_out(task, self._index)
            case CombineTask() as task:
                text = combine(task, self._index)
            case ChooseTask() as task:
                text = choose_option(task, self._index)
            case MineTask() as task:
                text = propose(task.question, task.library)
            case RefineTask() as task:
                text = refine(task)
        # A question may hold half a character; what is quoted never does.
        return Completion(text.encode(errors="replace").decode(), self.name)

    async def aclose(self) -> None:
        """Forget every text."""
        self._index.cache_clear()
