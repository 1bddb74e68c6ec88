"""The published plans, replayed by the real interpreter, and the paper's table, counted again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.experiments.scripts import experiment
from tests.shared import shared

PLAN = '1. a = FIND(CTX, "x") : f'


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(experiment("reproduce_pearl").main, [str(arg) for arg in args])


def printed(*args: str | Path) -> dict[str, Any]:
    done = run(*args)
    assert done.exit_code == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def counted(*files: Path) -> dict[str, Any]:
    return printed("--table", "--traces", *files)


def cells(table: dict[str, Any], *keys: str) -> dict[tuple[str, str], Any]:
    """The named figures of each method and split; the bare figure where only one is named."""
    return {
        (method, split): cell[keys[0]] if len(keys) == 1 else tuple(cell[key] for key in keys)
        for method, splits in table["accuracies"].items()
        for split, cell in splits.items()
    }


def baseline(method: str, split: str, answers: str, gold: str) -> list[dict[str, Any]]:
    """One row for each letter of `answers`; a dash is a failure and leaves no row."""
    return [
        {"method": method, "split": split, "qid": str(i), "answer": answer, "gold": right}
        for i, (answer, right) in enumerate(zip(answers, gold, strict=True))
        if answer != "-"
    ]


def plans(which: str, split: str, answers: str, gold: str) -> list[dict[str, Any]]:
    return [
        {
            "run": which, "split": split, "qid": row["qid"], "plan": PLAN, "step_outputs": None,
            "open_answer": "", "map_answer": row["answer"], "gold": row["gold"],
        }
        for row in baseline("", split, answers, gold)
    ]  # fmt: skip


def write(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two splits of eight and four questions: failures, an answer that is none, two runs."""
    long, short = "ABCDABCD", "ABCD"
    rows = {
        "plans_long": plans("pearl_out", "long", "ABCDTA--", long)
        + plans("pearl_out_1", "long", "ABDATBC-", long),
        "plans_short": plans("pearl_out", "short", "ABCA", short),
        "base_long": baseline("mcq", "long", "ABCDABCA", long)
        + baseline("gqa", "long", "A" * 8, long),
        "base_short": baseline("mcq", "short", "ABCD", short),
    }
    return [write(tmp_path / f"{name}.jsonl", each) for name, each in rows.items()]


def test_failures_and_answers_that_are_none(files: list[Path]) -> None:
    table = counted(*files)
    assert cells(table, "accuracy_pct", "accuracy_with_failures_pct") == {
        ("mcq", "long"): (87.5, 87.5),
        ("mcq", "short"): (100, 100),
        ("mcq", "all"): (91.7, 91.7),
        ("gqa", "long"): (25, 25),
        ("gqa", "all"): (25, 25),  # it was never asked the short ones
        ("pearl", "long"): (66.7, 50),  # 4 of 6 answered, of 8 asked
        ("pearl", "short"): (75, 75),
        ("pearl", "all"): (70, 58.3),
        ("pearl_rerun", "long"): (57.1, 50),
        ("pearl_rerun", "all"): (57.1, 50),
    }
    counts = cells(table, "n", "n_questions", "n_failed", "n_unmapped")
    assert counts["pearl", "long"] == (6, 8, 2, 1)
    assert counts["pearl", "all"] == (10, 12, 2, 1)
    assert counts["mcq", "short"] == (4, 4, 0, 0)
    for accuracy, (low, high) in cells(table, "accuracy_pct", "interval_pct").values():
        assert low <= accuracy <= high
        assert low < high


def test_comparisons_are_paired(files: list[Path]) -> None:
    found = {(c["first"], c["second"], c["split"]): c for c in counted(*files)["comparisons"]}
    assert len(found) == 7
    one = found["pearl", "gqa", "long"]
    assert (one["n"], one["n_first_only"], one["n_second_only"]) == (6, 3, 1)
    assert one["difference_points"] == 33.3
    assert one["p_mcnemar"] == pytest.approx(0.625)  # 2 (1 + 4) / 16
    low, high = one["interval_points"]
    assert low < 33.3 < high
    assert 0 < one["p_bootstrap"] <= 1


@pytest.mark.slow
def test_the_published_figures_to_the_digit() -> None:
    table = counted(*shared("pearl_traces").glob("*.jsonl"))
    published = {
        ("mcq", "long"): 81.2, ("mcq", "short"): 84.4,
        ("gqa", "long"): 71.5, ("gqa", "short"): 79.1,
        ("pearl", "long"): 77.4, ("pearl", "short"): 76.7,
    }  # fmt: skip
    ours = cells(table, "accuracy_pct")
    assert {key: ours[key[0], f"dev.ctx_eval_{key[1]}"] for key in published} == published
    counts = cells(
        table, "n", "n_questions", "n_failed", "n_unmapped", "accuracy_with_failures_pct"
    )
    assert counts["pearl", "dev.ctx_eval_long"] == (327, 330, 3, 2, 76.7)
    assert counts["pearl", "dev.ctx_eval_short"] == (300, 302, 2, 3, 76.2)
    assert [
        (r["n"], r["n_decided_differently"], r["n_answers_differ"]) for r in table["reruns"]
    ] == [
        (326, 48, 57),
        (300, 29, 36),
        (626, 77, 93),
    ]


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
    report = printed("--traces", traces, "--actions", actions)
    assert {k: v for k, v in report.items() if k not in ("disagreements", "figures")} == {
        "plans": 6,
        "parsed": 5,
        "valid": 4,
        "invalid_by_code": {"unknown-action": 1, "syntax": 1},
        "replayed": 3,
        "answers_equal": 1,
    }
    figures = [report["figures"][name] for name in ("n", "steps", "calls", "depth")]
    assert figures == [4, 2.0, 1.0, 2.0]
    assert [row["qid"] for row in report["disagreements"]] == ["2", "3"]


@pytest.mark.slow
def test_the_published_plans() -> None:
    files = [shared(f"pearl_traces/dev.ctx_eval_{split}.jsonl") for split in ("long", "short")]
    actions = shared("pearl_traces/actions_refined.txt")
    report = printed("--traces", *files, "--actions", actions)
    assert (report["plans"], report["parsed"], report["valid"]) == (1255, 1255, 1226)
    assert report["invalid_by_code"] == {"unknown-action": 29}
    assert (report["replayed"], report["answers_equal"]) == (612, 600)
