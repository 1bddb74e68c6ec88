"""Sinks: where the rows of a run go in place of the store, chosen by the scheme of `--out SCHEME://...`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from pearl import plugins
from pearl.data.storage import is_address


class RowStore(Protocol):
    """Where the rows of a run are kept: a `Run` of the store, or a sink."""

    def has(self, key: bytes) -> bool:
        """Whether there is a row with this key that need not be repeated."""

    async def record(
        self, key: bytes, seq: int, task_id: str, row: Mapping[str, Any], trace: str
    ) -> None:
        """Keep a row; a row `failed` is repeated by the next run, one `unfinished` has no result."""


class Sink(RowStore, Protocol):
    """Rows of a run outside the store."""

    statuses: Counter[str]

    def close(self) -> None:
        """Write the rows that are not written yet."""


class SinkModule(Protocol):
    """The contract of a sink plug-in."""

    DESCRIPTION: str

    def create(self, address: str, plan: str, settings: Mapping[str, object], shard: str) -> Sink:
        """The sink at an address, with the rows that earlier runs wrote.

        Args:
            address: As after `--out`.
            plan: The plan, whose outputs and fields are in the rows.
            settings: What the rows depend on besides the plan: rows of other settings are refused.
            shard: The part of the work, as `1/8`; "" for all.
        """


CONTRACT = SinkModule
PLUGINS: dict[str, Any] = {}


def load_sink(address: str) -> SinkModule:
    """The sink for the scheme of an address."""
    sink: SinkModule = plugins.load(__name__, address.partition("://")[0], "sink")
    return sink


def is_sink(name: str) -> bool:
    """Whether `--out` names a sink, and no file."""
    scheme, mark, _ = name.partition("://")
    return is_address(name) or (bool(mark) and plugins.exists(__name__, scheme))
