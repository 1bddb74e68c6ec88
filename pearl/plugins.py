"""Folders of plug-ins: one file is one plug-in, named by its file name.

The `__init__.py` of the folder is the contract. Foreign plug-ins come by entry points of a group
named as the package (`pearl.llm`, `pearl.sources`, ...); none takes the place of one that is shipped.
Listing imports none of them.
"""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["is_there", "load", "names"]


@cache
def names(package: str) -> tuple[str, ...]:
    """The plug-ins of a package such as `pearl.llm`, sorted, without importing them."""
    return tuple(sorted({*_own(package), *_foreign(package)}))


def is_there(package: str, name: str) -> bool:
    """Whether a package has a plug-in of that name: cheaper than all names, if it is a shipped one."""
    return name in _own(package) or name in _foreign(package)


def load(package: str, name: str) -> ModuleType | Any:
    """Import one plug-in.

    Raises:
        KeyError: There is none of that name.
    """
    if name in _own(package):
        return import_module(f"{package}.{name}")
    return _foreign(package)[name].load()


@cache
def _own(package: str) -> frozenset[str]:
    folder = import_module(package)
    return frozenset(module.name for module in pkgutil.iter_modules(folder.__path__))


@cache
def _foreign(package: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in _entry_points() if entry.group == package}


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Of all that is installed: read from disk, file by file, so once for all packages.

    The library that reads them takes longer to import than `pearl check` has: where no file says
    anything of this program, it is not asked. What is no folder, as a zip file, may hold anything.
    """
    folders = [Path(entry) for entry in sys.path if Path(entry).exists()]
    if all(map(Path.is_dir, folders)) and not any(
        b"[pearl." in path.read_bytes()
        for folder in folders
        for path in folder.glob("*.*-info/entry_points.txt")
    ):
        return ()
    from importlib.metadata import entry_points

    return tuple(entry_points())
