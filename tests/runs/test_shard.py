"""Shards: each task is in one shard, on every machine."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.documents.digest import text_sha256
from pearl.errors import PearlError, UsageError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Task
from pearl.runs.session import Shard, parse_shard, run_recorded
from pearl.runs.store import RunSpec, Store

PLAN = '1. why = FIND(CTX, "why") : Why'
COMMAND = ("execute", "--tasks", "t.jsonl")


def reply(request: Request) -> str:
    return f"reply to {len(request.prompt)}"


def tasks(n: int) -> list[Task]:
    texts = [f"This is d{i}. " + "It is long. " * i for i in range(n)]
    return [
        Task(f"t{i}", partial(Document, text, f"d{i}"), "Why?", PLAN,
             source=text_sha256(text))
        if i % 7 else Task(f"t{i}", problem=PearlError("no task"), source=f"bad {i}")
        for i, text in enumerate(texts)
    ]  # fmt: skip


def run_shard(folder: Path, part: Shard, n_tasks: int) -> int:
    """Run one shard into a store; the number of tasks that were run."""

    async def main() -> int:
        with Store.open(folder) as store:
            spec = RunSpec(
                COMMAND, {"model": "m", "shard": str(part)}, {"t.jsonl": "1"}, folder="/"
            )
            run = store.begin(spec)
            outcomes = run_recorded(Pearl(Scripted(reply)), part.of(enumerate(tasks(n_tasks))), run)
            found = [outcome async for outcome in outcomes]
            run.finish("done")
        return len(found)

    return asyncio.run(main())


def exported(folder: Path) -> bytes:
    with Store.open(folder, read_only=True) as store:
        (info,) = store.runs()
        rows: list[dict[str, Any]] = list(store.rows(info.id))
    for row in rows:
        row.pop("duration_s", None)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_repeated_shard_runs_only_failures(tmp_path: Path) -> None:
    part = Shard(2, 3)
    n_first = run_shard(tmp_path, part, 30)
    before = exported(tmp_path)
    n_failed = sum(json.loads(row)["status"] == "failed" for row in before.splitlines())
    assert n_first > n_failed
    assert run_shard(tmp_path, part, 30) == n_failed
    assert exported(tmp_path) == before


@given(id=st.text("aé\ud800 7"), n=st.integers(1, 20))
def test_a_task_is_in_one_shard(id: str, n: int) -> None:
    assert sum(Shard(i, n).takes(id) for i in range(1, n + 1)) == 1


def test_shard_of_a_task_is_stable() -> None:
    """By the bytes of SHA-256: other versions of Python, other machines and other pearls agree."""
    ids = ("q17", "été", "a\ud800", "")
    assert [next(i for i in range(1, 8) if Shard(i, 7).takes(id)) for id in ids] == [7, 5, 3, 2]


@pytest.mark.parametrize("text", ["1/1", "2/7", " 7/7 ", "3 / 4"])
def test_parse_shard(text: str) -> None:
    assert str(parse_shard(text)) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a shard"), ("3", "is not a shard"), ("1/2/3", "is not a shard"), ("a/b", "is not a shard"),
        ("-1/2", "is not a shard"), ("1.0/2", "is not a shard"), ("²/3", "is not a shard"),
        ("9" * 5_000 + "/1", "is not a shard"), ("0/3", "shard 0 of 3 does not exist"), ("4/3", "shard 4 of 3 does not exist"),
        ("1/0", "shard 1 of 0 does not exist"),
    ],
)  # fmt: skip
def test_invalid_shard_has_a_short_error(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shard(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 200
    assert str(caught.value).count("\n") < 3
