"""Where the data files are: grammars, actions, few-shot plans, shipped documents.

Looked for in this order: `$PEARL_HOME` (a folder with `grammars/`, `actions/`, `fewshot/`; what it
lacks is taken from the next place), the installed wheel, the checkout.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pearl.errors import DataError

__all__ = ["find", "read"]

_PACKAGE = Path(__file__).parent


def _roots() -> list[Path]:
    home = os.environ.get("PEARL_HOME")
    return [*([Path(home)] if home else []), _PACKAGE / "_data", _PACKAGE.parent, _PACKAGE]


def find(*parts: str) -> Path | None:
    """The first file or folder of that relative path, or None."""
    for root in _roots():
        path = root.joinpath(*parts)
        if path.exists():
            return path
    return None


@cache
def read(*parts: str) -> str:
    """The text of a data file, read once.

    Raises:
        DataError: The file is not there.
    """
    path = find(*parts)
    if path is None:
        raise DataError("data file not found", path="/".join(parts), help="reinstall pearl")
    return path.read_text(encoding="utf-8")
