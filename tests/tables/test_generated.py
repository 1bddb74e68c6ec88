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
from tests.examples import times

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
    n_blocks: int = 1
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
        return not self.has_twins and (self.other not in rows or len(self.numbers(rows)) < 2)

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
        "City": [draw.choice(CITIES) for _ in range(n)],
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
        sums = sum(table.numbers(table.rows())), sum(table.columns["Units"])  # type: ignore[arg-type]
        label = draw.choice(TOTALS)
        table.what.append(f"total {label!r}")
        lines.append([label, "", STYLES[style](Decimal(sums[0])), str(sums[1]), ""])
    header = [*table.names]
    kind = draw.random()
    if kind < 0.12:
        table.what.append("units")
        others = ["5 kg", "£7", "3 USD", "8 lb", "€4", "9 DKK", "CHF 6"]
        other = draw.choice([one for one in others if _unit(one) != _unit(lines[0][2])])
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
        table.n_blocks = 2
        table.text += draw.choice(
            ["\nRegion,Staff\nNorth,5\nSouth,7\n", "\nNotes for readers\nRegion,Staff\nNorth,5\nSouth,7\n"]
        )
    return table


def _unit(cell: str) -> str:
    found = re.findall(r"[^\W\d]+|[$€£%]", cell.upper())
    return {"USD": "$"}.get(found[0], found[0]) if found else ""


def _written(cell: Cell, style: Callable[[Decimal], str], blank: str) -> str:
    return blank if cell is None else cell if isinstance(cell, str) else style(cell)


@dataclass
class Question:
    """A question in the form of each path, with its answer: numbers, texts, or None if there is none."""

    words: str
    query: dict[str, Any]
    plan: str
    answer: Any
    is_figure: bool = True
    is_of_numbers: bool = True


FUNCTIONS: Mapping[str, tuple[str, str, Callable[[list[Decimal]], Decimal]]] = {
    "sum": ("total", "SUM", lambda numbers: sum(numbers, Decimal(0))),
    "max": ("highest", "MAX", max),
    "min": ("lowest", "MIN", min),
    "mean": ("average", "MEAN", lambda numbers: sum(numbers, Decimal(0)) / len(numbers)),
}


def asked(table: Table, seed: int) -> Question:
    """A question about a table."""
    draw = random.Random(seed)
    name = table.number
    city = draw.choice([None, *CITIES])
    least = draw.choice([None, None, draw.randint(1, 40)])
    rows = table.rows(city, least)
    where: list[dict[str, Any]] = []
    steps = ['rows = SPLIT(CTX, "record") : Rows']
    words = ""
    if city:
        where.append({"column": "City", "op": "is", "value": [city]})
        steps.append(f'there = WHERE(rows, "City", "is", "{city}") : There')
        words += f" in {city}"
    if least is not None:
        where.append({"column": "Units", "op": "at least", "value": [str(least)]})
        steps.append(f'many = WHERE({steps[-1].split(" ")[0]}, "Units", "at least", {least}) : Many')
        words += f" with Units of at least {least}"
    condition = {"all": where} if where else None
    last = steps[-1].split(" ")[0]
    numbers = table.numbers(rows)
    kind = draw.choice(["figure", "figure", "figure", "count", "first", "groups", "paid", "product"])
    is_certain = table.is_certain(rows)
    query: dict[str, Any] = {"where": condition}
    if kind == "count":
        query["aggregate"] = {"function": "count"}
        steps.append(f"n = COUNT({last}) : Count")
        return Question(f"How many rows are{words or ' there'}?", query, _plan(steps), Decimal(len(rows)), is_of_numbers=False)
    if kind == "paid":
        is_paid = [i for i in rows if table.columns["Paid"][i] == "TRUE"]
        where.append({"column": "Paid", "op": "is", "value": [draw.choice(["true", "TRUE", "yes"])]})
        query = {"where": {"all": where}, "aggregate": {"function": "count"}}
        steps += [f'paid = WHERE({last}, "Paid", "is", "{where[-1]["value"][0]}") : Paid', "n = COUNT(paid) : Count"]
        return Question(f"How many rows{words} are Paid TRUE?", query, _plan(steps), Decimal(len(is_paid)), is_of_numbers=False)
    if kind == "first":
        way = draw.choice(["descending", "ascending"])
        query |= {"select": ["Item"], "sort": {"by": name, "descending": way == "descending"}, "limit": 1}
        steps += [f'order = SORT({last}, "{name}", "{way}") : Order', "first = LIMIT(order, 1) : One",
                  'item = FIELD(first, "Item") : Item']  # fmt: skip
        best = max(numbers) if way == "descending" and numbers else min(numbers) if numbers else None
        found = {str(table.columns["Item"][i]) for i in rows if table.columns[name][i] == best}
        asking = "highest" if way == "descending" else "lowest"
        return Question(f"Which Item{words} has the {asking} {name}?", query, _plan(steps),
                        found.pop() if len(found) == 1 and best is not None and is_certain else None, is_figure=False)  # fmt: skip
    if kind == "groups":
        query |= {"group": ["City"], "aggregate": {"function": "sum", "column": name}}
        steps.append(f'sums = SUM_BY({last}, "City", "{name}") : Sums')
        by_city = [[i for i in rows if table.columns["City"][i] == each] for each in CITIES]
        groups = {
            city: sum(numbers, Decimal(0))
            for city, those in zip(CITIES, by_city, strict=True)
            if (numbers := table.numbers(those))
        }
        return Question(f"What is the total {name} of each City{words}?", query, _plan(steps),
                        groups if all(map(table.is_certain, by_city)) else None)  # fmt: skip
    if kind == "product":
        query["aggregate"] = {"function": "sum", "column": {"multiply": [name, "Units"]}}
        both = [(table.columns[name][i], table.columns["Units"][i]) for i in rows]
        is_whole = all(isinstance(one, Decimal) for pair in both for one in pair)
        total = sum((a * b for a, b in both), Decimal(0)) if is_whole and both and is_certain else None  # type: ignore[operator, misc]
        return Question("", query, "", total)
    function = draw.choice([*FUNCTIONS])
    word, action, compute = FUNCTIONS[function]
    query["aggregate"] = {"function": function, "column": name}
    steps += [f'cells = FIELD({last}, "{name}") : Cells', f"n = {action}(cells) : Figure"]
    value = compute(numbers) if numbers else Decimal(0) if function == "sum" else None
    value = value if is_certain else None
    plan = _plan(steps) if action != "MEAN" else ""  # MEAN_BY alone
    return Question(f"What is the {word} {name}{words}?", query, plan, value)


def _plan(steps: list[str]) -> str:
    return "\n".join(f"{i}. {step}" for i, step in enumerate(steps, 1))


def answers(table: Table, question: Question) -> Iterator[tuple[str, Answer]]:
    """The answer of each path that can take the question."""
    document = from_text(table.text, "made.csv")
    reply = Scripted(lambda request: json.dumps(question.query))
    ask = f'1. a = LOOKUP(CTX, "{question.words or table.number}") : Ask'
    yield "query", asyncio.run(Pearl(reply).execute(ask, document))
    embedded = Pearl("extractive")
    if question.plan:
        yield "plan", asyncio.run(embedded.execute(question.plan, document))
    if question.words:
        yield "rules", asyncio.run(embedded.ask(question.words, document))


def said(answer: Answer, question: Question, table: Table) -> Any:
    """What an answer says, in the form of the question's; a figure with its scale."""
    text = answer.text
    if isinstance(question.answer, dict):
        return {
            city: _number(found[1], table, question, answer)
            for city in CITIES
            if (found := re.search(rf"\b{city}\b\W*([^\n|]*)", text)) and re.search(r"\d", found[1])
        }
    if question.is_figure:
        return _number(text, table, question, answer)
    return next(iter(re.findall(r"item [a-z]", text)), None)


def _number(text: str, table: Table, question: Question, answer: Answer) -> Decimal | None:
    found = re.findall(r"-?\d+(?:\.\d+)?", text.replace("2024", "").replace(",", ""))
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


def wrong(seed: int) -> list[str]:
    """What paths answer wrongly about the table of a seed."""
    table = made(seed)
    question = asked(table, seed)
    found = []
    for path, answer in answers(table, question):
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


@pytest.mark.parametrize("part", range(10))
def test_every_path_is_right_or_undecided(part: int) -> None:
    n = times(200)
    found = [each for i in range(n) for each in wrong(10 * i + part)]
    assert not found, f"{len(found)} wrong and answered:\n" + "\n\n".join(found[:5])
