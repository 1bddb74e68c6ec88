"""Files of drafts: what is read, what is malformed, what is refused."""

from __future__ import annotations

import json
import random

import pytest

from pearl.errors import DataError
from pearl.mining.refining import read_drafts
from tests.mining.refine.drafts import PLAIN, header, mined, row

FIND_A = "FIND_A(CTX) : Find the first letter"
FIND_B = "FIND_B(CTX) : Find the second letter"


def test_plain_drafts_keep_their_flaws() -> None:
    found = read_drafts(PLAIN, "plain")
    flaws = {draft.text: draft.flaw for draft in found.drafts if draft.flaw}
    assert [draft.number for draft in found.drafts] == list(range(13))
    assert len(flaws) == 4
    assert "no definition" in str(flaws["FIND_HERO(CTX) :"])
    assert "no name of an action" in str(flaws["find_villain(CTX) : Find the villain"])
    assert "two parameters" in str(flaws["FIND_TWICE(CTX, X, X) : Find X in X"])


def test_the_published_form_is_read() -> None:
    (draft,) = read_drafts("FIND_A(CTX) #Find it\n", "x").drafts
    assert draft.action is not None
    assert draft.action.definition == "Find it"


def test_seeds_come_first_and_rows_by_index_whatever_their_order() -> None:
    rows = [row(i, FIND_A, FIND_B) for i in range(5)]
    expected = read_drafts(mined(*rows), "x")
    assert [draft.question for draft in expected.drafts] == [None] + [
        f"q{i}" for i in range(5) for _ in "ab"
    ]
    assert [draft.is_seed for draft in expected.drafts] == [True] + [False] * 10
    for seed in range(5):
        random.Random(seed).shuffle(rows)
        assert read_drafts(mined(*rows), "x") == expected


def test_what_a_row_could_not_say_is_told() -> None:
    text = mined(
        row(0, FIND_A, status="unreadable", diagnostics=["reply:1:1: error: odd\n |"]),
        row(1, status="failed", error="no route"),
        row(2, FIND_B),
        row(2, FIND_A),
    )
    found = read_drafts(text, "x")
    assert len(found.drafts) == 3
    assert found.unread == (
        "question q0: reply:1:1: error: odd",
        "question q1: no reply: no route",
        "question q2: a second row of the same question, left out",
    )


def test_a_row_that_was_mined_on_a_second_try_counts() -> None:
    rows = [row(0, status="failed", error="x"), row(0, FIND_A)]
    for order in (rows, rows[::-1]):
        assert [draft.text for draft in read_drafts(mined(*order), "x").drafts][1:] == [FIND_A]


def test_a_cut_last_line_and_broken_lines_are_forgiven() -> None:
    text = mined(row(0, FIND_A), {"odd": 1}) + json.dumps(row(1, FIND_B))[:40]
    found = read_drafts(text, "x")
    assert [draft.text for draft in found.drafts][1:] == [FIND_A]
    assert found.unread[1] == "line 4: the line is cut"
    assert found.unread[0].startswith("line 3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no draft in it"),
        ("# only a comment\n", "there is no draft in it"),
        ("Once upon a time\nthere was a plan.\n", "none of 2 drafts can be read; the first: "),
        (mined(head=header(v=2)), "version 2; this pearl reads version 1"),
        (json.dumps(row(0, FIND_A)), "does not begin with the header"),
        ('{"kind": "pearl-mined", "v": 1}\n', "Field required"),
        ("{not json}\n", "does not begin with the header"),
        ('{"a": 1', "does not begin with the header"),
        (mined(head=header(seed_actions=[])), "there is no draft in it"),
    ],
)
def test_what_holds_no_drafts_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_drafts(text, "x")
    assert caught.value.exit_code == 3
    assert caught.value.help
