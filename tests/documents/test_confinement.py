"""Readers in a child process: its limits, its end, and that one serves many documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pearl.documents import confinement
from pearl.documents.confinement import ReaderLimits, read
from pearl.errors import DataError

READERS = {
    "echo": "return data.decode()",
    "which": "import os; return str(os.getpid())",
    "noisy": "print('not a reply'); import os; os.system('echo nor this'); return 'text'",
    "odd": "return 'a\\ud800b'",
    "long": "return 'a' * 2_000",
    "greedy": "bytearray(10**12); return ''",
    "endless": "\n    while True: pass",
    "asleep": "import time; time.sleep(3600)",
    "aborts": "import os; os.abort()",
    "fails": "raise ValueError('what a\\nfile')",
    "leaves": "raise SystemExit(3)",
    "deep": "return read(data, path)",
    "refuses": "from pearl.errors import DataError; raise DataError('no', path=path, help='go')",
    "large": "global kept; import os; kept = bytearray(60_000_000); return str(os.getpid())",
}
LIMITS = ReaderLimits(seconds=5, memory_bytes=200_000_000, text_bytes=1_000)

needs_resource = pytest.mark.skipif(confinement.resource is None, reason="no module resource")


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / f"readers_{os.getpid()}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, body in READERS.items():
        (folder / f"{name}.py").write_text(f"def read(data, path):\n    {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder.name


def failure(package: str, name: str, limits: ReaderLimits = LIMITS) -> str:
    with pytest.raises(DataError) as caught:
        read(package, name, b"data", "a.file", limits)
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def test_one_child_reads_one_document_after_another(package: str) -> None:
    first = read(package, "which", b"", "a.file", LIMITS)
    assert first != str(os.getpid())
    assert read(package, "noisy", b"", "a.file", LIMITS) == "text"
    assert failure(package, "refuses") == "a.file: no\n  help: go"
    assert read(package, "odd", b"", "a.file", LIMITS) == "a\ud800b"
    big = b"\n" + bytes(700_000)
    assert read(package, "echo", big, "a", ReaderLimits(5, 200_000_000, 10**6)) == big.decode()
    assert read(package, "which", b"", "a.file", LIMITS) != first  # for the limits were others
    assert read(package, "which", b"", "a.file", LIMITS) == read(
        package, "which", b"", "a.file", LIMITS
    )


@pytest.mark.skipif(not confinement._STATM.exists(), reason="no /proc here")
def test_a_child_that_keeps_much_memory_ends(package: str) -> None:
    assert read(package, "large", b"", "a", LIMITS) != read(package, "which", b"", "a", LIMITS)


@needs_resource
@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param(
            "endless",
            "exceeds the limit of 1 s\n  help: .*PEARL_MAX_READER_SECONDS",
            marks=pytest.mark.slow,
        ),
        ("greedy", "exceeds the limit of 200 MB of memory\n  help: .*PEARL_MAX_READER_MB"),
        ("long", "exceeds the limit of 0.001 MB of text\n  help: .*PEARL_MAX_DOCUMENT_MB"),
        ("deep", "nested too deeply"),
        ("aborts", r"its reader failed \(SIGABRT: out of memory, or on a damaged file\)"),
        ("fails", r"damaged or not what its name says \(ValueError: what a\)"),
        ("leaves", r"its reader failed \(exit status 3\)"),
    ],
)
def test_a_failure_is_reported_and_the_next_document_is_read(
    package: str, name: str, told: str
) -> None:
    limits = ReaderLimits(seconds=1, memory_bytes=200_000_000, text_bytes=1_000)
    assert re.search(f"a.file: .*{told}", failure(package, name, limits))
    assert read(package, "echo", b"next", "b.file", limits) == "next"


def test_a_child_that_does_not_end_is_killed(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "_CLOCK_PER_PROCESSOR", 0.3)
    with pytest.raises(DataError, match=r"exceeds the limit of 1 s"):
        read(package, "asleep", b"data", "a.file", ReaderLimits(1, 200_000_000, 1_000))


def test_a_child_killed_between_documents_is_replaced(package: str) -> None:
    process = int(read(package, "which", b"", "a.file", LIMITS))
    child = confinement._idle[-1]
    os.kill(process, 9)
    child._process.wait()
    assert read(package, "echo", b"next", "b.file", LIMITS) == "next"


def test_threads_have_a_child_each(package: str) -> None:
    both = threading.Barrier(2, timeout=60)

    def ask(i: int) -> set[str]:
        both.wait()
        return {read(package, "echo", f"{i} {j}".encode(), "a", LIMITS) for j in range(20)}

    with ThreadPoolExecutor(2) as pool:
        for i, texts in enumerate(pool.map(ask, range(2))):
            assert texts == {f"{i} {j}" for j in range(20)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_processes_share_no_child() -> None:
    code = """
import os
from pearl.documents.document import read_as
read_as("html", b"<p>first", "a")
process = os.fork()
texts = [read_as("html", b"<p>%d %d" % (process > 0, i), "a") for i in range(30)]
assert texts == [f"{int(process > 0)} {i}" for i in range(30)], texts
if process:
    assert os.waitpid(process, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
