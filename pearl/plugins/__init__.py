"""Folders of plug-ins: one file is one plug-in, named by its file name.

The folder's `__init__.py` defines their contract: `CONTRACT`, a protocol. A `_` in a module name is
read as `-`. Third-party plug-ins are registered as entry points in a group named after the package
(`pearl.llm.backends`, `pearl.documents.readers`, ...); a shipped plug-in takes precedence over one
of the same name. Listing the names imports no plug-in, except families.

A family is a file that holds several shipped plug-ins in a dictionary `PLUGINS`, by name: a module
of the folder whose name begins with `_`, or a module in place of the folder.
"""

from __future__ import annotations

import pkgutil
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pearl.errors import UsageError, suggest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


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
        kind: The word for the plug-in in error messages.

    Raises:
        UsageError: No plug-in has that name; or a third-party plug-in cannot be imported, violates
            the contract of the package, or is registered twice.

    Example:
        >>> load("pearl.data.domains", "medicl", "domain")
        Traceback (most recent call last):
            ...
        pearl.errors.UsageError: unknown domain 'medicl'
          help: did you mean 'medical'?
    """
    spelled = _spelled(name)
    if (plugin := _own(package).get(spelled)) is not None:
        return import_module(f"{package}.{plugin}") if isinstance(plugin, str) else plugin
    if spelled in _foreign(package):
        return _load_foreign(package, spelled)
    raise UsageError(f"unknown {kind} '{name}'", help=suggest(name, names(package), f"{kind}s"))


@cache
def _load_foreign(package: str, name: str) -> Any:
    entry, *others = _foreign(package)[name]
    if others:
        raise UsageError(
            f"{package} has several plug-ins '{name}': from {_distribution(entry)} and "
            f"{', '.join(map(_distribution, others))}",
            help="uninstall all but one of them",
        )
    try:
        plugin = entry.load()
    except Exception as error:
        first = str(error).partition("\n")[0]
        reason = f"cannot be imported: {type(error).__name__}: {first}"
        raise _broken(package, entry, reason) from error
    contract = import_module(package).CONTRACT
    functions = [
        name for name, value in vars(contract).items() if callable(value) and name[0] != "_"
    ]
    missing = [
        *(name for name in contract.__annotations__ if not hasattr(plugin, name)),
        *(f"{name}()" for name in functions if not callable(getattr(plugin, name, None))),
    ]
    if missing:
        raise _broken(package, entry, f"lacks {', '.join(missing)}")
    return plugin


def _broken(package: str, entry: EntryPoint, reason: str) -> UsageError:
    return UsageError(
        f"the plug-in '{entry.name}' of {_distribution(entry)} {reason}",
        help=f"update or uninstall {_distribution(entry)}; it was loaded as a plug-in of {package}",
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _spelled(name: str) -> str:
    return name.replace("_", "-")


@cache
def _own(package: str) -> dict[str, Any]:
    """User-facing names → names of modules, or the plug-ins of families."""
    spec = find_spec(package)
    assert spec is not None
    if spec.submodule_search_locations is None:
        return dict(import_module(package).PLUGINS)
    own: dict[str, Any] = {}
    for module in pkgutil.iter_modules(spec.submodule_search_locations):
        if module.name.startswith("_"):
            own |= import_module(f"{package}.{module.name}").PLUGINS
        else:
            own[_spelled(module.name)] = module.name
    return own


@cache
def _foreign(package: str) -> dict[str, list[EntryPoint]]:
    if not _is_extended():
        return {}
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=package):
        found.setdefault(_spelled(entry.name), []).append(entry)
    return found


@cache
def _is_extended() -> bool:
    """Whether any installed distribution may register a plug-in, by its entry-point files: `importlib.metadata` is slow to import."""
    folders = [Path(entry) for entry in sys.path if Path(entry).exists()]
    return not all(map(Path.is_dir, folders)) or any(
        b"[pearl." in path.read_bytes()
        for folder in folders
        for path in folder.glob("*.*-info/entry_points.txt")
    )
