"""ConvFinQA: are the rows of tables found that a turn's program takes its numbers from?

    python experiments/retrieval/convfinqa.py [--data FILE] [--method NAME]...

FILE has dialogues, a JSON object a line; without it `shared/data/convfinqa/dev.jsonl` beside the
checkout is read. Every row of every page's table is a passage: the row's name, and each column's
heading with the cell. Counted are the turns whose program takes an operand from the table; right are the
rows of that page that hold an operand, by absolute value (cleaning has turned signs), so slightly
generous. A query is

- `turn`: the question of the turn alone,
- `joined`: the earlier questions of the dialogue and it,
- `history`: the same, the first question and the last in full and those between by
  `Searcher.search(history=...)`,
- `ticker and year`: `history`, and the company's ticker and the fiscal year of the page in the query
  and in front of each passage. They are known of the page asked about, not read from the question: an
  upper bound for who has such metadata,
- `filtered`: `history`, within the rows of that ticker and year.

Answers of earlier turns are not used. Intervals resample dialogues. Exit code 1 if recall with
history is below 79 % at 10 or 90 % at 60, or with ticker and year below 90 % at 10.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables import found_data, print_comparison, print_scores

from pearl.evals.judgments import Judgments, Topic
from pearl.evals.retrieval import RetrievalComparison, RetrievalScores, evaluate_retrieval
from pearl.retrieval import SearchSettings
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

MEASURES = ("R@5", "R@10", "R@60", "R@1")
DEPTH = 200
BARS = (("history", "R@10", 0.79), ("history", "R@60", 0.90), ("ticker and year", "R@10", 0.90))
NUMBER = re.compile(r"(?<![#_\w.])-?\d+(?:\.\d+)?%?")

Cells = Mapping[str, list[tuple[str, Any]]]
"""Row → its columns with their cells."""


def page_of(dialogue: Mapping[str, Any]) -> str:
    """`Single_BLK/2013/page_124.pdf-2` → `BLK/2013/page_124.pdf`."""
    return re.sub(r"-\d+$", "", dialogue["id"].partition("_")[2])


def cells_of(table: Mapping[str, Mapping[str, Any]]) -> Cells:
    """A table by rows; it is given by columns."""
    rows: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for column, cells in table.items():
        for row, cell in cells.items():
            rows[row].append((column, cell))
    return rows


def operands(program: str) -> set[float]:
    """The absolute numbers of a program, percents as they are and as shares; no constants."""
    found = set()
    for number in NUMBER.findall(program):
        value = abs(float(number.rstrip("%")))
        found |= {value, value / 100} if number.endswith("%") else {value}
    return found


def gold_rows(rows: Cells, program: str) -> list[str]:
    """The rows that hold an operand."""
    known = operands(program)
    return [
        row
        for row, cells in rows.items()
        if any(isinstance(cell, int | float) and abs(cell) in known for _, cell in cells)
    ]


def passages(pages: Mapping[str, Cells], *, with_page: bool) -> list[CorpusDocument]:
    """A document for each row; `with_page` puts ticker and year in front of its text."""
    found = []
    for page, rows in pages.items():
        ticker, year, _ = page.split("/")
        for row, cells in rows.items():
            said = "; ".join(
                f"{column} {cell:g}" if isinstance(cell, float) else f"{column} {cell}"
                for column, cell in cells
            )
            text = f"{ticker} {year} {row}: {said}" if with_page else f"{row}: {said}"
            fields = {"page": page, "ticker": ticker, "year": year}
            found.append(CorpusDocument(f"{page}#{row}", text, fields))
    return found


def read(
    path: Path,
) -> tuple[dict[str, Cells], list[Topic], Judgments, dict[str, str], int]:
    """Pages, topics with their histories, judgments, the page of each topic, and all turns."""
    dialogues = [json.loads(line) for line in path.read_text().splitlines()]
    pages = {page_of(one): cells_of(one["doc"]["table"]) for one in dialogues}
    topics, grades, page_of_topic, n_turns = [], {}, {}, 0
    for one in dialogues:
        questions, programs = one["dialogue"]["conv_questions"], one["dialogue"]["turn_program"]
        n_turns += len(questions)
        for turn, (question, program) in enumerate(zip(questions, programs, strict=True)):
            page = page_of(one)
            if right := gold_rows(pages[page], program):
                topic = Topic(
                    f"{one['id']}/{turn}", question, tuple(questions[:turn]), (), one["id"]
                )
                topics.append(topic)
                grades[topic.id] = {f"{page}#{row}": 1 for row in right}
                page_of_topic[topic.id] = page
    return pages, topics, Judgments(grades), page_of_topic, n_turns


async def evaluate(path: Path, methods: list[str]) -> list[RetrievalScores]:
    """Every kind of query by every method."""
    pages, topics, judgments, page_of_topic, n_turns = read(path)
    plain, paged = (
        Index.build(passages(pages, with_page=with_page), Cutting("document"))
        for with_page in (False, True)
    )
    print(
        f"{len(pages)} pages, {len(plain.passages):,} rows, {len(topics):,} of {n_turns:,} turns take "
        f"a number from a table, {len({topic.group for topic in topics})} dialogues"
    )

    def known(topic: Topic) -> Topic:
        ticker, year, _ = page_of_topic[topic.id].split("/")
        return replace(topic, text=f"{topic.text} {ticker} {year}")

    def filtered(topic: Topic) -> Topic:
        ticker, year, _ = page_of_topic[topic.id].split("/")
        return replace(topic, filters=(f"ticker={ticker}", f"year={year}"))

    kinds: dict[str, tuple[Index, Callable[[Topic], Topic]]] = {
        "turn": (plain, lambda topic: replace(topic, history=())),
        "joined": (plain, lambda topic: replace(topic, text=joined(topic), history=())),
        "history": (plain, lambda topic: topic),
        "ticker and year": (paged, known),
        "filtered": (plain, filtered),
    }
    scores = []
    for kind, (index, said) in kinds.items():
        asked = [said(topic) for topic in topics]
        searchers = {f"{kind}, {name}": Searcher(SearchSettings(name)) for name in methods}
        done = await evaluate_retrieval(
            index, asked, judgments, searchers, measures=MEASURES, depth=DEPTH
        )
        scores += done.scores
    return scores


def joined(topic: Topic) -> str:
    """The earlier questions and the question."""
    return " ".join([*topic.history, topic.text])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--method", action="append", help="[default: bm25+]")
    args = parser.parse_args()
    methods = args.method or ["bm25+"]
    scores = asyncio.run(evaluate(found_data(args.data, "convfinqa/dev.jsonl"), methods))
    print_scores(scores)
    by_name = {one.method: one for one in scores}
    for name in methods:
        for one, other in (("history", "turn"), ("history", "joined")):
            pair = by_name[f"{one}, {name}"], by_name[f"{other}, {name}"]
            print_comparison(RetrievalComparison.of(*pair, "R@10"))
    is_short = [
        f"{kind}, {methods[0]}: {measure} is {found:.3f}, below {bar}"
        for kind, measure, bar in BARS
        if (found := by_name[f"{kind}, {methods[0]}"].mean(measure).estimate) < bar
    ]
    print("\n".join(is_short))
    return int(bool(is_short))


if __name__ == "__main__":
    sys.exit(main())
