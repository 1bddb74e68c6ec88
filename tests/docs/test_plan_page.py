"""docs/plan_reference.md has every code, and each of its texts triggers the code that it is for."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeGuard

import pytest

from pearl.actions.library import read_actions
from pearl.dsl.checker import compile_plan
from pearl.dsl.parser import read
from tests.root import ROOT


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_plan_page", ROOT / "docs/make_plan_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = maker()


def codes_in(path: Path) -> Iterator[str]:
    """Every code that a module gives a diagnostic, whether it writes it out or names a constant."""
    text = path.read_text(encoding="utf-8")
    if "Diagnostic" not in text:
        return
    tree = ast.parse(text)
    passing = {function.name for function in ast.walk(tree) if _passes_a_code_on(function)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
        given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        if ast.unparse(call.func) == "Diagnostic" or name in passing:
            given += call.args[:1]
        for value in given:
            branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            for branch in branches:
                if not (isinstance(branch, ast.Name) and branch.id == "code"):
                    yield _code(branch, path)


def _passes_a_code_on(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Whether it is a function that makes a diagnostic of the argument `code` it is given first."""
    return (
        isinstance(node, ast.FunctionDef)
        and "code" in [argument.arg for argument in node.args.args[:2]]
        and "Diagnostic(code" in ast.unparse(node)
    )


def _code(node: ast.expr, path: Path) -> str:
    if isinstance(node, ast.Name):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        return str(getattr(importlib.import_module(name), node.id))
    assert isinstance(node, ast.Constant), f"{path}:{node.lineno}: a code is a literal"
    return str(node.value)


def test_every_code_has_an_entry() -> None:
    found = {code for path in ROOT.glob("pearl/**/*.py") for code in codes_in(path)}
    assert found == set(MAKER.ENTRIES)
    assert len(found) >= 22


@pytest.mark.parametrize("code", MAKER.ENTRIES)
def test_the_text_triggers_the_code_and_no_other(code: str) -> None:
    assert {diagnostic.code for diagnostic in MAKER.findings(MAKER.ENTRIES[code])} == {code}


@pytest.mark.parametrize("code", MAKER.ENTRIES)
def test_the_mended_text_is_valid(code: str) -> None:
    entry = MAKER.ENTRIES[code]
    (first, *_) = MAKER.findings(entry)
    assert ("mended" in entry) == (first.severity == "error")
    if entry.get("read") == "actions":
        assert read_actions(entry["mended"])[1] == []
    elif "mended" in entry:
        compile_plan(entry["mended"], MAKER.LIBRARY)


@pytest.mark.parametrize("written", MAKER.ENTRIES["leniency"]["written"])
def test_what_is_forgiven_is_an_error_for_the_strict_reader(written: str) -> None:
    assert read(written, tolerant=True).notes
    assert read(written).errors
