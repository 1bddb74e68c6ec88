"""The embedded default: quotes the relevant passages of a document, without a language model.

It computes replies from `Request.task`, not from the prompt, and deterministically: plans by rule
from the form of the question (`planning`), results as ranked sentences (`reading`), by words and, with
embeddings, by their meaning (`meaning`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.extractive.choosing import choose_option
from pearl.llm.backends.extractive.decomposition import decompose
from pearl.llm.backends.extractive.drafts import propose, refine
from pearl.llm.backends.extractive.items import judge
from pearl.llm.backends.extractive.meaning import SentenceRanker
from pearl.llm.backends.extractive.planning import write_other_plan, write_plan
from pearl.llm.backends.extractive.reading import carry_out, combine
from pearl.llm.backends.extractive.standalone import make_standalone

if TYPE_CHECKING:
    from pearl.llm.embedders import TextEmbedder

__all__ = ["ABILITIES", "DESCRIPTION", "ExtractiveModel", "create"]

DESCRIPTION = "quotes passages of the document; no network, no language model (the default)"


def create(name: str, settings: ModelSettings) -> Model:
    """Create the model, with sentence vectors where embeddings are set."""
    if name:
        raise UsageError(
            f"the backend extractive has no model '{name}'", help="write --model extractive"
        )
    if settings.embeddings is None:
        return ExtractiveModel()
    from pearl.llm.embedders import embedder_beside  # late: most runs have none

    return ExtractiveModel(
        embedder_beside(
            settings.embeddings,
            base_url=settings.base_url,
            api_key_env=settings.api_key_env,
            is_asked=settings.is_asked,
        )
    )


class ExtractiveModel:
    """Computes replies to tasks by rule."""

    window: int | None = None
    constrains = Constrains()
    reads_prompts = False

    def __init__(self, embedder: TextEmbedder | None = None) -> None:
        self._ranker = SentenceRanker(embedder)
        self.name = self.identity = "extractive"
        by = served = ""
        if embedder is not None:
            vectors = embedder.name.partition("@")[0]  # without the address of a server
            self.name, self.identity = f"extractive+{vectors}", f"extractive+{embedder.name}"
            by, served = f", ranked by words and vectors of {vectors}", f"\n{embedder.notice}"
        told = f"extractive: quotes passages of the document{by}; no language model is used"
        self.notice = (told + served).strip()

    async def complete(self, request: Request) -> Completion:
        """Compute the reply to one request."""
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
                text = await carry_out(task, self._ranker)
            case ItemsTask() as task:
                text = await judge(task)
            case LookupTask() as task:
                from pearl.llm.backends.extractive.table_queries import (  # late: few ask a table
                    write_query,
                )

                text = write_query(task)
            case CombineTask() as task:
                text = await combine(task, self._ranker)
            case ChooseTask() as task:
                text = choose_option(task, self._ranker.index)
            case MineTask() as task:
                text = propose(task.question, task.library)
            case RefineTask() as task:
                text = refine(task)
        # A question may contain lone surrogates.
        return Completion(text.encode(errors="replace").decode(), self.name)

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        await self._ranker.aclose()


ABILITIES = Abilities("", embeddings=True)
