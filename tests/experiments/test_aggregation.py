"""The parts of the benchmark of aggregation: windows, questions, reference, scores, oracle."""

from __future__ import annotations

import doctest
import re
from collections import Counter
from datetime import date
from typing import Any

import pytest

from pearl.dsl.parser import read as read_plan
from tests.experiments.scripts import parts

PARTS = ("oracle", "queries", "questions", "windows")


def test_examples_in_docstrings() -> None:
    assert not sum(doctest.testmod(getattr(parts, name)).failed for name in PARTS)


def test_a_window_is_what_was_asked_for() -> None:
    window = parts.windows.draw_window(2_000, 7, repeats=4)
    assert window == parts.windows.draw_window(2_000, 7, repeats=4)
    assert window.text != parts.windows.draw_window(2_000, 8, repeats=4).text
    lines = re.findall(
        r"^Date: \w{3} \d\d, \d{4} \|\| User: \d+ \|\| Instance: .*\?$", window.text, re.M
    )
    assert len(lines) == len(window.entries) == 2_000
    assert len(window.labels_of) == 500
    assert not window.text.startswith("Date:")
    assert not window.text.rstrip().endswith("?")
    counts = Counter(entry.user for entry in window.entries).most_common()
    busy = sum(n for _, n in counts[: round(2_000 / 3.4) // 5])
    assert 0.75 < busy / 2_000 < 0.9  # 80 % of the entries are of a fifth of the users


@pytest.fixture
def entries() -> list[Any]:
    rows = """2022-01-05 9 a, 2022-01-20 9 b, 2022-01-20 9 a, 2022-02-03 10 b, 2022-02-09 10 b,
        2023-02-11 10 a, 2023-02-11 777 c, 2023-02-11 9 c"""
    cells = (row.split() for row in rows.split(","))
    return [
        parts.windows.Entry(date.fromisoformat(day), user, f"text {i}", label)
        for i, (day, user, label) in enumerate(cells)
    ]


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ({"ask": "most"}, {"a", "b"}),
        ({"ask": "count", "label": "b"}, {"3"}),
        ({"ask": "count", "label": "b", "users": ("9",)}, {"1"}),
        ({"ask": "compare", "label": "a", "other": "b"}, {"same"}),
        ({"ask": "compare", "label": "c", "other": "b", "month": 2}, {"same"}),
        ({"ask": "compare", "label": "c", "other": "b", "between": (date(2022, 1, 20), date(2022, 2, 9))}, {"less"}),
        ({"ask": "most", "of": "user"}, {"9"}),
        ({"ask": "second", "of": "user"}, {"10"}),
        ({"ask": "most", "of": "user", "label": "b"}, {"10"}),
        ({"ask": "most", "of": "user", "label": "a", "users": ("10", "777")}, {"10"}),
        ({"ask": "most", "of": "date"}, {"2023-02-11"}),
        ({"ask": "dates_seen", "of": "date", "n": 1}, {"3"}),
        ({"ask": "shares", "label": "b", "day": date(2022, 2, 3)}, {"more"}),
        ({"ask": "shares", "label": "b", "day": date(2024, 1, 1)}, set()),
        ({"ask": "first_month", "label": "b", "other": "a"}, {"2022-02"}),
        ({"ask": "months_more", "label": "a", "other": "b"}, {"2"}),
        ({"ask": "months_top", "label": "c"}, {"1"}),
    ],
)  # fmt: skip
def test_the_reference(entries: list[Any], query: dict[str, Any], right: set[str]) -> None:
    assert parts.queries.answers(parts.queries.Query(**query), entries) == right


@pytest.mark.parametrize("n", [40, 700])
def test_questions_are_clear_and_their_plans_are_read(n: int) -> None:
    seen = set()
    for seed in range(4):
        window = parts.windows.draw_window(n, seed)
        questions = parts.questions.draw_questions(window, seed)
        assert len(questions) == 25
        for question in questions:
            query = question.query
            seen.add(question.template)
            assert question.right == parts.queries.answers(query, window.entries) != frozenset()
            reading = read_plan(parts.running.plan_of(query, window.labels))
            assert reading.errors == ()
            if query.ask in ("compare", "shares"):
                rows = parts.queries.asked_about(query, window.entries)
                _is_clear(query, rows, question.right)
    assert len(seen) > 25


def _is_clear(query: Any, rows: list[Any], right: frozenset[str]) -> None:
    sides = (
        [(rows, query.label), (rows, query.other)]
        if query.ask == "compare"
        else [([r for r in rows if r.date < query.day], query.label), ([r for r in rows if r.date > query.day], query.label)]
    )  # fmt: skip
    one, other = (sum(row.label == label for row in side) / len(side) for side, label in sides)
    assert abs(one - other) > 0.02 or right == {"same"}
