"""Generated pages are what their generators write, links lead somewhere, and named functions exist."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

from pearl.documents.evidence import full_place
from pearl.errors import Span
from tests.docs.blocks import PAGES
from tests.root import ROOT


def generator(name: str) -> ModuleType:
    """The script that writes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/make_{name}_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli", "plan", "reliability"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    module = generator(name)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run `make docs`"


def test_messages_of_the_checker_in_pages_are_those_of_today() -> None:
    """Each code has its message in the plan reference, which is generated."""

    def told(page: Path) -> list[tuple[str, str]]:
        found = re.findall(r": (?:error|note): (.*) \[([a-z-]+)\]$", page.read_text("utf-8"), re.M)
        return [(code, re.sub(r"'[^']*'", "''", message)) for message, code in found]

    ours = set(told(ROOT / "docs/plan_reference.md"))
    assert {each for page in PAGES for each in told(page)} <= ours


def test_places_in_pages_are_worded_as_today() -> None:
    shown = full_place("report.pdf", Span(9_120, 9_184), 7)
    assert shown in (ROOT / "docs/answers.md").read_text("utf-8")
    shown = full_place("scan.pdf", Span(40, 93), 2, 0.93)
    assert shown in (ROOT / "docs/data.md").read_text("utf-8")


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_links_between_pages_lead_to_a_file_and_a_heading() -> None:
    broken = []
    for page in [*PAGES, ROOT / "docs/cli.md"]:
        links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8"))
        for name, anchor in links:
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in anchors_of(target)):
                broken.append(f"{page.relative_to(ROOT)}: {name}#{anchor}")
    assert not broken


def test_pages_that_messages_name_exist() -> None:
    named = {
        name
        for path in ROOT.glob("pearl/**/*")
        if path.suffix in (".py", ".toml")
        for name in re.findall(r"\bdocs/\w+\.\w+", path.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not (ROOT / name).exists() and ".md" in name} == set()


def test_functions_named_on_the_architecture_page_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    names = re.findall(r"`(pearl(?:\.\w+)+)`", page)
    assert len(names) > 30
    for name in names:
        assert callable(pkgutil.resolve_name(name)), name
