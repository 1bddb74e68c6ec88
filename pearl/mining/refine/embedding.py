"""Name of a static embedding model → `Embedder`. Needs the extra `embeddings`."""

from __future__ import annotations

from pearl.actions.likeness import Embedder
from pearl.errors import DataError
from pearl.plugins.extras import require_extra

__all__ = ["load_embedder"]


def load_embedder(name: str) -> Embedder:
    """Load an embedder from a folder or the Hugging Face Hub.

    Raises:
        UsageError: The extra is not installed.
        DataError: The model cannot be loaded.
    """
    require_extra("embeddings", "likeness by embeddings", "model2vec")
    # Imported on use: it takes a second and is rarely needed.
    from model2vec import StaticModel

    try:
        embed: Embedder = StaticModel.from_pretrained(name).encode
    except (OSError, ValueError) as error:
        problem = str(error).strip().partition("\n")[0]
        raise DataError(
            f"no embeddings: {problem}", path=name, help="name a folder or a model of the Hub"
        ) from error
    return embed
