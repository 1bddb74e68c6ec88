"""Google's Batch API for Gemini, by Google's own interface; the OpenAI-compatible one takes other files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace
from pydantic import AliasPath, BaseModel, Field

from pearl.contrib.batches import (
    TRANSFER_TIMEOUT_S,
    Batch,
    Batches,
    Query,
    Row,
    State,
    Submission,
    read_as,
)
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Request, Usage
from pearl.llm.backends.openai import chat
from pearl.llm.backends.openai.api import Body
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import HttpSession

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire

VERSION = "/v1beta"
KIND = "application/jsonl"
_STATES: dict[str, State] = {
    "SUCCEEDED": "completed", "PARTIALLY_SUCCEEDED": "completed", "FAILED": "failed",
    "EXPIRED": "expired", "CANCELLED": "cancelled", "QUEUED": "waiting", "PENDING": "waiting",
    "RUNNING": "waiting", "CANCELLING": "waiting", "PAUSED": "waiting", "UPDATING": "waiting",
}  # fmt: skip
# Codes of google.rpc.Status → statuses of HTTP.
_STATUSES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 16: 401}


class _File(BaseModel):
    name: Annotated[str, Field(min_length=1, validation_alias=AliasPath("file", "name"))]


class _Problem(BaseModel):
    code: int | None = None
    message: str | None = None


class _Told(BaseModel):
    """A long-running operation of Google's API; `metadata` has the batch."""

    name: Annotated[str, Field(pattern=r"^batches/[^/]+$")]
    state: str = Field("", validation_alias=AliasPath("metadata", "state"))
    title: str | None = Field(None, validation_alias=AliasPath("metadata", "displayName"))
    n_succeeded: int | None = Field(
        None, validation_alias=AliasPath("metadata", "batchStats", "successfulRequestCount")
    )
    n_failed: int | None = Field(
        None, validation_alias=AliasPath("metadata", "batchStats", "failedRequestCount")
    )
    file: str | None = Field(
        None, validation_alias=AliasPath("metadata", "output", "responsesFile")
    )
    told_file: str | None = Field(None, validation_alias=AliasPath("response", "responsesFile"))
    error: _Problem | None = None


class _Operation(BaseModel):
    told: _Told


class _Page(BaseModel):
    operations: list[_Told] = []
    next: str = Field("", validation_alias="nextPageToken")


class _Part(BaseModel):
    text: str | None = None
    thought: bool = False


class _Candidate(BaseModel):
    parts: list[_Part] = Field([], validation_alias=AliasPath("content", "parts"))
    reason: str | None = Field(None, validation_alias="finishReason")


class _Reply(BaseModel):
    candidates: list[_Candidate] = []
    blocked: str | None = Field(None, validation_alias=AliasPath("promptFeedback", "blockReason"))
    usage: Any = Field(None, validation_alias="usageMetadata")
    model: str | None = Field(None, validation_alias="modelVersion")


class VendorBatches(Batches):
    """The batches of one Gemini model."""

    # Google has no limit of requests, and one of 2 GB: these keep the memory of a round small.
    max_requests = 100_000
    max_bytes = 256_000_000
    id_name = "key"
    page_size = "pageSize"

    def __init__(self, session: HttpSession, server: Server | None) -> None:
        super().__init__(session, server)
        endpoint = self._endpoint
        address = endpoint.url.partition(VERSION)[0]
        root = Endpoint(address, endpoint.model, endpoint.key, endpoint.key_variable)
        api = replace(self._kind.api, key_headers=lambda key: {"x-goog-api-key": key})
        own = replace(self._kind, api=api)
        self._own = HttpSession(root, self._session.timeout_s, server=own)

    def _wire(self) -> Wire:
        return self._own.connect()

    def _line(self, id: str, body: Body) -> Row:
        return {"key": id, "request": body}

    def _body(self, request: Request) -> Body:
        system = [message.content for message in request.messages if message.role == "system"]
        turns = [
            {"role": "model" if each.role == "assistant" else "user", "parts": [{"text": each.content}]}
            for each in request.messages
            if each.role != "system"
        ]  # fmt: skip
        config = self._session.accepted.parameters(request, "gemini")
        form = None if request.constraint is None else request.constraint.json_form
        if form is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": form.schema}
        asked: Row = {"contents": turns, "generationConfig": config}
        if system:
            asked["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
        return asked

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Upload a file of requests, and return the server's name for it."""
        data = b"\n".join([*lines, b""])
        file = {"displayName": "requests.jsonl", "mimeType": KIND, "sizeBytes": len(data)}
        sent = self._wire().upload_resumably(f"/upload{VERSION}/files", file, data, KIND)
        body = await self._call(sent, TRANSFER_TIMEOUT_S)
        return read_as(_File, body, self._endpoint, "file").name

    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """Create a batch from a file, which starts billing."""
        model = self._endpoint.model.removeprefix("models/")
        source = {"fileName": submission.file_id}
        path = f"{VERSION}/models/{model}:batchGenerateContent"
        asked = {"batch": {"displayName": submission.id, "inputConfig": source}}
        return self._batch(await self._call(self._wire().post(path, asked)))

    def _path(self, id: str = "batches") -> str:
        return f"{VERSION}/{id}"

    def _page(self, body: bytes, submission: Submission) -> tuple[list[Batch], Query]:
        page = read_as(_Page, body, self._endpoint, "listing of batches")
        same = [self._described(told) for told in page.operations if told.title == submission.id]
        return same, {"pageToken": page.next} if page.next else {}

    async def aclose(self) -> None:
        """Close the connections to the vendor's own interface."""
        await self._own.aclose()

    async def _download(self, place: str) -> bytes | None:
        path = f"{VERSION}/files/{place.removeprefix('files/')}:download"
        return await self._fetched(path, {"alt": "media"})

    def _batch(self, body: bytes) -> Batch:
        # A batch that has failed has an `error`, which `read_as` would take for that of the call.
        told = read_as(_Operation, b'{"told":%b}' % body, self._endpoint, "batch").told
        return self._described(told)

    def _described(self, told: _Told) -> Batch:
        state: State = _STATES.get(told.state.rpartition("STATE_")[2], "unknown")
        problem = told.error or _Problem()
        file = told.file or told.told_file
        return Batch(
            told.name,
            told.state,
            state,
            (told.n_succeeded or 0) + (told.n_failed or 0),
            (file,) if file else (),
            self._problem(problem.message) if state == "failed" else None,
            is_too_much=state == "failed" and problem.code == 8,
        )

    def _reply(self, row: Row, request: Request | None) -> Completion:
        error = row.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            if code == 1:  # CANCELLED
                raise self._cancelled()
            known = _STATUSES.get(code, 500) if isinstance(code, int) and code < 100 else code
            raise self._refused(known if isinstance(known, int) else 500, error, request)
        reply = read_as(_Reply, json_bytes(row.get("response")), self._endpoint, "reply")
        usage = _usage(reply.usage)
        choices = [_choice(candidate) for candidate in reply.candidates]
        if reply.blocked:
            choices = [chat.ChatChoice(finish_reason="safety", message=chat.ChatMessage())]
        whole = chat.ChatReply(choices=choices, model=reply.model)
        return chat.completion_of(whole, usage, self._endpoint)


def _choice(candidate: _Candidate) -> chat.ChatChoice:
    said = "".join(part.text or "" for part in candidate.parts if not part.thought)
    thought = "".join(part.text or "" for part in candidate.parts if part.thought)
    message = chat.ChatMessage(content=said, reasoning=thought or None)
    return chat.ChatChoice(message=message, finish_reason=candidate.reason)


def _usage(told: Any) -> Usage:
    """The usage of a reply; thoughts are billed as output."""
    told = told if isinstance(told, dict) else {}
    names = ("candidatesTokenCount", "thoughtsTokenCount")
    try:
        n_output: Any = sum(told.get(name) or 0 for name in names)
    except TypeError:
        n_output = "unreadable"
    named = {
        "input": told.get("promptTokenCount"),
        "output": n_output,
        "cache_read_input_tokens": told.get("cachedContentTokenCount"),
    }
    return chat.read_usage(named, "input", "output")
