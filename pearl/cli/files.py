"""Plan files and action files on the command line: which is which, and under which library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pearl.dsl.signatures import ActionLibrary

__all__ = ["Kind", "kind_of", "library_for"]

Kind = Literal["plan", "actions"]

_ACTION_LINE = re.compile(r"^\w+\([^()\n]*\)\s*[:#]", re.M)
_PLAN_LINE = re.compile(r"^\s*(?:New actions\b|Question:|\d+\s*[.)]|[-*]?\s*\w+\s*=)", re.M | re.I)


def kind_of(name: str, text: str, said: Kind | None = None) -> Kind:
    """What a file is: as said, by its suffix, or by its lines."""
    if said is not None:
        return said
    suffix = Path(name).suffix
    if suffix in (".plan", ".actions"):
        return "plan" if suffix == ".plan" else "actions"
    return "actions" if _ACTION_LINE.search(text) and not _PLAN_LINE.search(text) else "plan"


def library_for(library: str | None, domain: str) -> ActionLibrary:
    """The library a plan file is checked against."""
    from pearl.actions.library import load_library
    from pearl.domains import load_domain

    return load_library(library or load_domain(domain).library)
