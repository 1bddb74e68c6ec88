"""SQL that reaches for what it must not, by the classes of known CVEs, a line each."""

from __future__ import annotations

from pathlib import Path

CANARY = "canary-7f3a9c"
"""Stands for a file, and for what is secret in it and in the environment."""

SQL_THAT_IS_NONE = ["", " ", "--", "/*", "'", '"', "SELECT", "SELECT \0 1", "SELECT * FROM clinics WHERE (", "\ud7ff", "?" * 50,
    "SELECT " + "(" * 500 + "1" + ")" * 500, "SELECT " + "1+" * 5_000 + "1", "SELECT '" + "x" * 20_000 + "'",
    " UNION ALL ".join(["SELECT City FROM clinics"] * 40), "SELECT coalesce(" + ",".join(["1"] * 200) + ")"]  # fmt: skip


def lines(name: str, port: int = 9) -> list[str]:
    """The lines of a file beside this one, without comments."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    text = text.replace("CANARY", CANARY).replace("PORT", str(port))
    return [line for line in text.splitlines() if line and not line.startswith("#")]
