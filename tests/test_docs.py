"""The documentation says what the program does."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.actions.operators import with_operators
from pearl.dsl.checker import compile_plan
from tests.root import ROOT


def test_the_command_page_is_the_help() -> None:
    spec = importlib.util.spec_from_file_location("make_cli_page", ROOT / "docs/make_cli_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == module.page(), "run `make docs`"


def test_the_plans_of_the_readme_are_valid() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    plans = re.findall(r"^```\n(Question: .*?)```", readme, re.M | re.S)
    assert len(plans) == 2
    for plan in plans:
        compile_plan(plan, with_operators(load_library("seed")))


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def packages_of(page: str) -> list[tuple[str, str]]:
    """The packages that a page lists, with their one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    table = re.search(r"^\| package \|.*?\n\n", text, re.M | re.S)
    assert table is not None
    return re.findall(r"^\| `(\w+)` \| (.+) \|$", table[0], re.M)


def test_pages_and_the_import_contract_list_the_same_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]["layers"]
    decided = packages_of("docs/decisions/0005-layers.md")
    assert ["__main__", *(package for package, _ in decided)] == contract
    assert packages_of("README.md") == decided[::-1]
    there = {path.stem for path in (ROOT / "pearl").iterdir() if path.suffix in ("", ".py")}
    assert there - {"__init__", "__pycache__", "_data", "__main__"} == {
        package for package, _ in decided
    }
    assert len(decided) == 19


def test_what_the_architecture_page_names_is_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(pearl(?:\.\w+)+)`", page)
    assert len(named) > 30
    for name in named:
        assert callable(pkgutil.resolve_name(name)), name


def test_the_architecture_page_goes_through_every_package() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    walked = set(re.findall(r"`pearl\.(\w+)[.`]", page))
    assert walked == {package for package, _ in packages_of("README.md")} - {"plugins"}
    for package, name in re.findall(r"^\| `(\w+)` \| `pearl\.(\w+)", page, re.M):
        assert package == name
