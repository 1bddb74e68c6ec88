"""The published plans, replayed by the real interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.root import ROOT
from tests.shared import shared

pytestmark = pytest.mark.slow


def reproduce(*args: str | Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "experiments/reproduce_pearl.py"), *map(str, args), "--json"],
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_counts_and_disagreements(tmp_path: Path) -> None:
    actions = tmp_path / "actions.txt"
    actions.write_text("FIND(CTX, X) # Find X\nCONCAT(S1, S2, ...) # Join\n", encoding="utf-8")
    plan = '1. a = FIND(CTX, "x") : f\n2. b = CONCAT(a) : c'
    rows = [
        {"qid": "1", "plan": plan, "step_outputs": {"a": "yes"}, "open_answer": " yes\n\n"},
        {"qid": "2", "plan": plan, "step_outputs": {"a": "yes"}, "open_answer": "no"},
        {"qid": "3", "plan": plan, "step_outputs": {}, "open_answer": "no"},
        {"qid": "4", "plan": plan, "step_outputs": None, "open_answer": "no"},
        {"qid": "5", "plan": "1. a = NOPE(CTX) : x", "step_outputs": {"a": "1"}},
        {"qid": "6", "plan": "1. a = FIND(CTX", "step_outputs": None},
        {"qid": "7", "method": "mcq", "answer": "A", "gold": "A"},
    ]
    traces = tmp_path / "traces.jsonl"
    traces.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    report = reproduce("--traces", traces, "--actions", actions)
    assert {k: v for k, v in report.items() if k not in ("disagreements", "figures")} == {
        "plans": 6,
        "parsed": 5,
        "valid": 4,
        "invalid_by_code": {"unknown-action": 1, "syntax": 1},
        "replayed": 3,
        "answers_equal": 1,
    }
    figures = report["figures"]
    assert isinstance(figures, dict)
    assert (figures["n"], figures["steps"], figures["calls"], figures["depth"]) == (
        4,
        2.0,
        1.0,
        2.0,
    )
    assert [row["qid"] for row in report["disagreements"]] == ["2", "3"]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_published_plans() -> None:
    files = [shared(f"pearl_traces/dev.ctx_eval_{split}.jsonl") for split in ("long", "short")]
    actions = shared("pearl_traces/actions_refined.txt")
    report = reproduce("--traces", *files, "--actions", actions)
    assert (report["plans"], report["parsed"], report["valid"]) == (1255, 1255, 1226)
    assert report["invalid_by_code"] == {"unknown-action": 29}
    assert (report["replayed"], report["answers_equal"]) == (612, 600)
