"""The embedded model as a backend (`pearl.embedded`)."""

from __future__ import annotations

from pearl.embedded import ExtractiveModel
from pearl.errors import UsageError
from pearl.llm import Model
from pearl.llm.backends import Abilities, ModelSettings

DESCRIPTION = "quotes passages of the document; no network, no language model (the default)"
ABILITIES = Abilities("", embeddings=True)


def create(name: str, settings: ModelSettings) -> Model:
    """Create the model; it uses sentence vectors if embeddings are set."""
    if name:
        raise UsageError(
            f"the backend extractive has no model '{name}'", help="write --model extractive"
        )
    if settings.embeddings is None:
        return ExtractiveModel()
    from pearl.llm.embedders import embedder_beside  # Imported on use: most runs have no embedder

    return ExtractiveModel(
        embedder_beside(
            settings.embeddings,
            base_url=settings.base_url,
            api_key_env=settings.api_key_env,
            is_asked=settings.is_asked,
        )
    )
