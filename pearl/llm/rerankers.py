"""`DIALECT:MODEL` → `pearl.retrieval.Reranker`: query + texts → scores, from a server that reranks.

Replies are `{"results": [...]}`, `{"data": [...]}` or a bare list of `{"index", "relevance_score"}`
or `{"index", "score"}`. Scores are placed by `index`; texts that a server sends back are not read.
A reply without exactly one score for each text raises a `ModelError`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    RootModel,
    model_validator,
)

from pearl import plugins
from pearl.errors import ModelError, UsageError, suggest
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.endpoint import Endpoint, read_key
from pearl.llm.backends.openai.replies import read_as
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.middleware.retry import Retries
from pearl.retrieval import Reranker

# The variable of a key for any reranker. The keys of models are not sent to rerankers.
KEY_VARIABLE = "PEARL_RERANKER_API_KEY"
ATTEMPTS = 3
FIRST_WAIT_S = 0.5


class Dialect(Protocol):
    """The dialect of a server: the interface of a plug-in.

    Attributes:
        DESCRIPTION: One line.
        URL: Address of the vendor's own server; "" if the address must be given.
        KEYS: Hosts of vendors → the environment variables of their keys.
        MAX_TEXTS: Maximum texts of one request.
        NEEDS_MODEL: Whether a request names a model.
    """

    DESCRIPTION: str
    URL: str
    KEYS: dict[str, str]
    MAX_TEXTS: int
    NEEDS_MODEL: bool

    def body(self, model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        """The JSON data of a request for the scores of all texts."""
        ...


CONTRACT = Dialect


PLUGINS: dict[str, Any] = {
    "cohere": SimpleNamespace(  # the format that most servers speak
        DESCRIPTION="Cohere, Jina, vLLM and most others: cohere:MODEL",
        URL="https://api.cohere.com/v2/rerank",
        KEYS={"api.cohere.com": "COHERE_API_KEY", "api.jina.ai": "JINA_API_KEY"},
        MAX_TEXTS=1_000,
        NEEDS_MODEL=True,
        body=lambda model, query, texts: {
            "model": model, "query": query, "documents": list(texts), "top_n": len(texts),
        },
    ),
    "tei": SimpleNamespace(
        DESCRIPTION="Text Embeddings Inference: tei, with the address of the server",
        URL="",
        KEYS={},
        MAX_TEXTS=32,  # the default of `--max-client-batch-size`
        NEEDS_MODEL=False,
        # Texts that are too long for the model are truncated instead of rejected.
        body=lambda model, query, texts: {"query": query, "texts": list(texts), "truncate": True},
    ),
    "voyage": SimpleNamespace(
        DESCRIPTION="Voyage AI: voyage:MODEL",
        URL="https://api.voyageai.com/v1/rerank",
        KEYS={"api.voyageai.com": "VOYAGE_API_KEY"},
        MAX_TEXTS=1_000,
        NEEDS_MODEL=True,
        body=lambda model, query, texts: {
            "model": model, "query": query, "documents": list(texts), "top_k": len(texts),
        },
    ),
}  # fmt: skip


def create_reranker(
    spec: str,
    *,
    url: str | None = None,
    timeout_s: float = 60.0,
    api_key_env: str | None = None,
) -> Reranker:
    """Create the reranker of `DIALECT:MODEL`, or of `DIALECT` if it needs no model.

    Example:
        >>> create_reranker("tei", url="http://localhost:8080/rerank").name
        'tei@http://localhost:8080/rerank'
    """
    name, _, model = spec.partition(":")
    known = plugins.names(__name__)
    if name not in known:
        raise UsageError(f"unknown reranker '{spec}'", help=suggest(name, known, "rerankers"))
    dialect: Dialect = plugins.load(__name__, name, "reranker")
    if dialect.NEEDS_MODEL and not model:
        raise UsageError(f"{name}: needs the name of a model", help=f"for example {name}:NAME")
    return HttpReranker(name, model, dialect, url or dialect.URL, timeout_s, api_key_env)


class HttpReranker:
    """One model of one server."""

    def __init__(
        self,
        name: str,
        model: str,
        dialect: Dialect,
        url: str,
        timeout_s: float,
        api_key_env: str | None,
    ) -> None:
        if not url:
            raise UsageError(
                f"the reranker '{name}' needs the address of its server",
                help="--reranker-url http://localhost:8080/rerank",
            )
        variable = _key_variable(url, dialect, api_key_env)
        key = read_key(variable)
        if api_key_env and not key:
            raise ModelError(
                f"{api_key_env}, the key of the reranker, is not set",
                kind="auth",
                help=f"set {api_key_env}",
            )
        self._endpoint = Endpoint(url, model, key, variable if key else "")
        # The session takes the address of a server, query included, and the last part of the path.
        parts = urlsplit(url)
        folder, _, self._path = parts.path.rstrip("/").rpartition("/")
        base = urlunsplit(parts._replace(path=folder, fragment=""))
        self._session = HttpSession(Endpoint(base, model, key, variable if key else ""), timeout_s)
        self.name = f"{name}:{model}@" if model else f"{name}@"
        self.name += self._endpoint.identity
        self._dialect = dialect
        self._timeout_s = timeout_s
        self._retries = Retries(ATTEMPTS, first_wait_s=FIRST_WAIT_S)

    def __repr__(self) -> str:
        return f"HttpReranker({self.name!r})"

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, in the order of the texts; higher is better."""
        scores: list[float] = []
        most = self._dialect.MAX_TEXTS
        for start in range(0, len(texts), most):
            batch = texts[start : start + most]
            body = self._dialect.body(self._endpoint.model, query, batch)
            send = partial(self._send, body, len(batch))
            scores += await self._retries.run(send, self._endpoint.shown)
        return scores

    async def aclose(self) -> None:
        """Close connections."""
        await self._session.aclose()

    async def _send(self, body: dict[str, Any], n: int) -> list[float]:
        wire = self._session.connect()
        try:
            async with asyncio.timeout(self._timeout_s):
                return read_scores(await wire.post(self._path, body), n, self._endpoint)
        except TimeoutError:
            raise self._advised(faults.too_slow(self._timeout_s, self._endpoint), None) from None
        except faults.StatusError as error:
            refused = faults.refused(error, self._endpoint)
            raise self._advised(refused, error.status) from None
        except ModelError as error:
            raise self._advised(error, None) from None

    def _advised(self, error: ModelError, status: int | None) -> ModelError:
        """The error with advice for rerankers in place of that for models."""
        help = error.help
        if status == 404:
            help = "check the whole address, path included, and the model: --reranker-url"
        elif error.kind == "auth":
            variable = self._endpoint.key_variable
            help = f"check the key in {variable}" if variable else f"set {KEY_VARIABLE}"
        elif error.kind == "malformed":
            help = "check that the server speaks the reranker's dialect: --reranker, --reranker-url"
        elif error.kind == "deadline":
            help = "the server may be busy, or its model too slow: rerank fewer passages"
        elif help:
            help = help.replace("--base-url", "--reranker-url")
        return ModelError(
            f"reranker: {error.message}", kind=error.kind, help=help,
            retry_after_s=error.retry_after_s,
        )  # fmt: skip


class _Score(BaseModel):
    model_config = ConfigDict(strict=True)

    index: int
    score: FiniteFloat = Field(validation_alias=AliasChoices("relevance_score", "score"))


class _Reply(RootModel[list[_Score]]):
    @model_validator(mode="before")
    @classmethod
    def _results(cls, data: Any) -> Any:
        return data.get("results", data.get("data")) if isinstance(data, dict) else data


def read_scores(reply: bytes, n: int, endpoint: Endpoint) -> list[float]:
    """The scores of a reply, in the order of the texts."""
    results = read_as(_Reply, reply, endpoint, "list of results").root
    scores = {result.index: result.score for result in results}
    if len(scores) < len(results) or scores.keys() != set(range(n)):
        numbers = endpoint.quote(", ".join(str(result.index) for result in results[:n]))
        raise ModelError(
            f"{endpoint.shown} sent scores for the texts {numbers} in place of 0 to {n - 1}",
            kind="malformed",
        )
    return [scores[i] for i in range(n)]


def _key_variable(url: str, dialect: Dialect, named: str | None) -> str:
    """The environment variable of the key for a server; "" for none."""
    if named is not None:
        return named
    if os.environ.get(KEY_VARIABLE, "").strip():
        return KEY_VARIABLE
    parts = urlsplit(Endpoint(url, "", "").shown)
    return dialect.KEYS.get(parts.hostname or "", "") if parts.scheme == "https" else ""
