"""Folders of plug-ins: one file is one plug-in, named by its file name.

The `__init__.py` of the folder is the contract. Foreign plug-ins come by entry points of a group
named as the package (`pearl.llm.backends`, `pearl.documents.readers`, ...); none takes the place of one that is shipped.
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
    """The plug-ins of a package such as `pearl.llm.backends`, sorted, without importing them."""
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
    if not _is_extended():
        return {}
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=package)}


@cache
def _is_extended() -> bool:
    """Whether there may be foreign plug-ins at all.

    The library that knows takes longer to import than `pearl check` has, so the files it would read
    are looked at first. What is no folder, as a zip file, may hold anything.
    """
    folders = [Path(entry) for entry in sys.path if Path(entry).exists()]
    return not all(map(Path.is_dir, folders)) or any(
        b"[pearl." in path.read_bytes()
        for folder in folders
        for path in folder.glob("*.*-info/entry_points.txt")
    )
