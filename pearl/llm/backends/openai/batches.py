"""The Batch API of a server: upload a file of requests, download a file of replies hours later.

Each line of either file has a `custom_id`, the digest of everything the reply depends on, so lines
are matched regardless of order and process. A line is validated like a direct reply. Retries are up
to the caller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import AfterValidator, AliasPath, BaseModel, Field

from pearl.errors import ModelError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Request
from pearl.llm.backends.openai import faults, replies
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.replies import plausible
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.flaws import is_blank
from pearl.llm.usable import trimmed, usable

MAX_REQUESTS = 50_000  # Maximum requests per batch (OpenAI's limit)
MAX_BYTES = 200_000_000  # Maximum bytes of a request file (OpenAI's limit)
PATH: Literal["/v1/chat/completions"] = "/v1/chat/completions"
TRANSFER_TIMEOUT_S = 3600.0  # Time limit of an upload or download in seconds
MAX_RESULT_BYTES = 2**30  # Maximum bytes of a reply file: five times the request file
PAGE = 100  # Batches per page of the listing
MAX_PAGES = 10  # Pages of the listing of batches that are searched, latest first
_MARK = lazy_pattern(r"\[ref: ([a-p]{6})\]")
_MARK_LINE = lazy_pattern(rf"[ \t*_`>#]*+{_MARK.pattern}[ \t*_`]*+:?+\n?")
_ASKED = "\n\nBegin your reply with this line: [ref: {}]"
_MARK_TOKENS = 16  # Maximum tokens of the mark in a reply
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})

Result = TypeVar("Result")


_Id = Annotated[str, Field(min_length=1)]


class _File(BaseModel):
    id: _Id


class _Problem(BaseModel):
    code: replies.Text | None = None
    message: replies.Text | None = None
    line: int | None = None


class Batch(BaseModel):
    """A batch as the server describes it."""

    id: _Id
    status: Annotated[str, AfterValidator(str.lower)]
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    n_completed: int | None = Field(None, validation_alias=AliasPath("request_counts", "completed"))
    n_failed: int | None = Field(None, validation_alias=AliasPath("request_counts", "failed"))
    first_problem: _Problem | None = Field(None, validation_alias=AliasPath("errors", "data", 0))

    @property
    def is_over(self) -> bool:
        """Whether its status is final."""
        return self.status in _OVER

    @property
    def is_under_way(self) -> bool:
        """Whether its status is known and will change."""
        return self.status in _UNDER_WAY

    @property
    def n_done(self) -> int:
        """Requests that are answered, usable or not."""
        return (self.n_completed or 0) + (self.n_failed or 0)

    @property
    def is_too_much(self) -> bool:
        """Whether the server refused it because too many tokens wait in all batches."""
        return self.first_problem is not None and self.first_problem.code == "token_limit_exceeded"


class _Page(BaseModel):
    data: list[Batch]
    has_more: bool = False


class Batches:
    """The batches of one model."""

    def __init__(self, session: HttpSession) -> None:
        self.server = session.endpoint.shown
        self._session = session
        self._endpoint = session.endpoint
        self._timeout_s = session.timeout_s

    def line(self, key: bytes, request: Request) -> bytes:
        """An unconstrained request with its key of 32 bytes, as one line of a file.

        It asks for a mark at the head of the reply, which reveals a reply to another request.
        """
        *before, last = request.messages
        asked = replace(last, content=last.content + _ASKED.format(_mark(key)))
        limit = request.max_output_tokens
        marked = replace(
            request,
            messages=(*before, asked),
            max_output_tokens=None if limit is None else limit + _MARK_TOKENS,
        )
        body = self._session.parameters.body(marked)
        row = {"custom_id": key.hex(), "method": "POST", "url": PATH, "body": body}
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"

    async def upload(self, data: bytes) -> str:
        """Upload a file of requests; returns the server's id."""
        wire = self._session.connect()
        sent = wire.upload("/files", "requests.jsonl", data, {"purpose": "batch"})
        body = await self._call(sent, TRANSFER_TIMEOUT_S)
        return replies.read_as(_File, body, self._endpoint, "file").id

    async def create(self, file_id: str) -> Batch:
        """Create a batch from a file, which starts billing."""
        asked = {"input_file_id": file_id, "endpoint": PATH, "completion_window": "24h"}
        body = await self._call(self._session.connect().post("/batches", asked), self._timeout_s)
        return replies.read_as(Batch, body, self._endpoint, "batch")

    async def retrieve(self, id: str) -> Batch | None:
        """The state of a batch; None if the server does not know it."""
        body = await self._call(self._found(f"/batches/{quote(id, safe='')}"), self._timeout_s)
        if body is None:
            return None
        return replies.read_as(Batch, body, self._endpoint, "batch")

    async def find(self, file_id: str) -> Batch | None:
        """The batch created from a file; None if it is not among the latest ones."""
        query: dict[str, str | int] = {"limit": PAGE}
        for _ in range(MAX_PAGES):
            body = await self._call(self._session.connect().get("/batches", query), self._timeout_s)
            page = replies.read_as(_Page, body, self._endpoint, "listing of batches")
            for batch in page.data:
                if batch.input_file_id == file_id:
                    return batch
            if not page.has_more or not page.data:
                break
            query["after"] = page.data[-1].id
        return None

    def problem(self, batch: Batch) -> ModelError | None:
        """Why the server refused a batch; None if it did not."""
        if batch.status != "failed":
            return None
        first = batch.first_problem or _Problem()
        reason = self._endpoint.quote(first.message or first.code or "no reason given")
        where = f" (line {first.line})" if first.line is not None else ""
        return ModelError(
            f"{self.server} refused the batch: {reason}{where}",
            kind="quota" if first.code == "insufficient_quota" else "bad_request",
            help=f"check that '{self._endpoint.model}' can be used in batches",
        )

    async def results(
        self, batch: Batch, asked: Mapping[bytes, Request]
    ) -> dict[bytes, Completion | ModelError] | None:
        """The results of a finished batch, by request key; None if the server does not have them.

        Unreadable lines and requests without a line are missing. Of several lines for a request,
        the first usable one counts; different replies to one request are an error.
        """
        from pearl.llm.backends.openai.wire import at_most  # late: it imports aiohttp

        files = [id for id in (batch.output_file_id, batch.error_file_id) if id]
        if batch.status == "completed" and not files:
            return None
        results: dict[bytes, Completion | ModelError] = {}
        ambiguous: set[bytes] = set()
        for file_id in files:
            content = self._found(f"/files/{quote(file_id, safe='')}/content")
            with at_most(MAX_RESULT_BYTES):
                data = await self._call(content, TRANSFER_TIMEOUT_S)
            if data is None:
                return None
            # In a thread: a file of 50,000 lines would block the event loop for seconds.
            for key, result in await asyncio.to_thread(lambda d: list(self._read(d, asked)), data):
                before = results.get(key)
                if not isinstance(before, Completion):
                    results[key] = result
                elif isinstance(result, Completion) and result.text != before.text:
                    ambiguous.add(key)
        message = f"{self.server} sent two different replies to this request"
        return results | {key: ModelError(message, kind="malformed") for key in ambiguous}

    async def _found(self, path: str) -> bytes | None:
        """The body of a path; None if the server does not have it."""
        try:
            return await self._session.connect().get(path)
        except StatusError as error:
            if error.status != 404:
                raise
            return None

    async def _call(self, call: Awaitable[Result], timeout_s: float) -> Result:
        try:
            async with asyncio.timeout(timeout_s):
                return await call
        except TimeoutError:
            raise faults.too_slow(timeout_s, self._endpoint) from None
        except StatusError as error:
            if error.status in (404, 405):
                what = error.path.rstrip("/").rpartition("/")[2]
                if what in ("files", "batches"):
                    raise ModelError(
                        f"{self.server} has no Batch API ({error.status})",
                        kind="bad_request",
                        help="use --executor local with this server",
                    ) from None
                raise faults.refused(error, self._endpoint) from None
            raise await self._session.refused(error) from None

    def _read(
        self, data: bytes, asked: Mapping[bytes, Request]
    ) -> Iterator[tuple[bytes, Completion | ModelError]]:
        for line in data.split(b"\n"):
            try:
                row = json.loads(line)
                key = bytes.fromhex(row["custom_id"])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # reported as a missing line
            request = asked.get(key)
            try:
                completion = self._unmarked(key, self._completion(row), asked)
                if request is not None:
                    completion = replies.within(completion, request, self._endpoint)
                yield key, usable(completion, request)
            except ModelError as error:
                error.reply = _MARK_LINE.sub("", error.reply)
                if error.usage and request is not None:
                    error.usage = plausible(error.usage, request)
                yield key, trimmed(error, self._endpoint.model)

    def _unmarked(
        self, key: bytes, completion: Completion, asked: Mapping[bytes, Request]
    ) -> Completion:
        """The reply without its mark; a missing mark is accepted, because many models omit it."""
        marks = set(_MARK.findall(completion.text))
        if _mark(key) not in marks:
            if marks & set(map(_mark, asked)):
                message = f"{self.server} sent the reply to another request"
                raise ModelError(message, kind="malformed", usage=completion.usage)
            return completion
        text = _MARK_LINE.sub("", completion.text).strip()
        if is_blank(text):
            raise replies.blank(self._endpoint)
        return replace(completion, text=text)

    def _completion(self, row: dict[str, Any]) -> Completion:
        """The reply in a line."""
        error, response = row.get("error"), row.get("response")
        if isinstance(error, dict) and error.get("code") == "batch_expired":
            raise ModelError(
                f"the batch expired at {self.server} before it processed this request",
                kind="deadline",
            )
        if error:
            raise faults.reported(error, self._endpoint)
        if not isinstance(response, dict):
            raise ModelError(f"a line from {self.server} has no response", kind="malformed")
        status, body = response.get("status_code"), response.get("body")
        if status in (200, "200"):
            return replies.read_completion(json.dumps(body).encode(), self._endpoint)
        said = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(status, int) or not 400 <= status < 600:
            raise ModelError(f"a line from {self.server} has no status", kind="malformed")
        if status == 400 and isinstance(said, dict) and _is_about_temperature(said):
            self._session.parameters.takes_temperature = False
            message = (
                f"{self._endpoint.model} rejects a temperature; the request is repeated without it"
            )
            raise ModelError(message, kind="transport")
        raise faults.refused(StatusError(status, said), self._endpoint)


def _mark(key: bytes) -> str:
    """Six letters that identify a request within its file; digits could be read as figures."""
    return key.hex()[:6].translate(_LETTERS)


def _is_about_temperature(error: dict[str, Any]) -> bool:
    # Other fields may quote the request.
    return error.get("param") == "temperature" or "temperature" in str(error.get("message"))
