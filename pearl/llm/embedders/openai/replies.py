"""Body of a reply of `/embeddings` with status 200 → vectors, or `ModelError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.errors import ModelError
from pearl.llm import Usage
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.replies import read_as
from pearl.llm.backends.openai.usage import read_usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WHAT = "list of embeddings"


class _Item(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int
    embedding: list[float]


class _Reply(BaseModel):
    data: list[_Item]
    usage: Any = None  # an invalid one does not invalidate a paid reply


def read_vectors(
    body: bytes, n_texts: int, endpoint: Endpoint
) -> tuple[NDArray[np.float32], Usage]:
    """Vectors of unit length, in the order of the texts, and what they cost."""
    import numpy as np

    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError:
        reply = read_as(_Reply, body, endpoint, WHAT)  # which says what it is instead
    usage = read_usage(reply.usage, "prompt_tokens", "completion_tokens")

    def malformed(why: str) -> ModelError:
        return ModelError(
            f"{endpoint.shown} sent a {WHAT} of no use: {why}",
            kind="malformed",
            help=f"check that '{endpoint.model}' is a model of embeddings",
            usage=usage,
        )

    numbers = [item.index for item in reply.data]
    if sorted(numbers) != list(range(n_texts)):
        stray = [n for n in numbers if not 0 <= n < n_texts]
        missing = sorted(set(range(n_texts)).difference(numbers))
        if stray:
            raise malformed(f"the index {stray[0]} for {n_texts} texts")
        if missing:
            raise malformed(f"{len(missing)} of {n_texts} texts have no vector, first {missing[0]}")
        raise malformed(f"{len(numbers)} vectors for {n_texts} texts, some twice")
    rows = [item.embedding for item in sorted(reply.data, key=lambda item: item.index)]
    dimensions = sorted({len(row) for row in rows})
    if len(dimensions) > 1 or 0 in dimensions:
        raise malformed(f"vectors of {', '.join(map(str, dimensions))} dimensions")
    vectors = np.array(rows, dtype=np.float64).reshape(n_texts, -1)
    with np.errstate(over="ignore"):  # it is infinite then, and said below
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise malformed("a vector has values that are no finite numbers")
    if not lengths.all():
        raise malformed("a vector is 0")
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return unit, usage
