"""Google's Batch API for Gemini, by Google's own interface; the OpenAI-compatible one takes other files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

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
from pearl.errors.escaping import json_bytes
from pearl.llm import Completion, Request
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
# Codes of google.rpc.Status → statuses of HTTP: invalid argument, deadline exceeded, not found,
# permission denied, resource exhausted, failed precondition, out of range, unauthenticated.
_STATUSES = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 16: 401}


class _Camel(Struct, frozen=True, rename="camel"):
    """Fields by the names of Google's JSON."""


class _File(_Camel, frozen=True):
    name: Annotated[str, Meta(min_length=1)]


class _Uploaded(_Camel, frozen=True):
    file: _File


class _Problem(_Camel, frozen=True):
    code: int | None = None
    message: str | None = None


# Google writes long integers as texts
_Count = Annotated[str, Meta(pattern=r"^[0-9]{1,12}$")] | int


class _Stats(_Camel, frozen=True):
    successful_request_count: _Count = 0
    failed_request_count: _Count = 0


class _Output(_Camel, frozen=True):
    responses_file: str = ""


class _Metadata(_Camel, frozen=True):
    state: str = ""
    display_name: str = ""
    batch_stats: _Stats = _Stats()
    output: _Output = _Output()


class _Told(_Camel, frozen=True):
    """A long-running operation of Google's API; `metadata` has the batch."""

    name: Annotated[str, Meta(pattern=r"^batches/[^/]+$")]
    metadata: _Metadata = _Metadata()
    response: _Output = _Output()
    error: _Problem = _Problem()


class _Operation(_Camel, frozen=True):
    told: _Told


class _Page(_Camel, frozen=True):
    operations: list[_Told] = []
    next_page_token: str = ""


class _Part(_Camel, frozen=True):
    text: str = ""
    thought: bool = False


class _Content(_Camel, frozen=True):
    parts: list[_Part] = []


class _Candidate(_Camel, frozen=True):
    content: _Content = _Content()
    finish_reason: str | None = None


class _Feedback(_Camel, frozen=True):
    block_reason: str | None = None


class _Reply(_Camel, frozen=True):
    candidates: list[_Candidate] = []
    prompt_feedback: _Feedback = _Feedback()
    usage_metadata: Any = None
    model_version: str | None = None


class VendorBatches(Batches):
    """The batches of one Gemini model."""

    # Google has no limit of requests, and one of 2 GB: these keep the memory of a round small.
    max_requests = 100_000
    max_bytes = 256_000_000
    id_name = "key"
    page_size = "pageSize"

    def __init__(self, session: HttpSession, server: Server | None) -> None:
        super().__init__(session, server)
        self._form = "gemini"
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
        config = self._session.accepted.parameters(request, self._form)
        form = None if request.constraint is None else request.constraint.json_form
        if form is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": form.schema}
        # Fields of a provider stand as they do in direct requests: what Google does not know it refuses.
        asked: Row = {**self._kind.fields, "contents": turns, "generationConfig": config}
        if system:
            asked["systemInstruction"] = {"parts": [{"text": "\n\n".join(system)}]}
        return asked

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Upload a file of requests, and return the server's name for it."""
        data = b"\n".join([*lines, b""])
        file = {"displayName": "requests.jsonl", "mimeType": KIND, "sizeBytes": len(data)}
        sent = self._wire().upload_resumably(f"/upload{VERSION}/files", file, data, KIND)
        body = await self._call(sent, TRANSFER_TIMEOUT_S)
        return chat.read_as(_Uploaded, body, self._endpoint, "file").file.name

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
        page = chat.read_as(_Page, body, self._endpoint, "listing of batches")
        own = [told for told in page.operations if told.metadata.display_name == submission.id]
        following: Query = {"pageToken": page.next_page_token} if page.next_page_token else {}
        return list(map(self._described, own)), following

    async def aclose(self) -> None:
        """Close the connections to the vendor's own interface."""
        await self._own.aclose()

    async def _download(self, place: str) -> bytes | None:
        path = f"{VERSION}/files/{place.removeprefix('files/')}:download"
        return await self._fetched(path, {"alt": "media"})

    def _batch(self, body: bytes) -> Batch:
        # A batch that has failed has an `error`, which `read_as` would take for that of the call.
        told = chat.read_as(_Operation, b'{"told":%b}' % body, self._endpoint, "batch").told
        return self._described(told)

    def _described(self, told: _Told) -> Batch:
        batch, stats = told.metadata, told.metadata.batch_stats
        state: State = _STATES.get(batch.state.rpartition("STATE_")[2], "unknown")
        file = batch.output.responses_file or told.response.responses_file
        return Batch(
            told.name,
            batch.state,
            state,
            int(stats.successful_request_count) + int(stats.failed_request_count),
            (file,) if file else (),
            self._problem(told.error.message) if state == "failed" else None,
            is_too_much=state == "failed" and told.error.code == 8,  # RESOURCE_EXHAUSTED
        )

    def _reply(self, row: Row, request: Request | None) -> Completion:
        error = row.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            if code == 1:  # CANCELLED
                raise self._cancelled()
            # Below 100 it is a code of google.rpc.Status, else already a status of HTTP.
            known = _STATUSES.get(code, 500) if isinstance(code, int) and code < 100 else code
            raise self._refused(known if isinstance(known, int) else 500, error, request)
        body = json_bytes(row.get("response"))
        reply = chat.read_as(_Reply, body, self._endpoint, "reply")
        choices = []
        if reply.prompt_feedback.block_reason:
            choices = [chat.ChatChoice(finish_reason="safety", message=chat.ChatMessage())]
        elif reply.candidates:
            first = reply.candidates[0]
            said = "".join(part.text for part in first.content.parts if not part.thought)
            thought = "".join(part.text for part in first.content.parts if part.thought)
            message = chat.ChatMessage(content=said, reasoning=thought or None)
            choices = [chat.ChatChoice(message=message, finish_reason=first.finish_reason)]
        whole = chat.ChatReply(choices=choices, model=reply.model_version)
        told: Any = reply.usage_metadata if isinstance(reply.usage_metadata, dict) else {}
        n_output: Any = "unreadable"  # `read_usage` then marks the usage as implausible
        with suppress(TypeError):  # Thoughts are billed as output.
            n_output = sum(told.get(f"{of}TokenCount") or 0 for of in ("candidates", "thoughts"))
        named = {
            "input": told.get("promptTokenCount"),
            "output": n_output,
            "cache_read_input_tokens": told.get("cachedContentTokenCount"),
        }
        return chat.completion_of(whole, chat.read_usage(named, "input", "output"), self._endpoint)
