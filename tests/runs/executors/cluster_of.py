"""A cluster of Ray on this machine, with one worker for each node; ends when its stdin does.

    python -m tests.runs.executors.cluster_of N_NODES

Prints the address once all nodes are there.
"""

from __future__ import annotations

import sys

from tests.runs.executors.clustered import SOON, STORE_BYTES


def main() -> None:
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**small, "_system_config": SOON})
    for _ in range(int(sys.argv[1]) - 1):
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    cluster.wait_for_nodes()
    sys.stdout.write(f"{cluster.address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
