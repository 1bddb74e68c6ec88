"""`pearl index`: what it says and how it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.fixture(autouse=True)
def _corpus(pearl: Terminal) -> None:
    Path("docs").mkdir()
    Path("docs/a.txt").write_text("Salt.\n\nIron.")
    Path("docs/b.txt").write_text("Sea.")


def test_the_second_time_nothing_has_changed(pearl: Terminal) -> None:
    first = pearl("index", "docs")
    assert first.startswith("2 documents, 3 passages; 2 new; ")
    assert re.search(r"; in /.*/pearl/index/docs-[0-9a-f]{16}\n\Z", first)
    assert "; nothing changed; " in pearl("index", "docs")
    Path("docs/a.txt").write_text("Salt.")
    Path("docs/b.txt").unlink()
    Path("docs/c.txt").write_text("Lake.")
    assert "2 documents, 2 passages; 1 new, 1 changed, 1 removed; " in pearl("index", "docs")
    assert "2 documents, 2 passages; 2 new; " in pearl("index", "docs", "--fresh")


def test_json(pearl: Terminal) -> None:
    Path("docs/bad.txt").write_bytes(bytes(range(256)))
    Path("docs/x.exe").write_text("x")
    found = json.loads(pearl("index", "docs", "--json", "--at", "kept", code=1))
    assert found.pop("seconds") >= 0
    assert Path(found.pop("at")) == Path("kept/default-english")
    (problem,) = found.pop("problems")
    assert "bad.txt" in problem
    assert found == {
        "documents": 2, "passages": 3, "left_out": 1, "other_files": 1, "new": 2, "changed": 0,
        "removed": 0,
    }  # fmt: skip
