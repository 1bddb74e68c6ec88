"""Writes grammars/plan.tables.json: the tables of the parser of plans, which `pearl` reads instead of building them.

Tables of this grammar stay as they are: lark numbers states in another order each time.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pearl.dsl.parser import TABLES, parser_tables

FILE = Path(__file__).parents[1] / "grammars" / TABLES

if __name__ == "__main__":
    kept = msgspec.json.decode(FILE.read_bytes()) if FILE.exists() else {}
    made = parser_tables()
    if kept.get("grammar") != made.grammar or "tables" not in kept:
        FILE.write_bytes(msgspec.json.encode(made) + b"\n")
