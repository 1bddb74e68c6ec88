"""Whole replies of models: the plan that is read, and the errors that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from pearl.actions.library import load_library
from pearl.dsl.checker import diagnose, mend_plan
from pearl.dsl.parser import read
from tests.root import ROOT

REPLIES = ROOT / "tests/dsl/replies"
LIBRARY = load_library("quality")


@pytest.mark.parametrize("path", sorted(REPLIES.glob("*.reply")), ids=lambda path: path.stem)
def test_replies(path: Path) -> None:
    mended, _ = mend_plan(path.read_text(encoding="utf-8"), LIBRARY, tolerant=True)
    errors = [d for d in diagnose(read(mended), LIBRARY) if d.severity == "error"]
    shown = [mended.rstrip(), *(f"error: {d.message} [{d.code}]" for d in errors)]
    assert "\n".join(shown) == path.with_suffix(".read").read_text(encoding="utf-8").rstrip()
