"""`pearl view` as people meet it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pearl.cli import run
from pearl.evals.log import EvalLog
from pearl.plugins.extras import install_hint
from tests.evals.evallogs import header, log, write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_pictures_lie_beside_the_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(log(4), folder / "dev.jsonl")
    assert run(["view", "dev.jsonl"]) == 0
    said = capsys.readouterr()
    names = said.out.splitlines()
    assert names[-1] == "dev-pictures/index.html"
    assert sorted(names) == sorted(f"dev-pictures/{p.name}" for p in Path("dev-pictures").iterdir())
    assert len(names) == 7
    assert said.err.splitlines() == [
        "skipped library-size: all logs have libraries of one size; give several logs",
        "skipped reliability: no answer has a confidence; give --plans to pearl eval",
    ]


@pytest.mark.slow
def test_several_logs_into_a_folder_that_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(log(4), folder / "a.jsonl")
    write(log(4, n_actions=5), folder / "b.jsonl")
    assert run(["view", "a.jsonl", "b.jsonl", "--out", "new/deep"]) == 0
    assert capsys.readouterr().err.startswith("skipped reliability: ")
    before = {path.name: path.read_bytes() for path in Path("new/deep").iterdir()}
    assert len(before) == 9
    assert run(["view", "a.jsonl", "b.jsonl", "--out", "new/deep"]) == 0
    assert {path.name: path.read_bytes() for path in Path("new/deep").iterdir()} == before


def test_a_log_without_records_gives_a_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(EvalLog(header(), ()), folder / "a.jsonl")
    assert run(["view", "a.jsonl"]) == 0
    said = capsys.readouterr()
    assert said.out == "a-pictures/index.html\n"
    assert said.err.count(": no records\n") == 5


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["absent.jsonl"], 3, "absent.jsonl: cannot be read"),
        (["bad.jsonl"], 3, "not a file of this kind"),
        ([], 2, "Missing argument"),
        (["a.jsonl", "--out", "a.jsonl"], 3, "a.jsonl: cannot be made"),
        (["index.html", "--out", "."], 2, "'index.html' is an input"),
    ],
)
def test_errors_are_one_line_and_write_nothing(
    args: list[str], code: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.jsonl", "index.html"):
        write(EvalLog(header(), ()), folder / name)  # no records: there is nothing to draw
    (folder / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    assert run(["view", *args]) == code
    said = capsys.readouterr()
    assert words in said.err.splitlines()[0]
    assert said.out == ""
    assert sorted(path.name for path in folder.iterdir()) == ["a.jsonl", "bad.jsonl", "index.html"]


def test_a_missing_extra_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write(log(2), folder / "a.jsonl")
    assert run(["view", "a.jsonl"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "pearl: a picture needs matplotlib, which is not installed",
        f"  help: {install_hint('pictures')}",
    ]
    assert not Path("a-pictures").exists()


@pytest.mark.slow
def test_a_home_that_cannot_be_written_is_not_talked_about(folder: Path) -> None:
    write(log(2), folder / "a.jsonl")
    nowhere = os.devnull + "/home"
    places = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"), nowhere)
    done = subprocess.run(
        [sys.executable, "-m", "pearl", "view", "a.jsonl"], capture_output=True,
        env={**os.environ, **places},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        "skipped library-size: all logs have libraries of one size; give several logs",
        "skipped reliability: no answer has a confidence; give --plans to pearl eval",
    ]
