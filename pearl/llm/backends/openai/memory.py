"""What was found out about a server, kept for later commands: its window, its kind, the constraints it obeys."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pearl.documents.digest import digest
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.plugins.files import content_cache
from pearl.plugins.persistence import write_private

KEPT_S = 86_400.0
"""Seconds for which it counts: a server may be started again with another model or window."""


class ServerMemory:
    """JSON values by name about one model of one server, in a file of the user's cache.

    Nothing is kept of private runs. A file that is damaged, old or cannot be written is as good as none.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._name = digest([endpoint.identity, endpoint.model]).hex()[:32]

    def read(self, name: str) -> Any:
        """The value of a name; None if it is unknown."""
        return self._values().get(name)

    def keep(self, name: str, value: Any) -> None:
        """Keep a value that JSON can represent."""
        path = self._path()
        if path is None:
            return
        values = {**self._values(), name: value}
        values.setdefault("at_s", time.time())
        with suppress(OSError):
            write_private(path, json.dumps(values).encode())

    def forget(self) -> None:
        """Forget the server, which has changed."""
        if (path := self._path()) is not None:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _path(self) -> Path | None:
        return content_cache(f"servers/{self._name}.json")

    def _values(self) -> dict[str, Any]:
        path = self._path()
        try:
            values = json.loads(path.read_bytes()) if path else {}
        except (OSError, ValueError, RecursionError):
            return {}
        at_s = values.get("at_s") if isinstance(values, dict) else None
        is_recent = isinstance(at_s, float) and 0 <= time.time() - at_s < KEPT_S
        return values if is_recent else {}
