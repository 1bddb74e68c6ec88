"""Tasks → outcomes, each kept in a run of the store before it is told; what is kept is not done again.

What tells one piece of work from another is what its outcome depends on, never its place: the task's
id, its plan or question, its document, and everything of the `Pearl` that decides what it says. Of
tasks that are the same in all of that, the first, the second, ... are told apart by their number.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path

from pearl.llm.backends import address_of
from pearl.llm.digest import digest
from pearl.pipeline import Pearl
from pearl.runs.executors import Execute, Listener, Outcome, Task
from pearl.runs.executors.local import run as run_here
from pearl.runs.identity import run_config
from pearl.runs.store import Run
from pearl.runs.wording import prompts_sha256

__all__ = ["fingerprint", "run_recorded", "unrecorded"]

KEYS = 2
"""Version of the keys under which outcomes are recorded; a run with others is not gone on with."""

SAMPLED_BYTES = 2**20
"""Read of each end of a model's file."""


def fingerprint(pearl: Pearl) -> dict[str, object]:
    """What of a `Pearl` decides its outcomes, as JSON data.

    The address of a server is left out, and so is where the file of a model lies: shards of one run
    may each have their own.
    """
    name = pearl.client.name.partition(":")[2]
    is_file = bool(name) and address_of(pearl.client.name) is None
    return {
        **run_config(pearl),
        "keys": KEYS,
        "prompts_sha256": prompts_sha256(),
        "weights": _weights(Path(name)) if is_file else "",
    }


def _weights(path: Path) -> str:
    """What tells the file of a model, or the files of its folder, from others.

    Of each its length and its ends, for it may be long; "" where there is none that can be read.
    """
    try:
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if each.is_file())
            return digest(f"{each.relative_to(path)} {_ends(each)}" for each in files).hex()
        return _ends(path)
    except OSError:
        return ""


def _ends(path: Path) -> str:
    n_bytes = path.stat().st_size
    with path.open("rb") as file:
        found = sha256(file.read(SAMPLED_BYTES))
        file.seek(max(0, n_bytes - SAMPLED_BYTES))
        found.update(file.read())
    return f"{n_bytes} {found.hexdigest()}"


async def run_recorded(
    pearl: Pearl,
    tasks: Iterable[tuple[int, Task]],
    run: Run,
    *,
    execute: Execute = run_here,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    on_known: Callable[[], None] = lambda: None,
) -> AsyncGenerator[Outcome, None]:
    """Run what is not recorded yet; each outcome is on the disk when it is given.

    Args:
        pearl: Model and library.
        tasks: With their places in the work, read one by one.
        run: Where outcomes are kept.
        execute: Which executor carries them out.
        listener: Told of every event of every task.
        is_stopping: Whether no more tasks are to be begun.
        on_known: Told of every task that is done already.

    Raises:
        StoreError: An outcome cannot be kept.
    """
    # By what they are, for an executor that stops gives some tasks back without an outcome.
    taken: dict[Hashable, deque[tuple[int, bytes]]] = {}

    def todo() -> Iterator[Task]:
        for place, task, key in unrecorded(pearl, tasks, run.has, on_known):
            taken.setdefault(_named(task), deque()).append((place, key))
            yield task

    async with aclosing(
        execute(pearl, todo(), listener=listener, is_stopping=is_stopping)
    ) as outcomes:
        async for outcome in outcomes:
            name = _named(outcome.task)
            place, key = taken[name].popleft()
            if not taken[name]:
                del taken[name]
            await run.record(
                key, place, outcome.task.id, outcome.to_json(), outcome.trace.to_jsonl()
            )
            yield outcome


def unrecorded(
    pearl: Pearl,
    tasks: Iterable[tuple[int, Task]],
    has: Callable[[bytes], bool],
    on_known: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Task, bytes]]:
    """What is left to do.

    Args:
        pearl: What the tasks are run with.
        tasks: With their places in the work, read one by one.
        has: Whether an outcome is recorded under a key; as `Run.has`.
        on_known: Told of every task whose outcome is.

    Yields:
        The place, the task, and the key to record its outcome under.
    """
    settings = digest(map(repr, sorted(fingerprint(pearl).items()))).hex()
    n_alike: Counter[int] = Counter()  # by 8 bytes of their keys: millions of tasks may come
    for place, task in tasks:
        key = _key(task, settings, place)
        short = int.from_bytes(key[:8])
        if n := n_alike[short]:  # a row for every task, be it the same as an earlier one
            key = digest((key.hex(), str(n)))
        n_alike[short] += 1
        if task.source and has(key):
            on_known()
        else:
            yield place, task, key


def _named(task: Task) -> Hashable:
    """What tells a task from others, though an executor may have put another loader into it."""
    return task.id, task.plan, task.question, task.source, _told(task.extra)


def _told(extra: Mapping[str, object]) -> str:
    return json.dumps(extra, sort_keys=True, default=str)


def _key(task: Task, settings: str, place: int) -> bytes:
    # A task whose document nothing tells from others is known by its place, and never skipped.
    source = task.source or f"#{place}"
    return digest(
        (settings, task.id, task.plan or "", task.question or "", source, _told(task.extra))
    )
