"""Collects calls and sends them as batches; to a caller it is a slow model.

A round is the requests that are collected until none arrives for a while.

The order of the steps makes a kill harmless: upload the file (free), write the record, create the batch (paid), store the replies, remove the record. A restart finds the record.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pearl.errors import ModelError, PausedError, StoreError
from pearl.llm import Completion, Model, Request
from pearl.llm.backends.openai.batches import MAX_BYTES, MAX_REQUESTS, Batch, Batches
from pearl.llm.middleware.caching import Replies, request_key
from pearl.llm.middleware.retry import CircuitBreaker
from pearl.llm.middleware.wrappers import Wrapper
from pearl.plugins.files import make_private
from pearl.plugins.persistence import sync_folder

FOLDER = "batches"
KEPT_AT_ONCE = 1_000  # Replies that are stored concurrently; the store groups them
POLL_GROWTH = 1.5
# Iterations of the event loop that have to be quiet, too, because on a busy machine it lags.
PASSES = 20

Result = TypeVar("Result")


class PendingBatch(BaseModel):
    """A batch that was submitted or is about to be."""

    model_config = ConfigDict(ser_json_bytes="hex", val_json_bytes="hex")

    server: str
    model: str
    file_id: str
    keys: frozenset[bytes]
    batch_id: str | None = None
    path: Path | None = Field(default=None, exclude=True)

    def save(self) -> None:
        """Write the record, synced to disk."""
        if self.path is None:
            return
        part = self.path.with_suffix(".part")
        try:
            with os.fdopen(
                os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb"
            ) as file:
                file.write(self.model_dump_json().encode())
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path)
            sync_folder(part.parent)
        except OSError as error:
            raise StoreError(error.strerror or str(error), path=self.path) from None

    def remove(self) -> None:
        """Remove the record of a batch that was read."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class PendingBatches:
    """The batches of one model at one server that are not read yet."""

    def __init__(self, folder: Path | None, server: str, model: str) -> None:
        self._folder = folder and folder / FOLDER
        self._server = server
        self._model = model
        self._by_key: dict[bytes, PendingBatch] = {}
        if self._folder is not None:
            try:
                make_private(self._folder)
                for path in sorted(self._folder.glob("*.json")):
                    self._load(path)
            except OSError as error:
                raise StoreError(error.strerror or str(error), path=self._folder) from None

    def take(self, keys: Iterable[bytes]) -> list[PendingBatch]:
        """Take the batches with these requests; each is returned once, unless it is put back."""
        records = {id(record): record for key in keys if (record := self._by_key.get(key))}
        for record in records.values():
            for key in record.keys:
                if self._by_key.get(key) is record:
                    del self._by_key[key]
        return list(records.values())

    def put_back(self, record: PendingBatch) -> None:
        """Return a batch that was not read after all."""
        self._by_key.update(dict.fromkeys(record.keys, record))

    def add(self, file_id: str, keys: Iterable[bytes]) -> PendingBatch:
        """Record a batch that is about to be created."""
        path = self._folder and self._folder / f"{uuid4().hex}.json"
        record = PendingBatch(
            server=self._server, model=self._model, file_id=file_id, keys=frozenset(keys), path=path
        )
        record.save()
        return record

    def _load(self, path: Path) -> None:
        try:
            record = PendingBatch.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return  # another process has read its batch meanwhile
        except ValidationError:
            raise StoreError(
                "it is not a record of a batch",
                path=path,
                help="remove it; its requests may then be submitted and billed again",
            ) from None
        if (record.server, record.model) == (self._server, self._model):
            record.path = path
            self.put_back(record)


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing and size limits."""

    quiet_s: float = 2.0
    poll_s: float = 5.0
    longest_poll_s: float = 60.0
    patience_s: float = 3600.0
    max_requests: int = MAX_REQUESTS
    max_bytes: int = MAX_BYTES


DEFAULT_PACE = Pace()


@dataclass(slots=True)
class BatchProgress:
    """Progress of a round."""

    round: int
    n_requests: int
    n_found: int = 0
    n_batches: int = 0
    n_done: int = 0
    is_left: bool = False

    def __str__(self) -> str:
        """One line for the user."""
        requests = f"{self.n_requests:,} request{'' if self.n_requests == 1 else 's'}"
        batches = f"{self.n_batches:,} batch{'' if self.n_batches == 1 else 'es'}"
        found = f" ({self.n_found:,} submitted before)" if self.n_found else ""
        if self.is_left:
            state = "still running at the server; run the same command again to read the replies"
        else:
            state = f"{self.n_done:,} done" if self.n_done else "waiting"
        return f"round {self.round}: {requests}{found} in {batches}, {state}"


OnTrouble = Callable[[ModelError, float], None]
"""Callback for a failed call, with the seconds of further retries."""


class Batched(Wrapper):
    """Collects requests and sends them by rounds through the Batch API.

    Identical requests are deduplicated; a request whose batch is in progress, since this process or
    an earlier one, is not submitted again. Constrained requests and requests for likelihoods go to the model directly,
    because probing a server needs single calls. Close it in the event loop that uses it.
    """

    def __init__(
        self,
        model: Model,
        batches: Batches,
        *,
        replies: Replies | None = None,
        folder: Path | None = None,
        pace: Pace = DEFAULT_PACE,
        breaker: CircuitBreaker | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        on_progress: Callable[[BatchProgress], None] | None = None,
        on_trouble: OnTrouble | None = None,
    ) -> None:
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._batches = batches
        self._records = PendingBatches(folder, batches.server, model.name)
        self._replies = replies
        self._pace = pace
        self._is_busy = is_busy
        self._on_progress = on_progress
        self._on_trouble = on_trouble
        self._futures: dict[bytes, asyncio.Future[Completion]] = {}
        self._n_waiting: dict[bytes, int] = {}
        self._collected: dict[bytes, Request] = {}
        self._n_direct = 0
        self._n_rounds = 0
        self._n_batches = 0  # that are waited for
        self._batch_ended = asyncio.Event()
        self._resubmitting = asyncio.Lock()
        self._is_in_trouble = False
        self._unreadable: set[bytes] = set()  # requests whose paid result was unreadable
        self._stirred_at = 0.0
        self._watch: asyncio.Task[None] | None = None
        self._rounds: set[asyncio.Task[None]] = set()

    def stir(self) -> None:
        """Delay the end of the round, because more requests may follow soon."""
        self._stirred_at = monotonic()

    async def complete(self, request: Request) -> Completion:
        """Send one request, with the others of its round."""
        self.breaker.check()
        if request.constraint is not None or request.candidates:
            return await self._complete_directly(request)
        key = request_key(request, self.identity)
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
            self._collected[key] = request
        self.stir()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._collect())
        self._n_waiting[key] = self._n_waiting.get(key, 0) + 1
        try:
            return await self.breaker.interruptible(asyncio.shield(self._futures[key]))
        finally:
            self._leave(key)

    def leave(self) -> None:
        """End the run; submitted batches continue at the server."""
        n = self._n_batches
        left = f"{n:,} batch{'' if n == 1 else 'es'} still running at the server"
        self.breaker.throw(
            PausedError(
                left if n else "stopped before anything was submitted",
                help="run the same command again to read their replies",
            )
        )

    async def aclose(self) -> None:
        """Stop waiting. The wrapped model stays open, because this one does not own it."""
        ending = [*self._rounds, *([self._watch] if self._watch else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _complete_directly(self, request: Request) -> Completion:
        self._n_direct += 1
        try:
            return await self._model.complete(request)
        finally:
            self._n_direct -= 1
            self.stir()

    async def _collect(self) -> None:
        """Start a round whenever it is quiet, until no requests are left."""
        while self._collected:
            await self._quiet()
            requests, self._collected = self._collected, {}
            if requests and self.breaker.error is None:
                round = asyncio.create_task(self._round(requests))
                self._rounds.add(round)
                round.add_done_callback(self._rounds.discard)

    async def _quiet(self) -> None:
        while True:
            wait_s = self._stirred_at + self._pace.quiet_s - monotonic()
            if wait_s > 0 or self._n_direct or self._is_busy():
                await asyncio.sleep(max(wait_s, self._pace.quiet_s / 4))
                continue
            seen = self._stirred_at
            for _ in range(PASSES):
                await asyncio.sleep(0)
            if self._stirred_at == seen:
                return

    async def _round(self, requests: Mapping[bytes, Request]) -> None:
        """Carry out one round of requests, by key, until each has its reply or error."""
        try:
            await self._carry_out(requests)
        except Exception as error:  # noqa: BLE001 - a bug must not leave callers waiting
            self._fail(requests, error)

    async def _carry_out(self, requests: Mapping[bytes, Request]) -> None:
        self._n_rounds += 1
        records = self._records.take(requests)
        found = {key for record in records for key in record.keys & requests.keys()}
        progress = BatchProgress(self._n_rounds, len(requests), len(found))
        try:
            async with asyncio.TaskGroup() as group:
                for record in records:
                    asked = {key: requests[key] for key in record.keys & requests.keys()}
                    group.create_task(self._see_through(asked, record, progress, is_new=False))
                rest = {key: request for key, request in requests.items() if key not in found}
                for asked, data in self._files(rest):
                    if submitted := await self._submitted(asked, data):
                        group.create_task(
                            self._see_through(asked, submitted, progress, is_new=True)
                        )
        except asyncio.CancelledError:
            self._report(progress, is_left=progress.n_batches > 0)
            raise

    def _files(
        self, requests: Mapping[bytes, Request]
    ) -> Iterator[tuple[dict[bytes, Request], bytes]]:
        """The requests as files within the limits, one at a time: each may be large."""
        part: dict[bytes, Request] = {}
        data = bytearray()
        for key, request in requests.items():
            line = self._batches.line(key, request)
            is_too_long = len(data) + len(line) > self._pace.max_bytes
            if part and (is_too_long or len(part) == self._pace.max_requests):
                yield part, bytes(data)
                part, data = {}, bytearray()
            part[key] = request
            data += line
        if part:
            yield part, bytes(data)

    async def _submitted(self, asked: Collection[bytes], data: bytes) -> PendingBatch | None:
        """Submit a file of requests; None if it failed, with the error delivered."""
        try:
            return await self._submit(asked, data)
        except Exception as error:  # noqa: BLE001 - delivered to the callers
            self._fail(asked, error)
            return None

    async def _submit(self, keys: Collection[bytes], data: bytes) -> PendingBatch:
        """Upload a file of requests, record it and create its batch."""
        file_id = await self._patiently(lambda: self._batches.upload(data))
        record = self._records.add(file_id, keys)
        is_doubtful = False

        async def create() -> Batch:
            nonlocal is_doubtful
            # An answer that got lost does not mean that nothing was created.
            if is_doubtful and (found := await self._find(file_id)):
                return found
            try:
                return await self._batches.create(file_id)
            except ModelError as error:
                is_doubtful = is_doubtful or error.is_retryable
                raise

        try:
            batch = await self._patiently(create)
        except ModelError:
            if is_doubtful:
                self._records.put_back(record)
            else:
                record.remove()
            raise
        try:
            record.batch_id = batch.id
            record.save()
        except StoreError:
            self._records.put_back(record)
            raise
        return record

    async def _find(self, file_id: str) -> Batch | None:
        try:
            return await self._batches.find(file_id)
        except ModelError as error:
            if error.kind == "bad_request":  # the server lists no batches
                return None
            raise

    async def _see_through(
        self,
        asked: Mapping[bytes, Request],
        record: PendingBatch,
        progress: BatchProgress,
        *,
        is_new: bool,
    ) -> None:
        """Wait for a batch and deliver its results; submit again what was rejected or lost."""
        self._n_batches += 1
        try:
            is_delivered, _ = await self._delivered(asked, record, progress, is_new=is_new)
        finally:
            self._n_batches -= 1
            self._batch_ended.set()
        if not is_delivered:
            async with self._resubmitting:
                await self._once_more(asked, progress)

    async def _delivered(
        self,
        asked: Mapping[bytes, Request],
        record: PendingBatch,
        progress: BatchProgress,
        *,
        is_new: bool,
    ) -> tuple[bool, Batch | None]:
        """Wait for a batch and deliver its results."""
        try:
            batch = await self._ended(record, progress, is_new=is_new)
            if batch is not None and not batch.is_too_much:
                await self._read(asked, record, batch)
                return True, batch
            record.remove()
        except Exception as error:  # noqa: BLE001 - delivered to the callers
            self._records.put_back(record)
            self._fail(asked, error)
            return True, None
        return False, batch

    async def _once_more(self, asked: Mapping[bytes, Request], progress: BatchProgress) -> None:
        """Submit again what the server rejected as too large or lost, one batch after the other.

        Servers limit the tokens that wait in all batches. So a batch that was too large waits for
        those before it, and is halved if there are none.
        """
        data = b"".join(self._batches.line(key, asked[key]) for key in asked)
        while record := await self._submitted(asked, data):
            is_delivered, batch = await self._delivered(asked, record, progress, is_new=True)
            if is_delivered:
                return
            if self._n_batches:
                self._batch_ended.clear()
                await self._batch_ended.wait()
                continue
            if batch is None or len(asked) == 1:
                message = f"{self._batches.server} does not know a batch that it created"
                problem = batch and self._batches.problem(batch)
                self._fail(asked, problem or ModelError(message, kind="bad_request"))
                return
            keys = list(asked)
            middle = len(keys) // 2
            for half in (keys[:middle], keys[middle:]):
                await self._once_more({key: asked[key] for key in half}, progress)
            return

    async def _ended(
        self, record: PendingBatch, progress: BatchProgress, *, is_new: bool
    ) -> Batch | None:
        """The batch of a record when it is over; None if the server has none."""
        if record.batch_id is None:
            found = await self._patiently(lambda: self._find(record.file_id))
            if found is None:
                return None
            record.batch_id = found.id
            record.save()
        id = record.batch_id
        assert id is not None
        self._report(progress, n_batches=1)
        wait_s, n_done = self._pace.poll_s, 0
        known_at = monotonic()
        if is_new:  # a server may not find it at once, and it would be submitted again
            await asyncio.sleep(wait_s)
        while True:
            batch = await self._patiently(lambda: self._batches.retrieve(id))
            if batch is None:  # checked twice, because another submission is paid again
                batch = await self._patiently(lambda: self._find(record.file_id))
            if batch is None:
                return None
            self._report(progress, n_done=batch.n_done - n_done)
            n_done = batch.n_done
            if batch.is_over:
                return batch
            if batch.is_under_way:
                known_at = monotonic()
            elif monotonic() - known_at > self._pace.patience_s:
                raise ModelError(
                    f"the batch {id} has the unknown status {batch.status[:40]!r} at {self._batches.server}",
                    kind="bad_request",
                    help="run the same command again to check it again; nothing is submitted twice",
                )
            await asyncio.sleep(wait_s)
            wait_s = min(self._pace.longest_poll_s, POLL_GROWTH * wait_s)

    async def _read(
        self, asked: Mapping[bytes, Request], record: PendingBatch, batch: Batch
    ) -> None:
        """Store the replies, also to requests that nobody awaits now, and deliver the results."""
        if (problem := self._batches.problem(batch)) is not None:
            record.remove()
            self._fail(asked, problem)
            return
        results = await self._patiently(lambda: self._batches.results(batch, asked))
        if results is None:
            again = f"remove {record.path}" if record.path else "run the same command again"
            raise ModelError(
                f"{self._batches.server} has no results for the completed batch {batch.id}",
                kind="bad_request",
                help=f"ask its support for them; to submit and pay for the requests again, {again}",
            )
        if self._replies is not None:
            keeping = [
                self._replies.keep(key, result)
                for key, result in results.items()
                if key in record.keys and isinstance(result, Completion)
            ]
            for start in range(0, len(keeping), KEPT_AT_ONCE):
                await asyncio.gather(*keeping[start : start + KEPT_AT_ONCE])
        record.remove()
        for key in asked:
            result = results.get(key) or self._missing(batch)
            if isinstance(result, ModelError) and result.kind == "malformed":
                if key in self._unreadable:  # not submitted a third time, because each is billed
                    result = ModelError(
                        f"{result.message}, twice",
                        kind="bad_request",
                        usage=result.usage,
                        help="inspect the batches there before you run the command again: both were billed",
                    )
                self._unreadable.add(key)
            self._deliver(key, result)

    def _missing(self, batch: Batch) -> ModelError:
        """The error of a request without a result."""
        if batch.status == "cancelled":
            return ModelError(
                f"the batch was cancelled at {self._batches.server}",
                kind="bad_request",
                help="run the same command again to submit the remaining requests",
            )
        server = self._batches.server
        if batch.status == "expired":
            message = f"the batch expired at {server} before it processed this request"
            return ModelError(message, kind="deadline")
        return ModelError(
            f"the batch from {server} has no result for this request", kind="malformed"
        )

    def _fail(self, keys: Collection[bytes], error: Exception) -> None:
        for key in keys:
            self._deliver(key, error)

    async def _patiently(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Repeat a call while it fails, up to `Pace.patience_s`."""
        give_up, wait_s = monotonic() + self._pace.patience_s, self._pace.poll_s
        while True:
            try:
                result = await call()
            except ModelError as error:
                named_s = error.retry_after_s or wait_s
                if not error.is_retryable or monotonic() + named_s > give_up:
                    raise
                if self._on_trouble is not None and not self._is_in_trouble:
                    self._on_trouble(error, self._pace.patience_s)
                self._is_in_trouble = True
            else:
                self._is_in_trouble = False
                return result
            await asyncio.sleep(named_s)
            wait_s = min(self._pace.longest_poll_s, 2 * wait_s)

    def _report(
        self, progress: BatchProgress, n_batches: int = 0, n_done: int = 0, *, is_left: bool = False
    ) -> None:
        """Add to the counts of a round, and report a change."""
        before = replace(progress)
        progress.n_batches += n_batches
        progress.n_done += n_done
        progress.is_left = is_left
        if self._on_progress is not None and progress != before:
            self._on_progress(replace(progress))

    def _deliver(self, key: bytes, result: Completion | Exception) -> None:
        future = self._futures.pop(key, None)
        if future is None or future.done():
            return
        if isinstance(result, Completion):
            future.set_result(result)
            return
        future.set_exception(result.copy() if isinstance(result, ModelError) else result)
        future.exception()  # marks it as retrieved, if nobody awaits it

    def _leave(self, key: bytes) -> None:
        """Drop a request that nobody awaits, unless it was submitted."""
        self._n_waiting[key] -= 1
        if not self._n_waiting[key]:
            del self._n_waiting[key]
            if key in self._collected:
                del self._collected[key]
                self._futures.pop(key).cancel()
