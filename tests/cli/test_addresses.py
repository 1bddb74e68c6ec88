"""`--data` and `--out` at addresses: object storage on loopback, and the local file system."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from pearl.data import storage as addresses
from tests.cli.object_storage import ObjectStorage, object_storage
from tests.cli.terminal import Terminal
from tests.server import Server
from tests.skips import NO_LARGE

for package in ("boto3", "moto", "obstore", "pyarrow"):
    pytest.importorskip(package, reason=NO_LARGE)

IN, OUT = "s3://reviews/in", "s3://reviews/out"
SECRET = "fXk0-not-to-be-shown"


@pytest.fixture(scope="module")
def _server() -> Iterator[ObjectStorage]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ACCESS_KEY_ID", "someone")
        patched.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        with object_storage() as server:
            patched.setenv("AWS_ENDPOINT_URL", server.url)
            yield server


@pytest.fixture
def bucket(_server: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> ObjectStorage:
    """An empty bucket; a request that fails is repeated at once, three times."""
    for page in _server.client.get_paginator("list_objects_v2").paginate(Bucket="reviews"):
        if found := [{"Key": each["Key"]} for each in page.get("Contents", ())]:
            _server.client.delete_objects(Bucket="reviews", Delete={"Objects": found})
    _server.fault = lambda method, path: None
    _server.requests.clear()
    soon = timedelta(seconds=0.01)
    retry = {"max_retries": 3, "retry_timeout": timedelta(seconds=20),
             "backoff": {"init_backoff": soon, "max_backoff": soon, "base": 2}}  # fmt: skip
    monkeypatch.setattr(addresses, "RETRY", retry)
    addresses._storage.cache_clear()
    return _server


def story(n: int) -> str:
    return f"Nils sold boat {n} because its hull was rotten.\n"


def parquet(*rows: dict[str, Any]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def zstd(data: str) -> bytes:
    import pyarrow

    packed: bytes = pyarrow.compress(data.encode(), "zstd", asbytes=True)
    return packed


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def table(bucket: ObjectStorage, kind: str = "") -> list[dict[str, Any]]:
    """The rows of all parts, as any reader of Parquet gets them."""
    import pyarrow
    from pyarrow import parquet

    names = [name for name in bucket.names("out") if name.startswith(kind)]
    parts = [parquet.read_table(io.BytesIO(bucket.read(f"out/{name}"))) for name in names]
    return list(pyarrow.concat_tables(parts).to_pylist()) if parts else []


def ids(bucket: ObjectStorage) -> list[str]:
    return sorted(row["id"].rpartition("/")[2] for row in table(bucket))


def test_rows_and_documents_of_a_bucket_become_one_table(
    bucket: ObjectStorage, pearl: Terminal
) -> None:
    bucket.write("in/a.txt", story(1))
    bucket.write("in/deep/b.md", story(2))
    bucket.write("in/c.parquet", parquet({"id": "c1", "document": story(3)}))
    bucket.write(
        "in/d.jsonl.gz",
        gzip.compress(lines({"document": story(4)}, {"id": "d2", "document": story(5)}).encode()),
    )
    bucket.write("in/e.jsonl.zst", zstd(lines({"id": "e1", "document": story(6)})))
    bucket.write("in/f.csv", f"id,document\nf1,{story(7)}")
    bucket.write("in/_SUCCESS", "")
    bucket.write("in/g.jsonl", lines({"id": "g1", "document_path": "deep/b.md"}))
    pearl("execute", "why.plan", "--data", IN, "--out", OUT)
    assert ids(bucket) == ["a.txt", "b.md", "c1", "d.jsonl.gz:1", "d2", "e1", "f1", "g1"]
    by_id = {row["id"]: row for row in table(bucket)}
    assert "hull was rotten" in by_id["g1"]["answer"]
    assert by_id["e1"]["ans"] == by_id["e1"]["answer"]
    names = bucket.names("out")
    pearl("execute", "why.plan", "--data", IN, "--out", OUT)
    assert bucket.names("out") == names, "a second run adds nothing"


@pytest.mark.parametrize("pattern", ["in/*/part-[01].txt", "in/**/part-[01].txt"])
def test_patterns_select_as_the_same_local_ones(
    bucket: ObjectStorage, pearl: Terminal, pattern: str
) -> None:
    for key in (
        "in/x/part-0.txt",
        "in/x/part-2.txt",
        "in/y/part-1.txt",
        "in/y/z/part-1.txt",
        "in/part-0.txt",
        "on/x/part-0.txt",
    ):
        bucket.write(key, story(1))
        Path(key).parent.mkdir(parents=True, exist_ok=True)
        Path(key).write_text(story(1))
    expected = sorted(map(str, Path().glob(pattern)))
    for data, home in (
        (f"s3://reviews/{pattern}", "s3://reviews/"),
        (pattern, f"file://{Path.cwd()}/"),
    ):
        rows = pearl("execute", "why.plan", "--data", data, "--jsonl").splitlines()
        assert sorted(json.loads(row)["id"].removeprefix(home) for row in rows) == expected


def test_a_row_names_documents_of_its_folder_only(bucket: ObjectStorage, pearl: Terminal) -> None:
    bucket.write("in-private.txt", story(0))
    paths = [
        "../in-private.txt",
        "/etc/passwd",
        "s3://reviews/in-private.txt",
        "file:///etc/passwd",
        str(Path("story.txt").absolute()),
    ]
    bucket.write(
        "in/rows.jsonl",
        lines(*({"id": str(n), "document_path": path} for n, path in enumerate(paths))),
    )
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, code=1)
    assert [row["status"] for row in table(bucket)] == ["failed"] * len(paths)
    assert not [path for _, path in bucket.requests if path == "/reviews/in-private.txt"]


CHILD = """
import sys
from pearl.cli import run
from pearl.contrib.cluster import parquet_sink
parquet_sink.MAX_ROWS = 4
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(("n_parts", "is_written"), [(0, False), (1, True), (2, False)])
def test_a_killed_run_goes_on_elsewhere_with_every_row_once(
    bucket: ObjectStorage, pearl: Terminal, openai_server: Server, n_parts: int, is_written: bool
) -> None:
    """It is killed when the storage gets a part, before or after the part is there."""
    bucket.write(
        "in/rows.jsonl", lines(*({"id": f"r{n:02}", "document": story(n)} for n in range(14)))
    )
    openai_server.on("", "The hull was rotten.")
    command = ["execute", "why.plan", "--data", IN, "--out", OUT, "--model", "openai:test-model",
               "--base-url", openai_server.url, "--concurrency", "2"]  # fmt: skip
    n_puts = 0

    def fault(method: str, path: str) -> Any:
        nonlocal n_puts
        if method != "PUT":
            return None
        n_puts += 1
        if n_puts <= n_parts:
            return None
        if is_written and n_puts == n_parts + 1:
            return None
        return lambda: os.kill(child.pid, signal.SIGKILL)

    bucket.fault = fault
    child = subprocess.Popen([sys.executable, "-c", CHILD, *command], stderr=subprocess.PIPE)
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    bucket.fault = lambda method, path: None
    before, n_before = bucket.names("out"), len(openai_server.requests)
    assert len(before) == n_parts + is_written
    n_kept = len(table(bucket))
    pearl(*command, "--store", "elsewhere", code=None)
    assert ids(bucket) == [f"r{n:02}" for n in range(14)]
    assert set(before) <= set(bucket.names("out"))
    assert len(openai_server.requests) - n_before == 14 - n_kept, "rows that are there cost nothing"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (lambda method, path: (403, "AccessDenied"), 3),
        (lambda method, path: (503, "SlowDown") if method == "PUT" else None, 3),
        (lambda method, path: (404, "NoSuchBucket") if method == "GET" else None, 3),
        (lambda method, path: (lambda: None) if "list-type" not in path else None, None),
        (lambda method, path: (lambda: None) if method == "PUT" else None, 3),
    ],
    ids=["denied", "throttled", "no bucket", "reading breaks off", "writing breaks off"],
)
def test_a_run_goes_on_after_a_fault_of_the_storage(
    bucket: ObjectStorage, pearl: Terminal, fault: Any, code: int | None
) -> None:
    for n in range(5):
        bucket.write(f"in/d{n}.txt", story(n))
    bucket.fault = fault
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, code=code)
    assert SECRET not in pearl.talk
    assert len(pearl.talk.splitlines()) <= 8
    bucket.fault = lambda method, path: None
    pearl("execute", "why.plan", "--data", IN, "--out", OUT)
    assert ids(bucket) == [f"d{n}.txt" for n in range(5)]


def test_a_file_that_changes_while_it_is_read_is_an_error_of_its_rows(
    bucket: ObjectStorage, pearl: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "_BUFFER", 1_000)
    rows = [{"id": f"r{n:03}", "document": story(n)} for n in range(50)]
    bucket.write("in/rows.jsonl", lines(*rows))
    n_ranges = 0

    def fault(method: str, path: str) -> Any:
        nonlocal n_ranges
        n_ranges += path.endswith("rows.jsonl") and method == "GET"
        if n_ranges == 2:
            bucket.write("in/rows.jsonl", lines(*rows).replace("rotten", "sound!"))

    bucket.fault = fault
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, code=1)
    assert all("sound" not in row["answer"] for row in table(bucket, "part"))
    assert [row["status"] for row in table(bucket, "failed")] == ["failed"]


def test_failed_rows_are_repeated(bucket: ObjectStorage, pearl: Terminal) -> None:
    bucket.write("in/a.txt", story(1))
    bucket.write("in/b.txt", "")
    bucket.write("in/c.parquet", parquet({"id": "c1", "document": story(3)}))
    bucket.write("in/d.parquet", parquet({"id": "d1", "text": story(4)}))
    bucket.write("in/e.parquet", parquet({"id": "e1", "document": 5}))
    bucket.write("in/f.parquet", b"PAR1 damaged")
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, code=1)
    assert len(table(bucket, "part")) == 2
    assert len(table(bucket, "failed")) == 4
    for name in ("d", "e", "f"):
        bucket.write(f"in/{name}.parquet", parquet({"id": f"{name}1", "document": story(4)}))
    bucket.write("in/b.txt", story(2))
    pearl("execute", "why.plan", "--data", IN, "--out", OUT)
    assert [row["id"] for row in table(bucket, "failed")] == []
    assert ids(bucket) == ["a.txt", "b.txt", "c1", "d1", "e1", "f1"]


def test_rows_of_other_work_are_refused_before_any_call(
    bucket: ObjectStorage, pearl: Terminal, openai_server: Server
) -> None:
    bucket.write("in/a.txt", story(1))
    model = ["--model", "openai:test-model", "--base-url", openai_server.url]
    bucket.write("out/other.parquet", parquet({"id": "x"}))
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, *model, code=2)
    bucket.client.delete_object(Bucket="reviews", Key="out/other.parquet")
    pearl("execute", "why.plan", "--data", IN, "--out", OUT)
    before = bucket.names("out")
    pearl("execute", "why.plan", "--data", IN, "--out", OUT, *model, code=2)
    plan = Path("why.plan").read_text()
    Path("how.plan").write_text(plan.replace("Nils selling", "who sold"))
    pearl("execute", "how.plan", "--data", IN, "--out", OUT, code=2)
    assert not openai_server.requests
    assert bucket.names("out") == before


@pytest.mark.parametrize(
    ("data", "out", "is_refused"),
    [
        ("s3://reviews/in", "s3://reviews/in", True),
        ("s3://reviews/in/", "s3://reviews/in/deep/out", True),
        ("s3://reviews", "s3://reviews/out", True),
        ("s3://reviews/*/*.parquet", "s3://reviews/out/", True),
        ("s3://reviews/in", "s3://reviews/in/_out", False),
        ("s3://reviews/in", "s3://reviews/in-out", False),
        ("s3://reviews/in/a.jsonl", "s3://reviews/in", False),
        ("s3://reviews/*/*.jsonl", "s3://reviews/out", False),
        ("s3://reviews/in", "s3://others/in", False),
        ("file:///tmp/in", "file:///tmp/on/../in/out", True),
        ("file:///tmp/in/*.txt", "file:///tmp/in", False),
        ("file:///", "file:///tmp/in", True),
    ],
)
def test_rows_are_not_written_where_they_would_be_read(
    bucket: ObjectStorage, data: str, out: str, is_refused: bool
) -> None:
    assert addresses.OutputFolder(out).is_read_by(data) == is_refused


def test_a_folder_that_is_its_own_data_is_refused(bucket: ObjectStorage, pearl: Terminal) -> None:
    bucket.write("in/a.txt", story(1))
    pearl("execute", "why.plan", "--data", IN, "--out", f"{IN}/out", code=2)
    assert "_answers" in pearl.talk
    pearl("execute", "why.plan", "--data", IN, "--out", f"{IN}/_answers")
    for _ in range(2):
        pearl("execute", "why.plan", "--data", IN, "--out", f"{IN}/_answers")
    assert "1 row in" in pearl.talk


def test_no_file_and_no_store_names_where_rows_are_sent(
    bucket: ObjectStorage, pearl: Terminal
) -> None:
    bucket.write("in/a.txt", story(1))
    said = f"s3://someone:{SECRET}@reviews/out"
    pearl("execute", "why.plan", "--data", IN, "--out", said, code=2)
    assert SECRET not in pearl.talk
    Path("pearl.toml").write_text(f'out = "{OUT}"\ndata = "{IN}"\n')
    pearl("execute", "why.plan", "story.txt", code=None)
    Path("pearl.toml").unlink()
    from pearl.errors import UsageError
    from pearl.runs.request import ExecuteRequest

    request = {"model": "extractive", "base_url": None, "executor": "local", "as_json": False}
    with pytest.raises((UsageError, ValueError), match="out"):
        convert({**request, "out": OUT}, ExecuteRequest)
    assert not bucket.names("out")
