"""Anthropic's Message Batches: the requests are the body of one call.

A batch cannot carry our own id. If the reply to its creation is lost, it is looked for by its time and its
number of requests; the ids of its requests confirm the match when it is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

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
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Request
from pearl.llm.backends.openai import chat
from pearl.llm.backends.openai.api import Body
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import HttpSession

CLOCKS_S = 3600.0  # Maximum difference between the clocks of this machine and of the server
_STATES: dict[str, State] = {
    "in_progress": "waiting", "canceling": "waiting", "ended": "completed",
}  # fmt: skip
# Models since Opus 4.7 refuse a temperature; in batches that would take a round to find out.
_IS_WITHOUT_TEMPERATURE = lazy_pattern(r"claude-(?:opus-4-[7-9]|[a-z]+-(?:[5-9]|\d\d))(?!\d)")
# Types of errors → statuses of HTTP; others are those of the server.
_STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402,
    "permission_error": 403, "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429,
}  # fmt: skip


class _Told(Struct):
    id: Annotated[str, Meta(min_length=1)]
    processing_status: str
    created_at: Annotated[datetime, Meta(tz=True)] | None = None
    request_counts: dict[str, int] = {}  # by state; `processing` until the batch has ended


class _Page(Struct):
    data: list[_Told]
    has_more: bool = False
    last_id: str | None = None


class VendorBatches(Batches):
    """The batches of one model at Anthropic."""

    max_requests = 100_000
    max_bytes = 256_000_000
    path = "/messages/batches"
    told = _Told

    def __init__(self, session: HttpSession, server: Server | None) -> None:
        super().__init__(session, server)
        if _IS_WITHOUT_TEMPERATURE.match(self._endpoint.model):
            self._session.accepted.refused.add("temperature")

    def _line(self, id: str, body: Body) -> Row:
        return {"custom_id": id, "params": body}

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Upload nothing: `create` sends the requests."""
        return ""

    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """Create a batch, which starts billing."""
        data = b'{"requests":[%b]}' % b",".join(lines)
        body = await self._call(self._wire().post(self.path, data), TRANSFER_TIMEOUT_S)
        return self._batch(body)

    def _described(self, told: _Told) -> Batch:
        counts, status = told.request_counts, told.processing_status.lower()
        state = _STATES.get(status, "unknown")
        n_done = sum(counts.values()) - counts.get("processing", 0)
        return Batch(told.id, status, state, n_done, (told.id,) if state == "completed" else ())

    def _page(self, body: bytes, submission: Submission) -> tuple[list[Batch], Query]:
        page = chat.read_as(_Page, body, self._endpoint, "listing of batches")
        same = []
        for told in page.data:
            at = told.created_at.timestamp() if told.created_at else submission.created_at
            is_as_large = sum(told.request_counts.values()) == len(submission.keys)
            if is_as_large and at >= submission.created_at - CLOCKS_S:
                same.append(replace(self._described(told), is_sure=False))
        return same, {"after_id": page.last_id} if page.has_more and page.last_id else {}

    async def _download(self, place: str) -> bytes | None:
        return await self._fetched(f"{self._path(place)}/results")

    def _reply(self, row: Row, request: Request | None) -> Completion:
        result: Row = row["result"] if isinstance(row.get("result"), dict) else {}
        match result.get("type"):
            case "succeeded":
                return self._read_body(result.get("message"))
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
