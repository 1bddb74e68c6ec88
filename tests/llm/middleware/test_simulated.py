"""The limiter against a server that keeps a limit, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.root import ROOT
from tests.shared import shared

BENCH = ROOT / "experiments/bench/rate_limits.py"


@pytest.mark.slow
def test_a_limit_that_is_not_told_is_used_and_kept_to() -> None:
    settings = ["--rps", "20", "--sides", "ours", "--warm-s", "15", "--steady-s", "30"]
    done = subprocess.run(
        [sys.executable, str(BENCH), "--sim", str(shared("../tools/sim_server.py")), *settings],
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert row["failed"] == 0
    assert row["goodput"] >= 0.7  # 0.9 and more where the machine is not shared
    assert row["refused"] <= 0.05
