"""The worker on a node: executes many units concurrently with its own `Pearl`."""

from __future__ import annotations

import builtins
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pearl import errors
from pearl.errors import PearlError, UsageError
from pearl.llm.client import Client, ClientSettings
from pearl.pipeline import Pearl
from pearl.runs.executors import Outcome, Unit
from pearl.runs.executors.local import perform
from pearl.runs.identity import version
from pearl.runs.resources import Resources

U = TypeVar("U", bound=Unit)


def packed_outcome(outcome: Outcome[Any]) -> dict[str, Any]:
    """An outcome without its unit: `result`, `error` as packed, and `trace`."""
    return {
        "result": outcome.result,
        "error": None if outcome.error is None else packed_error(outcome.error),
        "trace": outcome.trace,
    }


def unpacked_outcome(unit: U, data: dict[str, Any]) -> Outcome[U]:
    """The outcome of a unit; it gives the same row, and the same events with the same times."""
    error = data["error"] and unpacked_error(data["error"])
    return Outcome(unit, data["result"], error, data["trace"])


def packed_error(error: Exception) -> dict[str, Any]:
    """An error: its class by name, its text, and those attributes that are texts or numbers."""
    plain = {
        name: value
        for name, value in vars(error).items()
        if value is None or isinstance(value, str | int | float)
    }
    # Of a plan the diagnostics are in its text and in the trace, which holds every attempt.
    empty = [name for name, value in vars(error).items() if isinstance(value, tuple)]
    return {"type": type(error).__name__, "text": str(error), "plain": plain, "empty": empty}


def unpacked_error(data: dict[str, Any]) -> Exception:
    """An error of the same name and text; of a class that is known here, if it is one of pearl's."""
    name = data["type"]
    known: Any = getattr(errors, name, None) or getattr(builtins, name, None)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        known = type(name, (PearlError,), {})
    # Not by its constructor: every class has its own, and the text is made already.
    error: Exception = known.__new__(known, data["text"])
    error.args = (data["text"],)
    if isinstance(error, PearlError):
        vars(error).update({"message": data["text"], "help": None, **data["plain"]})
        vars(error).update(dict.fromkeys(data["empty"], ()))
    return error


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """Configuration of a worker."""

    version: str
    settings: Mapping[str, Any]
    client: ClientSettings
    folder: str


class RayWorker:
    """Executes units like `local`."""

    def __init__(self, setup: WorkerConfig) -> None:
        # Nothing here may fail: Ray would not report why to the driver.
        self._setup = setup
        self._resources: Resources | None = None

    async def is_there(self) -> None:
        """Return once the worker is ready."""

    async def work(self, unit: Unit, driver: str) -> dict[str, Any]:
        """Execute one unit."""
        try:
            resources = self._ready(driver)
        except PearlError as error:
            return {"refused": packed_error(error)}
        outcome = await perform(unit, resources)
        halted = resources.pearl.client.breaker.error
        return {
            "outcome": packed_outcome(outcome),
            "halted": None if halted is None else packed_error(halted),
        }

    def _ready(self, driver: str) -> Resources:
        if driver != version():
            raise UsageError(
                f"the node {platform.node()} runs {version()}, the driver {driver}",
                help="install the same on every node of the cluster",
            )
        if self._resources is None:
            if Path(self._setup.folder).is_dir():
                os.chdir(self._setup.folder)
            client = Client(self._setup.client)
            self._resources = Resources(Pearl(client, **self._setup.settings))
        return self._resources
