"""The same work here and on a cluster of Ray on this machine, parts of which are killed.

    python experiments/bench/cluster.py [--documents N] [--nodes N]

2,000 documents, each read in 20 ms, a plan of two steps each, scripted replies, on a head and two more
nodes: in this process; on the cluster; with two workers, a node, and two drivers killed.
Prints one JSON line; fails where an outcome is lost, is there twice, or is not that of this process.
The nodes share this machine: the seconds say what a cluster costs, not what it gains.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--nodes", type=int, default=3)
    said_to = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = (str(said_to.documents), str(said_to.nodes))
        # A process of its own: a cluster changes the process that starts it.
        done = subprocess.run(
            [sys.executable, "-m", "tests.contrib.cluster.clustered", "all", folder, *numbers],
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
    if done.returncode:
        return done.returncode
    found = json.loads(done.stdout)
    print(json.dumps(found))
    runs = [found[name] for name in found if isinstance(found[name], dict)]
    is_good = all(
        run["identical"] and not (run["lost"] or run["twice"] or run["failed"]) for run in runs
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
