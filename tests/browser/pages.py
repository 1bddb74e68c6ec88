"""Every kind of page there is, of fixed content and fixed times."""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from pearl import Pearl
from pearl.documents.document import Document, join, load
from pearl.dsl.fields import Field, print_fields
from pearl.interpreter.answer import Answer
from pearl.llm import PlanTask, Request, Usage
from pearl.llm.backends.scripted import Scripted
from pearl.runs.decisions import Decision
from pearl.runs.reviewing import items_of
from pearl.trace import CallFailed, ModelWaited, StepFailed, StepStarted, Trace
from pearl.view.answer_page import answer_page, result_page
from pearl.view.comparison_page import comparison_page
from pearl.view.extraction_page import extraction_page
from pearl.view.listing import index_page
from pearl.view.review_page import review_page
from pearl.view.sources import ResultRecord, record_of_answer, row_of_trace

T = TypeVar("T")

STORY = "\n\n".join(
    (
        "Nils left the harbour at dawn. The wind had turned in the night, and nobody on the quay spoke.",
        "He sold the boat because the hull was rotten. Ada bought the boat from Nils for less than the "
        "price of its sails, and had it towed to the yard behind the mill.",
        "In the spring she replaced nine planks. In the summer she replaced the keel. People asked her "
        "whether it was the same boat, and she said that it floated.",
    )
)
PLAN = """\
1. reason = FIND_REASON(CTX, "Nils selling the boat") : Find why he sold it
2. buyer = IDENTIFY(CTX, "the person who bought the boat") : Find who bought it
3. ans = CONCAT(reason, buyer) : Put both together"""
REPLIES = {
    "reason": "It was rotten.\n\n> He sold the boat because the hull was rotten.\n\n> He needed money for the winter.",
    "buyer": "Ada.\n\n> Ada bought the boat from Nils",
}
TABLE = "Boat,Owner,Length\n" + "".join(
    f"Boat {i},{'Ada' if i % 3 else 'Nils'},{6 + i % 9}\n" for i in range(40)
)
COUNT = """\
1. boats = SPLIT(CTX, "entry") : One row a boat
2. hers = FILTER(boats, "the boat belongs to Ada") : Those of Ada
3. ans = COUNT(hers) : How many"""


MARKDOWN = """\
# Why he sold it

He sold it because the **hull** was *rotten*[^1],
and `nobody` asked[^9].

- rotten
  1. the planks

> He sold the boat

| Boat | Length |
| --- | --- |
| The *Ada*[^2] | 9 |

---

```
9 * 9
```
"""


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """What it comes to, computed in another thread: in this one a browser may have its event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def still(answer: Answer) -> Answer:
    """The answer as if its events had come every half second."""
    lines = []
    for number, line in enumerate(answer.trace.to_jsonl().splitlines()):
        event = json.loads(line) | {"t_s": number / 2}
        lines.append(json.dumps(event | ({"duration_s": 0.4} if "duration_s" in event else {})))
    return dataclasses.replace(
        answer,
        trace=Trace.from_jsonl("fixed", "\n".join(lines)),
        duration_s=len(lines) / 2,
        steps=tuple(replace(step, duration_s=0.4 * n) for n, step in enumerate(answer.steps, 1)),
    )


def asked(question: str, document: Document, model: Any = None, **settings: Any) -> Answer:
    async def ask() -> Answer:
        async with Pearl(**({} if model is None else {"model": model}), **settings) as pearl:
            return await pearl.ask(question, document)

    return still(awaited(ask()))


def scripted(plan: str, replies: dict[str, str]) -> Scripted:
    """A model that writes this plan, and says this of each step."""

    def reply(request: Request) -> str:
        if isinstance(request.task, PlanTask):
            return plan
        return replies[getattr(request.task, "output", "")]

    return Scripted(reply)


Made = tuple[Any, Callable[[Any], str]]
"""The data of a page, and what makes it a page."""


def _answer(question: str, document: Document, model: Any = None, **settings: Any) -> Made:
    answer = asked(question, document, model, **settings)
    return (answer, document), lambda data: answer_page(*data)


def a_story() -> Made:
    """With passages, a quote that is not borne out, and a plan of several steps."""
    document = Document(STORY, "story.txt")
    question = "Why did Nils sell the boat, and who bought it?"
    return _answer(question, document, scripted(PLAN, REPLIES), library="seed")


def a_table() -> Made:
    """With the rows behind it."""
    document = Document(TABLE, "boats.csv", kind="table")
    return looked_up("What is the sum of the length by owner?", document)


def looked_up(question: str, document: Document) -> Made:
    """The sum of the lengths by owner, asked by a query."""
    query = {"group": ["Owner"], "aggregate": [{"function": "sum", "column": "Length"}]}
    plan = f'1. found = LOOKUP(CTX, "{question}") : {question}'
    return _answer(question, document, scripted(plan, {"found": json.dumps(query)}))


def a_corpus() -> Made:
    """Of several files together."""
    document = join([Document(STORY, "story.txt"), Document(TABLE, "boats.csv")], "both")
    return _answer("Who bought the boat from Nils?", document)


def a_corpus_of_rows() -> Made:
    """Of files of which each is a row, with what was found out about it."""
    second = Document(TABLE.replace("Ada", "Runa") + "Ada has none.", "second.txt")
    document = join([Document(STORY, "story.txt"), second], "both")
    plan = """\
1. texts = SPLIT(CTX, "document") : One row a file
2. kind = CLASSIFY(texts, ["story", "table"], "what it is") : Label each
3. ans = SHOW(texts, kind) : As a table"""
    replies = {"kind": "1 | Nils left: story\n2 | Boat Owner: table"}
    return _answer("What is each file?", document, scripted(plan, replies), library="seed")


def a_pdf() -> Made:
    """With two cited pages of three as pictures."""
    from reportlab.pdfgen.canvas import Canvas

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = Path(folder, "story.pdf")
    canvas = Canvas(str(path), pagesize=(420, 300), invariant=1)
    for line in ("He sold the boat because", "Nobody was there.", "Ada bought the boat from Nils"):
        canvas.drawString(40, 200, line)
        canvas.drawString(40, 180, "the hull was rotten.")
        canvas.showPage()
    canvas.save()
    replies = {**REPLIES, "reason": "Rotten.\n\n> He sold the boat because the hull was rotten."}
    document = load(path, name="story.pdf")
    answer = asked("Why, and who?", document, scripted(PLAN, replies), library="seed")
    return replace(record_of_answer(answer, document), files={"story.pdf": path}), result_page


def a_composed_answer() -> Made:
    """With every form of Markdown, parts under their labels, a list with its quotes, and an undecided part."""
    answer, document = a_story()[0]
    row = {"id": "story.txt", **json.loads(json.dumps(record_of_answer(answer, document).row))}
    row["markdown"] = MARKDOWN
    row["parts"] = [
        {
            "output": "reasons", "label": "Find the reasons", "state": "found", "text": "", "evidence": [1],
            "entries": [{"text": "It was rotten", "evidence": [1]}, {"text": "He was poor", "evidence": []}],
        },
        {
            "output": "price", "label": "Find the price", "state": "undecided", "text": "*Not stated.*",
            "why": "the reply has two prices", "evidence": [], "entries": [],
        },
    ]  # fmt: skip
    return ResultRecord("story.txt", row, document=document), result_page


def nothing() -> Made:
    """Nothing was found."""
    return _answer("Who discovered zinc?", Document(STORY, "story.txt"))


def a_row() -> Made:
    """Of a file of results, without its document."""
    answer, document = a_story()[0]
    record = record_of_answer(answer, document)
    row = {"id": "story.txt", **json.loads(json.dumps(record.row))}
    told = ("There is no trace of it.",)
    return ResultRecord("story.txt", row, problems=told), result_page


def a_failure() -> Made:
    """Of a run that was ended in the middle: a step done, one failed, one not finished."""
    answer, document = a_story()[0]
    events = [
        e for e in answer.trace if e.event != "run_finished" and getattr(e, "step", "") != "ans"
    ]
    ended = [
        CallFailed(
            t_s=6.0, step="buyer", purpose="step", model="m", kind="transport", prompt="[user]\nWho?",
            reply="Ad", duration_s=1.0, usage=Usage(),
        ),
        StepFailed(t_s=6.0, step="buyer", error="no server at http://127.0.0.1:9/v1"),
        StepStarted(t_s=6.5, step="later", action="FIND"),
        ModelWaited(t_s=7.0, reason="the server asks for it", wait_s=3.0, attempt=1),
    ]  # fmt: skip
    kept = [event for event in events if getattr(event, "step", "") != "buyer"]
    row = row_of_trace("story.txt", [*kept, *ended])
    return ResultRecord(
        "story.txt", row, (*kept, *ended), document, ("It was killed.",)
    ), result_page


class Rows:
    """Rows as `pearl.view` lists them."""

    title, folder = "rows.jsonl", Path()

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.problems: list[str] = ["Line 9 is no row of results and is left out."]
        self._rows = rows

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each with its place."""
        yield from enumerate(self._rows)

    def record(self, key: int) -> ResultRecord:
        """One of them."""
        return ResultRecord(str(self._rows[key]["id"]), self._rows[key])


EXTRACTED = (
    Field("buyer", description="who bought the boat"), Field("price", "int", is_optional=True),
    Field("repairs", is_list=True, fields=(Field("what"), Field("count", "int"))),
    Field("why", "text"), Field("rotten", "bool"), Field("season", "label", labels=("spring", "summer")),
)  # fmt: skip


def an_extraction() -> Made:
    """With a value of every state, a list with an undecided entry, and a document that failed."""

    def found(value: Any, text: str, **more: Any) -> dict[str, Any]:
        at = STORY.index(text)
        quote = {"text": text, "start": at, "end": at + len(text), "source": "story.txt", "page": 1}
        return {"state": "found", "value": value, "evidence": [quote], **more}

    spring, summer = found("spring", "In the spring"), found("summer", "In the summer")
    none = {"state": "undecided", "value": None, "why": "the quote has no number"}
    record: dict[str, Any] = {
        "buyer": found("Ada", "Ada bought the boat from Nils"),
        "price": {"state": "not_stated", "value": None},
        "repairs": {"state": "found", "value": None, "entries": [
            {"what": found("planks", "nine planks"), "count": found(9, "nine planks")},
            {"what": found("keel", "replaced the keel"), "count": none},
        ]},
        "why": found("It was rotten", "because the hull was rotten", basis="checked", checked_by="openai:small"),
        "rotten": {"state": "found", "value": True, "basis": "person"},
        "season": {"state": "undecided", "value": None, "why": "two seasons", "candidates": [
            {"value": each["value"], "evidence": each["evidence"]} for each in (spring, summer)
        ]},
    }  # fmt: skip
    record["why"]["evidence"].append({"text": "The hull leaked.", "source": "story.txt"})
    lost = {"id": "lost.txt", "status": "failed", "error": {"type": "DataError", "message": "no file"}}  # fmt: skip
    rows = [{"id": "story.txt", "status": "answered", "record": record}, lost]
    return rows, lambda data: extraction_page(data, EXTRACTED, lambda name: Document(STORY, name))


def a_review() -> Made:
    """Of an undecided field with two candidates, one of which a person has decided for, and a measured sample."""
    found, _ = an_extraction()
    row = {**found[0], "document": "story.txt"}
    row["plan"] = f'1. record = EXTRACT(CTX, "{print_fields(EXTRACTED)}") : Read'
    said = Decision(row="story.txt", path="season", what="corrected", result={"value": "spring"}, person="bo", time="noon", sample="0")  # fmt: skip
    facts = {"source": "run 7", "person": "ada", "running": "the run still runs", "n_items": 9, "n_done": 2, "seed": "0"}  # fmt: skip
    precision = {"right": 48, "of": 50, "share": 0.96, "low": 0.86, "high": 0.99}
    sample = {"seeds": ["0"], "drawn": 50, "outdated": 1, "precision": precision}
    report = {"decided_by_pearl": 600, "sample": sample}

    def render(data: Any) -> str:
        row, text, history, facts, report = data
        item = next(each for each in items_of(0, row) if each.path == "season")
        record = ResultRecord("story.txt", row, document=Document(text, "story.txt"))
        return review_page(item, record, history, report=report, **facts)

    return (row, STORY, [said], facts, report), render


def a_list() -> Made:
    """Of answers, of one that nothing was found for, and of a failure."""
    found = [make()[0][0].to_dict() for make in (a_story, a_table, nothing)]
    failed = {
        "id": "lost.txt", "status": "failed", "question": "Who?",
        "error": {"type": "ModelError", "message": "no server at http://127.0.0.1:9/v1"},
    }  # fmt: skip
    rows = [{"id": f"{n}.txt", **row} for n, row in enumerate(found)]
    return [*rows, failed], lambda data: index_page(Rows(data))


def a_comparison() -> Made:
    """Of these rows with others: an answer that differs, one that is gone, one that is new."""
    before = a_list()[0]
    other = {**before[0], "answer": "It leaked.", "status": "degraded", "duration_s": 9.0}
    after = [other, before[1], {**before[2], "id": "new.txt", "question": "Which?"}]
    return [before, after], lambda data: comparison_page(Rows(data[0]), Rows(data[1]))


SOURCES: dict[str, Callable[[], Made]] = {
    make.__name__: cache(make)
    for make in (
        a_story,
        a_table,
        a_corpus,
        a_corpus_of_rows,
        a_pdf,
        a_composed_answer,
        nothing,
        a_row,
        a_failure,
        an_extraction,
        a_review,
        a_list,
        a_comparison,
    )
}
"""Every kind of page."""


@cache
def page_of(kind: str) -> str:
    """The page of a kind."""
    data, render = SOURCES[kind]()
    return render(data)
