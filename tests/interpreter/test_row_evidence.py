"""The rows behind an answer: those of the document, and whether each is decided."""

from __future__ import annotations

import asyncio
import csv
import io

from pearl import Document, Pearl
from pearl.interpreter.answer import Answer
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.export import write_evidence
from tests.models import item_lines

TEXT = "\n".join(f"User: {user} || Item: {item}" for user, item in (
    ("1", "apple"), ("2", "beet"), ("3", "egg"), ("1", "egg two"), ("4", "pear"),
))  # fmt: skip


def say(request: Request) -> str:
    said = {"apple": "fruit", "pear": "fruit", "beet": "root"}
    return item_lines(request, lambda item: said.get(item.rpartition(" ")[2])) or "I cannot say."


def run(*steps: str, text: str = TEXT) -> Answer:
    plan = [
        'rows = SPLIT(CTX, "record")', 'label = CLASSIFY(rows, ["fruit", "root"], "its kind")', *steps,
    ]  # fmt: skip
    lines = [f"{i}. {step} : Step {i}" for i, step in enumerate(plan, start=1)]
    return asyncio.run(Pearl(Scripted(say)).execute("\n".join(lines), Document(text)))


def shown(answer: Answer) -> dict[str, bool]:
    return {row.fields["Item"] or "": row.is_decided for row in answer.row_evidence}


def test_pairs_are_backed_by_the_rows_of_both() -> None:
    """Not by the keys; a row is decided although some pair of its group is not."""
    answer = run(
        'fruits = WHERE(label, "label", "is", "fruit")', 'users = GROUP(fruits, "User")',
        "ans = PAIRS(users, users)",
    )  # fmt: skip
    assert answer.text.startswith("- (1, 4)\n")
    assert answer.status == "undecided"
    assert shown(answer) == {"apple": True, "egg": False, "egg two": False, "pear": True}
    for row in answer.row_evidence:
        assert row.span is not None
        assert TEXT[row.span.start : row.span.end] == row.text


def test_rows_that_may_belong_to_a_group_are_shown_with_its_size() -> None:
    answer = run('fruits = WHERE(label, "label", "is", "fruit")', 'ans = GROUP(fruits, "User")')
    assert "(2 undecided)" in answer.text
    assert [(row.fields["Item"], row.is_decided) for row in answer.row_evidence] == [
        ("apple", True), ("egg", False), ("egg two", False), ("pear", True),
    ]  # fmt: skip


def test_a_row_is_undecided_if_it_is_in_any_output() -> None:
    answer = run('one = WHERE(label, "label", "is", "fruit")', "n = COUNT(rows)")
    assert answer.outputs == ("one", "n")
    assert [row.is_decided for row in answer.row_evidence] == [True, True, False, False, True]


def test_a_spreadsheet_evaluates_nothing_of_a_table() -> None:
    text = "=A: =1+1 || B: -5\n@A: x || B: y"
    plan = '1. rows = SPLIT(CTX, "line") : Rows\n2. ans = FIELD(rows, "text") : Texts'
    answer = asyncio.run(Pearl(Scripted(say)).execute(plan, Document(text)))
    file = io.StringIO(newline="")
    write_evidence(lambda: [{**answer.to_dict(), "id": "=id"}], file)
    table = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert [row[0] for row in table] == ["id", "'=id", "'=id"]
    assert [row[2] for row in table[1:]] == ["'=A: =1+1 || B: -5", "'@A: x || B: y"]
