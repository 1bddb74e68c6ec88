"""`pearl check --fix` of plans in the older language: one for each row of docs/plan_reference.md."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from pearl import Document, Pearl
from pearl.actions.old_plans import CALLS
from pearl.llm import ItemsTask, Request
from tests.cli.terminal import Terminal
from tests.models import Reading, item_lines
from tests.root import ROOT

TABLE = """id,ward,age,mood
a,north,30,calm
b,south,41,angry
c,north,50,calm
d,east,29,calm
"""
ROWS = 'rows = SPLIT(CTX, "record")'
MOODS = 'mood = CLASSIFY(rows, ["calm", "angry"], "the mood")'
WARDS = 'wards = COUNT_BY(rows, "ward")'

OLD: dict[str, tuple[list[str], list[str], str]] = {
    "COUNT_BY": ([WARDS], ['wards = GROUP(rows, "ward")'], "- north: 2\n- south: 1\n- east: 1"),
    "HAVING": ([WARDS, 'ans = HAVING(wards, "at least", 2)'], ['ans = WHERE(wards, "count", "at least", 2)'], "- north: 2"),
    "COUNT_OF": ([WARDS, 'ans = COUNT_OF(wards, "north")'], ['ans_rows = WHERE(rows, "ward", "is", "north")', "ans = COUNT(ans_rows)"], "2"),
    "COUNT_OF labels": ([MOODS, 'ans = COUNT_OF(mood, "calm")'], ['ans_rows = WHERE(mood, "mood", "is", "calm")', "ans = COUNT(ans_rows)"], "3"),
    "SHARE_OF": ([MOODS, 'ans = SHARE_OF(mood, "mood", "calm")'], ['ans_rows = WHERE(mood, "mood", "is", "calm")', "ans = SHARE(ans_rows, mood)"], "0.75"),
    "MOST": ([WARDS, "ans = MOST(wards)"], ['ans = NTH(wards, "count", 1)'], "north"),
    "MOST of labels": ([MOODS, "ans = MOST(mood)"], ['ans_rows = GROUP(mood, "mood")', 'ans = NTH(ans_rows, "count", 1)'], "calm"),
    "LEAST": ([WARDS, "ans = LEAST(wards)"], ['ans = NTH(wards, "count", -1)'], "south; east"),
    "NTH": ([WARDS, "ans = NTH(wards, 2)"], ['ans = NTH(wards, "count", 2)'], "south; east"),
    "RANKED": ([WARDS, "ans = RANKED(wards)"], ['ans = SORT(wards, "count", "descending")'], "- north: 2\n- south: 1\n- east: 1"),
    "MEAN_BY": (['m = MEAN_BY(rows, "ward", "age")', "ans = MOST(m)"], ['m = AGGREGATE(rows, "ward", "mean", "age")', 'ans = NTH(m, "mean", 1)'], "south"),
    "SUM_BY": (['ans = SUM_BY(rows, "ward", "age")'], ['ans = AGGREGATE(rows, "ward", "sum", "age")'], "| north | 80 |"),
    "MIN_BY": (['ans = MIN_BY(rows, "ward", "age")'], ['ans = AGGREGATE(rows, "ward", "min", "age")'], "| north | 30 |"),
    "MAX_BY": (['ans = MAX_BY(rows, "ward", "age")'], ['ans = AGGREGATE(rows, "ward", "max", "age")'], "| north | 50 |"),
    "MOST_BY": (
        [MOODS, 'top = MOST_BY(mood, "ward")', 'some = WHERE(top, "mood", "is", "calm")', 'ans = FIELD(some, "ward")'],
        ['top = AGGREGATE(mood, "ward", "mode", "mood")', 'some = WHERE(top, "mode", "is", "calm")'], "- north\n- east",
    ),
    "RATE": (['score = RATE(rows, "how old", 1, 3)', "ans = MOST(score)"], ['score = CLASSIFY(rows, ["1", "2", "3"], "how old")', 'ans = NTH(score, "score", 1)'], "c,north,50,calm"),
    "RERANK": (['ans = RERANK(rows, "who is old?", 1)'], ['ans = TOP(rows, "who is old?", 1)'], "- c"),
}  # fmt: skip


def written(*steps: str) -> str:
    lines = (f"{i}. {step} : Step {{}}" for i, step in enumerate([ROWS, *steps], 1))
    return "Question: Who?\n\nNew actions:\n- None\n\n" + "\n".join(lines) + "\n"


def reply(request: Request) -> str:
    task = request.task
    assert isinstance(task, ItemsTask)
    if task.n_picks:
        return "3"
    if task.labels[0] == "1":
        return item_lines(request, lambda item: str(1 + ("4" in item) + 2 * ("50" in item)))
    return item_lines(request, lambda item: "angry" if "angry" in item else "calm")


@pytest.mark.parametrize("name", OLD)
def test_an_old_plan_says_the_same_in_the_language_of_today(pearl: Terminal, name: str) -> None:
    steps, new, answer = OLD[name]
    path = Path("old.plan")
    path.write_text(written(*steps), encoding="utf-8")
    told = pearl("check", "old.plan", code=1)
    assert name == "NTH" or "'pearl check --fix FILE' rewrites this older plan" in told
    assert not re.search("New actions|did you mean", told)
    pearl("check", "--fix", "old.plan")
    text = path.read_text(encoding="utf-8")
    assert all(f". {step} : Step" in text for step in new), text
    found = asyncio.run(Pearl(Reading(reply)).execute(text, Document(TABLE, "t.csv")))
    assert answer in found.text
    page = (ROOT / "docs" / "plan_reference.md").read_text(encoding="utf-8")
    assert f"`{name.split()[0]}" in page


@pytest.mark.parametrize(
    "step",
    [
        "ans = SAMPLE(rows, 2)", "ans = NEAR(rows, rows, 1)", 'ans = RATE(rows, "how old", 0, 900)',
        "ans = MOST(CTX)", "ans = LEAST(CTX)", 'said = MAP(rows, "x") : Map\n3. ans = MOST(said)', "ans = MOST(rows, rows)",
    ],
)  # fmt: skip
def test_a_call_that_may_mean_two_things_stays(pearl: Terminal, step: str) -> None:
    text = written(step)
    Path("old.plan").write_text(text, encoding="utf-8")
    assert "docs/plan_reference.md" in pearl("check", "--fix", "old.plan", code=1)
    assert Path("old.plan").read_text(encoding="utf-8") == text


def test_every_old_call_is_tested() -> None:
    assert {name for name, _ in CALLS} == {name.split()[0] for name in OLD}


def test_comments_and_broken_lines_stay(pearl: Terminal) -> None:
    path = Path("old.plan")
    text = f"# of August\n1. {ROWS} : Rows\n# calm ones\n2. {MOODS} : Moods\n3. ans = MOST(mood) : Most\n4. COUNT(\n# end\n"
    path.write_text(text, encoding="utf-8")
    pearl("check", "--fix", "old.plan", code=1)
    new = '3. ans_rows = GROUP(mood, "mood") : Most\n4. ans = NTH(ans_rows, "count", 1) : Most\n'
    assert path.read_text(encoding="utf-8").replace("5.", "4.") == text.replace(
        "3. ans = MOST(mood) : Most\n", new
    )
