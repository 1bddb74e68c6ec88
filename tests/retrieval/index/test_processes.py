"""An index and several processes: killed at any moment, writing at once, read while written."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.retrieval.index import Index
from tests.retrieval.index.corpora import write


def files(seed: int) -> dict[str, str]:
    chance = random.Random(seed)
    words = ["salt", "lake", "iron", "sea"]
    return {
        f"{n}.txt": "\n\n".join(" ".join(chance.choices(words, k=5)) for _ in range(10))
        for n in range(60)
    }


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
