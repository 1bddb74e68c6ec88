"""Extras: missing packages, and hints that install them."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from pearl.errors import UsageError
from pearl.plugins import DISTRIBUTION
from pearl.plugins.extras import install_hint, require_extra
from tests.root import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMED = re.compile(r"\[([a-z]+)\]")
"""An extra in a command."""

Installed = Callable[[dict[str, Any] | None], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Have the installer have noted this origin; None for a package index."""

    class Noted:
        def __init__(self, origin: dict[str, Any] | None) -> None:
            self.origin = origin

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return self.origin and json.dumps(self.origin)

    def note(origin: dict[str, Any] | None) -> None:
        monkeypatch.setattr("importlib.metadata.distribution", lambda name: Noted(origin))

    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    return note


@pytest.mark.parametrize(
    ("origin", "asked"),
    [
        (None, "pearl-plans[data]"),
        ({"url": "file:///x", "dir_info": {}}, "pearl-plans[data] @ file:///x"),
        (
            {"url": "https://host/p.whl", "archive_info": {}},
            "pearl-plans[data] @ https://host/p.whl",
        ),
        (
            {"url": "https://host/p", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "pearl-plans[data] @ git+https://host/p",
        ),
    ],
    ids=["index", "folder", "wheel", "repository"],
)
def test_install_hint_uses_the_source_of_the_installation(
    installed: Installed, origin: dict[str, Any] | None, asked: str
) -> None:
    installed(origin)
    assert install_hint("data") == f'pip install "{asked}"'


def test_install_hint_in_an_uninstalled_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    monkeypatch.chdir(ROOT)
    assert install_hint("ray").endswith('pip install -e ".[ray]"')


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(UsageError) as caught:
        require_extra("eval", "an evaluation", "json", "scipy")
    assert str(caught.value).splitlines() == [
        "an evaluation needs scipy, which is not installed",
        f"  help: {install_hint('eval')}",
    ]


def test_extras_contain_the_packages_they_are_required_for() -> None:
    calls = [
        [
            argument.value
            for argument in (node.args[0], *node.args[2:])
            if isinstance(argument, ast.Constant)  # names of several stand in a tuple
        ]
        for text in (path.read_text("utf-8") for path in ROOT.glob("pearl/**/*.py"))
        if "require_extra" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "require_extra"
    ]
    assert len(calls) >= 10
    for extra, *packages in calls:
        brought = [
            line.partition(">")[0].replace("-", "_").replace("pillow", "PIL")
            for line in PROJECT["optional-dependencies"][extra]
        ]
        for package in packages:  # of a namespace, several bring a part each
            assert any(name.startswith(package) for name in brought), package


def test_install_hints_name_this_distribution_and_known_extras() -> None:
    """`pearl` is taken on the package index: every command names ours, and every hint is made."""
    assert PROJECT["name"] == DISTRIBUTION == "pearl-plans"
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/**/*.*")]
    told = [
        (path, line)
        for path in pages
        if path.suffix in (".md", ".py", ".ipynb", ".toml")
        for line in path.read_text().splitlines()
        if "pip install" in line or re.search(r"\bpearl\[", line)
    ]
    assert len(told) >= 5
    for path, line in told:
        assert not re.search(r"\bpearl\[", line), f"{path}: {line}"
        assert set(NAMED.findall(line)) <= set(PROJECT["optional-dependencies"]), f"{path}: {line}"
    assert not [path for path in ROOT.glob("pearl/**/*.py") if "pip install" in path.read_text()]
