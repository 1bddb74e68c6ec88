"""The worker on a node: executes many units concurrently with its own `Pearl`."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pearl.errors import PearlError, UsageError
from pearl.llm.client import Client, ClientSettings
from pearl.pipeline import Pearl
from pearl.runs.executors import Unit
from pearl.runs.executors.local import perform
from pearl.runs.executors.ray.wire import packed_error, packed_outcome
from pearl.runs.identity import version
from pearl.runs.resources import Resources


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
                f"the node {platform.node()} has {version()}, this is {driver}",
                help="install the same on every node of the cluster",
            )
        if self._resources is None:
            if Path(self._setup.folder).is_dir():
                os.chdir(self._setup.folder)
            client = Client(self._setup.client)
            self._resources = Resources(Pearl(client, **self._setup.settings))
        return self._resources
