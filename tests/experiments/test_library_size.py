"""Libraries of several sizes, evaluated: from drafts to a table and a picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.evals.log import read_log
from tests.root import ROOT

SCRIPT = ROOT / "experiments/library_size.py"

DRAFTS = """\
CONCAT(S1, S2, ...) : Join the texts
FIND(CTX, X) : Find X in CTX
FIND_REASON(CTX, X) : Find why X happens in CTX
FIND_REASONS(CTX, X) : Find the reasons why X happens in CTX
FIND_OWNER(CTX, X) : Find who owns X
"""
STORY = "Ada sold the boat because the hull leaked. Nils bought the boat in May. Nils has a dog."
OPTIONS = ["the hull leaked", "she was tired", "a dog", "in May"]
SAMPLES = [
    {"question": "Why did Ada sell the boat?", "gold": "A"},
    {"question": "When did Nils buy the boat?", "gold": "D"},
]


def library_size(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "drafts.txt", "--data", "data.jsonl", "--out", "out"]
    return subprocess.run(
        [*command, *args], cwd=folder, capture_output=True, text=True, check=False
    )


def written(folder: Path) -> dict[str, bytes]:
    """The files of a folder; of logs all but the header, which has the time of writing."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {
        name: data.partition(b"\n")[2] if name.endswith(".log.jsonl") else data
        for name, data in files.items()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "drafts.txt").write_text(DRAFTS, encoding="utf-8")
    rows = [{**sample, "document": STORY, "options": OPTIONS} for sample in SAMPLES]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_log_a_size_a_table_and_a_picture_and_again(folder: Path) -> None:
    done = library_size(folder, "--sizes", "2,4,40", "--methods", "pearl,direct")
    assert done.returncode == 0, done.stderr
    head, _, *rows = done.stdout.splitlines()
    assert head == "guessing gets 25.0 %"
    assert [row.split()[:3:2] for row in rows] == [
        ["2", "pearl"], ["2", "direct"], ["4", "pearl"], ["4", "direct"],
    ]  # fmt: skip
    assert "the same library as before" in done.stderr, "4 are all that the drafts make"
    files = written(folder / "out")
    assert {"2.actions", "2.json", "2.log.jsonl", "library-size.svg"} <= files.keys()
    assert "40.log.jsonl" not in files
    log = read_log(folder / "out/2.log.jsonl")
    assert (log.header.n_actions, len(log.records)) == (2, 4)

    again = library_size(folder, "--sizes", "2,4,40", "--methods", "pearl,direct")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert written(folder / "out") == files


@pytest.mark.slow
def test_a_log_that_is_gone_is_written_again_from_the_store(folder: Path) -> None:
    assert library_size(folder, "--sizes", "2").returncode == 0
    path = folder / "out/2.log.jsonl"
    before = path.read_bytes()
    path.unlink()
    done = library_size(folder, "--sizes", "2")
    assert done.returncode == 0, done.stderr
    assert "no picture: all logs have libraries of one size" in done.stderr
    assert path.read_bytes().splitlines()[1:] == before.splitlines()[1:]  # the header has its time
    assert len(read_log(path).records) == 2


@pytest.mark.slow
def test_other_drafts_want_another_folder(folder: Path) -> None:
    assert library_size(folder, "--sizes", "2").returncode == 0
    (folder / "drafts.txt").write_text(f"{DRAFTS}FIND_DOG(CTX, X) : Find the dog of X\n")
    done = library_size(folder, "--sizes", "2")
    assert done.returncode == 3
    assert "refined from other drafts" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--sizes", "5,none"], "not numbers of actions"),
        (["--sizes", "0"], "not numbers of actions"),
        (["--library", "seed"], "leave it out"),
    ],
)
def test_what_cannot_be_run_is_said(folder: Path, args: list[str], words: str) -> None:
    done = library_size(folder, *args)
    assert done.returncode == 2
    assert words in done.stderr
