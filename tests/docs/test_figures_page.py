"""docs/figures.md: made from docs/figures.toml, whose commands exist, and stale figures are found."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.docs.test_pages import generator
from tests.root import ROOT

SCRIPT = ROOT / "docs/make_figures_page.py"
TODAY = date.today()
FILE = """head = "# Figures\\n"

[[run]]
section = "Plans"
command = '''{command}'''
date = {date}
days = 30
{more}
figures = [
  {{ of = "plans", find = '^(\\d+) plans', value = {value}, within = 1 }},
  {{ of = "rows", find = ' ([\\d,]+) rows', value = 1000, within = "25 %" }},
  {{ of = "the last", key = "n > 0 > of", value = 7, unit = " ms" }},
]
"""


def made(
    folder: Path, *args: str, value: float = 5, age: int = 0, command: str = "", more: str = ""
) -> subprocess.CompletedProcess[str]:
    """The script over a file of one run, whose command prints 5 plans and 1,200 rows."""
    (folder / "prints.py").write_text('print("5 plans, 1,200 rows")\nprint(\'{"n": [{"of": 7}]}\')')
    command = command or f"python {folder / 'prints.py'}"
    text = FILE.format(command=command, date=TODAY - timedelta(days=age), value=value, more=more)
    (folder / "figures.toml").write_text(text, encoding="utf-8")
    words = [sys.executable, str(SCRIPT), "--file", str(folder / "figures.toml"), *args]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_page_is_that_of_the_file_and_its_commands_exist() -> None:
    module = generator("figures")
    found = tomllib.loads((ROOT / "docs/figures.toml").read_text("utf-8"))
    assert module.page(found) == (ROOT / "docs/figures.md").read_text("utf-8"), "run `make docs`"
    for run in found["run"]:  # old figures fail no test, commands that are gone do
        assert not module.problem(run, run["date"]), run["command"]
        for figure in run["figures"]:
            assert "by_hand" in run or {"find", "key"} & figure.keys(), figure


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": 6}, None),
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
    tmp_path: Path, change: dict[str, object], reason: str | None
) -> None:
    done = made(tmp_path, "--check", **change)  # type: ignore[arg-type]
    assert done.returncode == (reason is not None), done.stdout + done.stderr
    assert reason is None or re.search(rf"stale: Plans: .*\n  {re.escape(reason)}", done.stdout)
    assert not (tmp_path / "figures.md").exists()


def test_a_run_renews_values_dates_and_the_page(tmp_path: Path) -> None:
    assert made(tmp_path, "--run", value=99.5, age=400).returncode == 0
    (run,) = tomllib.loads((tmp_path / "figures.toml").read_text("utf-8"))["run"]
    assert (run["date"], [each["value"] for each in run["figures"]]) == (TODAY, [5, 1200, 7])
    page = (tmp_path / "figures.md").read_text("utf-8")
    assert "- rows: 1,200 ± 25 %\n- the last: 7 ms\n" in page


@pytest.mark.parametrize(
    "more",
    ['data = ["quality"]', 'module = "no_such"', 'program = "no_such"', 'variable = "NO_SUCH"'],
)
def test_what_the_machine_lacks_is_not_run(tmp_path: Path, more: str) -> None:
    done = made(tmp_path, "--check", "--data", str(tmp_path), value=99, more=more)
    assert (done.returncode, "not run: Plans" in done.stdout) == (0, True)
