"""The site is built without a warning, lists every page, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.root import ROOT
from tests.skips import needs_mkdocs

pytestmark = [pytest.mark.slow, needs_mkdocs]

LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?([^\"' >]+)")


def test_the_site(tmp_path: Path) -> None:
    """Built as `make docs` builds it; MkDocs warns of links that lead nowhere."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--config-file", "docs/site/mkdocs.yml", "--site-dir", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        assert (tmp_path / f"{page.stem}.html").is_file(), page
        assert re.search(rf'href="{page.stem}\.html"[^>]*class="md-nav__link', index), page
    for page in tmp_path.rglob("*.html"):
        for address in LOADED.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(?:https?:)?//", address), f"{page.name} loads {address}"
