"""Question + table → a typed query → the rows and figures it asks for, each with its row numbers.

`lookup` builds the prompt and reads the reply, a query in one of two notations: `specification` (JSON)
or `sql` (run by a sandboxed database in a child process). A specification is checked (`checking`:
columns and values) and run (`running`). `terms` selects the part of a table that the prompt shows: a
table of any length takes a few hundred tokens.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal, get_args

from pearl.errors import UsageError, suggest
from pearl.plugins.extras import install_hint

SqlEngine = Literal["sqlite", "duckdb"]
ENGINES: tuple[SqlEngine, ...] = get_args(SqlEngine)


def check_engine(engine: str) -> None:
    """Reject an unknown or uninstalled engine."""
    if engine not in ENGINES:
        raise UsageError(f"unknown SQL engine '{engine}'", help=suggest(engine, ENGINES, "engines"))
    if engine == "duckdb" and find_spec("duckdb") is None:
        raise UsageError("the SQL engine 'duckdb' needs a package", help=install_hint("duckdb"))
