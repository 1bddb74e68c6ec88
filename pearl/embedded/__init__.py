"""The embedded model: quotes the relevant passages of a document, without a language model.

It computes replies from `Request.task`, not from the prompt, and is deterministic. Rules write the plan
from the form of the question; steps return sentences of the document, ranked by words and optionally by
vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.embedded.decomposition import decompose
from pearl.embedded.items import judge
from pearl.embedded.planner import (
    make_standalone,
    propose,
    refine,
    write_other_plan,
    write_plan,
)
from pearl.embedded.reading import carry_out, choose_option, combine
from pearl.embedded.sentences import SentenceRanker
from pearl.llm import (
    ActionTask,
    ChooseTask,
    Completion,
    Constrains,
    DecomposeTask,
    ItemsTask,
    LookupTask,
    MineTask,
    PlanTask,
    RefineTask,
    Request,
    StandaloneTask,
)

if TYPE_CHECKING:
    from pearl.llm.embedders import TextEmbedder

__all__ = ["ExtractiveModel"]


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
            vectors = embedder.name.partition("@")[0]  # the name without the address of a server
            self.name, self.identity = f"extractive+{vectors}", f"extractive+{embedder.name}"
            by, served = f", ranked by words and vectors of {vectors}", f"\n{embedder.notice}"
        told = f"extractive: quotes passages of the document{by}; no language model is used"
        self.notice = (told + served).strip()

    async def complete(self, request: Request) -> Completion:
        """Compute the reply to one request."""
        match request.task:
            case PlanTask() as task if task.n_rejected:
                text = write_other_plan(task.question, task.library)
            case PlanTask() as task:
                text = write_plan(task.question, task.library, task.kind)
            case StandaloneTask() as task:
                text = make_standalone(task)
            case DecomposeTask() as task:
                text = decompose(task)
            case ActionTask() as task if task.action.extracts:
                # imported on use: few plans extract
                from pearl.embedded.extraction import read_lines

                text = read_lines(task)
            case ActionTask(parts=[*parts]) as task:
                text = await combine(task, parts, self._ranker)
            case ActionTask() as task:
                text = await carry_out(task, self._ranker)
            case ItemsTask() as task:
                text = await judge(task)
            case LookupTask() as task:
                # imported on use: few questions query a table
                from pearl.embedded.tables import write_query

                text = write_query(task)
            case ChooseTask() as task:
                text = choose_option(task, self._ranker)
            case MineTask() as task:
                text = propose(task.question, task.library)
            case RefineTask() as task:
                text = refine(task)
        # A question may contain lone surrogates.
        return Completion(text.encode(errors="replace").decode(), self.name)

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        await self._ranker.aclose()
