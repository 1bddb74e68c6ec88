"""The documentation says what the program does."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

from tests.root import ROOT


@pytest.mark.parametrize("name", ["cli", "plan"])
def test_pages_are_what_makes_them_writes(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/make_{name}_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run `make docs`"


def test_the_readme_is_one_screen_with_the_commands_of_a_clone() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 80
    first = "\n".join(lines[:40])
    assert re.search(r"^make demo$", first, re.M)
    assert re.search(r"^\.venv/bin/pearl ask .* --page ", first, re.M)
    assert "make test" in first
    assert (ROOT / "docs/pictures/answer.png").stat().st_size <= 200_000


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda path: path.name
)
def test_anchors_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(
        r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")
    ):
        assert anchor in anchors_of(page.parent / target if target else page), f"{target}#{anchor}"


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
    assert packages_of("docs/architecture.md") == decided[::-1]
    there = {path.stem for path in (ROOT / "pearl").iterdir() if path.suffix in ("", ".py")}
    assert there - {"__init__", "__pycache__", "_data", "__main__"} == {
        package for package, _ in decided
    }


def test_what_the_architecture_page_names_is_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(pearl(?:\.\w+)+)`", page)
    assert len(named) > 30
    for name in named:
        assert callable(pkgutil.resolve_name(name)), name


def test_the_architecture_page_goes_through_every_package() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    walked = set(re.findall(r"`pearl\.(\w+)[.`]", page))
    assert walked == {package for package, _ in packages_of("docs/architecture.md")} - {
        "plugins",
        "settings",
        "notebooks",
    }
    for package, name in re.findall(r"^\| `(\w+)` \| `pearl\.(\w+)", page, re.M):
        assert package == name
