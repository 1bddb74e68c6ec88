"""What people and models are shown, word for word: replies of models, mended and explained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.dsl.checker import diagnose, mend_plan
from pearl.dsl.parser import read
from pearl.errors import render_diagnostics
from tests.root import ROOT

REPLIES = ROOT / "tests/dsl/replies"
LIBRARY = load_library("quality")


@pytest.mark.parametrize("path", sorted(REPLIES.glob("*.reply")), ids=lambda path: path.stem)
def test_replies(path: Path, golden: Callable[[Path, str], None]) -> None:
    reply = path.read_text(encoding="utf-8")
    reading = read(reply, tolerant=True)
    mended, fixed = mend_plan(reading.text, LIBRARY)
    left = diagnose(read(mended), LIBRARY)
    parts = [
        ("forgiven", render_diagnostics(reading.notes, reading.original, path.stem)),
        ("mended", "\n".join(f"{d.message} [{d.code}]" for d in fixed)),
        ("left", render_diagnostics(left, mended, path.stem)),
        ("plan", mended),
    ]
    shown = "\n".join(f"=== {title}\n{text.rstrip()}\n" for title, text in parts)
    golden(path.with_suffix(".read"), shown)
