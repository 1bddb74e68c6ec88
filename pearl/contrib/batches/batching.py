"""Collect calls and send them as batches; to a caller the collector is a slow model.

A round has all requests that arrive before a pause of some seconds.

The order of the steps makes a kill harmless: upload the requests (free), write the record, create the
batch (paid), store the replies, remove the record. After a restart, the record leads to the batch.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field, ValidationError

from pearl.contrib.batches import Batch, Batches, Submission
from pearl.errors import BudgetError, ModelError, PausedError, PearlError, StoreError
from pearl.llm import Completion, Model, Request, Usage
from pearl.llm.middleware.budget import UNBILLED, Budget, Call
from pearl.llm.middleware.caching import Replies, request_key
from pearl.llm.middleware.retry import CircuitBreaker
from pearl.llm.middleware.wrappers import Wrapper
from pearl.plugins.files import make_private
from pearl.plugins.persistence import write_private

FOLDER = "batches"
KEPT_AT_ONCE = 1_000  # Replies that are stored together
POLL_GROWTH = 1.5  # factor of the wait after each request for a batch's state
# Iterations of the event loop that have to be quiet, too, because on a busy machine it lags.
PASSES = 20

Result = TypeVar("Result")


class PendingBatch(Submission):
    """The record of a batch that was submitted or is about to be."""

    server: str
    model: str
    batch_id: str | None = None
    path: Path | None = Field(default=None, exclude=True)

    def save(self) -> None:
        """Write the record, synced to disk."""
        if self.path is None:
            return
        try:
            write_private(self.path, self.model_dump_json().encode(), is_synced=True)
        except OSError as error:
            raise StoreError(error.strerror or str(error), path=self.path) from None

    def remove(self) -> None:
        """Remove the record of a batch whose replies are stored."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class PendingBatches:
    """The batches of one model at one server whose replies are not stored yet."""

    def __init__(self, folder: Path | None, server: str, model: str) -> None:
        self._folder = folder and folder / FOLDER
        self._server = server
        self._model = model
        self._by_key: dict[bytes, PendingBatch] = {}
        if self._folder is not None:
            try:
                make_private(self._folder)
                for path in sorted(self._folder.glob("*.json")):
                    with suppress(FileNotFoundError):  # Another process has read its batch
                        record = PendingBatch.model_validate_json(path.read_bytes())
                        if (record.server, record.model) == (server, model):
                            record.path = path
                            self.put_back(record)
            except ValidationError:
                raise StoreError(
                    "it is not a record of a batch",
                    path=path,
                    help="remove it; its requests may then be submitted and billed again",
                ) from None
            except OSError as error:
                raise StoreError(error.strerror or str(error), path=self._folder) from None

    def take(self, keys: Iterable[bytes]) -> list[PendingBatch]:
        """Take the batches that contain these requests; a batch is returned only once, unless it is put back."""
        records = {id(record): record for key in keys if (record := self._by_key.get(key))}
        for record in records.values():
            for key in record.keys:
                if self._by_key.get(key) is record:
                    del self._by_key[key]
        return list(records.values())

    def put_back(self, record: PendingBatch) -> None:
        """Put back a batch whose replies could not be read."""
        self._by_key.update(dict.fromkeys(record.keys, record))

    def add(self, file_id: str, requests: Mapping[bytes, Request]) -> PendingBatch:
        """Record a batch that is about to be created."""
        id = uuid4().hex
        record = PendingBatch(
            server=self._server,
            model=self._model,
            id=id,
            file_id=file_id,
            keys=frozenset(requests),
            constrained=frozenset(key for key in requests if requests[key].constraint is not None),
            created_at=time.time(),
            path=self._folder and self._folder / f"{id}.json",
        )
        record.save()
        return record


class Pace(Struct, frozen=True):
    """How long to wait, in seconds."""

    quiet_s: float = 2.0
    poll_s: float = 5.0
    longest_poll_s: float = 60.0
    patience_s: float = 3600.0


DEFAULT_PACE = Pace()


class BatchProgress(Struct):
    """Progress of a round."""

    round: int
    n_requests: int
    n_found: int = 0
    n_direct: int = 0
    n_batches: int = 0
    n_done: int = 0
    is_left: bool = False

    def __str__(self) -> str:
        """One line for the user."""
        requests = f"{self.n_requests:,} request{'' if self.n_requests == 1 else 's'}"
        batches = f"{self.n_batches:,} batch{'' if self.n_batches == 1 else 'es'}"
        found = f" ({self.n_found:,} submitted before)" if self.n_found else ""
        if self.n_direct:
            found += f", {self.n_direct:,} sent directly (--batch-threshold)"
        if self.n_direct and not self.n_batches:
            return f"round {self.round}: {requests}{found}"
        if self.is_left:
            state = "still running at the server; run the same command again to read the replies"
        else:
            state = f"{self.n_done:,} done" if self.n_done else "waiting"
        return f"round {self.round}: {requests}{found} in {batches}, {state}"


OnTrouble = Callable[[ModelError, float], None]
"""Callback for a failed call, with the seconds of further retries."""


class Batched(Wrapper):
    """Sends requests in rounds as batches; few requests, or those with grammars, directly. Close it in its event loop."""

    def __init__(
        self,
        model: Model,
        batches: Batches,
        *,
        budget: Budget | None = None,
        replies: Replies | None = None,
        folder: Path | None = None,
        pace: Pace = DEFAULT_PACE,
        threshold: int = 0,
        may_write: bool | None = None,
        breaker: CircuitBreaker | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        on_progress: Callable[[BatchProgress], None] | None = None,
        on_trouble: OnTrouble | None = None,
    ) -> None:
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._batches = batches
        self._budget = budget or Budget()
        self._price = self._budget.price_of(model.name)
        self._share = (self._price and self._price.batch) or 1.0
        self._may_write = may_write  # as `Call.may_write`: no request of a batch marks a prefix
        self._records = PendingBatches(folder, batches.server, model.name)
        self._replies = replies
        self._pace = pace
        self._threshold = threshold
        self._is_busy = is_busy
        self._on_progress = on_progress
        self._on_trouble = on_trouble
        self._futures: dict[bytes, asyncio.Future[Completion]] = {}
        self._n_waiting: dict[bytes, int] = {}
        self._collected: dict[bytes, Request] = {}
        self._joinable: dict[bytes, dict[bytes, Request]] = {}  # key → the requests of its batch
        self._calls: dict[bytes, Call] = {}  # reservations of the budget
        self._n_direct = 0
        self._n_rounds = 0
        self._waited_for: list[PendingBatch] = []
        self._batch_ended = asyncio.Event()
        self._resubmitting = asyncio.Lock()
        self._is_probed = False
        self._is_in_trouble = False
        self._unreadable: set[bytes] = set()  # requests whose paid result was unreadable
        self._touched_at = 0.0
        self._watch: asyncio.Task[None] | None = None
        self._rounds: set[asyncio.Task[None]] = set()

    def touch(self) -> None:
        """Delay the end of the round, because more requests may follow soon."""
        self._touched_at = monotonic()

    async def complete(self, request: Request) -> Completion:
        """Send one request, with the others of its round."""
        self.breaker.check()
        constraint = request.constraint
        is_form = request.constrain_by == "json" and constraint and constraint.json_form
        if not (constraint is None or is_form):
            return await self._complete_directly(request)
        key = request_key(request, self.identity)
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
            self._joinable.pop(key, self._collected)[key] = request
        self.touch()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._collect())
        self._n_waiting[key] = self._n_waiting.get(key, 0) + 1
        try:
            return await self.breaker.interruptible(asyncio.shield(self._futures[key]))
        finally:
            self._n_waiting[key] -= 1
            if not self._n_waiting[key]:
                del self._n_waiting[key]
                if key in self._collected:
                    del self._collected[key]
                    self._futures.pop(key).cancel()

    @property
    def n_waited_for(self) -> int:
        """The number of batches that are waited for."""
        return len(self._waited_for)

    def abandon(self) -> None:
        """End the run; submitted batches continue at the server."""
        n = len(self._waited_for)
        left = f"{n:,} batch{'' if n == 1 else 'es'} still running at the server"
        message = left if n else "stopped before anything was submitted"
        self.breaker.throw(
            PausedError(message, help="run the same command again to read their replies")
        )

    async def aclose(self) -> None:
        """Stop waiting. The wrapped model stays open, because its owner closes it."""
        ending = [*self._rounds, *([self._watch] if self._watch else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await self._batches.aclose()
        for key in list(self._calls):  # those that the server still works on
            self._settle(key, is_sure=False, is_usable=True)

    async def _complete_directly(self, request: Request) -> Completion:
        self._n_direct += 1
        try:
            return await self._model.complete(request)
        finally:
            self._n_direct -= 1
            self.touch()

    async def _collect(self) -> None:
        """Start a round whenever no request has arrived for a while, until none is left."""
        while self._collected:
            await self._quiet()
            requests, self._collected = self._collected, {}
            if requests and self.breaker.error is None:
                round = asyncio.create_task(self._round(requests))
                self._rounds.add(round)
                round.add_done_callback(self._rounds.discard)

    async def _quiet(self) -> None:
        while True:
            wait_s = self._touched_at + self._pace.quiet_s - monotonic()
            if wait_s > 0 or self._n_direct or self._is_busy():
                await asyncio.sleep(max(wait_s, self._pace.quiet_s / 4))
                continue
            seen = self._touched_at
            for _ in range(PASSES):
                await asyncio.sleep(0)
            if self._touched_at == seen:
                return

    async def _round(self, requests: Mapping[bytes, Request]) -> None:
        """Carry out one round of requests, by key, until each has its reply or error."""
        self._n_rounds += 1
        records = self._records.take(requests)
        found = {key for record in records for key in record.keys & requests.keys()}
        progress = BatchProgress(self._n_rounds, len(requests), len(found))
        try:
            async with asyncio.TaskGroup() as group:
                waited_for = []
                for record in records:
                    asked = {key: requests[key] for key in record.keys & requests.keys()}
                    for key, request in asked.items():
                        self._hold(key, request, is_sent=True)
                    reading = self._see_through(asked, record, progress, is_new=False)
                    waited_for.append(group.create_task(reading))
                rest = {key: request for key, request in requests.items() if key not in found}
                if 0 < len(rest) < self._threshold:
                    rest = await self._sent_directly(rest, progress)
                n_probe = self._batches.n_probe
                if rest and not self._is_probed and n_probe < len(requests):
                    if not records:
                        probe = dict(islice(rest.items(), n_probe))
                        rest = await self._rest_after(probe, self._answered(probe, progress), rest)
                    elif all(len(record.keys) <= n_probe for record in records):
                        # An earlier process has submitted no more than its first requests.
                        rest = await self._rest_after(found, asyncio.wait(waited_for), rest)
                    self._is_probed = bool(rest)
                else:
                    self._is_probed = True
                await self._sent(rest, progress, group)
        except asyncio.CancelledError:
            if progress.n_batches:
                progress.is_left = True
                self._report(progress)
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not leave callers waiting
            self._fail(requests, error)

    async def _sent_directly(
        self, requests: Mapping[bytes, Request], progress: BatchProgress
    ) -> dict[bytes, Request]:
        """Send requests one by one; return those that the budget does not allow at full price."""
        left: dict[bytes, Request] = {}

        async def send(key: bytes, request: Request) -> None:
            try:
                self._deliver(key, await self._complete_directly(request))
            except BudgetError as error:
                if self._share < 1 and self.breaker.error is None:
                    left[key] = request
                else:
                    self._deliver(key, error)
            except PearlError as error:
                self._deliver(key, error)

        progress.n_direct = len(requests)
        self._report(progress)
        await asyncio.gather(*(send(key, request) for key, request in requests.items()))
        return left

    async def _answered(self, requests: Mapping[bytes, Request], progress: BatchProgress) -> None:
        """Submit requests, and wait until each has its reply or error."""
        async with asyncio.TaskGroup() as group:
            await self._sent(requests, progress, group)

    async def _rest_after(
        self,
        probe: Collection[bytes],
        answered: Awaitable[object],
        requests: Mapping[bytes, Request],
    ) -> dict[bytes, Request]:
        """Wait for the requests of a probe; return the other requests, or {} if every probe failed."""
        waiting = [self._futures[key] for key in probe if key in self._futures]
        await answered
        rest = {key: request for key, request in requests.items() if key not in probe}
        errors: list[Any] = [future.exception() for future in waiting if future.done()]
        if not errors or None in errors or len(errors) < len(waiting):
            return rest
        error = next(filter(_is_repeated, errors), errors[0])
        if isinstance(error, ModelError) and not _is_repeated(error):
            self.breaker.throw(
                ModelError(
                    f"the first {len(errors):,} requests failed, so the other {len(rest):,} of "
                    f"this round were not submitted: {error.message}",
                    kind=error.kind,
                    help=error.help,
                )
            )
        else:
            self._fail(rest, error)
        return {}

    async def _sent(
        self, requests: Mapping[bytes, Request], progress: BatchProgress, group: asyncio.TaskGroup
    ) -> None:
        """Submit requests as the budget allows them, and wait for their batches in a group."""
        left = requests
        while left:
            changed = self._budget.changed()
            admitted: dict[bytes, Request] = {}
            waiting: dict[bytes, Request] = {}
            for key, request in left.items():
                try:
                    is_held = self._hold(key, request)
                except BudgetError as error:
                    self._deliver(key, error)
                else:
                    (admitted if is_held else waiting)[key] = request
            for asked, lines in self._files(admitted):
                if record := await self._submitted(asked, lines):
                    group.create_task(self._see_through(asked, record, progress, is_new=True))
            if waiting:
                await changed
            left = waiting

    def _files(
        self, requests: Mapping[bytes, Request]
    ) -> Iterator[tuple[dict[bytes, Request], list[bytes]]]:
        """Yield the requests as files within the limits, one at a time, because each may be large."""
        most, most_bytes = self._batches.max_requests, self._batches.max_bytes
        n_bytes = 0
        part: dict[bytes, Request] = {}
        lines: list[bytes] = []
        for key, request in requests.items():
            line = self._batches.line(key, self._budget.limited(request))
            is_full = len(part) == most or n_bytes + len(line) + 1 > most_bytes
            if part and is_full:
                yield part, lines
                part, lines, n_bytes = {}, [], 0
            part[key] = request
            lines.append(line)
            n_bytes += len(line) + 1
        if part:
            yield part, lines

    async def _submitted(
        self, asked: Mapping[bytes, Request], lines: Sequence[bytes]
    ) -> PendingBatch | None:
        """Upload requests, record them and create their batch; None after an error, which is delivered."""
        is_doubtful, record = False, None
        try:
            file_id = await self._patiently(lambda: self._batches.upload(lines))
            record = submission = self._records.add(file_id, asked)

            async def create() -> Batch:
                nonlocal is_doubtful
                # The batch may exist although the answer was lost.
                if is_doubtful and (found := await self._find(submission)):
                    return found
                try:
                    return await self._batches.create(submission, lines)
                except ModelError as error:
                    is_doubtful = is_doubtful or error.is_retryable
                    raise

            batch = await self._patiently(create)
            is_doubtful = True  # until its id is on disk
            if batch.is_sure:
                record.batch_id = batch.id
            record.save()
        except Exception as error:  # noqa: BLE001 - delivered to the callers
            for key in asked:
                self._settle(key, is_sure=not is_doubtful, is_sent=is_doubtful)
            if record is not None and is_doubtful:
                self._records.put_back(record)
            elif record is not None:  # nothing was created
                record.remove()
            self._fail(asked, error)
            return None
        return record

    async def _find(self, record: PendingBatch) -> Batch | None:
        try:
            return await self._batches.find(record)
        except ModelError as error:
            if error.kind == "bad_request":  # the server lists no batches
                return None
            raise

    async def _see_through(
        self,
        asked: dict[bytes, Request],
        record: PendingBatch,
        progress: BatchProgress,
        *,
        is_new: bool,
    ) -> None:
        """Wait for a batch and deliver its results; submit again what was rejected or lost."""
        is_delivered, _ = await self._delivered(asked, record, progress, is_new=is_new)
        if not is_delivered:
            async with self._resubmitting:
                await self._once_more(asked, progress)

    async def _delivered(
        self,
        asked: dict[bytes, Request],
        record: PendingBatch,
        progress: BatchProgress,
        *,
        is_new: bool,
    ) -> tuple[bool, Batch | None]:
        """Wait for a batch and deliver its results; False if there is no such batch to wait for."""
        self._waited_for.append(record)
        joinable = dict.fromkeys(record.keys - asked.keys(), asked)
        self._joinable |= joinable
        batch = None
        try:
            try:
                batch = await self._ended(record, progress, is_new=is_new)
            finally:
                for key in joinable:
                    self._joinable.pop(key, None)
            for key in asked.keys() - self._calls.keys():  # that have joined
                self._hold(key, asked[key], is_sent=True)
            if batch is None or batch.is_too_much:
                record.remove()
                return False, batch
            await self._read(asked, record, batch)
        except Exception as error:  # noqa: BLE001 - delivered to the callers
            self._records.put_back(record)
            for key in asked:  # the server may bill the batch, whatever the error says
                self._settle(key, is_sure=False)
            self._fail(asked, error)
        finally:
            self._waited_for.remove(record)
            self._batch_ended.set()
        return True, batch

    async def _once_more(self, asked: dict[bytes, Request], progress: BatchProgress) -> None:
        """Resubmit requests that the server rejected as too large or lost, one batch after the other."""
        # Servers limit the tokens that wait in all batches. So a batch that was too large waits for
        # those before it, and is halved if there are none.
        for part, lines in list(self._files(asked)):
            await self._part_once_more(part, lines, progress)

    async def _part_once_more(
        self, asked: dict[bytes, Request], lines: list[bytes], progress: BatchProgress
    ) -> None:
        while record := await self._submitted(asked, lines):
            is_delivered, batch = await self._delivered(asked, record, progress, is_new=True)
            if is_delivered:
                return
            if self._waited_for:
                self._batch_ended.clear()
                await self._batch_ended.wait()
                continue
            if batch is None or len(asked) == 1:
                message = f"{self._batches.server} does not know a batch that it created"
                problem = batch and batch.problem
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
        """Wait until the batch of a record is over; None if the server has no such batch."""
        while record.batch_id is None:
            found = await self._patiently(lambda: self._find(record))
            if found is None:  # or not listed yet; another submission is paid again
                await asyncio.sleep(self._pace.poll_s)
                found = await self._patiently(lambda: self._find(record))
            if found is None:
                return None
            if found.is_sure:
                record.batch_id = found.id
                record.save()
            else:  # its results will show it
                await self._over(found.id, record, progress)
        progress.n_batches += 1
        self._report(progress)
        if is_new:
            # A server may not find it at once, and it would be submitted again.
            await asyncio.sleep(self._pace.poll_s)
        return await self._over(record.batch_id, record, progress)

    async def _over(self, id: str, record: PendingBatch, progress: BatchProgress) -> Batch | None:
        """Wait until a batch is over, and return it; None if the server does not know it."""
        wait_s = self._pace.poll_s
        n_done = 0
        known_at = monotonic()
        while True:
            batch = await self._patiently(lambda: self._batches.retrieve(id))
            if batch is None:  # checked twice, because another submission is paid again
                batch = await self._patiently(lambda: self._find(record))
            if batch is None:
                return None
            if batch.n_done != n_done:
                progress.n_done += batch.n_done - n_done
                n_done = batch.n_done
                self._report(progress)
            if batch.is_over:
                return batch
            if batch.state == "waiting":
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
        """Store all replies, even those that no caller awaits any more, and deliver the results."""
        if batch.problem is not None:
            record.remove()
            self._fail(asked, batch.problem)
            return
        results = await self._patiently(lambda: self._batches.results(batch, asked))
        if results is None:
            again = f"remove {record.path}" if record.path else "run the same command again"
            raise ModelError(
                f"{self._batches.server} has no results for the completed batch {batch.id}",
                kind="bad_request",
                help=f"ask its support for them; to submit and pay for the requests again, {again}",
            )
        # The form of a constrained reply is known to its request only.
        unread = frozenset(record.constrained - asked.keys())
        if self._replies is not None:
            own = (record.keys - unread) & results.keys()
            kept = [(k, result) for k in own if isinstance(result := results[k], Completion)]
            for start in range(0, len(kept), KEPT_AT_ONCE):
                await self._replies.keep_all(dict(kept[start : start + KEPT_AT_ONCE]))
        if unread:
            record.keys = record.constrained = unread
            record.save()
            self._records.put_back(record)
        else:
            record.remove()
        for key, request in asked.items():
            result = results.get(key) or self._batches.missing(batch)
            if isinstance(result, Completion):
                result = self._paid(key, request, result)
            elif result.kind == "malformed":
                if key in self._unreadable:  # not submitted a third time, because each is billed
                    result = ModelError(
                        f"{result.message}, twice",
                        kind="bad_request",
                        usage=result.usage,
                        help="inspect the batches there before you run the command again: both were billed",
                    )
                    self._settle(key, usage=result.usage, is_sure=result.usage is not None)
                self._unreadable.add(key)
            self._deliver(key, result)

    def _hold(self, key: bytes, request: Request, *, is_sent: bool = False) -> bool:
        """Reserve the worst case of a request in the budget; False if others have to end first."""
        worst = replace(
            self._budget.worst(self._budget.limited(request)),
            price=self._price,
            share=self._share,
            sure_share=self._share,
        )
        constraint = request.constraint
        if constraint is not None and constraint.json_form is not None:
            # Vendors bill the schema as input.
            worst.n_input += self._budget.count(json.dumps(constraint.json_form.schema))
            worst.request = None  # else a second count would leave the schema out
        call = self._budget.hold(worst, is_sent=is_sent)
        if call is not None:
            self._calls[key] = call
        return call is not None

    def _paid(self, key: bytes, request: Request, completion: Completion) -> Completion:
        """Settle the reservation of a reply, and return the reply with the billed usage."""
        call = self._calls.get(key)
        if call is None:
            return completion
        usage = self._budget.usage_of(self._budget.limited(request), completion)
        call.reply, call.is_told = completion.text, bool(completion.usage.n_tokens)
        call.may_write = self._may_write
        self._settle(key, usage=usage, is_usable=True)
        return replace(completion, usage=usage)

    def _settle(
        self,
        key: bytes,
        *,
        usage: Usage | None = None,
        is_sure: bool = True,
        is_sent: bool = True,
        is_usable: bool = False,
    ) -> None:
        """Replace the reservation of a request, if it has one, by its usage."""
        call = self._calls.pop(key, None)
        if call is not None:
            call.usage = usage if is_sent else Usage()
            self._budget.settle(call, is_sure=is_sure, is_sent=is_sent, is_usable=is_usable)

    def _fail(self, keys: Iterable[bytes], error: Exception) -> None:
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

    def _report(self, progress: BatchProgress) -> None:
        if self._on_progress is not None:
            self._on_progress(replace(progress))

    def _deliver(self, key: bytes, result: Completion | Exception) -> None:
        if isinstance(result, ModelError):
            is_free = result.kind in UNBILLED or not result.is_sent
            usage = Usage() if result.usage is None and is_free else result.usage
            self._settle(key, usage=usage, is_sure=usage is not None, is_sent=result.is_sent)
        else:
            self._settle(key, is_sure=False)
        self.touch()
        future = self._futures.pop(key, None)
        if future is None or future.done():
            return
        if isinstance(result, Completion):
            future.set_result(result)
            return
        future.set_exception(result.copy() if isinstance(result, ModelError) else result)
        future.exception()  # marks it as retrieved, if nobody awaits it


def _is_repeated(error: Exception) -> bool:
    """Whether a request is tried again after an error."""
    return isinstance(error, ModelError) and (error.is_retryable or error.kind == "unconstrained")
