"""Writes grammars/plan.tables.json: the tables of the parser of plans, which `pearl` reads instead of building them.

Tables of this grammar and of this lark stay as they are: lark numbers states in another order each time.
"""

from __future__ import annotations

import json
from pathlib import Path

from pearl.dsl.parser import TABLES, parser_tables

FILE = Path(__file__).parents[1] / "grammars" / TABLES

if __name__ == "__main__":
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    made = parser_tables()
    if any(kept.get(name) != made[name] for name in ("grammar", "lark")):
        text = json.dumps(made, separators=(",", ":"), sort_keys=True)
        FILE.write_text(f"{text}\n", encoding="utf-8")
