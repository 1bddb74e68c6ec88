"""Plug-ins, data files and extras: what is installed here, found by name.

One file of a folder of plug-ins is one plug-in, named by its file name; the `__init__.py` of the
folder is the contract. Foreign plug-ins come by entry points of a group named as the package
(`pearl.llm.backends`, `pearl.documents.readers`, ...). Listing imports none of them.

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

from pearl.errors import DataError, UsageError, suggest

__all__ = [
    "DISTRIBUTION",
    "find_data",
    "install_hint",
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

    A `_` in the name of a file is read as `-`.
    """
    folder = import_module(package)
    own = {module.name for module in pkgutil.iter_modules(folder.__path__)}
    foreign = {entry.name for entry in _foreign(package)}
    return tuple(sorted(_spelled(name) for name in own | foreign))


def _spelled(name: str) -> str:
    return name.replace("_", "-")


@cache
def _foreign(package: str) -> tuple[EntryPoint, ...]:
    """Entry points are read from disk, file by file: once is enough."""
    return tuple(entry_points(group=package))


def load(package: str, name: str, kind: str = "plug-in") -> ModuleType | Any:
    """Import one plug-in.

    Args:
        package: The folder.
        name: With `-` or with `_`.
        kind: What messages call such a plug-in.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> load("pearl.data.domains", "medicl", "domain")
        Traceback (most recent call last):
            ...
        pearl.errors.UsageError: unknown domain 'medicl'
          help: did you mean 'medical'?
    """
    spelled = _spelled(name)
    if spelled not in names(package):
        raise UsageError(f"unknown {kind} '{name}'", help=suggest(name, names(package), f"{kind}s"))
    for entry in _foreign(package):
        if _spelled(entry.name) == spelled:
            return entry.load()
    return import_module(f"{package}.{spelled.replace('-', '_')}")


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
