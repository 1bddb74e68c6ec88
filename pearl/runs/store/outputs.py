"""Records of written files, so that other files are never overwritten without `--force`.

One small file a path, in a folder of the store. It holds no text of what was written, only digests.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from pearl.documents.digest import bytes_sha256, digest, file_sha256

_MAX_BEGINNING = 65_536

_N_DIGESTS = 4
"""Of what a command wrote to a path: the last one may have been noted and not been put there."""


class Outputs:
    """The outputs that are known to a store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "outputs"

    def wrote(self, path: Path, command: str | None = None, *, by: str | None = None) -> bool:
        """Whether the file is as a command left it; of one that grew, whether it begins so."""
        entry = self._entry(path)
        if (
            not entry
            or command not in (None, entry["command"])
            or by not in (None, entry.get("by"))
        ):
            return False
        try:
            if file_sha256(path) in entry["sha256"]:
                return True
            with path.open("rb") as file:
                begins = file.read(min(entry.get("n_bytes", 0), _MAX_BEGINNING))
            return bool(begins) and bytes_sha256(begins) in entry["sha256"][:1]
        except OSError:
            return False

    def note(
        self, path: Path, command: str, written: Path, *, by: str = "", grows: bool = False
    ) -> None:
        """Keep what is about to be put at a path.

        Where it cannot be kept, the file will count as that of somebody else, and be asked about.
        """
        entry = self._entry(path)
        before = entry["sha256"] if entry and entry["command"] == command else []
        n_bytes = 0
        if grows:
            with written.open("rb") as grown:
                begins = grown.read(_MAX_BEGINNING)
            n_bytes, first = len(begins), bytes_sha256(begins)
        else:
            first = file_sha256(written)
        digests = [first, *before][:_N_DIGESTS]
        data = {"path": os.fsencode(path).decode("utf-8", "backslashreplace"), "command": command,
                "by": by, "sha256": digests, "n_bytes": n_bytes}  # fmt: skip
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as file:
                json.dump(data, file)
            Path(file.name).replace(self._file(path))

    def _file(self, path: Path) -> Path:
        return self._folder / f"{digest([os.fsencode(path)]).hex()}.json"

    def _entry(self, path: Path) -> dict[str, Any]:
        """The record of a path; empty if missing or damaged."""
        try:
            data = json.loads(self._file(path).read_bytes())
        except (OSError, ValueError):
            return {}
        is_whole = (
            isinstance(data, dict)
            and isinstance(data.get("command"), str)
            and isinstance(data.get("sha256"), list)
            and isinstance(data.get("n_bytes", 0), int)
        )
        return data if is_whole else {}
