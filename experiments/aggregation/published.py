"""The published files of OOLONG-synth, where a user has them.

A row has `question`, `answer` (a list as Python writes it), `context_window_text`,
`context_window_text_with_labels`, `context_window_id`, `context_len` and `dataset`. The lines of the
text with labels end in `|| Label: ...`, from which the oracle and the reference have theirs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from aggregation.oracle import Oracle
from aggregation.queries import Query
from aggregation.reference import answers
from aggregation.running import Session, value_of
from aggregation.scoring import normal, score
from aggregation.windows import Entry, Window
from aggregation.wording import read

from pearl import Document, Pearl
from pearl.data.rows import Row, read_rows
from pearl.errors import DataError, PearlError

__all__ = ["Result", "Task", "by_model", "by_oracle", "read_tasks"]

_LINE = re.compile(
    r"^Date: (?P<date>[A-Z][a-z]{2} \d{2}, \d{4}) \|\| User: (?P<user>\d+) \|\| "
    r"Instance: (?P<text>.*?) \|\| Label: (?P<label>[^|\n]+?)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_START = re.compile(r"^Date: .*? \|\| User: ", re.MULTILINE)
_DATE = re.compile(r"datetime\.date\((\d+), (\d+), (\d+)\)")


@dataclass(frozen=True)
class Task:
    """One published question.

    Attributes:
        group: Its dataset and its length in tokens.
        window_id: Questions with the same one are about the same text.
        text: The window.
        labelled: The window with labels; "" if the file has none.
        query: What it asks.
        right: The published answers.
    """

    group: str
    window_id: str
    text: str
    labelled: str
    question: str
    query: Query
    right: frozenset[str]


@dataclass(frozen=True)
class Result:
    """A question's score, and the reference's; None where there is no reference."""

    task: Task
    said: str
    score: float
    reference: float | None = None


def read_tasks(name: str, split: str | None = None) -> Iterator[Task]:
    """The questions of a file or a dataset.

    Raises:
        DataError: A row is not as the published ones are.
    """
    for row in read_rows(name, split):
        if isinstance(row, DataError):
            raise row
        yield _task(row)


def _task(row: Row) -> Task:
    question, text, answer = (
        row.text(name) for name in ("question", "context_window_text", "answer")
    )
    if not question or not text or not answer:
        raise row.error("no question, context_window_text or answer")
    try:
        query = read(question)
    except ValueError as error:
        raise row.error(str(error)) from None
    where = (row.name("dataset") or "?", row.name("context_len") or "?")
    return Task(
        ", ".join(where), " ".join((*where, row.name("context_window_id") or text)), text,
        row.text("context_window_text_with_labels") or "", question, query, _right(query, answer),
    )  # fmt: skip


def _right(query: Query, answer: str) -> frozenset[str]:
    """The entries of a list as Python writes it, as `scoring` compares them."""
    plain = _DATE.sub(lambda d: f"'{int(d[1]):04}-{int(d[2]):02}-{int(d[3]):02}'", answer.strip())
    entries = re.findall(r"'([^']*)'|\"([^\"]*)\"|([^][,'\"\s][^][,'\"]*)", plain)
    return frozenset(normal(query.kind, "".join(entry)) for entry in entries)


def window_of(task: Task) -> Window:
    """The entries of a window with labels.

    Raises:
        DataError: A line cannot be read.
    """
    found = [
        Entry(datetime.strptime(m["date"], "%b %d, %Y").date(), m["user"], m["text"], m["label"])
        for m in _LINE.finditer(task.labelled)
    ]
    n = len(_START.findall(task.labelled))
    if not found or len(found) != n:
        raise DataError(f"window {task.window_id[:40]}: {len(found)} of {n} entries can be read")
    return Window(tuple(found), tuple(sorted({entry.label for entry in found})))


async def by_oracle(tasks: list[Task]) -> list[Result]:
    """Answers where the published labels are the oracle's and the plans are made from the wording.

    Raises:
        DataError: A window has no labels.
        PearlError: A plan failed.
    """
    by_window: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        by_window[task.window_id].append(task)
    results = []
    for same in by_window.values():
        window = window_of(same[0])
        session = Session(window, Oracle(window.labels_of, window.labels))
        document = Document(same[0].text, "window.txt")
        for task in same:
            asked = await session.ask(task.query, document=document)
            kind, own = task.query.kind, answers(task.query, window.entries)
            reference = score(kind, "\n".join(sorted(own)), task.right)
            results.append(Result(task, asked.text, score(kind, asked.text, task.right), reference))
        await session.aclose()
    return results


async def by_model(tasks: list[Task], pearl: Pearl) -> list[Result]:
    """Answers where a model plans and labels; a question that fails is wrong."""
    results = []
    for task in tasks:
        try:
            said = value_of(await pearl.ask(task.question, Document(task.text, "window.txt")))
        except PearlError as error:
            results.append(Result(task, str(error), 0.0))
        else:
            results.append(Result(task, said, score(task.query.kind, said, task.right)))
    return results
