"""`pearl check` and `pearl fmt`: what is said about plans and actions, and what is mended."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.root import ROOT

# --- check and fmt ----------------------------------------------------------------------------


def test_check_lists_every_problem(pearl: Terminal) -> None:
    Path("bad.plan").write_text(
        '1. a = FIND_RESON(CTX, "x") : f\n2. b = FIND(c, "y : f\n', encoding="utf-8"
    )
    out = pearl("check", "bad.plan", "why.plan", code=1)
    assert (
        "bad.plan:1:8: error: action 'FIND_RESON' is not in library 'seed' [unknown-action]" in out
    )
    assert "bad.plan:2:16: error: the string is not closed [syntax]" in out
    report = json.loads(pearl("check", "bad.plan", "--json", code=1))
    codes = [(d["line"], d["column"], d["code"]) for d in report[0]["diagnostics"]]
    assert codes == [(1, 8, "unknown-action"), (2, 16, "syntax")]


EXAMPLES = tomllib.loads((ROOT / "docs/diagnostics.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    "code", [code for code, each in EXAMPLES.items() if each.get("read") in (None, "actions")]
)
def test_help_of_every_diagnostic_and_the_command_that_mends_it(pearl: Terminal, code: str) -> None:
    kind = "actions" if "read" in EXAMPLES[code] else "plan"
    Path("x").write_text(EXAMPLES[code]["broken"], encoding="utf-8")
    args = ("check", "x", "--kind", kind, "--library", "seed", "--json")
    codes = set()
    for row in json.loads(pearl(*args, code=None))[0]["diagnostics"]:
        codes.add(row["code"])
        assert row["help"]
        command = f"'pearl check --fix x --library seed --kind {kind}'"
        assert (command in row["help"]) == (row["fix"] is not None)
    assert code in codes or code == "too-many-steps"  # its example is for a lower limit


def test_check_fix_mends_what_is_obvious(pearl: Terminal) -> None:
    Path("bad.plan").write_text("a = FIND_RESON(CTX, “x”)\n", encoding="utf-8")
    pearl("check", "--fix", "bad.plan")
    assert '1. a = FIND_REASON(CTX, "x") : ' in Path("bad.plan").read_text("utf-8")


def test_check_reads_action_files_and_stdin(pearl: Terminal) -> None:
    actions = b"FIND(CTX, X) : f\nFIND(CTX) : g\nBAD(CTX : h\n"
    (report,) = json.loads(
        pearl("check", "-", "--kind", "actions", "--json", stdin=actions, code=1)
    )
    assert report["path"] == "<stdin>"
    assert [(d["line"], d["code"]) for d in report["diagnostics"]] == [
        (2, "duplicate-name"),
        (3, "syntax"),
    ]


COUNTED = """1. rows = SPLIT(CTX, "line") : Lines
2. mood = CLASSIFY(rows, ["calm", "loud"], "the mood") : Label each
3. moods = GROUP(mood, "mood") : How many of each
4. most = NTH(moods, "count", 1) : The most common
5. n = COUNT(rows) : How many
6. due = EXTRACT(CTX, "due: date") : When
7. why = FIND_REASON(CTX, ["why people are", most, n, due]) : Why
"""


def test_check_shows_which_results_enter_later_prompts_as_text(pearl: Terminal) -> None:
    Path("a.plan").write_text(COUNTED, encoding="utf-8")
    Path("b.plan").write_text(f"{COUNTED}8. sum = SIMPLIFY(why) : Say it\n", encoding="utf-8")
    library = Path("own.actions")
    library.write_text("FIND_REASON(CTX, X) : Find why X\nSIMPLIFY(X) : Simplify X\n", "utf-8")
    reports = json.loads(
        pearl("check", "a.plan", "b.plan", "--flows", "--json", "--library", str(library))
    )
    typed, text = (report["flows"] for report in reports)
    assert [typed["is_typed"], text["is_typed"]] == [True, False]
    assert [step["has_prompt"] for step in typed["steps"]] == [
        False,
        True,
        False,
        False,
        False,
        True,
        True,
    ]
    crossings = [[c["type"] for c in step["crossings"]] for step in text["steps"]]
    assert crossings == [[], [], [], [], [], [], ["Label", "Number", "Date"], ["Text"]]
    assert [step["reads_document"] for step in text["steps"]][-2:] == [True, False]
    assert "step 7 -> step 8 (Text)" in pearl(
        "check", "b.plan", "--flows", "--library", str(library)
    )


def test_fmt_writes_the_canonical_form(pearl: Terminal) -> None:
    Path("loose.plan").write_text('7. a = FIND(CTX,"x"): f\n', encoding="utf-8")
    Path("loose.actions").write_text("# mine\nDIG(CTX,X) # Dig for X\n\n", encoding="utf-8")
    assert "would reformat loose.plan" in pearl("fmt", "--check", "loose.plan", code=1)
    pearl("fmt", "loose.plan", "loose.actions")
    assert (
        Path("loose.plan").read_text("utf-8")
        == 'New actions:\n- None\n\n1. a = FIND(CTX, "x") : f\n'
    )
    assert Path("loose.actions").read_text("utf-8") == "# mine\nDIG(CTX, X) : Dig for X\n"
    pearl("fmt", "--check", "loose.plan", "loose.actions")
    formatted = pearl("fmt", "-", stdin=b'7. a = FIND(CTX,"x"): f')
    assert formatted.startswith('New actions:\n- None\n\n1. a = FIND(CTX, "x") : ')


def test_fmt_leaves_what_it_cannot_read(pearl: Terminal) -> None:
    Path("bad.plan").write_text("1. a = FIND(CTX\n", encoding="utf-8")
    pearl("fmt", "bad.plan", code=1)
    assert "bad.plan:1:16" in pearl.talk
    assert Path("bad.plan").read_text("utf-8") == "1. a = FIND(CTX\n"
