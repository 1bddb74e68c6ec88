"""Settings files: which are read, what each may say, and which `PEARL_...` variables there are.

A file that the user names or keeps in the configuration folder is the user's own. One that is found
in the working folder is a stranger's until the user trusts it: it may then set numbers and ways of
working, but nothing that decides where a document is sent, or which files and plug-ins are used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pearl.cli.options import OWN, SETTINGS, TRUSTED
from pearl.cli.trust import is_trusted
from pearl.errors import DataError, UsageError, did_you_mean, suggest
from pearl.errors.escaping import visible

NAME = "pearl.toml"

MAX_BYTES = 1_000_000

VARIABLES = frozenset(
    {f"PEARL_{name.upper()}" for name in SETTINGS if not name.endswith("_per_minute")}
    | {"PEARL_API_KEY", "PEARL_CONFIG", "PEARL_EMBEDDINGS_API_KEY", "PEARL_EMBEDDINGS_URL",
       "PEARL_HOME", "PEARL_MAX_DOCUMENT_MB", "PEARL_MAX_READER_MB", "PEARL_MAX_READER_SECONDS",
       "PEARL_PRICE", "PEARL_PRICES", "PEARL_RERANKER_API_KEY", "PEARL_RPM",
       "PEARL_STORE", "PEARL_TELEMETRY", "PEARL_TPM"}
)  # fmt: skip
"""Every environment variable that is read."""


@dataclass(frozen=True)
class SettingsFile:
    """One settings file."""

    path: Path
    content: bytes
    values: Mapping[str, Any]
    is_found: bool = False
    is_trusted: bool = True

    def may_set(self, name: str) -> bool:
        """Whether its value of a setting is in effect."""
        return self.is_trusted or name not in TRUSTED


def read_settings(config: str | None, folder: Path = Path()) -> list[SettingsFile]:
    """The files that are in force, those that come first before the others."""
    if config is not None:
        return [_read(Path(config))]
    own = own_path()
    files = [] if own is None or not own.is_file() else [_read(own)]
    found = found_in(folder)
    if found is None or (files and found.path.samefile(files[0].path)):
        return files
    return [found, *files]


def found_in(folder: Path) -> SettingsFile | None:
    """The settings file of a folder, as untrusted; None if there is none."""
    path = folder.resolve() / NAME
    if not path.is_file():
        return None
    return _read(path, is_found=True)


def own_path() -> Path | None:
    """Where the user's own file is, if there is one; None where there is no home."""
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
            raise DataError("is too long for a settings file", path=path)
        settings = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"no TOML: {error}", path=path) from None
    values = {key.replace("-", "_"): value for key, value in settings.items()}
    for key in values:
        if key not in SETTINGS:
            help = suggest(key, SETTINGS, "settings")
            raise DataError(f"unknown setting {key!r}", path=path, help=help)
        if is_found and key in OWN:
            raise DataError(
                f"{key} is not for a file that is found in a folder",
                path=path,
                help=f"say it with --{key.replace('_', '-')}, or in {own_path()}",
            )
    return SettingsFile(path, content, values, is_found, not is_found or is_trusted(path, content))


def found_names(files: Iterable[SettingsFile]) -> frozenset[str]:
    """The settings that a file found in a folder says."""
    return frozenset(name for file in files if file.is_found for name in file.values)


def _refuse(file: SettingsFile) -> Callable[[], None]:
    """What stands in the place of a value that the file may not set."""

    def refuse() -> None:
        names = [name for name in file.values if not file.may_set(name)]
        raise UsageError(
            f"{file.path} sets {', '.join(names)}, and you do not trust this file yet",
            help="read it, then 'pearl config trust'; or say them yourself, as with --model",
        )

    return refuse


def defaults(
    files: Iterable[SettingsFile], *, refuse: Callable[[SettingsFile], Callable[[], None]] = _refuse
) -> dict[str, Any]:
    """Setting → what it is where neither a flag nor a variable says it, for click."""
    values: dict[str, Any] = {}
    for file in files:
        for name, value in file.values.items():
            if name not in values:
                values[name] = value if file.may_set(name) else refuse(file)
    if (url := values.get("base_url")) is not None:
        values["base_url"] = lambda: _unless_said(url)
    return values


def _unless_said(url: Any) -> Any:
    """The server of a file, unless the model has none or a variable names the one for this model."""
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
                f"{visible(name)} is no setting" + (f"; did you mean {close}?" if close else "")
            )
    return lines
