"""Where the data files are: grammars, actions, few-shot plans, shipped documents; and the cache.

Looked for in this order: `$PEARL_HOME` (a folder with `grammars/`, `actions/`, `fewshot/`; what it
lacks is taken from the next place), the installed wheel, the checkout.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

from pearl.errors import DataError

__all__ = ["cache_file", "find_data", "not_alone", "read_data"]

_PACKAGE = Path(__file__).parents[1]


def _roots() -> list[Path]:
    home = os.environ.get("PEARL_HOME")
    return [*([Path(home)] if home else []), _PACKAGE / "_data", _PACKAGE.parent, _PACKAGE]


def find_data(*parts: str) -> Path | None:
    """The first file or folder of that relative path, or None."""
    for root in _roots():
        path = root.joinpath(*parts)
        if path.exists():
            return path
    return None


@cache
def read_data(*parts: str) -> str:
    """The text of a data file, read once.

    Raises:
        DataError: The file is not there.
    """
    path = find_data(*parts)
    if path is None:
        raise DataError("data file not found", path="/".join(parts), help="reinstall pearl")
    return path.read_text(encoding="utf-8")


def cache_file(name: str) -> Path | None:
    """Where to keep what can be made again: a file of `pearl` in `$XDG_CACHE_HOME` or `~/.cache`.

    Returns:
        None where there is no such folder, or others may write to it: what is kept may be a pickle,
        which is code.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        folder = (named if named.is_absolute() else Path.home() / ".cache") / "pearl"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return None if not_alone(folder) else folder / name
    except (OSError, RuntimeError):  # a home that cannot be written to, or none
        return None


def not_alone(path: Path) -> str:
    """Why a file or folder may be another user's work; "" where only this user can write it.

    Raises:
        OSError: It is not there.
    """
    if not hasattr(os, "geteuid"):
        return ""
    found = path.stat()
    if found.st_uid != os.geteuid():
        return f"it belongs to another user ({found.st_uid})"
    if stat.S_IMODE(found.st_mode) & 0o022:
        return f"other users may write to it (rights {stat.S_IMODE(found.st_mode):04o})"
    return ""
