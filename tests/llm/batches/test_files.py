"""Batches as files that the user's own program carries out."""

from __future__ import annotations

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pearl import Pearl
from pearl.errors import PausedError
from pearl.llm.batches.files import FileBatches
from pearl.runs.executors import Outcome, Task
from pearl.runs.executors.batch import run
from tests.llm.batches.openai_server import check_line, lines_of
from tests.runs.executors.batch_tasks import PACE, tasks_of
from tests.server import completion, error

ADA = '{"answer": "Ada.", "quotes": []}'
NOWHERE = "http://127.0.0.1:9/v1"


def carry_out(requests: Path, results: Path, n: int | None = None) -> None:
    """What `vllm run-batch` does: a result for each request, in their order."""
    lines = requests.read_text().splitlines()
    with results.open("w") as file:
        for line in lines[:n]:
            asked = json.loads(line)
            check_line(asked)
            answer = {"status_code": 200, "request_id": "r", "body": completion(ADA)}
            row = {"id": "v", "custom_id": asked["custom_id"], "response": answer, "error": None}
            file.write(json.dumps(row) + "\n")


def execute(tasks: list[Task], folder: Path, **options: Any) -> tuple[list[Outcome[Task]], str]:
    """The outcomes, and what a run that waits for files says."""

    async def main() -> tuple[list[Outcome[Task]], str]:
        async with Pearl("vllm:test-model", base_url=NOWHERE, window=8_000) as pearl:
            found = [
                o async for o in run(pearl, tasks, batch_folder=folder, **{"pace": PACE, **options})
            ]
        errors = {str(o.error) for o in found if isinstance(o.error, PausedError)}
        return found, "\n".join(errors)

    return asyncio.run(main())


def test_the_same_command_continues_level_by_level(tmp_path: Path) -> None:
    folder, tasks = tmp_path / "my files", tasks_of(5, 2)
    for _ in range(2):
        found, told = execute(tasks, folder)
        assert not any(o.result for o in found)
        (requests,) = folder.glob("*.requests.jsonl")
        words = shlex.split(told.partition("help: ")[2].partition(";")[0])
        assert words[:3] == ["vllm", "run-batch", "-i"]
        assert words[6:] == ["--model", "test-model"]
        carry_out(Path(words[3]), Path(words[5]))
        assert Path(words[3]) == requests
    found, told = execute(tasks, folder)
    assert [o.result.text for o in found] == ["Ada."] * 5
    assert not told
    assert len(list(folder.iterdir())) == 2, "the results are the user's"


def test_a_file_that_is_still_written_is_not_read(tmp_path: Path) -> None:
    tasks = tasks_of(5, 1)
    execute(tasks, tmp_path)
    (requests,) = tmp_path.iterdir()
    results = tmp_path / requests.name.replace("requests", "results")
    carry_out(requests, results, 3)
    with results.open("a") as file:
        file.write('{"custom_id": "half')
    found, told = execute(tasks, tmp_path)
    assert not any(o.result for o in found)
    assert f"wait for results; {results.name} has 3 of 5 results\n" in told
    carry_out(requests, results)
    assert all(o.result for o in execute(tasks, tmp_path)[0])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"response": {"status_code": 503, "body": error("busy")}}, "answered 503: busy"),
        ({"custom_id": "00" * 32}, "it has the results of other requests"),
    ],
)
def test_results_without_a_usable_reply_are_set_aside(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    tasks = tasks_of(2, 1)
    execute(tasks, tmp_path)
    (requests,) = tmp_path.iterdir()
    results = tmp_path / requests.name.replace("requests", "results")
    carry_out(requests, results)
    rows = [{**json.loads(line), **change} for line in results.read_text().splitlines()]
    results.write_bytes(lines_of(rows))
    _, told = execute(tasks, tmp_path)
    failed = results.name.replace("results", "failed")
    assert f"; {failed} has no usable reply: " in told
    assert why in told
    assert {path.name for path in tmp_path.iterdir()} == {requests.name, failed}
    carry_out(requests, results)
    assert all(o.result for o in execute(tasks, tmp_path)[0])


def test_several_files_are_carried_out_by_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileBatches, "max_requests", 2)
    # A busy machine may load the last document later than after the usual pause.
    _, told = execute(tasks_of(5, 1), tmp_path, pace=replace(PACE, quiet_s=3.0))
    names = sorted(path.name.partition(".")[0] for path in tmp_path.iterdir())
    assert len(names) == 3
    assert f"(cd {tmp_path} && for f in {' '.join(names)}; do vllm run-batch -i $f.requests" in told
