"""What rows are called in answers, and parts that found nothing."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Answer, Document, Pearl
from pearl.documents.document import join
from pearl.llm import CheckTask, ItemsTask, Request
from tests.models import Reading, item_lines, verdicts

CONTRACTS = {
    "old.txt": "Contract.\n\nIt is governed by the law of Bavaria.",
    "new.txt": "Contract.\n\nIt is governed by the law of Ohio.",
    "north/name that is long enough.txt": "Contract.\n\nBavaria is not named in any other clause.",
}
TABLE = "ward,bed,age\nA,1,60\nA,2,70\nB,1,80\n"


def ask(plan: str, document: Document, answer: str = "", told: str = "Bavaria") -> Answer:
    def reply(request: Request) -> str:
        if isinstance(request.task, ItemsTask):
            return item_lines(request, lambda item: "yes" if told in item else "no")
        if isinstance(request.task, CheckTask):
            return verdicts(*["supported"] * len(request.task.claims))
        if request.task.action.name == "ANSWER":  # type: ignore[union-attr]
            return answer
        found = {"answer": "18 July", "quote": "It was due on 18 July."}
        is_due = "due" in str(request.task.arguments)  # type: ignore[union-attr]
        return str(found if is_due else {"answer": None, "quote": None}).replace("'", '"').replace("None", "null")  # fmt: skip

    return asyncio.run(Pearl(Reading(reply)).execute(plan, document))


def files() -> Document:
    return join([Document(text, name) for name, text in CONTRACTS.items()])


@pytest.mark.parametrize(
    ("document", "unit", "told", "called"),
    [
        (files(), "document", "Bavaria", ["old.txt", "north/name that is long enough.txt"]),
        (Document(TABLE, "t.csv"), "record", "A", ["A, 1", "A, 2"]),
        (Document(TABLE, "t.csv"), "record", "80", ["B"]),  # enough among the rows that are left
        (Document(TABLE.replace("2,", "1,"), "t.csv"), "record", "A", ["A, 1, 60", "A, 1, 70"]),
        (Document("a,b\n1,9\n1,9\n2,8", "t.csv"), "record", "9", ["1, row 1", "1, row 2"]),
        (Document("A dog. A cat.", "t.txt"), "sentence", "dog", ["A dog."]),
    ],
)  # fmt: skip
def test_a_row_is_what_it_is_called(
    document: Document, unit: str, told: str, called: list[str]
) -> None:
    plan = f'1. rows = SPLIT(CTX, "{unit}") : Split\n2. kept = FILTER(rows, "x") : Those of {told}'
    answer = ask(plan, document, told=told)
    assert answer.value == called
    assert answer.text == "\n".join(f"- {name}" for name in called)
    assert [row.text for row in answer.rows] != called or unit == "sentence"


def test_parts_of_several_files_are_called_by_their_file_and_shown_whole() -> None:
    plan = '1. rows = SPLIT(CTX, "paragraph") : Split\n2. kept = FILTER(rows, "x") : Clauses'
    answer = ask(plan, files())
    assert answer.text.splitlines()[0] == "- old.txt: It is governed by the law of Bavaria."
    assert answer.value[0] == "old.txt"


DUE = """Question: Is the invoice overdue on 1 August?

New actions:
- FIND_DATE(CTX, X) : Find the day when X

1. due = FIND_DATE(CTX, "the invoice was due") : Day when it was due
2. paid = FIND_DATE(CTX, "the invoice was paid") : Day when it was paid
3. answer = ANSWER("Is the invoice overdue on 1 August?", due, paid) : Answer
"""


@pytest.mark.parametrize(
    ("reply", "text", "status"),
    [
        ("No payment is stated [2]; it was due on 18 July [1].", "No payment is stated; it was due on 18 July.", "answered"),
        ("It was due on 18 July [1].", "It was due on 18 July.\n\nDay when it was paid: Nothing found.", "degraded"),
    ],
)  # fmt: skip
def test_a_part_that_found_nothing_is_composed_or_told(reply: str, text: str, status: str) -> None:
    document = Document("Invoice 7. It was due on 18 July.", "invoice.txt")
    answer = ask(DUE, document, reply)
    assert (answer.text, answer.status) == (text, status)


def test_rows_that_sentences_leave_out_are_named_below_them() -> None:
    plan = """1. rows = SPLIT(CTX, "document") : Split
2. kept = FILTER(rows, "x") : Contracts of Bavaria
3. n = COUNT(rows) : Contracts
4. answer = ANSWER("Which are of Bavaria?", kept, n) : Answer"""
    answer = ask(plan, files(), "It is old.txt [1].")
    assert answer.text.endswith(
        "\n\nContracts of Bavaria: old.txt, north/name that is long enough.txt"
    )


REPORTS = """Question: How many are older than 60?

1. reports = SPLIT(CTX, "document") : One row a report
2. old = FILTER(reports, "older than 60") : The old ones
3. n = COUNT(old) : Older than 60
"""


def count(plan: str, composed: str = "") -> Answer:
    ages = [61, 70, 80, 30, 40, None, None, 90]
    told = ["" if age is None else f" Age {age}." for age in ages]
    files = join([Document(f"Report {i}.{age}", f"{i}.txt") for i, age in enumerate(told)])

    def reply(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdicts(*["supported"] * len(request.task.claims))
        if not isinstance(request.task, ItemsTask):
            return composed
        is_old = "older" in dict(request.task.arguments)["X"]
        return item_lines(
            request,
            lambda item: "not stated" if "Age" not in item
            else ("no", "yes")[(int(item.partition("Age ")[2].rstrip(". ")) > 60) == is_old],
        )  # fmt: skip

    return asyncio.run(Pearl(Reading(reply)).execute(plan, files))


def test_a_count_says_of_what_it_is() -> None:
    answer = count(REPORTS)
    assert (answer.text, answer.value, answer.status) == (
        "4 of the 6 that state it; 2 do not state it", 4, "answered",
    )  # fmt: skip
    part = answer.to_dict()["parts"][0]
    assert [part[k] for k in ("value", "of", "not_stated", "undecided")] == [4, 6, 2, 0]
    kept = REPORTS.replace("3. n", '3. some = LIMIT(old, 2) : Two\n4. n').replace("COUNT(old)", "COUNT(some)")  # fmt: skip
    assert count(kept).text.split()[0] == "2"  # not of six


def test_a_count_of_cells_says_how_many_are_empty() -> None:
    table = Document("id,age\n1,61\n2,\n3,70\n4,20\n", "t.csv")
    plan = """1. rows = SPLIT(CTX, "record") : Rows
2. old = WHERE(rows, "age", "at least", "60") : Old
3. n = COUNT(old) : How many"""
    answer = asyncio.run(Pearl().execute(plan, table))
    assert answer.text == "2 of the 3 that state it; 1 does not state it"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("{n} are older than 60 [1].", "4 are older than 60.\n\nOlder than 60: 4 of the 6 that state it; 2 do not state it"),
        ("Of the 6 that state an age, {n} are older than 60, and 2 state none [1].", "Of the 6 that state an age, 4 are older than 60, and 2 state none."),
    ],
)  # fmt: skip
def test_a_composed_count_says_of_what_it_is(reply: str, text: str) -> None:
    plan = f'{REPORTS}4. all = COUNT(reports) : All\n5. answer = ANSWER("How many are older than 60?", n, all) : Answer'
    answer = count(plan, reply)
    assert (answer.text, answer.status) == (text, "answered")


def test_what_is_not_stated_may_change_a_comparison() -> None:
    young = """4. young = FILTER(reports, "at most 60") : The young ones
5. m = COUNT(young) : At most 60
6. more = RELATION(n, m) : More or less
"""
    answer = count(REPORTS + young)
    assert (answer.value, answer.status) == ("more", "degraded")
    assert "4 to 6 and 2 to 4" in answer.why
