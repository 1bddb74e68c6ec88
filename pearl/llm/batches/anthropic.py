"""Anthropic's Message Batches: the requests are the body of one call.

A batch has no name of ours. So a batch whose creation got no answer is looked for by its time and its
number of requests; whether it is ours shows when it is over, by the ids of its requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, Field

from pearl.errors import ModelError
from pearl.llm import Completion, Request
from pearl.llm.backends.openai import replies
from pearl.llm.backends.openai.servers import Body
from pearl.llm.batches import (
    MAX_PAGES,
    MAX_RESULT_BYTES,
    PAGE,
    TRANSFER_TIMEOUT_S,
    Batch,
    Batches,
    Row,
    Submission,
)

PATH = "/messages/batches"
CLOCKS_S = 3600.0  # Maximum difference between the clocks of this machine and of the server
_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413,
    "rate_limit_error": 429, "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip


class _Counts(BaseModel):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0


class _Told(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    processing_status: str
    created_at: AwareDatetime | None = None
    request_counts: _Counts = _Counts()


class _Page(BaseModel):
    data: list[_Told]
    has_more: bool = False
    last_id: str | None = None


class VendorBatches(Batches):
    """The batches of one model at Anthropic."""

    max_requests = 100_000
    max_bytes = 256_000_000

    def _line(self, id: str, request: Request, body: Body) -> Row:
        return {"custom_id": id, "params": body}

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Nothing: `create` sends the requests."""
        return ""

    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """Create a batch, which starts billing."""
        data = b'{"requests":[%b]}' % b",".join(lines)
        body = await self._call(self._session.connect().post(PATH, data), TRANSFER_TIMEOUT_S)
        return _batch(replies.read_as(_Told, body, self._endpoint, "batch"))

    async def retrieve(self, id: str) -> Batch | None:
        """The state of a batch; None if the server does not know it."""
        wire = self._session.connect()
        body = await self._call(self._known(wire.get(f"{PATH}/{quote(id, safe='')}")))
        if body is None:
            return None
        return _batch(replies.read_as(_Told, body, self._endpoint, "batch"))

    async def find(self, submission: Submission) -> Batch | None:
        """The batch with these requests if it is over, else one that may have them."""
        query: dict[str, str | int] = {"limit": PAGE}
        unsure: Batch | None = None
        for _ in range(MAX_PAGES):
            body = await self._call(self._session.connect().get(PATH, query))
            page = replies.read_as(_Page, body, self._endpoint, "listing of batches")
            for told in page.data:
                if not _may_be(told, submission):
                    continue
                batch = _batch(told)
                if not batch.is_over:
                    unsure = _batch(told, is_sure=False)
                elif (await self.results(batch, {}) or {}).keys() & submission.keys:
                    return batch
            if not page.has_more or page.last_id is None:
                break
            query["after_id"] = page.last_id
        return unsure

    async def _download(self, place: str) -> bytes | None:
        from pearl.llm.backends.openai.wire import at_most  # late: it imports aiohttp

        with at_most(MAX_RESULT_BYTES):
            path = f"{PATH}/{quote(place, safe='')}/results"
            return await self._known(self._session.connect().get(path))

    def _reply(self, row: Row, request: Request | None) -> Completion:
        result: Row = row["result"] if isinstance(row.get("result"), dict) else {}
        match result.get("type"):
            case "succeeded":
                return self._read_body(result.get("message"), request)
            case "errored":
                said = result.get("error")
                said = said.get("error", said) if isinstance(said, dict) else said
                name = said.get("type") if isinstance(said, dict) else None
                raise self._refused(_STATUSES.get(str(name), 500), said, request)
            case "expired":
                raise self._expired()
            case "canceled":
                raise self._cancelled()
        raise ModelError(f"a line from {self.server} has no result", kind="malformed")


def _batch(told: _Told, *, is_sure: bool = True) -> Batch:
    counts, status = told.request_counts, told.processing_status.lower()
    is_over = status == "ended"
    return Batch(
        told.id,
        status,
        "completed"
        if is_over
        else "waiting"
        if status in ("in_progress", "canceling")
        else "unknown",
        counts.succeeded + counts.errored + counts.canceled + counts.expired,
        (told.id,) if is_over else (),
        is_sure=is_sure,
    )


def _may_be(told: _Told, submission: Submission) -> bool:
    counts = told.request_counts
    n = sum(counts.model_dump().values())
    at = datetime.timestamp(told.created_at) if told.created_at else submission.created_at
    return n == len(submission.keys) and at >= submission.created_at - CLOCKS_S
