"""Trusted settings files, by path and content.

Each is a file in the user's state folder, named by the digest of path and content and holding the
path: what was changed or moved since is not allowed. Beside it: what is the user's alone.
"""

from __future__ import annotations

import os
from pathlib import Path

from pearl.documents.digest import digest
from pearl.errors import DataError
from pearl.plugins.files import why_unsafe


def is_trusted(path: Path, content: bytes) -> bool:
    """Whether the user trusts this file with this content."""
    entry = _entry(path, content)
    return entry.is_file() and not (why_unsafe(entry) or why_unsafe(entry.parent))


def trust(path: Path, content: bytes) -> None:
    """Trust a file with this content only."""
    untrust(path)
    entry = _entry(path, content)
    try:
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry.parent.chmod(0o700)
        with os.fdopen(os.open(entry, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(os.fsencode(path))
    except OSError as error:
        raise _unusable(error, entry.parent) from None


def untrust(path: Path) -> bool:
    """Revoke the trust in a file; returns whether it was trusted."""
    folder = _folder()
    try:
        entries = [one for one in folder.iterdir() if one.read_bytes() == os.fsencode(path)]
        for entry in entries:
            entry.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(error, folder) from None
    return bool(entries)


def _folder() -> Path:
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = named if named.is_absolute() else Path("~/.local/state").expanduser()
    return state / "pearl" / "trusted"


def _entry(path: Path, content: bytes) -> Path:
    return _folder() / digest((os.fsencode(path), content)).hex()


def _unusable(error: OSError, folder: Path) -> DataError:
    return DataError(
        f"what is trusted cannot be kept: {error.strerror}", path=folder, help="check its rights"
    )
