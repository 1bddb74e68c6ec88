"""Sinks: destinations for the rows of a run other than the store, chosen by the scheme of `--out SCHEME://...`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from pearl import plugins
from pearl.data.storage import is_address


class RowStore(Protocol):
    """Stores the rows of a run: a `Run` of the store, or a sink."""

    def has(self, key: bytes) -> bool:
        """Whether a row with this key is stored and need not be repeated."""

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str
    ) -> None:
        """Store a row. The next run repeats a row with status `failed`; one with `unfinished` has no result."""


class Sink(RowStore, Protocol):
    """A destination for rows outside the store."""

    statuses: Counter[str]

    def close(self) -> None:
        """Write the rows that are still buffered."""


class SinkModule(Protocol):
    """The contract of a sink plug-in."""

    DESCRIPTION: str

    def create(self, address: str, plan: str, settings: Mapping[str, object], shard: str) -> Sink:
        """Open the sink at an address; it contains the rows that earlier runs wrote.

        Args:
            address: As after `--out`.
            plan: The plan, whose outputs and fields are in the rows.
            settings: What the rows depend on besides the plan: rows of other settings are refused.
            shard: The part of the work, as `1/8`; "" for all.
        """


CONTRACT = SinkModule
PLUGINS: dict[str, Any] = {}


def load_sink(address: str) -> SinkModule:
    """The sink plug-in for the scheme of an address."""
    sink: SinkModule = plugins.load(__name__, address.partition("://")[0], "sink")
    return sink


def is_sink(name: str) -> bool:
    """Whether the value of `--out` is the address of a sink, not a file."""
    scheme, mark, _ = name.partition("://")
    return is_address(name) or (bool(mark) and plugins.exists(__name__, scheme))
