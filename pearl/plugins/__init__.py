"""Plug-ins: files in a folder, named by their file names, or modules registered by entry points.

The folder's `__init__.py` defines their contract: `CONTRACT`, a protocol. A `_` in a module name is
read as `-`. Other packages and `pearl.contrib` register entry points, in a group named after the
folder (`pearl.llm.backends`, `pearl.documents.readers`, ...). Of several plug-ins with one name that of the
folder is taken, then that of `pearl.contrib`. Listing the names imports no plug-in, except families.

A family is a file that holds several plug-ins in a dictionary `PLUGINS`, by name: a module
of the folder whose name begins with `_`, or a module in place of the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, reduce
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pearl.errors import UsageError, suggest

DISTRIBUTION = "pearl-plans"
"""The name of the distribution; on the package index, `pearl` is another project."""

_ROOT = Path(__file__).parents[2]  # Contains the package: a checkout or an environment


@cache
def names(package: str) -> tuple[str, ...]:
    """Sorted plug-in names of a package such as `pearl.llm.backends`, without imports."""
    return tuple(sorted({*_own(package), *_registered(package)}))


def exists(package: str, name: str) -> bool:
    """Whether a package has a plug-in with a name; faster than `names` for plug-ins of this distribution."""
    spelled = _spelled(name)
    return spelled in _own(package) or spelled in _registered(package)


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
    if spelled in _registered(package):
        return _load_registered(package, spelled)
    raise UsageError(f"unknown {kind} '{name}'", help=suggest(name, names(package), f"{kind}s"))


@cache
def folders(package: str) -> tuple[Path, ...]:
    """The folders of modules that entry points register for a package; imports their parent packages."""
    entries = chain.from_iterable(_registered(package).values())
    places: dict[Path, None] = {}
    for entry in entries:
        with suppress(ImportError):
            if (origin := entry.origin()) is not None:
                places[Path(origin).parent] = None
    return tuple(places)


def identity(package: str) -> tuple[str | bytes, ...]:
    """The files, distributions and versions of a package's installed plug-ins, which differ for other plug-ins; imports their parent packages."""
    spec = find_spec(package)
    assert spec is not None
    parts: list[str | bytes] = []
    for folder in map(Path, spec.submodule_search_locations or ()):
        for path in sorted(folder.glob("*.py")):
            parts += [path.name, path.read_bytes()]
    for entry in chain.from_iterable(_registered(package).values()):
        parts += entry
        with suppress(ImportError, OSError):
            if (origin := entry.origin()) is not None:
                parts.append(Path(origin).read_bytes())
    return tuple(parts)


@cache
def _load_registered(package: str, name: str) -> Any:
    entry, *others = _registered(package)[name]
    if others:
        raise UsageError(
            f"{package} has several plug-ins '{name}': from {entry.distribution} and "
            f"{', '.join(other.distribution for other in others)}",
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


def _broken(package: str, entry: _EntryPoint, reason: str) -> UsageError:
    return UsageError(
        f"the plug-in '{entry.name}' of {entry.distribution} {reason}",
        help=f"update or uninstall {entry.distribution}; it was loaded as a plug-in of {package}",
    )


def _spelled(name: str) -> str:
    return name.replace("_", "-")


@cache
def _own(package: str) -> dict[str, Any]:
    """Plug-in names → module names, or the plug-ins of families."""
    import pkgutil  # late: `pearl --version` has no plug-ins

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


class _EntryPoint(NamedTuple):
    """An entry point; its value is `MODULE` or `MODULE:ATTRIBUTE`."""

    distribution: str
    version: str  # "" in a checkout
    name: str
    value: str

    def load(self) -> Any:
        module, _, attributes = self.value.partition(":")
        return reduce(getattr, filter(None, attributes.split(".")), import_module(module))

    def origin(self) -> str | None:
        """The file of its module; imports the parent packages."""
        spec = find_spec(self.value.partition(":")[0])
        return None if spec is None else spec.origin

    def is_removed(self) -> bool:
        """Whether it belongs to this distribution, but its module was deleted."""
        if self.distribution != DISTRIBUTION:
            return False
        path = _ROOT.joinpath(*self.value.partition(":")[0].split("."))
        return not (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


@cache
def _registered(package: str) -> dict[str, list[_EntryPoint]]:
    """Name → entry points of a group; several if distributions register the same name."""
    registered: dict[str, list[_EntryPoint]] = {}
    for entry in _entry_points().get(package, ()):
        if not entry.is_removed():
            registered.setdefault(_spelled(entry.name), []).append(entry)
    return {
        name: [entry for entry in entries if entry.distribution == DISTRIBUTION] or entries
        for name, entries in registered.items()
    }


@cache
def _entry_points() -> dict[str, list[_EntryPoint]]:
    """Group → the entry points of all installed distributions.

    Their files are read here, because importing `importlib.metadata` takes longer than a fast command. A
    checkout has its entry points in `pyproject.toml`; those of an editable installation may be older.
    """
    texts: dict[str, tuple[str, str]] = {}  # distribution → its version and entry points
    project = _ROOT / "pyproject.toml"
    if project.exists() and f'name = "{DISTRIBUTION}"' in (text := project.read_text("utf-8")):
        texts[DISTRIBUTION] = "", text
    for folder in sys.path:
        for path in Path(folder).glob("*.*-info/entry_points.txt"):
            name, _, version = path.parent.stem.partition("-")
            # If a distribution occurs twice, Python imports the first
            texts.setdefault(name.replace("_", "-"), (version, path.read_text("utf-8", "replace")))
    groups: dict[str, list[_EntryPoint]] = {}
    for distribution, (version, text) in texts.items():
        for group, name, value in _read_entries(text):
            entry = _EntryPoint(distribution, version, name, value)
            groups.setdefault(group, []).append(entry)
    return groups


def _read_entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Group, name and value of each entry point in `entry_points.txt`, or in the tables of `pyproject.toml`."""
    if "[pearl." not in text and '."pearl.' not in text:
        return
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[]").removeprefix("project.entry-points.").strip('"')
        elif group.startswith("pearl.") and line[:1] not in ("", "#", ";"):
            name, _, value = line.partition("=")
            # The specification allows extras after the value, but nothing uses them.
            yield group, name.strip(), value.partition("[")[0].strip(' "')
