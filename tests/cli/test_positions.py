"""Runs over large files: a resumed run starts where the killed one was, and does every task once."""

from __future__ import annotations

import json
import random
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pearl.cli.commands import execute
from pearl.data.domains import Source, read_samples
from pearl.runs import tasks as positions
from pearl.runs.executors import Task
from pearl.runs.tasks import DocumentTasks
from tests.cli.terminal import PLAN, STORY, Terminal

WORK = bytes(32)


def rows(n: int, seed: int) -> str:
    """Rows that depend on earlier ones: equal documents, names and ids, and rows that are invalid."""
    chosen = random.Random(seed)
    lines = []
    for i in range(n):
        row: dict[str, Any] = {"id": f"r{i}", "document": f"Ada sold boat {i}."}
        match chosen.randrange(12):
            case 0:
                row["document"] = f"Ada sold boat {chosen.randrange(i + 1)}."
            case 1:
                row["document_name"] = f"boat {chosen.randrange(3)}"
            case 2:
                row["id"] = f"r{chosen.randrange(i + 1)}"
            case 3:
                row["reference"] = "It leaked."
            case 4:
                row = {"id": f"q{i}", "question": "Why?"}
            case 5:
                lines.append("\n  {")
                continue
        lines.append(json.dumps(row, ensure_ascii=False))
    return "\ufeff" + "\n".join(lines)


def known(task: Task) -> tuple[Any, ...]:
    return task.id, task.source, dict(task.extra), str(task.problem)


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DocumentTasks:
    monkeypatch.setattr(positions, "MARGIN", 20)
    path = tmp_path / "rows.jsonl"
    path.write_text(rows(600, seed=7), encoding="utf-8")
    return DocumentTasks(
        lambda position=None: read_samples("generic", Source(str(path), position=position)), PLAN
    )


@pytest.mark.parametrize("n_before", [46, 431])
def test_a_resumed_run_starts_late_and_does_every_task(
    tasks: DocumentTasks, tmp_path: Path, n_before: int
) -> None:
    every = [known(task) for task in tasks]
    start = partial(positions.from_position, tasks, tmp_path / "run.position", WORK)
    assert [(n, known(task)) for n, task in start()] == list(enumerate(every))
    (tmp_path / "run.position").unlink()
    done = [n for n, _ in islice(start(), n_before)]
    resumed = [(n, known(task)) for n, task in start()]
    assert sorted(resumed) == list(enumerate(every))
    first = resumed[0][0]
    assert first <= len(done)
    assert first >= min(n_before, len(every)) * 0.9 - 50
    for n in (3, 3):  # killed soon after it was resumed, and again
        list(islice(start(), n))
    assert sorted((n, known(task)) for n, task in start()) == list(enumerate(every))


def test_a_damaged_position_or_one_of_other_work_is_not_used(
    tasks: DocumentTasks, tmp_path: Path
) -> None:
    path = tmp_path / "run.position"
    list(islice(positions.from_position(tasks, path, WORK), 300))
    whole = path.read_bytes()

    def first(work: bytes = WORK) -> int:
        return next(positions.from_position(tasks, path, work))[0]

    assert first() > 200
    assert first(bytes(31) + b"1") == 0
    for i in random.Random(3).sample(range(len(whole)), 40):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        assert first() == 0
        path.write_bytes(whole[:i])
        assert first() == 0


def test_a_stopped_run_over_a_large_file_goes_on_where_it_was(
    pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execute, "_LARGE", 50)
    monkeypatch.setattr(positions, "MARGIN", 20)
    lines = [json.dumps({"id": f"r{n:03}", "document": f"{STORY} {n}"}) for n in range(110)]
    Path("rows.jsonl").write_text("\n".join([*lines[:5], "{", *lines[5:], lines[9]]))
    command = ["execute", "why.plan", "--data", "rows.jsonl", "--store", "runs"]
    out = ["--out", "o.jsonl", "--concurrency", "1"]
    for limit in ("50", "30"):
        pearl(*command, *out, "--max-calls", limit, code=7)
    assert list(Path().glob("**/run-*.position"))
    pearl(*command, *out, code=1)
    resumed = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    pearl(*command, "--out", "fresh.jsonl", "--fresh", code=1)
    fresh = [json.loads(line) for line in Path("fresh.jsonl").read_text().splitlines()]
    assert len(fresh) == 112
    compared = ("id", "status", "answer", "error")
    assert [[row.get(n) for n in compared] for row in resumed] == [
        [row.get(n) for n in compared] for row in fresh
    ]
    assert not list(Path().glob("**/run-*.position"))
    Path("rows.jsonl").write_text("\n".join(lines[:90]))
    pearl(*command, *out, "--force")
    assert len(Path("o.jsonl").read_text().splitlines()) == 90
