"""What experiments/mutation.py is told: the tests that execute a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.root import ROOT
from tests.skips import needs_monitoring

MODULE = """
def double(x):
    return (
        x * 2
    )
def kept(x): return x
LIMIT = 5
"""
TESTS = """
import pytest
from pearl_like import double, kept
@pytest.fixture(scope="module")
def made(): return kept(1)
def test_one(made): assert double(1) == 2
def test_other(made): pass
def test_none(): pass
"""


@needs_monitoring
def test_each_test_with_the_lines_it_executes(tmp_path: Path) -> None:
    """What a shared fixture executes counts for every test that uses it, what an import does for none."""
    (tmp_path / "pearl_like.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "lines.json").write_text('{"pearl_like.py": [4, 6, 7]}', encoding="utf-8")
    plugin = ["-p", "experiments.reached", "--reached", ".", "-p", "no:cacheprovider", "-n", "1"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", *plugin]
    subprocess.run([*command, "test_it.py"], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)})  # fmt: skip
    (written,) = tmp_path.glob("*.jsonl")
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    assert {row["test"]: row["lines"] for row in rows} == {
        "test_it.py::test_one": {"pearl_like.py": [4, 6]},
        "test_it.py::test_other": {"pearl_like.py": [6]},
    }


def test_a_change_without_code_asks_for_no_lines(tmp_path: Path) -> None:
    """The tests that record read what is asked for, also where nothing is."""
    command = [sys.executable, "experiments/mutation.py", "--changed", "HEAD", "--ask", "--reached", str(tmp_path)]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert isinstance(json.loads((tmp_path / "lines.json").read_text(encoding="utf-8")), dict)
