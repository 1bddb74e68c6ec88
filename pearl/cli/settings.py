"""Settings files and `PEARL_...` variables. A file of the working folder may set servers, keys, files and plug-ins only once the user trusts it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from msgspec import Struct

from pearl.cli.options import FOUND, variable_of
from pearl.documents.digest import digest
from pearl.errors import DataError, UsageError, did_you_mean, suggest
from pearl.errors.escaping import visible
from pearl.plugins.files import make_private, why_unsafe
from pearl.settings import SETTINGS, schema

NAME = "pearl.toml"

MAX_BYTES = 1_000_000  # maximum size of a settings file, which may be untrusted

VARIABLES = frozenset(
    {
        *map(variable_of, SETTINGS), "PEARL_API_KEY", "PEARL_CONFIG", "PEARL_EMBEDDINGS_API_KEY", "PEARL_EMBEDDINGS_URL",
"PEARL_HOME", "PEARL_MAX_DOCUMENT_MB", "PEARL_MAX_READER_MB", "PEARL_MAX_READER_SECONDS",
       "PEARL_PRICE", "PEARL_PRICES", "PEARL_PRIVATE", "PEARL_STORE",
       "PEARL_TELEMETRY",
    }
)  # fmt: skip
"""Every environment variable that is read."""


class SettingsFile(Struct, frozen=True):
    """One settings file."""

    path: Path
    content: bytes
    values: Mapping[str, Any]
    is_found: bool = False
    is_trusted: bool = True

    def may_set(self, name: str) -> bool:
        """Whether the file may set this setting."""
        by = "trusted" if name == "sources" else schema()[name][1].set_by
        return self.is_trusted or by == "anyone"


def read_settings(config: str | None, folder: Path = Path()) -> list[SettingsFile]:
    """The files in force, in order of precedence."""
    if config is not None:
        return [_read(Path(config))]
    own = own_path()
    files = [] if own is None or not own.is_file() else [_read(own)]
    found = found_in(folder)
    if found is None or (files and found.path.samefile(files[0].path)):
        return files
    return [found, *files]


def found_in(folder: Path) -> SettingsFile | None:
    """The settings file of a folder, as untrusted; None if it does not exist."""
    path = folder.resolve() / NAME
    if not path.is_file():
        return None
    return _read(path, is_found=True)


def own_path() -> Path | None:
    """The path of the user's own file; None without a home folder."""
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        folder = named if named.is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "pearl" / NAME


def _read(path: Path, *, is_found: bool = False) -> SettingsFile:
    import tomllib

    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DataError("the settings file is too long", path=path)
        settings = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"invalid TOML: {error}", path=path) from None
    values = {key.replace("-", "_"): value for key, value in settings.items()}
    if "sources" in values:
        values["sources"] = _sources(path, values["sources"], is_found=is_found)
    for key in values.keys() - {"sources"}:
        if key not in SETTINGS:
            help = suggest(key, SETTINGS, "settings")
            raise DataError(f"unknown setting {key!r}", path=path, help=help)
        if is_found and schema()[key][1].set_by == "user":
            raise DataError(
                f"a pearl.toml of the working folder may not set {key}",
                path=path,
                help=f"set it with --{key.replace('_', '-')}, or in {own_path()}",
            )
    return SettingsFile(path, content, values, is_found, not is_found or is_trusted(path, content))


def _sources(path: Path, given: Any, *, is_found: bool) -> tuple[str, ...]:
    """The tables `[sources.NAME]` of a file in the form of `--source`; relative paths start at the file's folder."""
    said = []
    for name, each in given.items() if isinstance(given, dict) else ((given, None),):
        match each:
            case {"path": str(where), **rest} if rest.keys() <= {"description"}:
                where = where if is_found else str(path.parent / where)
                about = " ".join(str(rest.get("description", "")).split())
                said.append(f"{name}={where} : {about}".removesuffix(" : "))
            case _:
                advice = '[sources.rules] has path = "rules/" and may have description = "..."'
                raise DataError(f"sources: {name!r:.60} names no path", path=path, help=advice)
    return tuple(said)


def found_names(files: Iterable[SettingsFile]) -> frozenset[str]:
    """The settings that files of the working folder set."""
    return frozenset(name for file in files if file.is_found for name in file.values)


def _refuse(file: SettingsFile) -> Callable[[], None]:
    """Return a default factory that raises if an untrusted setting would be used."""

    def refuse() -> None:
        names = [name for name in file.values if not file.may_set(name)]
        raise UsageError(
            f"{file.path} sets {', '.join(names)}, but you have not trusted this file",
            help="read it, then run 'pearl config trust'; or set them yourself, for example with --model",
        )

    return refuse


def defaults(
    files: Iterable[SettingsFile], *, refuse: Callable[[SettingsFile], Callable[[], None]] = _refuse
) -> dict[str, Any]:
    """The values of settings in the files, by name, as defaults for click."""
    values: dict[str, Any] = {}
    for file in files:
        for name, value in file.values.items():
            if name not in values:
                values[name] = value if file.may_set(name) else refuse(file)
    if (url := values.get("base_url")) is not None:
        values["base_url"] = lambda: _server_of_file(url)
    return values


def _server_of_file(url: Any) -> Any:
    """A default: the server of a file, or None if the model has no server or a variable names one."""
    from pearl.llm.backends import address_of, address_variable

    model = str(click.get_current_context().params.get("model"))
    if address_variable(model) or address_of(model) is None:
        return None
    return url() if callable(url) else url


def unknown(variables: Iterable[str]) -> Sequence[str]:
    """A warning for every unknown `PEARL_...` variable."""
    lines = []
    for name in sorted(variables):
        if name.startswith("PEARL_") and name not in VARIABLES:
            close = did_you_mean(name, VARIABLES, cutoff=0.75)
            lines.append(
                f"{visible(name)} is not a setting" + (f"; did you mean {close}?" if close else "")
            )
    return lines


def is_trusted(path: Path, content: bytes) -> bool:
    """Whether the user has trusted this file with this content."""
    entry = _trust_entry(path, content)
    return entry.is_file() and not (why_unsafe(entry) or why_unsafe(entry.parent))


def trust(path: Path, content: bytes) -> None:
    """Trust a file with this content only."""
    untrust(path)
    entry = _trust_entry(path, content)
    try:
        make_private(entry.parent)
        entry.parent.chmod(0o700)
        with os.fdopen(os.open(entry, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(os.fsencode(path))
    except OSError as error:
        raise _unusable(error, entry.parent) from None


def untrust(path: Path) -> bool:
    """Revoke the trust in a file; returns whether it was trusted."""
    folder = _trust_folder()
    try:
        entries = [one for one in folder.iterdir() if one.read_bytes() == os.fsencode(path)]
        for entry in entries:
            entry.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(error, folder) from None
    return bool(entries)


def _trust_folder() -> Path:
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    state = named if named.is_absolute() else Path("~/.local/state").expanduser()
    return state / "pearl" / "trusted"


def _trust_entry(path: Path, content: bytes) -> Path:
    return _trust_folder() / digest((os.fsencode(path), content)).hex()


def _unusable(error: OSError, folder: Path) -> DataError:
    return DataError(
        f"trust in a file cannot be saved: {error.strerror}", path=folder, help="check its rights"
    )


def settings_in_force(ctx: click.Context, files: list[SettingsFile]) -> list[dict[str, Any]]:
    """Every setting of `pearl ask`: `setting`, `value`, and its origin `from`, "" for a default."""
    from pearl.cli.commands.ask import command as ask
    from pearl.llm.backends import address_variable

    ctx.meta[FOUND] = found_names(files)
    asked = ask.make_context(
        "ask", ["?", "-"], parent=ctx, default_map=defaults(files, refuse=lambda file: lambda: None)
    )
    rows = []
    for option in (each for each in ask.params if each.name in SETTINGS):
        name, where = str(option.name), ""
        source = asked.get_parameter_source(name)
        if source is ParameterSource.ENVIRONMENT:
            where = f"${option.envvar}"
        elif source is ParameterSource.DEFAULT_MAP:
            file = next(file for file in files if name in file.values)
            where = str(file.path) if file.may_set(name) else f"refused to {file.path}"
        value = asked.params[name]
        variable = address_variable(asked.params["model"] or "")
        if name == "base_url" and value is None and variable:
            value, where = os.environ[variable], f"${variable}"
        rows.append({"setting": name, "value": value, "from": where})
    return rows
