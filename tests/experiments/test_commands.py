"""Every documented command of experiments/ runs, with its smallest input."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.root import ROOT

pytestmark = pytest.mark.slow

ACTIONS = "FIND(CTX, X) # Find X\nCONCAT(S1, S2, ...) # Join\n"
PLAN = '1. a = FIND(CTX, "Ada") : f\n2. b = CONCAT(a) : c'
ROWS = [
    {"run": "pearl", "split": "long", "qid": "0", "gold": "A", "plan": PLAN, "step_outputs": {"a": "yes"},
     "open_answer": "yes", "map_answer": "A"},
    {"method": "mcq", "split": "long", "qid": "0", "answer": "A", "gold": "A"},
]  # fmt: skip
ARTICLE = {
    "article_id": "1", "set_unique_id": "1_a", "article": "Ada sold the mill because it was old.",
    "questions": [
        {"question": "Why did Ada sell the mill?", "question_unique_id": "1_1", "gold_label": 1,
         "options": ["It was old", "It was new", "It burnt", "She moved"], "difficult": 0},
    ],
}  # fmt: skip

OWN_TESTS = {
    "reproduce_convfinqa.py", "retrieval/cranfield.py", "mutation.py", "fuzz.py",
    "extractbench.py", "reader.run", "reader.checker",
    "record_demo.py", "retrieval/looking.py",
}  # fmt: skip
"""Those with tests of their own, that need a large package, or that write the recording of the package."""

TRACES = ["--traces", "one.jsonl", "two.jsonl"]
COMMANDS: dict[str, list[list[str]]] = {
    "reproduce_pearl.py": [[*TRACES, "--actions", "mine.actions"], [*TRACES, "--table"]],
    "prompts.py": [["--data", "quality.jsonl", *TRACES, "--actions", "mine.actions"]],
    "planners.py": [[]],
    "ablation.py": [["mine.actions", "--data", "quality.jsonl", "--domain", "quality", "--out", "out", "--sizes", "1", *TRACES]],
    "oolong.py": [["--windows", "2", "--seed", "2", "--entries", "200", "--p", "1", "--pairs"]],
    "bench/pdf.py": [["--rounds", "1"]],
    "bench/quotes.py": [["--quick"]],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.actions").write_text(ACTIONS, encoding="utf-8")
    (tmp_path / "quality.jsonl").write_text(json.dumps(ARTICLE), encoding="utf-8")
    for name, row in zip(("one.jsonl", "two.jsonl"), ROWS, strict=True):
        (tmp_path / name).write_text(json.dumps(row), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("script", "args"),
    [(script, args) for script, each in COMMANDS.items() for args in each],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_command_runs(folder: Path, script: str, args: list[str]) -> None:
    command = [sys.executable, str(ROOT / "experiments" / script), *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_documented_command_is_run_by_a_test_or_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments/bench")
    benches = runpy.run_path(str(ROOT / "experiments/bench/table.py"))["BENCHES"]
    in_table = {f"bench/{name}.py" for name in (*benches, "table")}
    assert set(_documented()) - in_table - OWN_TESTS == set(COMMANDS)


def _documented() -> Iterator[str]:
    for page in (ROOT / "experiments/README.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        for script, module in re.findall(
            r"python (?:experiments/([\w/]+\.py)|-m experiments\.([\w.]+))", text
        ):
            yield script or module
