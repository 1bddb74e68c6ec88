"""Actions say themselves what they do: no other module knows one by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pearl.actions import native
from pearl.actions.operators import operators
from tests.root import ROOT

NAMES = {*operators(), *native.known(), "FIND_FIGURE"}


def uses(path: Path) -> Iterator[str]:
    """Names of shipped actions in a module, written out or as the name of an imported action."""
    text = path.read_text(encoding="utf-8")
    if "pearl.actions" not in text and not any(name in text for name in NAMES):
        return  # nothing to parse it for
    nodes = [*ast.walk(ast.parse(text))]
    imported = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pearl.actions")
        for alias in node.names
    }
    shown = {
        id(node.value) for node in nodes if isinstance(node, ast.keyword) and node.arg == "metavar"
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in shown:
            yield f"{path}:{node.lineno}: {node.value}"
        for one in (node.left, *node.comparators) if isinstance(node, ast.Compare) else ():
            match one:
                case ast.Attribute(ast.Name(name), "name") if name in imported:
                    yield f"{path}:{node.lineno}: {name}"


def test_no_module_outside_of_actions_names_one() -> None:
    folder = ROOT / "pearl"
    own = (folder / "actions", folder / "contrib/finance", folder / "embedded")
    paths = [p for p in folder.rglob("*.py") if not any(map(p.is_relative_to, own))]
    assert len(paths) > 200
    assert [use for path in paths for use in uses(path)] == []
    assert len([*uses(folder / "actions" / "operators.py")]) >= 5  # it would find them
