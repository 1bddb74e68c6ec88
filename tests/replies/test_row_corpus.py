"""Replies about numbered items as models write them: no item takes the value of another, or one that is none.

The first reply is of a shape of the corpus, those that follow are as they are asked for.
"""

from __future__ import annotations

import asyncio
import re
import tomllib

import pytest

from pearl.documents.document import Document
from pearl.documents.rows import Rows
from pearl.llm import ItemsTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.replies.items import first_words
from tests.root import ROOT

ITEMS = (
    "Ann coughs by day",
    "Bob is well",
    "Cid is hot, 39 degrees",
    "Dan has red spots",
    "Eve coughs at night",
    "Fay is hot, 40 degrees",
)
SYMPTOMS = ("cough", "no symptom", "fever", "rash", "cough", "fever")
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "yes_no": ('FILTER(rows, "the patient coughs")', ("yes", "no", "no", "no", "yes", "no")),
    "label": (
        'CLASSIFY(rows, ["cough", "fever", "rash", "no symptom"], "the symptom")',
        SYMPTOMS,
    ),
    "rating": ('RATE(rows, "the patient is ill")', ("4", "0", "7", "3", "5", "9")),
    "line": ('MAP(rows, "the symptom")', SYMPTOMS),
}
SHAPES = tomllib.loads((ROOT / "tests" / "replies" / "rows.toml").read_text(encoding="utf-8"))


def number(written: int, item: str) -> str:
    """The number of an item, in the form that the prompt asks for."""
    return f"{written} | {first_words(item, 3)}"


def shaped(shape: str, values: tuple[str, ...]) -> str:
    def mark(match: re.Match[str]) -> str:
        written = int(match[1])
        return number(written, ITEMS[int(match[2] or written) - 1])

    text = re.sub(r"\{v(\d)\}", lambda match: values[int(match[1]) - 1], shape)
    return re.sub(r"\{(\d)(?::(\d))?\}", mark, text)


def reading(shape: str, kind: str) -> tuple[list[str | None], int]:
    """The value of every item in the end, None for undecided, and the number of calls."""
    call, values = KINDS[kind]
    truth = dict(zip(ITEMS, values, strict=True))

    def reply(request: Request) -> str:
        if len(model.requests) == 1:
            return shaped(shape, values)
        task = request.task
        assert isinstance(task, ItemsTask)
        return "\n".join(
            f"{number(i, item)}: {truth[item]}" for i, item in enumerate(task.items, 1)
        )

    model = Scripted(reply)
    plan = f'1. rows = SPLIT(CTX, "line") : Lines\n2. x = {call} : Read each'
    answer = asyncio.run(
        Pearl(model, first_wait_s=0.001).execute(plan, Document("\n".join(ITEMS), "ward.txt"))
    )
    rows = answer.steps[-1].value
    assert isinstance(rows, Rows)
    if kind == "yes_no":
        read: dict[str, str | None] = dict.fromkeys(ITEMS, "no")
        read |= {row.text: "yes" for row in rows} | {row.text: None for row in rows.undecided}
    else:
        read = {row.text: row.fields["x"] for row in (*rows, *rows.doubtful)}
    return [read[item] for item in ITEMS], len(model.requests)


@pytest.mark.parametrize("kind", KINDS)
def test_no_item_takes_a_wrong_value(kind: str) -> None:
    wrong: list[str] = []
    for group, shapes in SHAPES.items():
        for shape, name in shapes.items():
            got, n_calls = reading(shape, kind)
            if kind == "line":  # a remark in a free line is a part of it
                got = [value and re.split(r" [-(]", value)[0] for value in got]
            if any(a not in (None, b) for a, b in zip(got, KINDS[kind][1], strict=True)):
                wrong.append(f"{name}: {got}")
            if group == "at once" and n_calls > 1:
                wrong.append(f"{name}: {n_calls} calls")
    assert not wrong, "\n".join(wrong)
