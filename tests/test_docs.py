"""The documentation says what the program does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.dsl.checker import compile_plan
from tests.root import ROOT


def test_the_command_page_is_the_help() -> None:
    spec = importlib.util.spec_from_file_location("make_cli_page", ROOT / "docs/make_cli_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == module.page(), "run `make docs`"


def test_the_plan_of_the_readme_is_valid() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (plan,) = re.findall(r"^```\n(Question: .*?)```", readme, re.M | re.S)
    compile_plan(plan, load_library("seed"))


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
