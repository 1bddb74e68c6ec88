"""Before a LIMIT, a model is asked about no more rows than that takes, also behind conditions on its replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.interpreter.answer import Answer
from pearl.llm import ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from tests.models import Reading, item_lines

PLAN = """\
1. rows = SPLIT(CTX, "line") : One row a line
2. kept = FILTER(rows, "it is sweet") : The sweet ones
3. ans = LIMIT(kept, {n}) : Some of them"""


def lines(n: int) -> Document:
    return Document("\n".join(f"line {i}" for i in range(n)))


class Judge:
    """Says of each line, by its number, whether it passes; notes the lines that it was asked about."""

    def __init__(self, verdict: Callable[[int], str | None]) -> None:
        self.verdict = verdict
        self.batches: list[list[int]] = []

    def __call__(self, request: Request) -> str:
        assert isinstance(request.task, ItemsTask)
        self.batches.append([int(item.split()[1]) for item in request.task.items])
        return item_lines(request, lambda item: self.verdict(int(item.split()[1]))) or "I cannot."

    @property
    def asked(self) -> list[int]:
        return sorted({number for batch in self.batches for number in batch})


def run(plan: str, n: int, judge: Judge, **settings: Any) -> Answer:
    pearl = Pearl(Scripted(judge), **{"items_per_call": 4, **settings})
    return asyncio.run(pearl.execute(plan, lines(n)))


def numbers(answer: Answer) -> list[int]:
    return [int(row.value.split()[1]) for row in answer.steps[-1].rows or () if row.value]


def test_it_stops_once_enough_rows_passed_and_says_what_was_not_read() -> None:
    judge = Judge(lambda i: "yes" if i % 3 == 0 else "no")
    answer = run(PLAN.format(n=5), 100, judge)
    assert numbers(answer) == [0, 3, 6, 9, 12]
    assert answer.status == "answered"
    assert judge.asked == list(range(16))
    assert answer.text.endswith("(among the first 16 of 100 rows; the others were not read)")


def test_a_row_that_is_read_alone_keeps_its_turn() -> None:
    asked: list[str] = []

    def reply(request: Request) -> str:
        if not isinstance(request.task, ItemsTask):
            asked.append("long")
            return "yes"
        asked.extend(request.task.items)
        return item_lines(request, lambda item: "yes")

    text = "\n".join(["line 0 " + "is long and " * 900, *(f"line {i}" for i in range(1, 60))])
    pearl = Pearl(Scripted(reply), items_per_call=4, window=2_048)
    answer = asyncio.run(pearl.execute(PLAN.format(n=2), Document(text)))
    assert len(numbers(answer)) == 2
    assert set(asked) == {"long", "line 1", "line 2", "line 3", "line 4"}


@pytest.mark.parametrize("first", [3, 50, 97])
def test_rare_rows_take_few_rounds_and_no_row_is_missed(first: int) -> None:
    judge = Judge(lambda i: "yes" if i >= first else "no")
    assert numbers(run(PLAN.format(n=2), 100, judge)) == [first, first + 1]
    none = Judge(lambda i: "no")
    answer = run(PLAN.format(n=2), 100, none)
    assert (answer.status, none.asked) == ("nothing_found", list(range(100)))


def test_an_undecided_row_may_be_among_the_first() -> None:
    judge = Judge(lambda i: None if i == 1 else "yes" if i > 4 else "no")
    answer = run(PLAN.format(n=2), 40, judge)
    assert numbers(answer) == [5]
    assert [row.value for row in answer.steps[-1].rows.doubtful] == ["line 1", "line 6"]  # type: ignore[union-attr]
    assert answer.status == "undecided"
    after = Judge(lambda i: None if i == 7 else "yes" if i > 4 else "no")
    answer = run(PLAN.format(n=2), 40, after)
    assert (numbers(answer), answer.status) == ([5, 6], "answered")


@pytest.mark.parametrize(
    ("n", "than", "text"),
    [(3, 2, "more"), (3, 90, "less"), (3, 20, None), (3, 3, None)],
    ids=["enough", "all rows are fewer", "not known", "at least as many"],
)
def test_a_count_of_the_first_rows_is_a_bound(n: int, than: int, text: str | None) -> None:
    steps = f"\n4. n = COUNT(ans) : How many\n5. word = RELATION(n, {than}) : More or less?"
    answer = run(PLAN.format(n=n) + steps, 60, Judge(lambda i: "yes"))
    assert answer.status == ("answered" if text else "undecided")
    assert answer.text.startswith(text or "undecided")
    assert text or "56 rows were not read, which may change" in answer.why
    count = answer.steps[3].value
    assert (count.value, count.low, count.high) == (3, 3, 59)  # type: ignore[union-attr]


def test_known_replies_do_not_change_the_answer() -> None:
    judge = Judge(lambda i: "yes" if i % 3 == 0 else "no")
    pearl = Pearl(Reading(judge), items_per_call=4)
    some = PLAN.replace("(rows,", "(late,").replace(
        "2. kept", '2. late = WHERE(rows, "text", "contains", "6") : Some\n3. kept'
    )
    for plan in (some.format(n=30), PLAN.format(n=5)):
        answer = asyncio.run(pearl.execute(plan, lines(100)))
    assert numbers(answer) == [0, 3, 6, 9, 12]
    # No line is asked about twice.
    assert sorted(i for batch in judge.batches for i in batch) == judge.asked


def test_the_first_of_a_search_are_its_best() -> None:
    document = Document("salt\n\niron and salt\n\niron iron iron\n\niron in wood and tea of salt")
    plan = """\
1. found = RETRIEVE(CTX, "iron", 3) : Search
2. kept = FILTER(found, "it is of metal") : Those of metal
3. ans = LIMIT(kept, {n}) : The best"""
    for n, unsure in ((1, "nothing"), (2, "wood")):
        model = Scripted(
            lambda r, u=unsure: item_lines(r, lambda item: None if u in item else "yes")
        )  # type: ignore[misc]
        answer = asyncio.run(Pearl(model).execute(plan.format(n=n), document))
        assert [row.value for row in answer.steps[-1].rows or ()] == ["iron iron iron"]


CONDITIONS = {
    "CLASSIFY": ('CLASSIFY(rows, ["sweet", "sour"], "its taste")', [("is", '"sweet"')], 16),
    "not a label": ('CLASSIFY(rows, ["sweet", "sour"], "its taste")', [("is not", '"sour"')], 16),
    "one of two labels": ('CLASSIFY(rows, ["sweet", "sour", "salty"], "its taste")', [("in", '["sweet", "salty"]')], 16),
    "rated": ('CLASSIFY(rows, ["2", "5", "7"], "how sweet it is")', [("at least", "7")], 16),
    "rated in a range": ('CLASSIFY(rows, ["2", "5", "7", "9"], "how sweet it is")', [("after", "6"), ("at most", "8")], 16),
    "a label that is nowhere": ('CLASSIFY(rows, ["sweet", "sour"], "its taste")', [("is", '"hot"')], 400),
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
def test_it_stops_behind_a_condition_on_replies(name: str) -> None:
    action, conditions, n_asked = CONDITIONS[name]
    steps = ['rows = SPLIT(CTX, "line")', f"how = {action}"]
    for i, (operator, value) in enumerate(conditions):
        source = f"some{i - 1}" if i else "how"
        steps.append(f'some{i} = WHERE({source}, "how", "{operator}", {value})')
    steps.append(f"ans = LIMIT(some{len(conditions) - 1}, 5)")
    sweet, other = ("7", "2") if name.startswith("rated") else ("sweet", "sour")

    def asked(*more: str) -> tuple[Answer, Judge]:
        judge = Judge(lambda i: sweet if i % 3 == 0 else other)
        plan = "\n".join(f"{i}. {step} : step" for i, step in enumerate([*steps, *more], 1))
        return run(plan, 400, judge), judge

    answer, judge = asked()
    every, all_asked = asked("n = COUNT(how)")  # another reader of the replies
    assert judge.asked == list(range(n_asked))
    assert all_asked.asked == list(range(400))
    some, those = (next(s.rows for s in a.steps if s.output == "ans") for a in (answer, every))
    assert some is not None
    assert those is not None
    assert (some.rows, some.doubtful) == (those.rows, those.doubtful)
    assert [row.spans for row in some] == [row.spans for row in those]
    if n_asked < 400:
        assert [row.text for row in some] == [f"line {i}" for i in (0, 3, 6, 9, 12)]
        assert answer.text.endswith("(among the first 16 of 400 rows; the others were not read)")


@pytest.mark.parametrize(
    "steps",
    [
        ('some = WHERE(how, "text", "contains", "line")', "ans = LIMIT(some, 5)"),
        ('some = SORT(how, "how", "ascending")', "ans = LIMIT(some, 5)"),
        ('some = WHERE(how, "how", "is", "sweet")', "ans = LIMIT(some, 5)", "n = COUNT(some)"),
    ],
    ids=["a condition on another field", "an order", "another reader"],
)
def test_it_reads_all_rows_if_replies_do_not_decide_alone(steps: tuple[str, ...]) -> None:
    judge = Judge(lambda i: "sweet")
    first = ('rows = SPLIT(CTX, "line")', 'how = CLASSIFY(rows, ["sweet", "sour"], "its taste")')
    plan = "\n".join(f"{i}. {step} : step" for i, step in enumerate((*first, *steps), 1))
    run(plan, 60, judge)
    assert judge.asked == list(range(60))
