"""Static embeddings of model2vec, from a folder or the Hugging Face Hub. Needs the extra `semantic`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pearl.errors import DataError, UsageError
from pearl.llm.embedders import EmbedderSettings
from pearl.plugins.extras import require_extra
from pearl.retrieval import TextKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DESCRIPTION = "static embeddings: model2vec:NAME, a folder or a model of the Hub"
IS_CACHED = False


def create(name: str, settings: EmbedderSettings) -> StaticEmbedder:
    """Create the embedder of a folder or Hub model, which is loaded on first use."""
    if not name:
        raise UsageError(
            "model2vec: needs a folder or a model of the Hub",
            help="for example model2vec:minishlab/potion-base-8M",
        )
    require_extra("semantic", "embeddings in this process", "model2vec")
    return StaticEmbedder(name)


class StaticEmbedder:
    """Embeds a text as the mean vector of its words."""

    notice = ""

    def __init__(self, model: str) -> None:
        self.name = f"model2vec:{model}"
        self._path = model
        self._loading = threading.Lock()
        self._model: Any = None

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension); zero for texts without known words."""
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        with self._loading:
            if self._model is None:
                # Imported on use: the import takes a second and is rarely needed.
                from model2vec import StaticModel

                try:
                    self._model = StaticModel.from_pretrained(self._path)
                except (OSError, ValueError) as error:
                    problem = str(error).strip().partition("\n")[0]
                    raise DataError(
                        f"no embeddings: {problem}",
                        path=self._path,
                        help="name a folder or a model of the Hub",
                    ) from error
        vectors = np.asarray(self._model.encode(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return unit

    async def aclose(self) -> None:
        """Nothing to close."""
