"""Writes grammars/plan.tables.json: the tables of the parser of plans, which `pearl` reads instead of building them.

Tables of this grammar stay as they are: lark numbers states in another order each time.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from pearl.dsl.parser import TABLES, KeptTables, parser_tables

FILE = Path(__file__).parents[1] / "grammars" / TABLES

if __name__ == "__main__":
    made, kept = parser_tables(), ""
    with suppress(FileNotFoundError, msgspec.DecodeError):  # no file, or one of another form
        kept = msgspec.json.decode(FILE.read_bytes(), type=KeptTables).grammar
    if kept != made.grammar:
        FILE.write_bytes(msgspec.json.encode(made) + b"\n")
