"""Folders of plug-ins: one file is one plug-in, named by its file name.

The `__init__.py` of the folder is the contract. Foreign plug-ins come by entry points of a group
named as the package (`pearl.llm`, `pearl.sources`, ...). Listing imports none of them.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

__all__ = ["load", "names"]


@cache
def names(package: str) -> tuple[str, ...]:
    """The plug-ins of a package such as `pearl.llm`, sorted, without importing them."""
    folder = import_module(package)
    own = {module.name for module in pkgutil.iter_modules(folder.__path__)}
    foreign = {entry.name for entry in _foreign(package)}
    return tuple(sorted(own | foreign))


@cache
def _foreign(package: str) -> tuple[EntryPoint, ...]:
    """Entry points are read from disk, file by file: once is enough."""
    return tuple(entry_points(group=package))


def load(package: str, name: str) -> ModuleType | Any:
    """Import one plug-in.

    Raises:
        KeyError: There is none of that name.
    """
    if name not in names(package):
        raise KeyError(name)
    for entry in _foreign(package):
        if entry.name == name:
            return entry.load()
    return import_module(f"{package}.{name}")
