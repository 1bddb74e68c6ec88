"""Each path from a question to a figure of a table is right or undecided, over generated tables whose clean values are known.

The paths are a model's query (`LOOKUP`), the native actions of a plan, and the rules of the embedded model.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from pearl import Pearl
from pearl.documents.document import from_text
from pearl.interpreter.answer import Answer
from pearl.llm.backends.scripted import Scripted

CITIES = ["Bonn", "Ulm", "Kiel"]
TOTALS = ["Total", "Summe", "Gesamt", "Grand total", "Totale", ""]
Cell = Decimal | str | None


def _grouped(number: Decimal) -> str:
    return f"{number:,}"


def _with_comma(number: Decimal) -> str:
    return f"{number:,}".translate({ord(","): ".", ord("."): ","})


def _after(sign: str) -> Callable[[Decimal], str]:
    return lambda number: f"{abs(number)}{sign}" if number < 0 else str(number)


STYLES: Mapping[str, Callable[[Decimal], str]] = {
    "plain": str,
    "grouped": _grouped,
    "comma": _with_comma,
    "minus behind": _after("-"),
    "brackets": lambda number: f"({-number:,})" if number < 0 else f"{number:,}",
    "dollars": lambda number: f"{'-' * (number < 0)}${abs(number):,}",
    "francs": lambda number: f"CHF {number:,}",
    "euros": lambda number: f"{number:,} €",
    "euros and comma": lambda number: f"{_with_comma(number)} €",
    "kroner": lambda number: f"{number} SEK",
    "percent": lambda number: f"{number}%",
    "weights": lambda number: f"{number} mg",
}


@dataclass
class Table:
    """A table as it is written, and what its cells mean."""

    names: list[str] = field(default_factory=list)
    columns: dict[str, list[Cell]] = field(default_factory=dict)
    text: str = ""
    scale: int = 0
    has_twins: bool = False
    """Whether two columns have the name of the column of numbers."""
    other: int | None = None
    """A row whose number is in another unit."""
    what: list[str] = field(default_factory=list)

    @property
    def number(self) -> str:
        """The name of the column of numbers."""
        return self.names[2]

    def rows(self, city: str | None = None, least: int | None = None) -> list[int]:
        """The rows that meet the conditions of a question."""
        return [
            i
            for i in range(len(self.columns["Item"]))
            if (city is None or self.columns["City"][i] == city)
            and (least is None or Decimal(self.columns["Units"][i] or 0) >= least)
        ]

    def is_certain(self, rows: list[int]) -> bool:
        """Whether the numbers of rows can be compared and added."""
        if not rows or len(self.numbers(rows)) < 2:
            return not rows or not self.has_twins
        return not self.has_twins and self.other not in rows

    def numbers(self, rows: list[int]) -> list[Decimal]:
        """The numbers of rows; a blank cell has none."""
        cells = (self.columns[self.number][i] for i in rows)
        return [cell for cell in cells if isinstance(cell, Decimal)]


def made(seed: int) -> Table:
    """A table of a few rows with a column of numbers in any style, and what makes tables untidy."""
    draw = random.Random(seed)
    table = Table()
    style = draw.choice([*STYLES])
    table.what.append(style)
    name = draw.choice(["Amount", "Price", "Fee 2024"])
    if draw.random() < 0.15:
        table.scale = 3
        name += " (in thousands)"
    table.names = ["Item", "City", name, "Units", "Paid"]
    n = draw.randint(2, 8)
    places = draw.choice([0, 1, 2, 2])
    low = -2_000 if draw.random() < 0.3 else 1
    is_blank = draw.random() < 0.3

    def number() -> Cell:
        value = Decimal(draw.randint(low * 10**places, 9_000 * 10**places)).scaleb(-places)
        return None if is_blank and draw.random() < 0.3 else value

    table.columns = {
        "Item": [f"item {chr(97 + i)}" for i in range(n)],
        "City": [draw.choice(CITIES) if draw.random() < 0.93 else None for _ in range(n)],
        name: [number() for _ in range(n)],
        "Units": [Decimal(draw.randint(0, 40)) for _ in range(n)],
        "Paid": [draw.choice(["TRUE", "FALSE"]) for _ in range(n)],
    }
    if draw.random() < 0.2:  # a row twice
        table.what.append("row twice")
        for cells in table.columns.values():
            cells.append(cells[0])
    blank = draw.choice(["", "n/a", "-", "—"])
    written = [
        [_written(cell, STYLES[style] if column == name else str, blank) for cell in cells]
        for column, cells in table.columns.items()
    ]
    lines = [list(line) for line in zip(*written, strict=True)]
    if draw.random() < 0.25 and table.numbers(table.rows()):
        units = sum(Decimal(cell or 0) for cell in table.columns["Units"])
        total = sum(table.numbers(table.rows()), Decimal(0))
        label = draw.choice(TOTALS)
        table.what.append(f"total {label!r}")
        lines.append([label, "", STYLES[style](total), str(units), ""])
    header = [*table.names]
    kind = draw.random()
    unit = _unit(STYLES[style](Decimal(1)))
    if kind < 0.12 and unit:  # numbers without a unit may be in the unit of another
        table.what.append("units")
        others = ["5 kg", "£7", "3 USD", "8 lb", "€4", "9 DKK", "CHF 6"]
        other = draw.choice([one for one in others if _unit(one) != unit])
        table.other = draw.randrange(n)
        row: list[Cell] = ["item z", "Bonn", Decimal(re.sub(r"\D", "", other)), Decimal(3), "TRUE"]
        for cells, cell in zip(table.columns.values(), row, strict=True):
            cells.insert(table.other, cell)
        lines.insert(table.other, ["item z", "Bonn", other, "3", "TRUE"])
    elif kind < 0.22:
        table.what.append("name twice")
        table.has_twins = True
        header.append(name)
        for line in lines:
            line.append(str(draw.randint(1, 99)))
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *lines])
    table.text = file.getvalue()
    if draw.random() < 0.15:
        table.what.append("blocks")
        title = draw.choice(["", "Notes for readers\n"])
        table.text += f"\n{title}Region,Staff\nNorth,5\nSouth,7\n"
    return table


def _unit(cell: str) -> str:
    found = re.findall(r"[^\W\d]+|[$€£%]", cell.upper())
    return {"USD": "$"}.get(found[0], found[0]) if found else ""


def _written(cell: Cell, style: Callable[[Decimal], str], blank: str) -> str:
    return blank if cell is None else cell if isinstance(cell, str) else style(cell)


@dataclass
class Question:
    """A question in the form of each path, with its answer: a number, a text, numbers of cities; None if there is none."""

    words: str
    query: dict[str, Any]
    steps: list[str]
    answer: Any
    is_of_numbers: bool = True

    @property
    def plan(self) -> str:
        """The steps, numbered."""
        return "\n".join(f"{i}. {step}" for i, step in enumerate(self.steps, 1))


ACTIONS = {"sum": "SUM", "max": "MAX", "min": "MIN", "mean": ""}  # only groups have a mean
WORDS = {"count": "", "sum": "total", "max": "highest", "min": "lowest", "mean": "average"}


def figure(function: str, numbers: list[Decimal]) -> Decimal | None:
    """A figure of numbers; the sum of none is 0."""
    if function == "sum":
        return sum(numbers, Decimal(0))
    if not numbers:
        return None
    mean = sum(numbers, Decimal(0)) / len(numbers)
    return mean if function == "mean" else max(numbers) if function == "max" else min(numbers)


def asked(table: Table, seed: int) -> Question:
    """A question about a table."""
    draw = random.Random(seed)
    name, columns = table.number, table.columns
    # Without a condition on a city, the rows of a second table are rows, too.
    city = draw.choice(CITIES if "blocks" in table.what else [None, *CITIES])
    least = draw.choice([None, None, draw.randint(1, 40)])
    rows = table.rows(city, least)
    where: list[dict[str, Any]] = []
    steps = ['rows = SPLIT(CTX, "record") : Rows']
    words = ""
    last = "rows"

    def condition(column: str, op: str, value: str, output: str) -> None:
        nonlocal last
        where.append({"column": column, "op": op, "value": [value]})
        steps.append(f'{output} = WHERE({last}, "{column}", "{op}", "{value}") : Some')
        last = output

    if city:
        condition("City", "is", city, "there")
        words += f" in {city}"
    if least is not None:
        condition("Units", "at least", str(least), "many")
        words += f" with Units of at least {least}"
    numbers, is_certain = table.numbers(rows), table.is_certain(rows)
    kinds = "figure figure figure count over first groups paid product join"
    kind = draw.choice(kinds.split())
    if kind in ("count", "paid", "over"):
        phrase = words
        if kind == "paid":
            condition("Paid", "is", draw.choice(["true", "TRUE", "yes"]), "paid")
            rows = [i for i in rows if columns["Paid"][i] == "TRUE"]
            phrase += " with Paid TRUE"
        if kind == "over":
            limit = draw.randint(-500, 8_000)
            condition(name, "after", str(limit), "over")
            is_one = table.other is None or table.other not in rows or len(rows) == 1
            is_certain = is_one and not (rows and table.has_twins)
            rows = [i for i in rows if any(n > limit for n in table.numbers([i]))]
            phrase += f" with {name} over {limit}"
        query: dict[str, Any] = {"where": {"all": where} if where else None}
        query["aggregate"] = {"function": "count"}
        n = Decimal(len(rows)) if is_certain or kind != "over" else None
        steps.append(f"n = COUNT({last}) : Count")
        return Question(f"How many rows are there{phrase}?", query, steps, n, is_of_numbers=False)
    query = {"where": {"all": where} if where else None}
    answer: Any
    if kind == "first":
        way = draw.choice(["descending", "ascending"])
        is_down = way == "descending"
        query |= {"select": ["Item"], "sort": {"by": name, "descending": is_down}, "limit": 1}
        steps += [
            f'order = SORT({last}, "{name}", "{way}") : Order',
            "first = LIMIT(order, 1) : One",
            'item = FIELD(first, "Item") : Item',
        ]
        best = figure("max" if is_down else "min", numbers)
        found = {columns["Item"][i] for i in rows if columns[name][i] == best}
        item = found.pop() if len(found) == 1 and best is not None and is_certain else None
        most = "highest" if is_down else "lowest"
        return Question(f"Which Item{words} has the {most} {name}?", query, steps, item)
    if kind == "groups":
        function = draw.choice([*ACTIONS, "count"])
        of = "" if function == "count" else f', "{name}"'
        query |= {"group": ["City"], "aggregate": {"function": function}}
        if of:
            query["aggregate"]["column"] = name
        grouped = f'AGGREGATE({last}, "City", "{function}"{of})' if of else f'GROUP({last}, "City")'
        steps.append(f"all = {grouped} : Each")
        by_city = {each: [i for i in rows if columns["City"][i] == each] for each in CITIES}
        figures = {
            each: figure(function, table.numbers(those)) if of else Decimal(len(those))
            for each, those in by_city.items()
            if (table.numbers(those) if of else those)
        }
        is_certain = not of or all(map(table.is_certain, by_city.values()))
        question = f"What is the {WORDS[function]} {name} of each City{words}?"
        question = question if of else f"How many rows are there per City{words}?"
        answer = figures if is_certain else None
        return Question(question, query, steps, answer, bool(of))
    if kind == "product":
        query["aggregate"] = {"function": "sum", "column": {"multiply": [name, "Units"]}}
        units = [Decimal(columns["Units"][i] or 0) for i in rows]
        share = 100 if "percent" in table.what else 1  # 50% of 3 is 1.5
        total = sum((n / share * u for n, u in zip(numbers, units, strict=False)), Decimal(0))
        is_whole = len(numbers) == len(rows) > 0
        return Question("", query, [], total if is_certain and is_whole else None)
    if kind == "join":
        steps = [
            steps[0],
            'a = WHERE(rows, "Paid", "is", "TRUE") : Paid',
            'b = WHERE(rows, "Paid", "is", "FALSE") : Open',
            'pairs = JOIN(a, b, "City") : Pairs',
            "n = COUNT(pairs) : Count",
        ]
        paid, others = (
            [columns["City"][i] for i in table.rows() if columns["Paid"][i] == is_paid]
            for is_paid in ("TRUE", "FALSE")
        )
        n = Decimal(sum(others.count(each) for each in paid if each is not None))
        return Question("", {}, steps, n, is_of_numbers=False)
    function = draw.choice([*ACTIONS])
    query["aggregate"] = {"function": function, "column": name}
    steps += [
        f'cells = FIELD({last}, "{name}") : Cells',
        f"n = {ACTIONS[function]}(cells) : Figure",
    ]
    question = f"What is the {WORDS[function]} {name}{words}?"
    answer = figure(function, numbers) if is_certain else None
    steps = steps if ACTIONS[function] else []
    return Question(question, query, steps, answer)


class Paths:
    """The ways from a question to an answer."""

    def __init__(self) -> None:
        self.query: dict[str, Any] = {}
        self.model = Pearl(Scripted(lambda request: json.dumps(self.query)))
        self.embedded = Pearl("extractive")

    def answers(self, table: Table, question: Question) -> Iterator[tuple[str, Answer]]:
        """The answer of each path that can take a question."""
        document = from_text(table.text, "made.csv")
        ask = f'1. a = LOOKUP(CTX, "{question.words or table.number}") : Ask'
        self.query = question.query
        if question.query:
            yield "query", asyncio.run(self.model.execute(ask, document))
        if question.plan:
            yield "plan", asyncio.run(self.embedded.execute(question.plan, document))
        if question.words:
            yield "rules", asyncio.run(self.embedded.execute(ask, document))


def said(answer: Answer, question: Question, table: Table) -> Any:
    """What an answer says, in the form of the question's; a figure with its scale."""
    text = re.sub(r" of the \d.*", "", answer.text)  # of what a count is stands behind it
    if isinstance(question.answer, dict):
        return {
            city: _number(found[1], table, question, answer)
            for city in CITIES
            if (found := re.search(rf"\b{city}\b[ |:]*([^\n|]*)", text))
            and re.search(r"\d", found[1])
        }
    if question.words.startswith("Which Item"):
        return next(iter(re.findall(r"item [a-z]", text)), None)
    return _number(text, table, question, answer)


def _number(text: str, table: Table, question: Question, answer: Answer) -> Decimal | None:
    found = re.findall(r"-?\d+(?:\.\d+)?", re.sub("Fee 2024|[,$€£]", "", text))
    if len(found) != 1:
        return None
    if table.scale and question.is_of_numbers and "thousand" not in f"{text} {answer.notes}":
        return Decimal(found[0]) / 1_000  # nothing says the scale
    return Decimal(found[0])


def is_right(told: Any, right: Any) -> bool:
    """Whether numbers are equal but for the last digits of a quotient."""
    if isinstance(right, Decimal) and isinstance(told, Decimal):
        return abs(told - right) <= abs(right) * Decimal("1e-5")
    if isinstance(right, dict) and isinstance(told, dict):
        return told.keys() == right.keys() and all(is_right(told[k], right[k]) for k in right)
    return bool(told == right)


def wrong(seed: int, paths: Paths) -> list[str]:
    """What paths answer wrongly about the table of a seed."""
    table = made(seed)
    question = asked(table, seed)
    found = []
    for path, answer in paths.answers(table, question):
        if answer.status != "answered":
            continue
        is_certain = question.answer is not None
        told = said(answer, question, table)
        if not is_certain or not is_right(told, question.answer):
            why = "" if is_certain else " (not certain)"
            found.append(
                f"seed {seed}, {path}: {answer.text!r} for {question.answer}{why}; {table.what}\n"
                f"{question.words}\n{question.query}\n{question.plan}\n{table.text}{answer.notes}"
            )
    return found


@pytest.mark.parametrize(
    "seeds", [range(30), pytest.param(range(30, 2_030), marks=pytest.mark.slow)]
)
def test_every_path_is_right_or_undecided(seeds: range) -> None:
    paths = Paths()
    found = [each for seed in seeds for each in wrong(seed, paths)]
    assert not found, f"{len(found)} wrong and answered:\n" + "\n\n".join(found[:5])
