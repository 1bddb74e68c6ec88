"""docs/plan_reference.md has every code, and each of its texts triggers the code that it is for."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pearl.actions.library import read_actions
from pearl.dsl.checker import compile_plan
from pearl.dsl.parser import read
from tests.docs.test_pages import generator
from tests.root import ROOT

MAKER = generator("plan")


def codes_in(path: Path) -> Iterator[str]:
    """Every code that a module gives a diagnostic, whether it writes it out or names a constant."""
    text = path.read_text(encoding="utf-8")
    if "Diagnostic" not in text:
        return
    tree = ast.parse(text)
    makers = {  # functions that make a diagnostic of the argument `code`
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and "code" in [argument.arg for argument in node.args.args[:2]]
        and "Diagnostic(code" in ast.unparse(node)
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        values = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        is_made = ast.unparse(call.func) == "Diagnostic" or name in makers
        for value in values + (call.args[:1] if is_made else []):
            for branch in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
                if isinstance(branch, ast.Constant):
                    yield str(branch.value)
                elif ast.unparse(branch) != "code":
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                    yield str(getattr(importlib.import_module(module), ast.unparse(branch)))


def test_every_code_has_an_entry() -> None:
    codes = {code for path in ROOT.glob("pearl/**/*.py") for code in codes_in(path)}
    assert codes == set(MAKER.ENTRIES)


@pytest.mark.parametrize("code", MAKER.ENTRIES)
def test_the_text_triggers_the_code_and_the_mended_text_is_valid(code: str) -> None:
    entry = MAKER.ENTRIES[code]
    diagnostics = MAKER.findings(entry)
    assert {diagnostic.code for diagnostic in diagnostics} == {code}
    assert ("mended" in entry) == (diagnostics[0].severity == "error")
    if entry.get("read") == "actions":
        assert read_actions(entry["mended"])[1] == []
    elif "mended" in entry:
        compile_plan(entry["mended"], MAKER.LIBRARY)


@pytest.mark.parametrize("written", MAKER.ENTRIES["leniency"]["written"])
def test_what_is_forgiven_is_an_error_for_the_strict_reader(written: str) -> None:
    assert read(written, tolerant=True).notes
    assert read(written).errors
