"""Models rated by plans that were written for the same questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pearl.dsl.parser import parse
from tests.experiments.scripts import experiment
from tests.shared import shared

pytestmark = pytest.mark.slow

ACTIONS = "FIND(CTX, X) : Find X\nFIND_REASON(CTX, X) : Why X\nCONCAT(A, B, ...) : Join\n"
WHY = '1. a = FIND_REASON(CTX, "Ada sell the mill") : Find why'
WHERE = '1. a = FIND(CTX, "the lease of the ferry") : Find it\n2. b = CONCAT(a, a) : Join'


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(experiment("planners").main, [str(arg) for arg in args])


def rated(*args: str | Path) -> dict[str, Any]:
    done = run("--json", *args)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        (WHY, WHY, 1.0),
        (WHERE, '1. z = FIND(CTX, "other") : x', 1.0),  # what joins is not counted
        ('1. a = FIND(CTX, "x") : x\n2. b = FIND(CTX, "y") : y', '1. a = FIND(CTX, "x") : x', 2 / 3),
        (WHY, WHERE, 0.0),
    ],
)  # fmt: skip
def test_action_f1_is_of_multisets_of_names(text: str, reference: str, expected: float) -> None:
    assert experiment("planners").action_f1(parse(text), parse(reference)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        (WHY, WHY, 1.0),
        ('1. a = FIND(CTX, "red boat") : x', '1. a = FIND(CTX, "boat") : x', 2 / 3),
        # "boat" is matched with the second string, which is nearer than the first
        ('1. a = FIND(CTX, "boat") : x', '1. a = COMPARE(CTX, "red boat", "boat") : x', 2 / 3),
        ('1. a = PICK(CTX, ["boat", "mill"]) : x', '1. a = FIND(CTX, "mill") : x', 2 / 3),
        ("1. a = SUMMARIZE(CTX) : x", "1. b = SUMMARIZE(CTX) : y", 1.0),
        ("1. a = SUMMARIZE(CTX) : x", WHY, 0.0),
    ],
)
def test_overlap_matches_each_string_once(text: str, reference: str, expected: float) -> None:
    assert experiment("planners").overlap(parse(text), parse(reference)) == pytest.approx(expected)


def data(folder: Path, questions: list[tuple[str, int]], qids: list[int]) -> list[str | Path]:
    """A file of QuALITY, traces with two plans, and the actions; as arguments."""
    rows = [
        {
            "article_id": f"a{i}",
            "set_unique_id": f"a{i}_1",
            "article": f"Ada sold mill {i}.",
            "questions": [{"question": text, "options": ["w", "x", "y", "z"], "gold_label": gold}],
        }
        for i, (text, gold) in enumerate(questions)
    ]
    (folder / "dev.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    traces = [
        {"qid": str(qid), "plan": text, "gold": gold}
        for qid, text, gold in zip(qids, (WHY, WHERE), ("A", "B"), strict=True)
    ]
    (folder / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    (folder / "mine.actions").write_text(ACTIONS, encoding="utf-8")
    return [
        "--data", folder / "dev.jsonl", "--traces", folder / "traces.jsonl",
        "--actions", folder / "mine.actions",
    ]  # fmt: skip


QUESTIONS = [
    ("Why did Ada sell the mill?", 1),
    ("Where is the lease of the ferry?", 2),
    ("Why did Ada sell the mill, then?", 3),  # another letter is right
    ("Who keeps bees?", 2),
]


def test_questions_of_a_selection_are_matched_by_words_and_the_right_letter(tmp_path: Path) -> None:
    found = rated(*data(tmp_path, QUESTIONS, [900, 77]))
    assert {
        row["question"]: round(row["action_f1"], 2) for row in found["plans"]["extractive"]
    } == {
        "Why did Ada sell the mill?": 0.0,  # one step that asks the question itself
        "Where is the lease of the ferry?": 1.0,
    }
    assert "published again" not in found["figures"]
    plans = {row["question"]: row["plan"] for row in found["plans"]["no planner"]}
    assert 'FIND_REASON(CTX, "Where is the lease of the ferry?")' in plans[QUESTIONS[1][0]]


def test_published_plans_agree_with_themselves() -> None:
    traces = [shared(f"pearl_traces/dev.ctx_eval_{name}.jsonl") for name in ("long", "short")]
    found = rated(
        "--data", shared("quality/QuALITY.subset.dev"), "--traces", traces[0], "--traces", traces[1],
        "--actions", shared("pearl_traces/actions_refined.txt"),
    )["figures"]  # fmt: skip
    assert found["extractive"]["n"] == 25
    assert found["extractive"]["valid"][0] == 25
    assert found["published again"]["points"][0] > 1.5 > found["extractive"]["points"][2]
