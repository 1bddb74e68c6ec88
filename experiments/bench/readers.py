"""What reading a document costs in a child process, and what files that take much take under limits.

    python experiments/bench/readers.py [--bombs]

The first table compares reading in this process with reading in a child that has limits: the first
document, for which the child is started, and the next ones. With --bombs the second table has small
files that a library makes much of, each read by a process of its own: without limits of memory (but
for 60 s and 4 GB) and with those that hold by default. Prints one JSON line for each table.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from pearl import plugins
from pearl.documents import confinement
from pearl.documents.document import load, read_as

N_READS = 30
PARAGRAPH = "The ferry crossed the river at dawn, and nobody on the landing said a word. " * 6


def page(n_paragraphs: int) -> bytes:
    return f"<html><body>{f'<p>{PARAGRAPH}</p>' * n_paragraphs}</body></html>".encode()


def word(body: str) -> bytes:
    """A Word file with this XML as its body."""
    import docx

    empty, made = io.BytesIO(), io.BytesIO()
    docx.Document().save(empty)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    xml = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    with zipfile.ZipFile(empty) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, xml if name == "word/document.xml" else old.read(name))
    return made.getvalue()


FILES: dict[str, Callable[[], bytes]] = {
    "1 kB.txt": lambda: PARAGRAPH.encode() * 2,
    "1 kB.html": lambda: page(2),
    "1 MB.html": lambda: page(2_200),
    "100 kB.docx": lambda: word(f"<w:p><w:r><w:t>{PARAGRAPH}</w:t></w:r></w:p>" * 220),
}

BOMBS: dict[str, Callable[[], bytes]] = {
    "wide.html": lambda: b"<table><tr><td>" + b"x" * 120_000 + b"<td>y" + b"<tr><td>a<td>b" * 9_000,
    "indented.html": lambda: b"<div style='padding-left:100000em'>" + b"<p>a" * 3_000,
    "elements.docx": lambda: word("<w:p/>" * 9_000_000),
}

READ = """
import json, resource, sys, time
from pathlib import Path
from pearl import plugins
from pearl.errors import DataError
from pearl.documents.document import load
began = time.process_time()
try:
    if sys.argv[2] == "limits":
        told = f"{len(load(sys.argv[1]).text)} characters"
    else:
        resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))
        reader = plugins.load("pearl.documents.readers", sys.argv[2])
        told = f"{len(reader.read(Path(sys.argv[1]).read_bytes(), sys.argv[1]))} characters"
except DataError as error:
    told = error.message.rpartition(": ")[2]
except MemoryError:
    told = "out of memory at 4 GB"
most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps([told, most // 1000]))
"""


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def costs(folder: Path) -> dict[str, Any]:
    """Milliseconds for each file: in this process, in a child, and in a new child."""
    found: dict[str, Any] = {}
    print(f"{'file':12} {'here':>9} {'child':>9} {'new child':>9}  (ms, medians)")
    for name, make in FILES.items():
        path = folder / name
        data = make()
        path.write_bytes(data)
        kind = {".txt": "text", ".html": "html", ".docx": "word"}[path.suffix]
        reader = plugins.load("pearl.documents.readers", kind)
        here = median(seconds(lambda: reader.read(data, name)) for _ in range(N_READS))  # noqa: B023
        child = median(seconds(lambda: read_as(kind, data, name)) for _ in range(N_READS))  # noqa: B023

        def afresh(kind: str = kind, data: bytes = data, name: str = name) -> float:
            confinement._end_idle()
            return seconds(lambda: read_as(kind, data, name))

        new = median(afresh() for _ in range(5))
        found[name] = [round(1000 * s, 2) for s in (here, child, new)]
        print(f"{name:12} {found[name][0]:9} {found[name][1]:9} {found[name][2]:9}")
        load(path)
    return found


def bombs(folder: Path) -> dict[str, Any]:
    """For each file: what was told and the megabytes taken, without limits and with them."""
    found: dict[str, Any] = {}
    for name, make in BOMBS.items():
        path = folder / name
        path.write_bytes(make())
        kind = "html" if path.suffix == ".html" else "word"
        found[name] = {}
        for way in (kind, "limits"):
            try:
                done = subprocess.run(
                    [sys.executable, "-c", READ, str(path), way],
                    capture_output=True, text=True, check=True, timeout=60,
                )  # fmt: skip
                told, most_mb = json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                told, most_mb = "not done after 60 s", None
            found[name]["limits" if way == "limits" else "none"] = [told, most_mb]
            print(f"{name:14} {len(make()) // 1000:4} kB  {way:7} {most_mb} MB  {told}")
    return found


def main() -> None:
    """Measure what was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"bench": "readers", "ms": costs(Path(folder))}))
        if "--bombs" in sys.argv:
            print(json.dumps({"bench": "readers", "bombs": bombs(Path(folder))}))


if __name__ == "__main__":
    main()
