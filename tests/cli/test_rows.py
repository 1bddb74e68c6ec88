"""What a person at a terminal sees of rows."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import Terminal


def test_steps_of_many_long_rows_are_shortened(pearl: Terminal) -> None:
    row = "the pump leaks " * 40
    lines = [f"{n},{'Ann' if n % 3 else 'Bob'},{row}end {n}" for n in range(30)]
    Path("calls.csv").write_text("\n".join(["id,user,text", *lines]), encoding="utf-8")
    Path("per.plan").write_text(
        '1. rows = SPLIT(CTX, "record") : Rows\n2. per = COUNT_BY(rows, "user") : How many of each',
        encoding="utf-8",
    )
    said = pearl("execute", "per.plan", "calls.csv", "-v")
    steps, _, answer = said.partition("\nAnswer\n")
    assert "rows = SPLIT" in steps
    assert "... (20 lines not shown)" in steps
    assert "- 29,Bob" not in steps
    assert "- 29,Ann,the pump leaks" in steps
    assert max(map(len, said.splitlines())) < 200
    assert answer.startswith("- Bob: 10\n- Ann: 20\n")


def test_a_table_is_one_document_whose_rows_may_be_asked_each(pearl: Terminal) -> None:
    Path("calls.csv").write_text("id,user\n1,Ann\n2,Bob\n", encoding="utf-8")
    assert pearl("ask", "How many entries are there?", "calls.csv").startswith("2\n")
    assert "asked of the table" in pearl("ask", "How many calls per user?", "calls.csv")
    assert "calls.csv is one document; to answer a question about each row: " in pearl.talk
