"""The dialogues of ConvFinQA (Chen et al., EMNLP 2022); and are the rows of tables found that its programs take numbers from?

Every row of every page's table is a passage: the row's name, and each column's heading with the cell. Counted
are the turns whose program takes an operand from the table; right are the rows of that page that hold an operand,
by absolute value (cleaning has turned signs), so slightly generous. A query is

- `turn`: the question of the turn alone,
- `joined`: the earlier questions of the dialogue and it,
- `history`: the same, a line each,
- `ticker and year`: `history`, and the company's ticker and the fiscal year of the page in the query and in front of
  each passage. They are known of the page asked about, not read from the question: an upper bound for who has
  such metadata,
- `filtered`: `history`, within the rows of that ticker and year,
- `page`: `history`, within the rows of the right page.

Answers of earlier turns are not used. Intervals resample dialogues.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from pathlib import Path

import click
from retrieval.measures import Judgments, RetrievalScores, Topic, evaluate_retrieval

from pearl.contrib.finance.domain import operands
from pearl.data.domains import Source, read_samples
from pearl.data.samples import Sample
from pearl.documents.document import Document
from pearl.documents.numbers import read_quantity
from pearl.documents.table import table_rows
from pearl.errors import DataError
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

MEASURES = ("R@5", "R@10", "R@60", "P@5", "P@10", "P@60", "R@1")
DEPTH = 200
LEXICAL = "bm25"
SETTINGS = ("turn", "joined", "history", "ticker and year", "filtered", "page")
BARS = (("history", "R@10", 0.79), ("history", "R@60", 0.90), ("ticker and year", "R@10", 0.90))
"""Recall of `bm25` over the cleaned development set at least."""
MIN_TOPICS = 500
"""Smaller sets are not held to them."""

Cells = Mapping[str, list[tuple[str, str]]]
"""Row → its columns with their cells."""


@dataclass(frozen=True)
class Turn:
    """One question of a dialogue with what is right."""

    question: str
    answer: str
    program: str
    executed: float | str


@dataclass(frozen=True)
class Dialogue:
    """A dialogue about one page of a report."""

    id: str
    turns: tuple[Turn, ...]
    page: Document


def read_dialogues(path: Path) -> Iterator[Dialogue]:
    """Every dialogue of a file."""
    try:
        samples = (_checked(path, each) for each in read_samples("finance", Source(str(path))))
        for id, turns in groupby(samples, lambda sample: sample.extra.get("dialogue")):
            every = list(turns)
            yield Dialogue(id, tuple(map(_turn, every)), every[0].load())
    except DataError as error:
        raise click.ClickException(str(error)) from error


def _checked(path: Path, sample: Sample | DataError) -> Sample:
    if isinstance(sample, DataError):
        raise sample
    if not (sample.extra.get("dialogue") and sample.extra.get("program") and sample.reference):
        raise DataError(f"sample '{sample.id}' is no turn with a program and its result", path=path)
    return sample


def _turn(sample: Sample) -> Turn:
    reference = sample.reference or ""
    try:
        executed: float | str = float(reference)
    except ValueError:
        executed = reference
    return Turn(
        sample.question, sample.extra.get("said", reference), sample.extra["program"], executed
    )


def page_of(dialogue: Dialogue) -> str:
    """`Single_BLK/2013/page_124.pdf-2` → `BLK/2013/page_124.pdf`."""
    return re.sub(r"-\d+$", "", dialogue.id.partition("_")[2])


def cells_of(page: Document) -> Cells:
    """The rows of a page's tables by their names."""
    rows: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for table in table_rows(page):
        for row in table.rows:
            (_, label), *cells = row.fields.items()
            rows[label or ""] += [(column, cell or "") for column, cell in cells]
    return rows


def gold_rows(rows: Cells, program: str) -> list[str]:
    """The rows that hold an operand, whatever its sign."""
    known = operands(program)
    return [name for name, cells in rows.items() if _numbers(cells) & known]


def _numbers(cells: Iterable[tuple[str, str]]) -> frozenset[Decimal]:
    read = (read_quantity(cell, decimal=".") for _, cell in cells)
    return frozenset(abs(found.value) for found in read if found)


def passages(pages: Mapping[str, Cells], *, with_page: bool) -> list[CorpusDocument]:
    """A document for each row; `with_page` puts ticker and year in front of its text."""
    found = []
    for page, rows in pages.items():
        ticker, year = ticker_and_year(page)
        for row, cells in rows.items():
            said = "; ".join(f"{column} {cell}" for column, cell in cells)
            text = f"{ticker} {year} {row}: {said}" if with_page else f"{row}: {said}"
            fields = {"page": page, "ticker": ticker, "year": year}
            found.append(CorpusDocument(f"{page}#{row}", text, fields))
    return found


def ticker_and_year(page: str) -> tuple[str, str]:
    """`BLK/2013/page_124.pdf` → `BLK`, `2013`."""
    ticker, _, rest = page.partition("/")
    return ticker, rest.partition("/")[0]


class RowTopics:
    """Turns as topics, with the rows that are right."""

    def __init__(self, dialogues: Iterable[Dialogue]) -> None:
        self.pages: dict[str, Cells] = {}
        self.topics: list[Topic] = []
        self.page_of_topic: dict[str, str] = {}
        grades: dict[str, dict[str, int]] = {}
        for one in dialogues:
            page = page_of(one)
            rows = self.pages.setdefault(page, cells_of(one.page))
            questions = [turn.question for turn in one.turns]
            for i, turn in enumerate(one.turns):
                if right := gold_rows(rows, turn.program):
                    topic = Topic(f"{one.id}/{i}", turn.question, tuple(questions[:i]), (), one.id)
                    self.topics.append(topic)
                    grades[topic.id] = {f"{page}#{row}": 1 for row in right}
                    self.page_of_topic[topic.id] = page
        self.judgments: Judgments = grades

    def asked(self, setting: str) -> list[Topic]:
        """The topics as a setting asks them."""
        return [self._asked(setting, topic) for topic in self.topics]

    def _asked(self, setting: str, topic: Topic) -> Topic:
        page = self.page_of_topic[topic.id]
        ticker, year = ticker_and_year(page)
        match setting:
            case "turn":
                return replace(topic, history=())
            case "joined":
                return replace(topic, text=" ".join([*topic.history, topic.text]), history=())
            case "ticker and year":
                return replace(topic, text=f"{topic.text} {ticker} {year}")
            case "filtered":
                return replace(topic, filters=(f"ticker={ticker}", f"year={year}"))
            case "page":
                return replace(topic, filters=(f"document~{page}#",))
        return topic


async def evaluate_rows(found: RowTopics) -> dict[str, RetrievalScores]:
    """Every setting: `SETTING, bm25` → scores."""
    plain, paged = (
        Index.build(passages(found.pages, with_page=with_page), Cutting("document"))
        for with_page in (False, True)
    )
    scores: dict[str, RetrievalScores] = {}
    for setting in SETTINGS:
        index = paged if setting == "ticker and year" else plain
        searchers = {f"{setting}, {LEXICAL}": Searcher()}
        (done,) = await evaluate_retrieval(
            index, found.asked(setting), found.judgments, searchers, MEASURES, DEPTH
        )
        scores[done.method] = done
    return scores


def below_bars(scores: Mapping[str, RetrievalScores]) -> list[str]:
    """What is worse than it was, a line each."""
    return [
        f"{setting}, {LEXICAL}: {measure} is {mean:.3f}, below {bar}"
        for setting, measure, bar in BARS
        if (one := scores.get(f"{setting}, {LEXICAL}"))
        and len(one.groups) >= MIN_TOPICS
        and (mean := one.mean(measure).estimate) < bar
    ]
