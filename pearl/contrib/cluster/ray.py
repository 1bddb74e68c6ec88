"""Run units on a Ray cluster: one worker per node, many concurrent units in each; nodes may be lost.

It uses actors of Ray Core only. A task whose worker is lost runs again on another worker; the first
outcome of a task counts. Calls of all workers are within the driver's limits, and their replies are in
its store (`ledger`). The driver's caller stores the outcomes, and leaves out these tasks when it starts
again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import socket
import sys
from collections.abc import (
    AsyncGenerator,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, chdir, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pearl.contrib.cluster.ledger import (
    Account,
    Answer,
    Ledger,
    Message,
    Terms,
    WorkerChannel,
    portable,
)
from pearl.errors import PearlError, UsageError
from pearl.errors.privacy import is_private
from pearl.pipeline import Pearl
from pearl.plugins.extras import require_extra
from pearl.runs.executors import Listener, Outcome, Resources, Task, Unit
from pearl.runs.executors.local import AHEAD, UNDER_WAY, document_of, in_order, perform
from pearl.runs.identity import version
from pearl.trace import Trace

DESCRIPTION = "on a Ray cluster whose nodes come and go"
KEEPS_LIMITS = True
UNITS = Unit

U = TypeVar("U", bound=Unit)

ATTEMPTS = 4
"""A task fails after this number of workers was lost with it; the run fails after this number of starts of a worker."""

REVIVE_S = 0.5  # Polling interval for a restarted worker in seconds
CONNECT_S = 10.0  # Maximum seconds to connect to a cluster

OBJECT_STORE = 100 * 2**20
"""Shared memory in bytes of a locally started cluster, which holds tasks and outcomes only."""


async def run(
    pearl: Pearl,
    units: Iterable[U],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Outcome[U], None]:
    """Run the units on the cluster of $RAY_ADDRESS, or start one on this machine."""
    if not all(isinstance(each.settings.model, str) for each in pearl.clients.values()):
        raise UsageError("a model object cannot be sent to a cluster", help="pass its name instead")
    n_places = pearl.client.settings.concurrency
    with _cluster():
        crew = _Crew(pearl)
        here = Resources(pearl)

        async def one(unit: U) -> Outcome[U]:
            if isinstance(unit, Task) and (unit.problem is not None or unit.document is None):
                return await perform(unit, here, listener)
            outcome, halted = await crew.run(unit)
            if halted is not None:
                pearl.client.breaker.throw(halted)
            if listener is not None:
                for event in outcome.trace:
                    listener(unit.id, event)
            return outcome

        outcomes = in_order(
            units,
            one,
            UNDER_WAY * n_places,
            ahead=AHEAD * n_places,
            group=document_of,
            rank=lambda unit: unit.n_chained(here),
            is_stopping=is_stopping,
        )
        try:
            with pearl.client.breaker.running():
                async with aclosing(outcomes):
                    async for outcome in outcomes:
                        yield outcome
                await crew.settled()
        finally:
            await crew.end()


@contextmanager
def _cluster() -> Iterator[None]:
    """Connect to a cluster; at the end, disconnect, or stop a cluster that was started here."""
    if is_private():
        raise UsageError(
            "a private run does not use Ray, whose nodes write texts to files of their own",
            help="leave out --executor ray",
        )
    require_extra("ray", "the executor 'ray'", "ray")
    # No usage statistics, unless the user turns them on.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    own = {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    # Workers import from the folder in which Ray is started first, even if the driver would not.
    is_searched = bool({"", os.getcwd()} & set(sys.path))  # noqa: PTH109
    try:
        host, _, port = (address or "").removeprefix("ray://").rpartition(":")
        if port.isdecimal():  # Ray itself would try for minutes
            place = host.strip("[]"), int(port)
            socket.create_connection(place, timeout=CONNECT_S).close()
        with nullcontext() if is_searched else chdir(os.path.abspath(os.sep)):  # noqa: PTH100
            ray.init(**quiet, **({"address": address} if address else own))
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        reason = str(error).strip().partition("\n")[0]
        raise UsageError(
            f"no Ray cluster {where}: {reason}", help="set RAY_ADDRESS to HOST:6379"
        ) from None
    worker: Any = import_module("ray._private.worker")

    def log(data: Mapping[str, Any], **_: Any) -> None:
        for message in data["lines"]:
            logging.getLogger(__name__).warning("ray: %s", str(message).partition(". ")[0][:160])

    worker.print_to_stdstream = log
    try:
        yield
    finally:
        ray.shutdown()


class _Slot(Struct):
    """A slot for a worker: its current actor, number of tasks, and account in the ledger."""

    actor: Any
    account: Account
    n_tasks: int = 0
    serving: asyncio.Task[None] | None = None
    reviving: asyncio.Task[None] | None = None
    """The pending restart of the worker; None while it is alive."""


class _Crew:
    """The workers."""

    def __init__(self, pearl: Pearl) -> None:
        import ray

        listed: Any = ray.nodes  # it has no type hints
        nodes = [node for node in listed() if node["Alive"]]
        n_places = pearl.client.settings.concurrency
        n = min(len(nodes), n_places)
        self._pearl = pearl
        self._ledger = Ledger(pearl.clients)
        self._most = UNDER_WAY * n_places  # running tasks; one worker may have to take all of them
        self._share = -(-self._most // n)
        self.workers: list[_Slot] = []
        for i in range(n):
            slot = _Slot(self._hired(nodes[i % len(nodes)]), Account(self._ledger))
            self._serve(slot)
            self.workers.append(slot)
        self._document: Hashable = None
        self._last = self.workers[0]

    async def settled(self) -> None:
        """Wait for the messages that workers still send after their last outcomes."""
        await asyncio.gather(*(slot.account.settled() for slot in self.workers))

    async def end(self) -> None:
        """Stop the workers and cancel their tasks."""
        import ray

        tasks = [task for slot in self.workers for task in (slot.reviving, slot.serving) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for slot in self.workers:
            ray.kill(slot.actor)

    def _serve(self, slot: _Slot) -> None:
        """Serve the requests of a worker until it is lost."""
        from ray import exceptions

        async def serve() -> None:
            with suppress(exceptions.RayError):
                await slot.account.serve(slot.actor.messages.remote, slot.actor.take.remote)
            self._lose(slot)

        slot.serving = asyncio.create_task(serve())

    async def run(self, unit: U) -> tuple[Outcome[U], PearlError | None]:
        """Run a unit; return its outcome and the error that halted its worker. A lost worker is replaced."""
        from ray import exceptions

        for _ in range(ATTEMPTS):
            slot = await self._slot(unit)
            account = slot.account
            slot.n_tasks += 1
            try:
                outcome, halted = await slot.actor.work.remote(unit, version())
            except (exceptions.RayTaskError, TypeError) as error:
                if slot.reviving is not None or slot.account is not account:
                    continue  # the worker was lost, and has dropped the unit
                # The unit cannot be pickled.
                reason = str(getattr(error, "cause", error)).strip().partition("\n")[0]
                return _failed(unit, f"it cannot be run on a cluster: {reason}"), None
            except exceptions.RayError:  # the worker or its node is lost
                self._lose(slot)
                continue
            finally:
                slot.n_tasks -= 1
            if outcome is None:
                raise halted
            return replace(outcome, unit=unit), halted
        return _failed(unit, f"{ATTEMPTS} workers were lost while they ran it"), None

    async def _slot(self, unit: Unit) -> _Slot:
        """The slot with units over the same document, else the least loaded one."""
        while not (there := [slot for slot in self.workers if slot.reviving is None]):
            self._ledger.breaker.check()
            lost = [slot.reviving for slot in self.workers if slot.reviving is not None]
            await asyncio.wait(lost, return_when=asyncio.FIRST_COMPLETED)
        document = document_of(unit)
        is_same = document is not None and document == self._document
        if not is_same or self._last not in there or self._last.n_tasks >= self._share:
            self._last = min(there, key=lambda slot: slot.n_tasks)
        self._document = document
        return self._last

    def _lose(self, slot: _Slot) -> None:
        if slot.reviving is None:
            slot.reviving = asyncio.create_task(self._revive(slot))

    async def _revive(self, slot: _Slot) -> None:
        """Wait until Ray has restarted a worker, or create a new one if Ray gave up."""
        import ray
        from ray import exceptions

        if slot.serving is not None:  # it may not have noticed yet
            slot.serving.cancel()
            await asyncio.gather(slot.serving, return_exceptions=True)
        n_died = 0
        while True:
            try:
                await slot.actor.start_over.remote()
                break
            except exceptions.ActorDiedError as error:
                n_died += 1
                if n_died == ATTEMPTS:
                    reason = str(error).strip().rpartition("\n")[2]
                    why = UsageError(
                        f"no worker starts on the cluster: {reason}",
                        help="install the same versions as here on every node of the cluster",
                    )
                    self._ledger.breaker.throw(why)
                    return
                ray.kill(slot.actor)  # or there would be two, if Ray restarts it after all
                slot.actor = self._hired(None)
            except exceptions.RayError:
                await asyncio.sleep(REVIVE_S)
        slot.account = Account(self._ledger)
        self._serve(slot)
        slot.reviving = None

    def _hired(self, node: Mapping[str, Any] | None) -> Any:
        """An actor that Ray restarts without limit, on this node if it is alive."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        where = node and NodeAffinitySchedulingStrategy(node["NodeID"], soft=True)
        worker: Any = ray.remote(RayWorker).options(
            num_cpus=0,
            max_restarts=-1,
            # Calls of a lost actor are repeated here, at once and on another node
            max_task_retries=0,
            max_concurrency=self._most + 3,
            scheduling_strategy=where or "SPREAD",
        )
        return worker.remote(self._pearl.settings, Terms.of(self._pearl.clients), str(Path.cwd()))


def _failed(unit: U, message: str) -> Outcome[U]:
    return Outcome(unit, None, PearlError(f"task {unit.id}: {message}"), Trace(unit.id))


class RayWorker:
    """Executes many units on a node concurrently, like `local`, with its own `Pearl`."""

    def __init__(self, settings: Mapping[str, Any], terms: Terms, folder: str) -> None:
        # Nothing here may fail: Ray would not report why to the driver.
        self._settings = settings
        self._terms = terms
        self._folder = folder
        self._resources: Resources | None = None
        self._channel = WorkerChannel()
        self._working: set[asyncio.Task[Any]] = set()

    async def start_over(self) -> None:
        """Drop all units, because the driver had lost this worker and gave them to others."""
        for task in self._working:
            task.cancel()
        self._channel = WorkerChannel()
        self._resources = None

    async def messages(self) -> list[Message]:
        """The messages for the ledger; waits for the first one."""
        return await self._channel.messages()

    async def take(self, answers: Sequence[Answer]) -> None:
        """Deliver answers of the ledger."""
        self._channel.take(answers)

    async def work(self, unit: Unit, driver: str) -> tuple[Outcome[Any] | None, Exception | None]:
        """Return the outcome without its unit, and the error that halted the model; or None and why it cannot run."""
        try:
            resources = self._ready(driver)
        except PearlError as error:
            return None, error
        task = asyncio.current_task()
        assert task is not None
        self._working.add(task)
        try:
            outcome = await perform(unit, resources)
        finally:
            self._working.discard(task)
        outcome = replace(outcome, unit=None, error=portable(outcome.error))
        return outcome, resources.pearl.client.breaker.error

    def _ready(self, driver: str) -> Resources:
        if driver != version():
            raise UsageError(
                f"the node {platform.node()} runs {version()}, the driver {driver}",
                help="install the same versions on every node of the cluster",
            )
        if self._resources is None:
            if Path(self._folder).is_dir():
                os.chdir(self._folder)
            clients = self._channel.clients(self._terms)
            named = [role for role in clients if self._settings.get(f"{role}_model")]
            roles = {f"{role}_model": clients[role] for role in named}
            pearl = Pearl(clients["main"], **{**self._settings, **roles})
            self._resources = Resources(pearl)
        return self._resources
