"""The store on the command line: where it is, and how it is opened."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.cli.terminal import notice

if TYPE_CHECKING:
    from pearl.runs.store import Store


def opened_folder(store: str | None) -> Path:
    """The folder that `--store` stands for, as an absolute path."""
    from pearl.runs.store import default_folder

    return (default_folder() if store is None else Path(store)).absolute()


def written_store(store: str | None) -> AbstractContextManager[Store]:
    """The store that `--store` stands for, to be written; what is wrong with it goes to stderr."""
    from pearl.runs.session import opened_store

    return opened_store(opened_folder(store), notice)
