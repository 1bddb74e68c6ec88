"""`DIALECT:MODEL` → `pearl.retrieval.Reranker`: query + texts → scores, from a server that reranks.

Replies are `{"results": [...]}`, `{"data": [...]}` or a bare list of `{"index", "relevance_score"}`
or `{"index", "score"}`. Scores are placed by `index`; texts that a server sends back are not read.
A reply that does not give each text one score is no ranking, and a `ModelError`.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from pearl import plugins
from pearl.errors import ModelError, UsageError, suggest
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.endpoint import Endpoint, read_key
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
        URL: Address of the vendor's own server; "" if there is none.
        KEYS: Hosts of vendors → the environment variables of their keys.
        MAX_TEXTS: Texts of one request at most.
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


@dataclass(frozen=True)
class _Named:
    """A shipped dialect."""

    DESCRIPTION: str
    URL: str
    KEYS: dict[str, str]
    MAX_TEXTS: int
    NEEDS_MODEL: bool
    body: Callable[[str, str, Sequence[str]], dict[str, Any]]


PLUGINS: dict[str, Any] = {
    "cohere": _Named(  # the format that most servers speak
        "Cohere, Jina, vLLM and most others: cohere:MODEL",
        "https://api.cohere.com/v2/rerank",
        {"api.cohere.com": "COHERE_API_KEY", "api.jina.ai": "JINA_API_KEY"},
        1_000,
        True,
        lambda model, query, texts: {
            "model": model, "query": query, "documents": list(texts), "top_n": len(texts),
        },
    ),
    "tei": _Named(
        "Text Embeddings Inference: tei, with the address of the server",
        "",
        {},
        32,  # the default of `--max-client-batch-size`
        False,
        # Texts that are too long for the model are truncated, and no error.
        lambda model, query, texts: {"query": query, "texts": list(texts), "truncate": True},
    ),
    "voyage": _Named(
        "Voyage AI: voyage:MODEL",
        "https://api.voyageai.com/v1/rerank",
        {"api.voyageai.com": "VOYAGE_API_KEY"},
        1_000,
        True,
        lambda model, query, texts: {
            "model": model, "query": query, "documents": list(texts), "top_k": len(texts),
        },
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RerankerSettings:
    """Settings of a reranker."""

    url: str | None = None
    timeout_s: float = 60.0
    api_key_env: str | None = None


def create_reranker(
    spec: str,
    *,
    url: str | None = None,
    timeout_s: float = 60.0,
    api_key_env: str | None = None,
) -> Reranker:
    """Create the reranker of `DIALECT:MODEL`, or of `DIALECT` where no model is named.

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
    return HttpReranker(name, model, dialect, RerankerSettings(url, timeout_s, api_key_env))


class HttpReranker:
    """One model of one server."""

    def __init__(self, name: str, model: str, dialect: Dialect, settings: RerankerSettings) -> None:
        url = settings.url or dialect.URL
        if not url:
            raise UsageError(
                f"the reranker '{name}' needs the address of its server",
                help="--reranker-url http://localhost:8080/rerank",
            )
        variable = _key_variable(url, dialect, settings.api_key_env)
        key = read_key(variable)
        if settings.api_key_env and not key:
            raise ModelError(
                f"{settings.api_key_env}, the key of the reranker, is not set",
                kind="auth",
                help=f"set {settings.api_key_env}",
            )
        self._endpoint = Endpoint(url, model, key, variable if key else "")
        base, self._path = _split(url)
        server = Endpoint(base, model, key, variable if key else "")
        self._session = HttpSession(server, settings.timeout_s)
        self.name = f"{name}:{model}@" if model else f"{name}@"
        self.name += self._endpoint.identity
        self._dialect = dialect
        self._timeout_s = settings.timeout_s
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
                reply = await wire.post(self._path, body)
        except TimeoutError:
            raise self._advised(faults.too_slow(self._timeout_s, self._endpoint), None) from None
        except faults.StatusError as error:
            refused = faults.refused(error, self._endpoint)
            raise self._advised(refused, error.status) from None
        except ModelError as error:
            raise self._advised(error, None) from None
        return read_scores(reply, n, self._endpoint)

    def _advised(self, error: ModelError, status: int | None) -> ModelError:
        """The error with advice for rerankers in place of that for models."""
        help = error.help
        if status == 404:
            help = "check the whole address, path included, and the model: --reranker-url"
        elif error.kind == "auth":
            variable = self._endpoint.key_variable
            help = f"check the key in {variable}" if variable else f"set {KEY_VARIABLE}"
        elif error.kind == "deadline":
            help = "the server may be busy, or its model too slow: rerank fewer passages"
        elif help:
            help = help.replace("--base-url", "--reranker-url")
        return ModelError(
            f"reranker: {error.message}", kind=error.kind, help=help,
            retry_after_s=error.retry_after_s,
        )  # fmt: skip


def read_scores(reply: bytes, n: int, endpoint: Endpoint) -> list[float]:
    """The scores of a reply, in the order of the texts."""

    def malformed(why: str) -> ModelError:
        return ModelError(
            f"reranker: {endpoint.shown} sent {why}",
            kind="malformed",
            help="check that the server speaks the reranker's dialect: --reranker, --reranker-url",
        )

    try:
        data = json.loads(reply)
    except (ValueError, RecursionError):
        raise malformed("no JSON") from None
    if isinstance(data, dict):
        error = data.get("error")
        if error and not ("results" in data or "data" in data):
            raise faults.reported(error, endpoint)
        data = data.get("results", data.get("data"))
    if not isinstance(data, list):
        raise malformed("no list of results")
    scores: dict[int, float] = {}
    for entry in data:
        index = entry.get("index") if isinstance(entry, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < n:
            raise malformed(
                f"a result for an unknown text: {endpoint.quote(json.dumps(entry)[:80])}"
            )
        if index in scores:
            raise malformed(f"text {index} twice")
        score = entry.get("relevance_score", entry.get("score"))
        scores[index] = _number(score)
        if not math.isfinite(scores[index]):
            raise malformed(f"no score of text {index}")
    if len(scores) < n:
        first = next(i for i in range(n) if i not in scores)
        raise malformed(
            f"scores of {len(scores):,} of {n:,} texts; that of text {first} is missing"
        )
    return [scores[i] for i in range(n)]


def _number(value: Any) -> float:
    """A JSON number as float; NaN for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _key_variable(url: str, dialect: Dialect, named: str | None) -> str:
    """The environment variable of the key for a server; "" for none."""
    if named is not None:
        return named
    if os.environ.get(KEY_VARIABLE, "").strip():
        return KEY_VARIABLE
    parts = urlsplit(Endpoint(url, "", "").shown)
    return dialect.KEYS.get(parts.hostname or "", "") if parts.scheme == "https" else ""


def _split(url: str) -> tuple[str, str]:
    """The address of a server, query included, and the last part of the path."""
    parts = urlsplit(url)
    folder, _, name = parts.path.rstrip("/").rpartition("/")
    return urlunsplit(parts._replace(path=folder, fragment="")), name
