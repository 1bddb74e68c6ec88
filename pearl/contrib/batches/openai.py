"""OpenAI's Batch API: upload a file of requests, download a file of chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta, Struct

from pearl.contrib.batches import (
    TRANSFER_TIMEOUT_S,
    Batch,
    Batches,
    Query,
    Row,
    State,
    Submission,
)
from pearl.errors import ModelError
from pearl.llm import Completion, Request
from pearl.llm.backends.openai import chat, faults
from pearl.llm.backends.openai.api import Body

_STATES: dict[str, State] = {
    "completed": "completed", "failed": "failed", "expired": "expired", "cancelled": "cancelled",
    "validating": "waiting", "in_progress": "waiting", "finalizing": "waiting", "cancelling": "waiting",
}  # fmt: skip
PATH = "/v1/chat/completions"
_Id = Annotated[str, Meta(min_length=1)]


class _File(Struct):
    id: _Id


class _Problem(Struct):
    code: str | None = None
    message: str | None = None
    line: int | None = None


class _Problems(Struct):
    data: list[_Problem] | None = None


class _Counts(Struct):
    completed: int | None = None
    failed: int | None = None


class _Told(Struct):
    id: _Id
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: _Problems | None = None


class _Page(Struct):
    data: list[_Told]
    has_more: bool = False


class VendorBatches(Batches):
    """The batches of one model at OpenAI, or at a server with its Batch API."""

    max_requests = 50_000
    max_bytes = 200_000_000
    told = _Told

    def _line(self, id: str, body: Body) -> Row:
        return {"custom_id": id, "method": "POST", "url": PATH, "body": body}

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Upload a file of requests; returns the server's id."""
        data = b"\n".join([*lines, b""])
        sent = self._wire().upload("/files", "requests.jsonl", data, {"purpose": "batch"})
        body = await self._call(sent, TRANSFER_TIMEOUT_S)
        return chat.read_as(_File, body, self._endpoint, "file").id

    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """Create a batch from a file, which starts billing."""
        asked = {"input_file_id": submission.file_id, "endpoint": PATH, "completion_window": "24h"}
        return self._batch(await self._call(self._wire().post(self.path, asked)))

    def _page(self, body: bytes, submission: Submission) -> tuple[list[Batch], Query]:
        page = chat.read_as(_Page, body, self._endpoint, "listing of batches")
        same = [told for told in page.data if told.input_file_id == submission.file_id]
        following: Query = {"after": page.data[-1].id} if page.has_more and page.data else {}
        return list(map(self._described, same)), following

    async def _download(self, place: str) -> bytes | None:
        return await self._fetched(f"/files/{quote(place, safe='')}/content")

    def _described(self, told: _Told) -> Batch:
        status, counts = told.status.lower(), told.request_counts or _Counts()
        first = next(iter((told.errors and told.errors.data) or ()), _Problem())
        where = f" (line {first.line})" if first.line is not None else ""
        is_quota = first.code == "insufficient_quota"
        problem = self._problem(first.message or first.code, where, is_quota=is_quota)
        return Batch(
            told.id,
            status,
            _STATES.get(status, "unknown"),
            (counts.completed or 0) + (counts.failed or 0),
            tuple(id for id in (told.output_file_id, told.error_file_id) if id),
            problem if status == "failed" else None,
            is_too_much=first.code == "token_limit_exceeded",
        )

    def _reply(self, row: Row, request: Request | None) -> Completion:
        error, response = row.get("error"), row.get("response")
        if isinstance(error, dict) and error.get("code") == "batch_expired":
            raise self._expired()
        if isinstance(error, dict) and error.get("code") == "batch_cancelled":
            raise self._cancelled()
        status: Any = response.get("status_code") if isinstance(response, dict) else None
        is_refused = isinstance(status, int) and 400 <= status < 600
        if error and not is_refused:
            raise faults.reported(error, self._endpoint)
        if not isinstance(response, dict):
            raise ModelError(f"a line from {self.server} has no response", kind="malformed")
        body = response.get("body")
        if status in (200, "200"):
            return self._read_body(body)
        if not is_refused:
            raise ModelError(f"a line from {self.server} has no status", kind="malformed")
        said: Any = body or error  # vLLM puts the error where OpenAI has none
        if isinstance(said, dict):
            said = said.get("error", said)
        raise self._refused(status, said, request)
