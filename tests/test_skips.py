"""An unknown skip fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.root import ROOT

SKIPPING = """
import pytest
{at_import}
def test_this():
    pytest.skip("no time")
def test_that():
    pass
"""


@pytest.mark.parametrize(
    "at_import",
    ["", pytest.param('pytest.importorskip("no_such_package")', marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.slow)])
def test_an_unknown_skip_fails_the_run(tmp_path: Path, at_import: str, workers: str) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING.format(at_import=at_import))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest",
         "-n", workers, "-p", "no:cacheprovider", tmp_path / "test_it.py"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    reason = "no_such_package" if at_import else "no time"
    assert "tests/skips.py does not allow this" in done.stdout
    assert reason in done.stdout.partition("does not allow this")[2]
