"""What rows are called in answers, and parts that found nothing."""

from __future__ import annotations

import asyncio
import csv
import io
import json

import pytest

from pearl import Answer, Document, Pearl
from pearl.actions import native
from pearl.actions.values import Scalar
from pearl.documents.document import join
from pearl.documents.rows import Row, Rows
from pearl.llm import CheckTask, ItemsTask, Request
from pearl.runs.export import write_table
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
    assert [row.text for row in answer.row_evidence] != called or unit == "sentence"


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


LAW = """New actions:
- FIND_LAW(CTX, X) : Find the law of X

1. old = FIND_LAW(CTX, "old") : Law of the old one
2. new = FIND_LAW(CTX, "new") : Law of the new one
3. answer = ANSWER("Which law?", old, new) : Answer
"""


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("One has the law of Bavaria [1]. The other has that of Ohio [2]!", "One has the law of Bavaria (old.txt). The other has that of Ohio (new.txt)!"),
        ("- Bavaria [1]\n- Ohio, as new.txt says [2]", "- Bavaria (old.txt)\n- Ohio, as new.txt says"),
        ("The old contract has the law of Bavaria [1].", "The old contract has the law of Bavaria (old.txt)."),
        ("They have the laws of Bavaria [1] and Ohio [2].", "They have the laws of Bavaria and Ohio (old.txt, new.txt)."),
    ],
)  # fmt: skip
def test_a_sentence_has_the_files_of_its_quotes_where_files_differ(reply: str, text: str) -> None:
    def say(request: Request) -> str:
        if isinstance(request.task, CheckTask):
            return verdicts(*["supported"] * len(request.task.claims))
        if request.task.action.name == "ANSWER":  # type: ignore[union-attr]
            return reply
        law = "Bavaria" if request.task.output == "old" else "Ohio"  # type: ignore[union-attr]
        return json.dumps({"answer": law, "quote": f"It is governed by the law of {law}."})

    answer = asyncio.run(Pearl(Reading(say)).execute(LAW, files()))
    assert (answer.text, answer.status) == (text, "answered")
    assert answer.markdown.replace("[^1]", "").replace("[^2]", "") == text
    alone = asyncio.run(Pearl(Reading(say)).execute(LAW, Document(files().text, "one.txt")))
    assert "(one.txt)" not in alone.text


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
        "4 of the 6 reports that state it; 2 do not state it", 4, "answered",
    )  # fmt: skip
    part = answer.to_dict()["parts"][0]
    assert [part[k] for k in ("value", "of", "not_stated", "undecided")] == [4, 6, 2, 0]
    table = io.StringIO()
    write_table(lambda: [answer.to_dict()], table, "csv")
    (cells,) = csv.DictReader(io.StringIO(table.getvalue()))
    assert [cells[f"n{of}"] for of in ("", "_of", "_not_stated", "_undecided")] == [*"4620"]
    kept = REPORTS.replace("3. n", '3. some = LIMIT(old, 2) : Two\n4. n').replace("COUNT(old)", "COUNT(some)")  # fmt: skip
    assert count(kept).text.split()[0] == "2"  # not of six


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("{n} are older than 60 [1].", "4 (of the 6 reports that state it; 2 do not) are older than 60."),
        ("4 are older than 60 [1].", "4 are older than 60.\n\nOlder than 60: 4 of the 6 reports that state it; 2 do not state it"),
        ("Of the 6 that state an age, {n} are older than 60, and 2 state none [1].", "Of the 6 that state an age, 4 are older than 60, and 2 state none."),
    ],
)  # fmt: skip
def test_a_composed_count_says_of_what_it_is(reply: str, text: str) -> None:
    plan = f'{REPORTS}4. all = COUNT(reports) : All\n5. answer = ANSWER("How many are older than 60?", n, all) : Answer'
    answer = count(plan, reply)
    assert (answer.text, answer.status) == (f"{text}\n\nAll: 8", "answered")


@pytest.mark.parametrize(
    ("colours", "step", "text", "why"),
    [
        ("r r r r b - - -", 'NTH(groups, "count", 1)', "red: 4 of the 5 cars that state their colour; 3 do not state it", "'red', which has 4 to 7 of 8"),
        ("r r r r r b - - -", 'NTH(groups, "count", 1)', "red: 5 of the 6 cars that state their colour; 3 do not state it", ""),
        ("r r b b - - -", 'COUNT(reds)', "2 of the 4 cars that state their colour; 3 do not state it", ""),
        ("r r b b - - -", 'GROUP(cars, "colour")', "- red: 2\n- blue: 2\n(of the 4 cars that state their colour; 3 do not state it)", ""),
        ("r b - -", 'SHARE(reds, cars)', "0.25: 1 of 4 cars; 2 of them do not state their colour", ""),
        ("r - - -", 'SHARE(reds, cars)', "0.25: 1 of 4 cars; 3 of them do not state their colour", ""),
        ("b -", 'SHARE(reds, cars)', "0: 0 of 2 cars; 1 of them does not state their colour", ""),
        ("r r b -", 'WHERE(groups, "count", "at least", 2)', "- red: 2\n(of the 3 cars that state their colour; 1 does not state it)", "which of 1 groups"),
        ("r r b b", 'NTH(groups, "count", 1)', "red; blue", ""),
    ],
)  # fmt: skip
def test_groups_and_shares_say_of_what_they_are(
    colours: str, step: str, text: str, why: str
) -> None:
    names = {"r": "red", "b": "blue", "-": ""}
    rows = [f"c{i},{names[c]}" for i, c in enumerate(colours.split())]
    table = Document("\n".join(["id,colour", *rows]), "t.csv")
    groups = '2. groups = GROUP(cars, "colour") : Groups\n' * ("groups" in step)
    groups += '3. reds = WHERE(cars, "colour", "is", "red") : Reds\n' * ("reds" in step)
    plan = f'1. cars = SPLIT(CTX, "record") : Rows\n{groups}4. found = {step} : Found'
    answer = asyncio.run(Pearl().execute(plan, table))
    assert answer.text == text
    assert answer.status == ("degraded" if why else "answered")
    assert why in answer.why


def test_what_is_undecided_in_other_cells_leaves_a_count_as_it_is() -> None:
    cells = ({"x": "a", "y": None}, {"x": "b", "y": "2"})
    rows = Rows(tuple(Row(each["x"], each) for each in cells), columns=("x", "y"))
    count = native.compute(native.known()["COUNT"], [rows])
    assert isinstance(count, Scalar)
    assert (count.value, count.low, count.high, count.rows.undecided) == (2, 2, 2, ())


NAMES = {
    "one name": ["x.txt"] * 400,
    "long names": [f"{'folder/' * 40}contract {i:04} of the north.txt" for i in range(30)],
    "one name in folders": ["north/lease.txt", "south/lease.txt", "north/old/lease.txt"],
    "right to left": ["חוזה שכירות.txt", "عقد إيجار.txt", "lease\u202etxt.exe"],
    "odd names": ["- x.txt", "1. [2].txt", "a|b.txt", "{n}.txt", "</input>.txt"],
}


@pytest.mark.parametrize("composed", [False, True])
@pytest.mark.parametrize("kind", NAMES)
def test_rows_of_any_name_are_each_named_or_counted(kind: str, composed: bool) -> None:
    names = NAMES[kind]
    text = "It is governed by the law of Bavaria."
    document = join([Document(f"Contract {i}. {text}", name) for i, name in enumerate(names)])
    plan = """1. rows = SPLIT(CTX, "document") : Split
2. kept = FILTER(rows, "x") : Contracts of Bavaria"""
    if composed:
        plan += """
3. n = COUNT(rows) : Contracts
4. answer = ANSWER("Which are of Bavaria?", kept, n) : Answer"""
    answer = ask(plan, document, "Here are some of them [1].")
    called = answer.parts[0].value
    assert len(set(called)) == len(called) == len(names)  # each by a name of its own
    assert all(each.startswith(name) for each, name in zip(called, names, strict=True))
    is_counted = f": {len(names)} rows" in answer.text
    assert is_counted or all(each in answer.text for each in called)
    assert {row.source for row in answer.row_evidence} == {*names}
    assert len(answer.row_evidence) == len(names)
