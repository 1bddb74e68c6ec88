"""An index and several processes: killed at any moment, writing at once, read while written."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from pearl.retrieval.index import Index
from tests.retrieval.index.corpora import assert_same, write

OPEN = """
import os, signal, sys
from pearl.retrieval.index import Index, updating
updating.MAX_BYTES = 5_000
corpus, left = sys.argv[1], int(sys.argv[2])

def killed(event, args):
    global left
    if event in ("open", "os.rename", "os.remove") and "/pearl/index/" in str(args[0]):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(killed)
print("ready", flush=True)
sys.stdin.readline()
index = Index.open(corpus)
print(len(index.passages), flush=True)
"""


def start(corpus: Path, last: int = 0) -> subprocess.Popen[str]:
    """A process that opens the index of a corpus once it is told to.

    Args:
        corpus: The corpus.
        last: What it does to files of the index before it is killed; 0 for all.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", OPEN, str(corpus), str(last)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def files(seed: int) -> dict[str, str]:
    chance = random.Random(seed)
    words = ["salt", "lake", "iron", "sea"]
    return {
        f"{n}.txt": "\n\n".join(" ".join(chance.choices(words, k=5)) for _ in range(10))
        for n in range(60)
    }


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, files(0))
    states = []
    for seed in count(1):
        old = Index.open(corpus)
        write(corpus, files(seed))
        process = start(corpus, last=seed)
        go(process)
        process.communicate()
        kept = Index.open(corpus, with_update=False)
        fresh = Index.open(corpus, at=tmp_path / "fresh", is_fresh=True)
        is_new = kept.passages[0].text != old.passages[0].text
        assert_same(kept, fresh if is_new else old)
        assert_same(Index.open(corpus), fresh)
        states.append(is_new)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    assert len(states) > 8
    assert not states[0]
    assert sum(states) > 1  # one that was killed with the new state in place, too


@pytest.mark.slow
def test_several_writers_make_one_index(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, files(0))
    processes = [start(corpus) for _ in range(3)]
    for process in processes:
        go(process)
    told = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], told
    assert {out for out, _ in told} == {"600\n"}
    index = Index.open(corpus)
    assert_same(index, Index.open(corpus, at=tmp_path / "fresh", is_fresh=True))
    assert index.opened is not None
    assert {path.name for path in index.opened.folder.path.iterdir()} == {"index.bin", "lock"}


@pytest.mark.slow
def test_readers_are_not_disturbed_by_a_writer(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, files(0))
    Index.open(corpus)
    code = """
import json, sys
from pearl.retrieval.index import Index
seen = []
for _ in range(int(sys.argv[2])):
    index = Index.open(sys.argv[1], with_update=False)
    assert not index.notes or "may have changed" in index.notes[0], index.notes
    seen.append(sorted({p.text.split()[0] for p in index.passages}))
print(json.dumps(seen))
"""
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(corpus), "40"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        for n in range(12):
            write(corpus, {f"{i}.txt": f"w{n} salt" for i in range(30)})
            Index.open(corpus)
        out, err = reader.communicate()
    finally:
        if reader.poll() is None:
            os.killpg(reader.pid, signal.SIGKILL)
    assert reader.returncode == 0, err
    # Each saw one state, and no mixture of two.
    assert all(len(words) == 1 or "lake" in words for words in json.loads(out))
