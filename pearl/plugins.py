"""Plug-ins, data files and extras: what is installed here, found by name.

One file of a folder of plug-ins is one plug-in, named by its file name, `_` read as `-`. The
`__init__.py` of the folder has their contract: `CONTRACT`, a protocol. Foreign plug-ins come by entry
points of a group named as the package (`pearl.llm.backends`, `pearl.documents.readers`, ...); none takes
the place of one that is shipped. Listing imports none of them.

Data files (grammars, actions, few-shot plans, shipped documents) are looked for in `$PEARL_HOME` (what
it lacks is taken from the next place), in the installed wheel, and in the checkout. An extra is a set of
packages of pyproject.toml that are installed beside the core.
"""

from __future__ import annotations

import json
import os
import pkgutil
import shutil
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from pearl.errors import DataError, UsageError

__all__ = [
    "DISTRIBUTION",
    "find_data",
    "install_hint",
    "is_there",
    "load",
    "names",
    "read_data",
    "require_extra",
]

DISTRIBUTION = "pearl-plans"
"""What package indexes call it; `pearl` is somebody else's program there."""
_PACKAGE = Path(__file__).parent


@cache
def names(package: str) -> tuple[str, ...]:
    """The plug-ins of a package such as `pearl.retrieval`, sorted, without importing them.

    Example:
        >>> "map-reduce" in names("pearl.evals.methods")
        True
    """
    return tuple(sorted({*_own(package), *_foreign(package)}))


def is_there(package: str, name: str) -> bool:
    """Whether a package has a plug-in of that name: cheaper than all names, if it is a shipped one."""
    name = _shown(name)
    return name in _own(package) or name in _foreign(package)


def load(package: str, name: str) -> ModuleType | Any:
    """Import one plug-in.

    Raises:
        KeyError: There is none of that name.
        UsageError: It is a foreign one, and cannot be imported, lacks what the contract of the
            package asks for, or is there twice.
    """
    name = _shown(name)
    if name in _own(package):
        return import_module(f"{package}.{_own(package)[name]}")
    return _load_foreign(package, name)


@cache
def _load_foreign(package: str, name: str) -> Any:
    entry, *others = _foreign(package)[name]
    if others:
        raise UsageError(
            f"{package} has several plug-ins '{name}': of {_distribution(entry)} and of "
            f"{', '.join(map(_distribution, others))}",
            help="uninstall all of them but one",
        )
    try:
        plugin = entry.load()
    except Exception as error:
        first = str(error).partition("\n")[0]
        reason = f"cannot be imported: {type(error).__name__}: {first}"
        raise _broken(package, entry, reason) from error
    contract = import_module(package).CONTRACT
    functions = [name for name in vars(contract) if not name.startswith("_")]
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
        help=f"update or uninstall {_distribution(entry)}; it was looked for as one of {package}",
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _shown(name: str) -> str:
    """How a plug-in is called: no file of Python can have a hyphen in its name."""
    return name.replace("_", "-")


@cache
def _own(package: str) -> dict[str, str]:
    """Name → module of each shipped plug-in."""
    folder = find_spec(package)
    assert folder is not None
    found = pkgutil.iter_modules(folder.submodule_search_locations)
    return {_shown(module.name): module.name for module in found}


@cache
def _foreign(package: str) -> dict[str, list[EntryPoint]]:
    """Name → who brings it. Entry points are read from disk, file by file: once is enough."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=package):
        found.setdefault(_shown(entry.name), []).append(entry)
    return found


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


def require_extra(extra: str, purpose: str, *packages: str) -> None:
    """Make sure that the packages of an extra are there, without importing them.

    Args:
        extra: Its name in pyproject.toml.
        purpose: What needs them, as the subject of a sentence: "a cluster", "reading Parquet".
        packages: Names as they are imported.

    Raises:
        UsageError: One is not installed.

    Example:
        >>> require_extra("data", "reading Parquet", "json")
        >>> require_extra("data", "reading Parquet", "no_such_package")
        Traceback (most recent call last):
            ...
        pearl.errors.UsageError: reading Parquet needs no_such_package, which is not installed
          help: ...pip install ...
    """
    for package in packages:
        if find_spec(package) is None:
            raise UsageError(
                f"{purpose} needs {package}, which is not installed", help=install_hint(extra)
            )


def install_hint(extra: str) -> str:
    """The command that adds an extra to this very installation, as a shell takes it.

    That is, with the `pip` of the interpreter that runs, and from where PEARL itself came: a
    checkout that is edited, a folder or an address (PEP 610), else the package index.
    """
    found = shutil.which("pip")
    here = Path(sys.executable).parent
    pip = "pip" if found and Path(found).parent == here else f"{sys.executable} -m pip"
    return f"{pip} install {_requirement(extra)}"


def _requirement(extra: str) -> str:
    origin = _origin()
    url = str(origin.get("url", ""))
    if origin.get("dir_info", {}).get("editable"):
        folder = Path(unquote(urlsplit(url).path))
        return f'-e "{"." if folder == Path.cwd() else folder}[{extra}]"'
    if vcs := origin.get("vcs_info", {}).get("vcs"):
        url = f"{vcs}+{url}"
    return f'"{DISTRIBUTION}[{extra}] @ {url}"' if url else f'"{DISTRIBUTION}[{extra}]"'


def _origin() -> dict[str, Any]:
    """Where the installation came from, as its installer noted it; empty for a package index."""
    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:  # a copy of the sources that was never installed
        noted = json.dumps(
            {"url": Path(__file__).parents[1].as_uri(), "dir_info": {"editable": True}}
        )
    origin: dict[str, Any] = json.loads(noted or "{}")
    return origin
