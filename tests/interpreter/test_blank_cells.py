"""Cells without a value and numbers in several spellings: native actions and table queries follow one rule."""

from __future__ import annotations

import asyncio
import json

import pytest

from pearl import Document, Pearl
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted

# Every form of a missing value in a column of numbers, and one number in two spellings
TABLE = "id,n,kind\na,100,x\nb,100.0,y\nc,7,n/a\nd,,none\ne,n/a,-\nf,none,x\ng,-,x\n"


def run(call: str, text: str = TABLE, reply: str = "") -> Answer:
    plan = f'1. rows = SPLIT(CTX, "record") : Rows\n2. ans = {call} : It'
    return asyncio.run(Pearl(Scripted(lambda _: reply)).execute(plan, Document(text, "t.csv")))


@pytest.mark.parametrize(
    ("call", "text", "note"),
    [
        ('GROUP(rows, "n")', "- 100: 2\n- 7: 1\n(of the 3 rows that state their n; 4 do not state it)",
         "rows without n, which are in no group: 4"),
        ('WHERE(rows, "n", "at least", "8")', "- a\n- b", "rows without n: 4"),
        ('WHERE(rows, "n", "is", "100")', "- a\n- b", ""),
        ('SORT(rows, "n", "ascending")', "- c\n- a\n- b\n- d\n- e\n- f\n- g",
         "rows without n, which are last: 4"),
        ('NTH(rows, "n", -1)', "c,7,n/a", "rows without n, which have no rank: 4"),
        ('AGGREGATE(rows, "id", "sum", "n")', None, "rows without n, which are left out: 4"),
    ],
)  # fmt: skip
def test_a_cell_without_a_value_is_left_out_with_a_note(
    call: str, text: str | None, note: str
) -> None:
    answer = run(call)
    assert answer.status == "answered", answer.why
    assert text is None or answer.text == text
    assert not note or note in answer.notes


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"select": ["id"], "where": {"column": "n", "op": "at least", "value": ["8"]}}, "a b"),
        ({"select": ["id"], "where": {"no": {"column": "n", "op": "at least", "value": ["8"]}}}, "c"),
        ({"select": ["id"], "where": {"column": "n", "op": "is empty"}}, "d e f g"),
        ({"aggregate": [{"function": "count", "column": "n"}]}, "3"),
        ({"aggregate": [{"function": "sum", "column": "n"}]}, "207"),
        ({"select": ["id"], "where": {"column": "kind", "op": "is empty"}}, "c e"),
    ],
)  # fmt: skip
def test_a_query_treats_them_alike(query: object, text: str) -> None:
    plan = '1. ans = LOOKUP(CTX, "which?") : It'
    model = Scripted(lambda _: json.dumps(query))
    answer = asyncio.run(Pearl(model).execute(plan, Document(TABLE, "t.csv")))
    assert answer.status == "answered", answer.why
    lines = answer.text.split("\n")[2:]  # below the heading
    assert " ".join(line.split()[1] for line in lines) == text if lines else answer.text == text


@pytest.mark.parametrize(
    ("cells", "groups"),
    [
        (("100", "100.0", "1,000", "1000"), ["100: 2", "1,000: 2"]),
        (("1.10", "1.1", "007"), ["1.10: 1", "1.1: 1", "007: 1"]),  # codes, not numbers
        (("5 kg", "5", "6"), ["5 kg: 1", "5: 1", "6: 1"]),
        (("NA", "none", "x"), ["NA: 1", "none: 1", "x: 1"]),  # among names, Namibia
    ],
)
def test_numbers_in_several_spellings_are_one_group_and_codes_are_not(
    cells: tuple[str, ...], groups: list[str]
) -> None:
    text = "id,n\n" + "".join(f'{i}x,"{cell}"\n' for i, cell in enumerate(cells))
    answer = run('GROUP(rows, "n")', text)
    assert answer.text == "\n".join(f"- {group}" for group in groups)
    spelled = [note for note in answer.notes if "several spellings" in note]
    assert bool(spelled) == (len(groups) < len(cells))


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("id,note\n0,a\n1,b\n2,c\n3,n/a\n", "4"),  # 3 is the next number, and 0 + 1 + 2 by chance
        ("v,note\n5,a\n6,b\n2,c\n13,n/a\n", "3"),
    ],
)
def test_running_numbers_are_no_sums(text: str, n: str) -> None:
    assert run("COUNT(rows)", text).text == n
