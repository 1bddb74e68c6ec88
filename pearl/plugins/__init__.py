"""Folders of plug-ins: one file is one plug-in, named by its file name.

The folder's `__init__.py` documents the contract. A `_` in a module name is read as `-`.
Third-party plug-ins are registered as entry points in a group named after the package
(`pearl.llm.backends`, `pearl.documents.readers`, ...); a shipped plug-in takes precedence over one
of the same name. Listing the names imports no plug-in.
"""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pearl.errors import UsageError, suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["exists", "load", "names"]


@cache
def names(package: str) -> tuple[str, ...]:
    """Sorted plug-in names of a package such as `pearl.llm.backends`, without imports."""
    return tuple(sorted({*_own(package), *_foreign(package)}))


def exists(package: str, name: str) -> bool:
    """Whether a package has a plug-in of that name; cheaper than `names` for a shipped one."""
    spelled = _spelled(name)
    return spelled in _own(package) or spelled in _foreign(package)


def load(package: str, name: str, kind: str = "plug-in") -> ModuleType | Any:
    """Import one plug-in.

    Args:
        package: The package that holds the plug-ins.
        name: The name, spelled with `-` or `_`.
        kind: The word for such a plug-in in error messages.

    Raises:
        UsageError: No plug-in has that name.

    Example:
        >>> load("pearl.data.domains", "medicl", "domain")
        Traceback (most recent call last):
            ...
        pearl.errors.UsageError: unknown domain 'medicl'
          help: did you mean 'medical'?
    """
    spelled = _spelled(name)
    if spelled in _own(package):
        return import_module(f"{package}.{_own(package)[spelled]}")
    if spelled in _foreign(package):
        return _foreign(package)[spelled].load()
    raise UsageError(f"unknown {kind} '{name}'", help=suggest(name, names(package), f"{kind}s"))


def _spelled(name: str) -> str:
    return name.replace("_", "-")


@cache
def _own(package: str) -> dict[str, str]:
    """Map of user-facing names to module names."""
    folder = import_module(package)
    return {_spelled(module.name): module.name for module in pkgutil.iter_modules(folder.__path__)}


@cache
def _foreign(package: str) -> dict[str, EntryPoint]:
    if not _is_extended():
        return {}
    from importlib.metadata import entry_points

    return {_spelled(entry.name): entry for entry in entry_points(group=package)}


@cache
def _is_extended() -> bool:
    """Whether any installed distribution may register a plug-in.

    Importing `importlib.metadata` is slow compared with `pearl check`, so the entry-point files are
    scanned first. A path entry that is not a folder (a zip file) counts as a yes.
    """
    folders = [Path(entry) for entry in sys.path if Path(entry).exists()]
    return not all(map(Path.is_dir, folders)) or any(
        b"[pearl." in path.read_bytes()
        for folder in folders
        for path in folder.glob("*.*-info/entry_points.txt")
    )
