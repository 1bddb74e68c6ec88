"""docs/figures.md: made from docs/figures.toml, whose commands exist, and stale figures are found."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.root import ROOT

SCRIPT = ROOT / "docs/make_figures_page.py"
TODAY = date.today()


def made(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--file", str(folder / "figures.toml"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


PRINTS = """print("5 plans, 1,200 rows")\nprint('{"n": [{"of": 7}]}')\n"""


def write(
    folder: Path, *, value: float = 5, age: int = 0, command: str = "", more: str = ""
) -> None:
    (folder / "prints.py").write_text(PRINTS, encoding="utf-8")
    (folder / "figures.toml").write_text(
        f"""head = "# Figures\\n"

[[run]]
section = "Plans"
command = '''{command or f"python {folder / 'prints.py'}"}'''
date = {TODAY - timedelta(days=age)}
days = 30
{more}
figures = [
  {{ of = "plans", find = '^(\\d+) plans', value = {value}, within = 1 }},
  {{ of = "rows", find = ' ([\\d,]+) rows', value = 1000, within = "25 %" }},
  {{ of = "the last", key = "n > 0 > of", value = 7, unit = " ms" }},
]
""",
        encoding="utf-8",
    )


def test_the_page_is_that_of_the_file(tmp_path: Path) -> None:
    text = (ROOT / "docs/figures.toml").read_text("utf-8")
    (tmp_path / "figures.toml").write_text(text, encoding="utf-8")
    assert made(tmp_path).returncode == 0
    page = (ROOT / "docs/figures.md").read_text("utf-8")
    assert (tmp_path / "figures.md").read_text("utf-8") == page, "run docs/make_figures_page.py"
    # Old figures fail no test, commands that are gone do.
    spec = importlib.util.spec_from_file_location("make_figures_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for run in tomllib.loads(text)["run"]:
        assert not module.problem(run, run["date"]), run["command"]
        for figure in run["figures"]:
            assert "by_hand" in run or {"find", "key"} & figure.keys(), figure


def test_figures_within_their_tolerance_are_not_stale(tmp_path: Path) -> None:
    write(tmp_path, value=6)
    before = (tmp_path / "figures.toml").read_bytes()
    done = made(tmp_path, "--check")
    assert (done.returncode, "stale" in done.stdout) == (0, False), done.stdout + done.stderr
    assert (tmp_path / "figures.toml").read_bytes() == before
    assert not (tmp_path / "figures.md").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"value": 8}, "plans: 8 in the file, 5 today"),
        ({"age": 31}, "31 days old, 30 are allowed"),
        ({"age": 31, "more": 'by_hand = "hours"'}, "31 days old, 30 are allowed"),
        ({"command": "python experiments/gone.py"}, "its command no longer exists"),
        ({"command": "make gone", "more": 'by_hand = "hours"'}, "its command no longer exists"),
        ({"command": "pearl gone"}, "its command no longer exists"),
        ({"command": "python -m experiments.gone"}, "its command no longer exists"),
        ({"command": "python -c 'print(1)'"}, "the command prints no 'plans'"),
        ({"command": "python -c 'raise SystemExit(3)'"}, "exit code 3"),
    ],
)  # fmt: skip
def test_a_stale_figure_fails_the_check(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    write(tmp_path, **change)  # type: ignore[arg-type]
    done = made(tmp_path, "--check")
    assert done.returncode == 1, done.stdout
    assert re.search(rf"stale: Plans: .*\n  {re.escape(said)}", done.stdout), done.stdout


def test_a_run_renews_values_dates_and_the_page(tmp_path: Path) -> None:
    write(tmp_path, value=99.5, age=400)
    assert made(tmp_path, "--run").returncode == 0
    (run,) = tomllib.loads((tmp_path / "figures.toml").read_text("utf-8"))["run"]
    assert (run["date"], [each["value"] for each in run["figures"]]) == (TODAY, [5, 1200, 7])
    page = (tmp_path / "figures.md").read_text("utf-8")
    assert "- rows: 1,200 ± 25 %\n- the last: 7 ms\n" in page


@pytest.mark.parametrize(
    "more", ['data = ["quality"]', 'module = "no_such"', 'variable = "NO_SUCH"']
)
def test_what_the_machine_lacks_is_told_and_not_run(tmp_path: Path, more: str) -> None:
    write(tmp_path, value=99, more=more)
    done = made(tmp_path, "--check", "--data", str(tmp_path))
    assert done.returncode == 0
    assert "not run: Plans" in done.stdout
    assert "needs" in done.stdout
