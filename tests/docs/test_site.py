"""The site is built without a warning, has every page, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.root import ROOT
from tests.skips import needs_mkdocs

pytestmark = [pytest.mark.slow, needs_mkdocs]

LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?([^\"' >]+)")
LINKED = re.compile(r"<a\b[^>]*?\bhref=[\"']?([^\"' >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--config-file", "docs/site/mkdocs.yml", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    for page in ROOT.glob("docs/**/*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        there = site / (name.with_name("index.html") if name.stem == "README" else name)
        assert there.is_file(), name
        address = there.relative_to(site).as_posix()
        assert address in _listed(site), f"{address} is on no list"


def test_links_and_resources_of_pages_exist(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for address in LOADED.findall(text):
            assert not re.match(r"(?:https?:)?//", address), f"{page.name} loads {address}"
        if page.name == "404.html":  # its addresses begin at the root of a server
            continue
        for address in LINKED.findall(text):
            if re.match(r"https?:|mailto:|#|javascript:", address):
                continue
            target = page.parent / unquote(address.partition("#")[0].partition("?")[0])
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{page.name} links to {address}"


def _listed(site: Path) -> set[str]:
    """The pages that the list at the side of the first page leads to."""
    text = (site / "index.html").read_text(encoding="utf-8")
    return {*re.findall(r'href="([^"#]+\.html)"[^>]*class="md-nav__link', text), *re.findall(r'class="md-nav__link[^"]*"[^>]*href="([^"#]+\.html)', text)} | {"index.html"}  # fmt: skip
