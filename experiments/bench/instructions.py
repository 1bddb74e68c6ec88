"""Instructions that a command executes, counted by valgrind: another program's load does not change them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

QUICK = bool(os.environ.get("QUICK"))
"""Whether benches are only to run: nothing is counted, which takes minutes."""
VALGRIND = None if QUICK else shutil.which("valgrind")
OPTIONS = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]


def millions(
    words: Sequence[str], env: Mapping[str, str] | None = None, given: str | None = None
) -> float:
    """Million instructions of `python WORDS`, its children left out."""
    assert VALGRIND, "valgrind is not installed"
    command = [VALGRIND, *OPTIONS, sys.executable, *words]
    done = subprocess.run(command, input=given, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert counted, done.stderr
    return int(counted[1].replace(",", "")) / 1e6
