"""Work on a cluster of Ray on this machine, some of which is killed; run by tests.

    python tests/contrib/cluster/clustered.py all FOLDER N_DOCUMENTS N_NODES

Prints a JSON object of figures for each thing that may happen to the cluster. A process of its own,
as a cluster changes the process that starts it.

    python tests/contrib/cluster/clustered.py nodes N_NODES

A cluster until stdin ends; prints its address.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pearl import Document, Pearl
from pearl.contrib.cluster import ray as on_ray
from pearl.documents.digest import text_sha256
from pearl.documents.document import from_text
from pearl.errors import UsageError
from pearl.runs.executors import Execute, Task, local
from tests.runs.executors.scripted import PLAN, pearl_in

ROOT = Path(__file__).parents[3]

STORE_BYTES = 80 * 2**20
SOON = {  # a node that is gone is found to be gone within seconds
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 1_500,
    "health_check_failure_threshold": 4,
}

Row = dict[str, Any]


def text_of(i: int) -> str:
    return f"This is d{i}, a story. It is short, says d{i}. " + "And then? " * (i % 50)


def loaded(folder: str, i: int, killing: bool = False) -> Document:
    """A document; the first load of a killing one is this process's last."""
    if killing:
        mark = Path(folder) / f"killed-{i}"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return from_text(text_of(i), f"d{i}")


def tasks_of(folder: Path, n: int, killing: frozenset[int] = frozenset()) -> list[Task]:
    return [
        Task(
            f"t{i}",
            partial(loaded, str(folder), i, i in killing),
            plan=PLAN,
            source=text_sha256(text_of(i)),
        )
        for i in range(n)
    ]


def in_bytes(rows: Iterable[Row]) -> bytes:
    """The rows as they are exported, but for how long each took."""
    kept = [{k: v for k, v in row.items() if k != "duration_s"} for row in rows]
    return json.dumps(kept, ensure_ascii=False).encode()


async def rows_of(
    execute: Execute, pearl: Pearl, tasks: list[Task], on_row: Callable[[int], None] | None = None
) -> list[Row]:
    rows: list[Row] = []
    async with aclosing(execute(pearl, tasks)) as outcomes:
        async for outcome in outcomes:
            rows.append(outcome.to_dict())
            if on_row is not None:
                await asyncio.to_thread(on_row, len(rows))
    return rows


def figures(rows: list[Row], expected: list[Row]) -> Row:
    ids = Counter(row["id"] for row in rows)
    return {
        "identical": in_bytes(rows) == in_bytes(expected),
        "lost": len({row["id"] for row in expected} - set(ids)),
        "twice": sum(ids.values()) - len(ids),
        "failed": sum(row["status"] == "failed" for row in rows),
    }


def cluster_of(n_nodes: int) -> tuple[Any, list[Any]]:
    """A cluster of this machine, and its nodes but for the head."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True, head_node_args={**small, "num_cpus": 1, "_system_config": SOON}
    )
    nodes = [
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(n_nodes - 1)
    ]
    cluster.wait_for_nodes()
    return cluster, nodes


def every_thing(folder: Path, n: int, n_nodes: int) -> Row:
    import ray

    expected = asyncio.run(rows_of(local.run, pearl_in(folder), tasks_of(folder, n)))
    found: Row = {}
    cluster, nodes = cluster_of(n_nodes)
    os.environ["RAY_ADDRESS"] = cluster.address

    def ray_run(name: str, tasks: list[Task], on_row: Callable[[int], None] | None = None) -> None:
        rows = asyncio.run(rows_of(on_ray.run, pearl_in(folder), tasks, on_row))
        found[name] = figures(rows, expected)

    try:
        ray_run("ray", tasks_of(folder, n))
        ray_run("worker_killed", tasks_of(folder, n, killing=frozenset({n // 4, n // 2})))
        found["worker_killed"]["kills"] = len(list(folder.glob("killed-*")))
        found["missing"] = missing(folder)

        def kill_node(n_rows: int) -> None:
            if n_rows == n // 4:
                cluster.remove_node(nodes[0], allow_graceful=False)

        ray_run("node_killed", tasks_of(folder, n), kill_node)
    finally:
        ray.shutdown()
        cluster.shutdown()
    return found


def missing(folder: Path) -> str:
    """What is said where a module of the driver is missing on the nodes."""
    here, away = on_ray.RayWorker, ModuleType("nowhere")
    sys.modules["nowhere"] = away
    on_ray.RayWorker = type("RayWorker", (here,), {"__module__": "nowhere"})  # type: ignore[misc]
    away.RayWorker = on_ray.RayWorker  # type: ignore[attr-defined]
    try:
        asyncio.run(rows_of(on_ray.run, pearl_in(folder), tasks_of(folder, 1)))
    except UsageError as error:
        return str(error)
    finally:
        on_ray.RayWorker = here  # type: ignore[misc]
    return ""


if __name__ == "__main__":
    what, where, *numbers = sys.argv[1:]
    if what == "nodes":
        cluster, _ = cluster_of(int(where))
        sys.stdout.write(f"address {cluster.address}\n")
        sys.stdout.flush()
        sys.stdin.read()
        cluster.shutdown()
    else:
        sys.stdout.write(json.dumps(every_thing(Path(where), *map(int, numbers))) + "\n")
