"""The embedded default: quotes the relevant passages of a document, without a language model.

It computes replies from `Request.task`, not from the prompt, and deterministically: plans by rule
from the form of the question (`planning`), results as ranked sentences (`reading`).
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
    DecomposeTask,
    ItemsTask,
    LookupTask,
    MineTask,
    Model,
    PlanTask,
    RefineTask,
    Request,
    StandaloneTask,
)
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.extractive.choosing import choose_option
from pearl.llm.backends.extractive.decomposition import decompose
from pearl.llm.backends.extractive.drafts import propose, refine
from pearl.llm.backends.extractive.items import judge
from pearl.llm.backends.extractive.planning import write_other_plan, write_plan
from pearl.llm.backends.extractive.ranking import SentenceIndex
from pearl.llm.backends.extractive.reading import carry_out, combine
from pearl.llm.backends.extractive.standalone import make_standalone

__all__ = ["DESCRIPTION", "ExtractiveModel", "create"]

DESCRIPTION = "quotes passages of the document; no network, no language model (the default)"

_MAX_INDEXES = 8
"""Maximum cached indexes of texts."""


def create(name: str, settings: ModelSettings) -> Model:
    """Create the model, which has no settings.

    Raises:
        UsageError: A name is given.
    """
    if name:
        raise UsageError(
            f"the backend extractive has no model '{name}'", help="write --model extractive"
        )
    return ExtractiveModel()


class ExtractiveModel:
    """Computes replies to tasks by rule."""

    name = identity = "extractive"
    window: int | None = None
    notice = "extractive: quotes passages of the document; no language model is used"
    constrains = Constrains()
    reads_prompts = False

    def __init__(self) -> None:
        self._index = lru_cache(_MAX_INDEXES)(SentenceIndex)

    async def complete(self, request: Request) -> Completion:
        """Compute the reply to one request; it never fails."""
        match request.task:
            case PlanTask() as task:
                if task.n_rejected:
                    text = write_other_plan(task.question, task.library)
                else:
                    text = write_plan(task.question, task.library, task.kind)
            case StandaloneTask() as task:
                text = make_standalone(task)
            case DecomposeTask() as task:
                text = decompose(task)
            case ActionTask() as task:
                text = carry_out(task, self._index)
            case ItemsTask() as task:
                text = judge(task)
            case LookupTask() as task:
                from pearl.llm.backends.extractive.table_queries import (  # late: few ask a table
                    write_query,
                )

                text = write_query(task)
            case CombineTask() as task:
                text = combine(task, self._index)
            case ChooseTask() as task:
                text = choose_option(task, self._index)
            case MineTask() as task:
                text = propose(task.question, task.library)
            case RefineTask() as task:
                text = refine(task)
        # A question may contain lone surrogates.
        return Completion(text.encode(errors="replace").decode(), self.name)

    async def aclose(self) -> None:
        """Clear the cache."""
        self._index.cache_clear()
