"""Any server with OpenAI's `/embeddings` API. Texts are sent as strings and vectors received as floats, because several servers fail on the other forms."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from pearl.errors import ModelError, UsageError
from pearl.errors.validation import decoded
from pearl.llm.backends.openai import endpoint_of, faults
from pearl.llm.backends.openai.chat import read_as
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.concurrency import gather
from pearl.llm.embedders import ADDRESS_VARIABLE, EmbedderSettings, address_in_environment
from pearl.llm.middleware.retry import Retries
from pearl.retrieval import TextKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@cache
def prefix_of(model: str, kind: TextKind) -> str:
    """The prefix that a model expects before texts of a kind; "" for most models."""
    text = Path(__file__).with_name("prefixes.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["model"]:
        if all(word in model.lower() for word in entry["words"]):
            return str(entry.get(kind, ""))
    return ""


WHAT = "list of embeddings"


class _Item(Struct):
    index: int
    embedding: list[float]


class _Reply(Struct):
    data: list[_Item]


def read_vectors(body: bytes, n_texts: int, endpoint: Endpoint) -> NDArray[np.float32]:
    """Vectors of unit length, in the order of the texts."""
    import numpy as np

    try:
        reply = decoded(body, _Reply)
    except msgspec.DecodeError:
        reply = read_as(_Reply, body, endpoint, WHAT)  # Raises an error that describes the reply

    def malformed(why: str) -> ModelError:
        return ModelError(
            f"{endpoint.shown} sent an unusable {WHAT}: {why}",
            kind="malformed",
            help=f"check that '{endpoint.model}' is an embedding model",
        )

    numbers = [item.index for item in reply.data]
    if sorted(numbers) != list(range(n_texts)):
        raise malformed(f"its indices are not those of {n_texts} texts")
    rows = [item.embedding for item in sorted(reply.data, key=lambda item: item.index)]
    dimensions = sorted({len(row) for row in rows})
    if len(dimensions) > 1 or 0 in dimensions:
        raise malformed(f"vectors of {', '.join(map(str, dimensions))} dimensions")
    vectors = np.array(rows, dtype=np.float64).reshape(n_texts, -1)
    with np.errstate(over="ignore"):  # Infinite lengths are reported below
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise malformed("a vector has values that are not finite")
    if not lengths.all():
        raise malformed("a vector is zero")
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return unit


DESCRIPTION = "any OpenAI-compatible server: openai:NAME; $PEARL_EMBEDDINGS_URL for one of your own"
IS_CACHED = True
KEY_VARIABLE = "PEARL_EMBEDDINGS_API_KEY"  # Takes precedence over the keys of language models
BATCH_TEXTS = 64  # Maximum texts of a call
BATCH_CHARACTERS = 120_000  # Maximum characters of a call; OpenAI accepts 300,000 tokens
MAX_DIMENSIONS = 16_384  # Of a vector; limits the size of a reply
BYTES_A_NUMBER = 32  # Maximum bytes of a reply per number; a float64 in JSON has at most 25
ATTEMPTS = 4  # Maximum calls for one batch, including the first
FIRST_WAIT_S = 0.5  # Seconds before the second one, if the server names none
TIMEOUT_S = 120.0  # Maximum seconds of one call
MAX_CALL_S = 900.0  # Maximum seconds of all calls of one batch
_TOO_MUCH = frozenset({400, 413, 422})  # Statuses with which servers reject a batch as too large


def create(name: str, settings: EmbedderSettings) -> OpenAIEmbedder:
    """Create the embedder `name` of the server in `settings`, else in the environment, else OpenAI."""
    if not name:
        raise UsageError(
            "openai: needs the name of an embedding model",
            help="for example openai:text-embedding-3-small",
        )
    url = settings.base_url or address_in_environment()
    key_env = settings.api_key_env
    if key_env is None and os.environ.get(KEY_VARIABLE, "").strip():
        key_env = KEY_VARIABLE
    endpoint = endpoint_of(name, url, key_env, is_asked=settings.is_asked)
    return OpenAIEmbedder(endpoint, settings)


class OpenAIEmbedder:
    """One embedding model of one server."""

    def __init__(self, endpoint: Endpoint, settings: EmbedderSettings) -> None:
        kinds: tuple[TextKind, ...] = ("query", "passage")
        self._prefixes = {kind: prefix_of(endpoint.model, kind) for kind in kinds}
        told = "".join(f" {kind}={text!r}" for kind, text in self._prefixes.items() if text)
        self.name = f"openai:{endpoint.model}@{endpoint.identity}{told}"
        self.notice = f"embeddings: {endpoint.greeting}"
        self._endpoint = endpoint
        self._concurrency = settings.concurrency
        self._session = HttpSession(endpoint, TIMEOUT_S)
        self._retries = Retries(ATTEMPTS, first_wait_s=FIRST_WAIT_S, deadline_s=MAX_CALL_S)
        self._most = BATCH_TEXTS

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        """Vectors of unit length, shape (len(texts), dimension), in order."""
        import numpy as np

        places = asyncio.Semaphore(self._concurrency)
        prefix = self._prefixes[kind]

        async def batch(some: list[str]) -> NDArray[np.float32]:
            async with places:
                return await self._batch(some)

        batches = list(_batches([prefix + scrubbed(text) for text in texts], self._most))
        try:
            made = await gather([batch(some) for some in batches])
        except ModelError as error:
            # Advice that names options of language models is replaced.
            error.help = error.help and error.help.replace("--base-url", ADDRESS_VARIABLE)
            if error.kind == "deadline":
                error.help = (
                    "the server may be busy, or its model slow: try again, or cut passages shorter"
                )
            raise
        if not made:
            return np.zeros((0, 0), np.float32)
        dimensions = sorted({vectors.shape[1] for vectors in made})
        if len(dimensions) > 1:
            raise ModelError(
                f"{self._endpoint.shown} sent vectors of {', '.join(map(str, dimensions))} dimensions",
                kind="malformed",
                help=f"check that a single model serves '{self._endpoint.model}'",
            )
        return np.concatenate(made)

    async def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed a batch; if the server says that it is too large, in two halves."""
        import numpy as np

        if len(texts) <= self._most:
            try:
                return await self._retries.run(lambda: self._call(texts), self._endpoint.shown)
            except _TooLargeError:
                if len(texts) == 1:
                    raise
            self._most = min(self._most, len(texts) // 2)
        half = len(texts) // 2
        return np.concatenate([await self._batch(texts[:half]), await self._batch(texts[half:])])

    async def _call(self, texts: list[str]) -> NDArray[np.float32]:
        body = {"model": self._endpoint.model, "input": texts, "encoding_format": "float"}
        wire = self._session.connect()  # The import must not count towards the timeout
        from pearl.llm.backends.openai.wire import MAX_BYTES, at_most

        try:
            async with asyncio.timeout(self._session.timeout_s):
                with at_most(MAX_BYTES + len(texts) * MAX_DIMENSIONS * BYTES_A_NUMBER):
                    reply = await wire.post("/embeddings", body)
        except TimeoutError:
            raise faults.too_slow(self._session.timeout_s, self._endpoint) from None
        except StatusError as error:
            refusal = await self._session.refused(error)
            if error.status in _TOO_MUCH and refusal.kind == "bad_request":
                raise _TooLargeError(
                    refusal.message, kind="bad_request", help=refusal.help
                ) from None
            raise refusal from None
        return read_vectors(reply, len(texts), self._endpoint)

    async def aclose(self) -> None:
        """Close connections."""
        await self._session.aclose()


class _TooLargeError(ModelError):
    """A rejection that may be due to the size of the batch."""


def _batches(texts: Sequence[str], most: int) -> Iterator[list[str]]:
    batch: list[str] = []
    n_characters = 0
    for text in texts:
        if batch and (len(batch) == most or n_characters + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, n_characters = [], 0
        batch.append(text)
        n_characters += len(text)
    if batch:
        yield batch
