"""Paths of the cache and of data files: `$PEARL_HOME` takes precedence over the installed wheel, the checkout and the folders of domains."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pearl import plugins
from pearl.errors import DataError
from pearl.errors.privacy import is_private

_PACKAGE = Path(__file__).parents[1]


def find_data(*parts: str) -> Path | None:
    """The first existing file or folder with this relative path; None if there is none."""
    return next(all_data(*parts), None)


def all_data(*parts: str) -> Iterator[Path]:
    """Every existing file or folder with this relative path; a domain plug-in has its own library and examples."""
    home = os.environ.get("PEARL_HOME")
    own = [*([Path(home)] if home else []), _PACKAGE / "_data", _PACKAGE.parent, _PACKAGE]
    yield from filter(Path.exists, (root.joinpath(*parts) for root in own))
    brought = plugins.folders("pearl.data.domains")  # Only now, because most files are found above
    yield from filter(Path.exists, (root.joinpath(*parts) for root in brought))


@cache
def read_data(*parts: str) -> str:
    """The text of a data file, cached."""
    path = find_data(*parts)
    if path is None:
        raise DataError("data file not found", path="/".join(parts), help="reinstall pearl")
    return path.read_text(encoding="utf-8")


def is_inside(path: str | Path, folder: str | Path) -> bool:
    """Whether a file is in a folder after resolving links: untrusted folders may contain links to any file."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def make_private(folder: Path) -> None:
    """Create a folder that only the user can access, and its missing parents, whatever the umask."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def content_cache(name: str) -> Path | None:
    """As `cache_file`, for texts of documents and data derived from them; None in a private run."""
    return None if is_private() else cache_file(name)


def cache_file(name: str) -> Path | None:
    """A cache file in `pearl/` under `$XDG_CACHE_HOME` or `~/.cache`; None if the folder cannot be used."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        folder = (named if named.is_absolute() else Path.home() / ".cache") / "pearl"
        make_private(folder)
        return None if why_unsafe(folder) else folder / name
    except (OSError, RuntimeError):  # No home folder, or a read-only one
        return None


def why_unsafe(path: Path) -> str:
    """Why a file or folder is not trusted; "" if only the current user can write to it."""
    if not hasattr(os, "geteuid"):
        return ""
    found = path.stat()
    if found.st_uid != os.geteuid():
        return f"it belongs to another user ({found.st_uid})"
    if stat.S_IMODE(found.st_mode) & 0o022:
        return f"other users may write to it (permissions {stat.S_IMODE(found.st_mode):04o})"
    return ""
