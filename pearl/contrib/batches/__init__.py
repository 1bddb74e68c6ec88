"""Batches: many requests go up in one file, and their replies come down hours later, for less money.

Each other module is the Batch API of one vendor.
Every request has an id, the digest of everything its reply depends on, so replies are matched
regardless of order and process. A reply is validated like a direct one. Retries are up to the caller.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict

from pearl.dsl.decoding.constraint import Form
from pearl.errors import ModelError
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Request, Usage
from pearl.llm.backends.openai import OpenAIModel, chat, faults, servers
from pearl.llm.backends.openai.api import Body
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.flaws import trimmed, usable

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire

TRANSFER_TIMEOUT_S = 3600.0  # Time limit of an upload or download in seconds
MAX_RESULT_BYTES = 2**30  # Maximum bytes of a file of replies
PAGE = 100  # Batches per page of a listing
MAX_PAGES = 10  # Pages of a listing that are searched, latest first

# `waiting` will change, `unknown` may; the others are final, and all but `failed` may have results.
State = Literal["waiting", "completed", "failed", "expired", "cancelled", "unknown"]

Result = TypeVar("Result")
Row = dict[str, Any]
Query = dict[str, str | int]


class Submission(BaseModel):
    """The record of a batch, written before the batch is created, so that a later process finds it."""

    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    id: str = ""  # our own, new for each submission
    file_id: str = ""  # the server's id of the uploaded file; "" without one
    keys: frozenset[bytes]
    constrained: frozenset[bytes] = frozenset()  # keys of requests with a JSON reply by a schema
    created_at: float = 0.0  # seconds since 1970


class Batch(Struct, frozen=True):
    """A batch as its server describes it."""

    id: str
    status: str  # in the words of the server
    state: State
    n_done: int = 0  # requests with a result, usable or not
    places: tuple[str, ...] = ()  # ids of the files with its results
    problem: ModelError | None = None  # why the server refused it as a whole
    is_too_much: bool = False  # refused because too many tokens wait in all batches
    is_sure: bool = True  # False if only its results can show whether it is the wanted batch

    @property
    def is_over(self) -> bool:
        """Whether its state is final."""
        return self.state not in ("waiting", "unknown")


class Batches(ABC):
    """The batches of one model at one server."""

    max_requests: ClassVar[int]  # of a batch
    max_bytes: ClassVar[int]
    told: ClassVar[type[Struct]]  # A batch in the words of the vendor
    n_probe: ClassVar[int] = 100  # requests sent first; if all fail, the others are not sent
    path: ClassVar[str] = "/batches"
    id_name: ClassVar[str] = "custom_id"  # of a request
    page_size: ClassVar[str] = "limit"  # in the query of a listing

    def __init__(self, session: HttpSession, server: Server | None) -> None:
        self._session = session
        self._endpoint = session.endpoint
        self._kind = server or servers.load(servers.UNKNOWN)
        self.server = self._endpoint.shown  # for messages and records
        self._form = self._kind.api.form

    # --- the interface of one vendor

    @abstractmethod
    def _line(self, id: str, body: Body) -> Row:
        """The body of a request with its id, as one line of a file."""

    @abstractmethod
    async def upload(self, lines: Sequence[bytes]) -> str:
        """Upload requests, free of charge; returns the server's id, or "" without an upload."""

    @abstractmethod
    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """Create a batch, which starts billing."""

    @abstractmethod
    def _described(self, told: Any) -> Batch:
        """What the vendor tells of a batch, a `told`."""

    @abstractmethod
    def _page(self, body: bytes, submission: Submission) -> tuple[list[Batch], Query]:
        """Read a page of the listing: the batches that may belong to a submission, and the query of the next page."""

    @abstractmethod
    async def _download(self, place: str) -> bytes | None:
        """Download the reply lines at one of the `places` of a batch; None if the server has none."""

    @abstractmethod
    def _reply(self, row: Row, request: Request | None) -> Completion:
        """Read the reply in one line, or raise its `ModelError`; without a `request` it is read as unconstrained."""

    async def aclose(self) -> None:  # noqa: B027 - most have no connections of their own
        """Close its own connections."""

    # --- what all vendors share

    def _wire(self) -> Wire:
        return self._session.connect()

    def _path(self, id: str = "") -> str:
        """The path of a batch; of the listing of batches for ""."""
        return f"{self.path}/{quote(id, safe='')}" if id else self.path

    async def retrieve(self, id: str) -> Batch | None:
        """The state of a batch; None if the server does not know it."""
        body = await self._call(self._known(self._wire().get(self._path(id))))
        return None if body is None else self._batch(body)

    def _batch(self, body: bytes) -> Batch:
        return self._described(chat.read_as(self.told, body, self._endpoint, "batch"))

    async def find(self, submission: Submission) -> Batch | None:
        """The batch of a submission; None if it is not among the latest ones."""
        query: Query = {self.page_size: PAGE}
        unsure = None
        for _ in range(MAX_PAGES):
            body = await self._call(self._wire().get(self._path(), query))
            batches, following = self._page(body, submission)
            for batch in batches:
                if batch.is_sure:
                    return batch
                if not batch.is_over:
                    unsure = batch
                elif (await self.results(batch, {}) or {}).keys() & submission.keys:
                    return replace(batch, is_sure=True)
            if not following:
                break
            query |= following
        return unsure

    async def _fetched(self, path: str, query: Query | None = None) -> bytes | None:
        from pearl.llm.backends.openai.wire import at_most  # late: it imports ssl

        with at_most(MAX_RESULT_BYTES):
            return await self._known(self._wire().get(path, query))

    def line(self, key: bytes, request: Request) -> bytes:
        """A request with its key of 32 bytes, without a line end."""
        return json_bytes(self._line(key.hex(), self._body(request)))

    def _body(self, request: Request) -> Body:
        form: Form | None = None if request.constraint is None else "json-schema"
        return self._kind.body(request, self._endpoint.model, self._session.accepted, form)

    async def results(
        self, batch: Batch, asked: Mapping[bytes, Request]
    ) -> dict[bytes, Completion | ModelError] | None:
        """The readable results of an ended batch by key, an error for two different replies; None if a completed batch has none."""
        if batch.state == "completed" and not batch.places:
            return None
        results: dict[bytes, Completion | ModelError] = {}
        ambiguous: set[bytes] = set()
        for place in batch.places:
            data = await self._call(self._download(place), TRANSFER_TIMEOUT_S)
            if data is None:
                return None
            # In a thread: a file of 50,000 lines would block the event loop for seconds.
            for key, result in await asyncio.to_thread(self._read, data, asked):
                before = results.get(key)
                if not isinstance(before, Completion):
                    results[key] = result
                elif isinstance(result, Completion) and result.text != before.text:
                    ambiguous.add(key)
        message = f"{self.server} sent two different replies to this request"
        return results | {key: ModelError(message, kind="malformed") for key in ambiguous}

    def _read(
        self, data: bytes, asked: Mapping[bytes, Request]
    ) -> list[tuple[bytes, Completion | ModelError]]:
        results: list[tuple[bytes, Completion | ModelError]] = []
        for line in data.split(b"\n"):
            try:
                row = json.loads(line)
                key = bytes.fromhex(row[self.id_name])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # reported as a missing line
            request = asked.get(key)
            try:
                completion = self._reply(row, request)
                if request is not None:
                    if request.constraint is not None:
                        completion = chat.sentence(completion, request.constraint, self._endpoint)
                    completion = chat.within(completion, request, self._endpoint)
                    completion = self._session.accepted.completed(completion, request, self._form)
                results.append((key, usable(completion, request)))
            except ModelError as error:
                if error.usage and request is not None:
                    error.usage = chat.plausible(error.usage, request)
                results.append((key, trimmed(error, self._endpoint.model)))
        return results

    def _read_body(self, body: Any) -> Completion:
        """Read a completion from a body that has the form of a direct call's reply."""
        return self._kind.api.read(json_bytes(body), self._endpoint)

    def _refused(self, status: int, said: object, request: Request | None) -> ModelError:
        """The error of one request that the server refused with a status."""
        fields = said if isinstance(said, dict) else {}
        # Other fields may quote the request.
        named, told = fields.get("param"), str(fields.get("message"))
        if status == 400 and (name := self._session.accepted.refuse(told, named)):
            return ModelError(
                f"{self._endpoint.model} rejects `{name}`; the request is repeated without it",
                kind="transport",
                usage=Usage(),
            )
        answer = StatusError(status, said)
        error = faults.refused(answer, self._endpoint)
        is_held = request is not None and request.constraint is not None
        if is_held and faults.refuses_constraint(answer):
            return ModelError(error.message, kind="unconstrained", help=self._kind.help)
        return error

    def _expired(self) -> ModelError:
        message = f"the batch expired at {self.server} before it processed this request"
        return ModelError(message, kind="deadline", is_sent=False)

    def _cancelled(self) -> ModelError:
        return ModelError(
            f"the batch was cancelled at {self.server}",
            kind="bad_request",
            is_sent=False,
            help="run the same command again to submit the remaining requests",
        )

    def missing(self, batch: Batch) -> ModelError:
        """The error of a request without a result."""
        if batch.state == "cancelled":
            return self._cancelled()
        if batch.state == "expired":
            return self._expired()
        message = f"the batch from {self.server} has no result for this request"
        return ModelError(message, kind="malformed")

    def _problem(
        self, reason: str | None, where: str = "", *, is_quota: bool = False
    ) -> ModelError:
        """The error of a batch that the server refused as a whole."""
        said = self._endpoint.quote(reason or "no reason given")
        return ModelError(
            f"{self.server} refused the batch: {said}{where}",
            kind="quota" if is_quota else "bad_request",
            help=f"check that '{self._endpoint.model}' can be used in batches",
        )

    async def _known(self, call: Awaitable[Result]) -> Result | None:
        """Await a call; return None if the server does not know the object (404)."""
        try:
            return await call
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def _call(self, call: Awaitable[Result], timeout_s: float | None = None) -> Result:
        timeout_s = timeout_s or self._session.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await call
        except TimeoutError:
            raise faults.too_slow(timeout_s, self._endpoint) from None
        except StatusError as error:
            if error.status in (404, 405):
                what = re.split(r"[/:]", error.path.rstrip("/"))[-1]
                if what in ("files", "batches", "batchGenerateContent"):
                    raise ModelError(
                        f"{self.server} has no Batch API ({error.status})",
                        kind="bad_request",
                        help="use --executor local with this server",
                    ) from None
                raise faults.refused(error, self._endpoint) from None
            raise await self._session.refused(error) from None


def batches_of(model: OpenAIModel) -> Batches:
    """The batches of a model by the Batch API of its server."""
    name = "openai" if model.server is None else model.server.batches
    vendor = import_module(f"{__name__}.{name}").VendorBatches
    made: Batches = vendor(model.session, model.server)
    return made
