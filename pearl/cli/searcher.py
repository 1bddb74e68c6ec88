"""Options → the searcher of a command, with its notices and its progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from pearl.cli.corpora import LINES_S
from pearl.cli.terminal import notice
from pearl.errors import UsageError
from pearl.retrieval import SearchSettings

if TYPE_CHECKING:
    from pearl.retrieval.search import Searcher


@asynccontextmanager
async def searcher_opened(
    settings: SearchSettings, options: Mapping[str, Any]
) -> AsyncIterator[Searcher]:
    """The searcher of the options, whose server is told on stderr; it is closed afterwards."""
    from pearl.interpreter.searchers import new_searcher
    from pearl.llm.client import ClientSettings

    url = options.get("embeddings_url")
    if url and not options["embeddings"]:
        raise UsageError("--embeddings-url without --embeddings", help="--embeddings openai:NAME")
    searcher = new_searcher(
        ClientSettings(), settings, options["embeddings"], options["reranker"],
        options["reranker_url"], embeddings_url=url, progress=vectors_progress(),
    )  # fmt: skip
    if told := getattr(searcher.embedder, "notice", ""):
        notice(told)
    try:
        yield searcher
    finally:
        await searcher.aclose()


def vectors_progress() -> Callable[[int, int], None]:
    """Tells every ten seconds how far vectors are."""
    began = shown = monotonic()

    def tell(n: int, total: int) -> None:
        nonlocal shown
        if monotonic() - shown >= LINES_S:
            shown = monotonic()
            notice(f"embeddings: {n:,} of {total:,} passages, {shown - began:.0f} s")

    return tell
