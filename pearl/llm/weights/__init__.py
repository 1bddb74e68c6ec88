"""Name of a model → its files in the cache folder. `catalogue.toml` lists the models and pins them.

`fetching` takes the files out of wheels of a package index.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import PositiveInt

from pearl.data.journal import Frozen
from pearl.documents.digest import file_sha256
from pearl.errors import DataError, UsageError, suggest
from pearl.plugins.files import cache_file

__all__ = ["File", "Weights", "find_weights", "is_pinned", "weights_names"]

_CATALOGUE = Path(__file__).with_name("catalogue.toml")


class File(Frozen):
    """One file of a model, pinned."""

    bytes: PositiveInt
    sha256: str


class Weights(Frozen):
    """The files of one model."""

    name: str
    about: str
    package: str
    folder_in_wheel: str
    licence: str
    source: str
    use: str
    files: dict[str, File]

    @property
    def folder(self) -> Path:
        """Where the files are, or will be."""
        folder = cache_file("models")
        if folder is None:
            raise DataError(
                "there is no cache folder that only you may write to",
                help="set XDG_CACHE_HOME to a folder of your own",
            )
        return folder / self.name

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files.values())

    @property
    def is_there(self) -> bool:
        """Whether all files are there, by their sizes."""
        return not self._missing()

    def checked_folder(self) -> Path:
        """The folder, all of whose files are what they should be."""
        folder = self.folder
        if self._missing():
            raise DataError(
                f"the files of the model '{self.name}' are not here",
                path=folder,
                help=f"get them, {self.bytes / 1e6:.0f} MB: pearl models get {self.name}",
            )
        for name, file in self.files.items():
            if not is_pinned(folder / name, file):
                raise DataError(
                    "not the file that the model was made of: its SHA-256 differs",
                    path=folder / name,
                    help=f"get it again: pearl models get {self.name}",
                )
        return folder

    def _missing(self) -> list[str]:
        folder = self.folder
        return [name for name, file in self.files.items() if _size(folder / name) != file.bytes]


def weights_names() -> tuple[str, ...]:
    """The names of all models."""
    return tuple(_catalogue())


def find_weights(name: str) -> Weights:
    """The model of a name.

    Example:
        >>> find_weights("minilm").licence
        'Apache-2.0'
    """
    found = _catalogue().get(name)
    if found is None:
        raise UsageError(f"unknown model '{name}'", help=suggest(name, weights_names(), "models"))
    return found


@cache
def _catalogue() -> dict[str, Weights]:
    tables = tomllib.loads(_CATALOGUE.read_text(encoding="utf-8"))
    return {
        name: Weights.model_validate(
            {"name": name, "folder_in_wheel": table.pop("folder"), **table}
        )
        for name, table in tables.items()
    }


def is_pinned(path: Path, file: File) -> bool:
    """Whether a file is there and is the one that is pinned."""
    return _size(path) == file.bytes and file_sha256(path) == file.sha256


def _size(path: Path) -> int:
    """Bytes of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
