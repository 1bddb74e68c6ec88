"""Evaluate the gold programs of ConvFinQA, and compare their results with the answers of people.

    python experiments/reproduce_convfinqa.py --data FILE [--pages]

All counts are of turns:

- `executed_equal`: the program comes to `executed_answers`, both rounded to 5 decimals;
- `with_units`, `matcher_agree`: the result matches the turn's answer in words, by display rounding and percentages;
- `false_match`: the result matches the answer of another turn of the dialogue, whose result differs.

The program says what its result may be written as: a quotient may be a percentage, a sum of numbers may
not. `without_units` are the same counts for a matcher that is not told.

With --pages every program is evaluated over its page, too, as EVALUATE does it in a plan: `pages_equal` turns come
to the same, and `operands` says where their numbers were found.

`retrieval` is how well the rows are found that the programs take their numbers from: `convfinqa_retrieval` says what
each setting is.

Exit code 1 if a program comes to
something else, or recall is lower than it was.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any

import click
import msgspec
from convfinqa_retrieval import (
    Dialogue,
    RowTopics,
    Turn,
    below_bars,
    evaluate_rows,
    read_dialogues,
)
from retrieval.measures import RetrievalScores

from pearl.actions.arithmetic.evaluation import PERCENT, POINTS, RATIO, Result, evaluate
from pearl.actions.arithmetic.matching import Form, Rule, match
from pearl.actions.arithmetic.program import ProgramError, parse
from pearl.actions.values import Scalar
from pearl.contrib.finance.evaluate import run as over
from pearl.documents.numbers import read_quantity
from pearl.documents.rows import Rows, document_rows

_FORMS: dict[str, Form] = {RATIO: "share", POINTS: "points"}

_PLACES = {
    ": row ": "one cell",
    " cells, ": "several cells",
    "in the text, ": "text",
    ": not in": "nowhere",
}
"""How a note of EVALUATE says where a number is."""

PLACES = 5
"""As in the authors' code: `round(result, 5)`."""


@dataclass
class Matches:
    """How a matcher does."""

    matcher_agree: int = 0
    false_match: int = 0
    by_rule: dict[str, int] = field(default_factory=dict)


@dataclass
class Report:
    """Counts of turns, and every turn that is not as it should be."""

    turns: int = 0
    executed_equal: int = 0
    with_units: Matches = field(default_factory=Matches)
    without_units: Matches = field(default_factory=Matches)
    pages_equal: int | None = None
    operands: dict[str, int] = field(default_factory=dict)
    retrieval: dict[str, RetrievalScores] = field(default_factory=dict)
    unequal: list[dict[str, Any]] = field(default_factory=list)
    disagreements: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Everything, with means in place of the measures of each topic."""
        retrieval = {name: one.to_dict() for name, one in self.retrieval.items()}
        return {**msgspec.to_builtins(self), "retrieval": retrieval}


@dataclass(frozen=True)
class Run:
    """A turn with what its program came to."""

    turn: Turn
    said: str
    form: Form

    def matches(self, answer: str, *, is_told: bool = True) -> Rule | None:
        """The rule by which the result is an answer."""
        said = self.said if is_told else str(self.turn.executed)
        return match(said, answer, form=self.form if is_told else None)


def executed(result: Result) -> float | str:
    """A result as the authors write it."""
    if isinstance(result.value, bool):
        return result.text
    return round(float(result.value), PLACES)


def run(turn: Turn) -> tuple[Run, float | str]:
    """Evaluate the program of a turn."""
    result = evaluate(parse(turn.program))
    value = executed(result)
    said = result.text if result.unit == PERCENT else str(value)
    return Run(turn, said, _FORMS.get(result.unit, "number")), value


def count(runs: Sequence[Run], matches: Matches, *, is_told: bool) -> list[Run]:
    """Compare each result with the answers of all turns; those that miss their own come back."""
    missed = []
    for one in runs:
        rule = one.matches(one.turn.answer, is_told=is_told)
        name = rule.value if rule else "none"
        matches.by_rule[name] = matches.by_rule.get(name, 0) + 1
        if rule in (None, Rule.ONE_PERCENT):
            missed.append(one)
        else:
            matches.matcher_agree += 1
        others = (each.turn for each in runs if each.turn.executed != one.turn.executed)
        rules = {one.matches(other.answer, is_told=is_told) for other in others}
        matches.false_match += bool(rules - {None, Rule.ONE_PERCENT})
    return missed


def reproduce(dialogues: Iterable[Dialogue], *, has_pages: bool = False) -> Report:
    """Go through every turn."""
    report = Report()
    for dialogue in dialogues:
        runs = []
        page = document_rows(dialogue.page) if has_pages else None
        for number, turn in enumerate(dialogue.turns, start=1):
            report.turns += 1
            try:
                found, value = run(turn)
            except ProgramError as error:
                value = f"{type(error).__name__}: {error}"
            else:
                runs.append(found)
                if page is not None:
                    over_page(turn, page, report)
            if value == turn.executed:
                report.executed_equal += 1
            else:
                report.unequal.append(
                    {"id": dialogue.id, "turn": number, "program": turn.program, "is": value}
                )
        count(runs, report.without_units, is_told=False)
        report.disagreements += (
            {"id": dialogue.id, "program": one.turn.program, "is": one.said, "answer": one.turn.answer}
            for one in count(runs, report.with_units, is_told=True)
        )  # fmt: skip
    return report


def is_same(shown: str, value: float | str) -> bool:
    """Whether a result with its unit has the digits of a number, to what it is rounded to."""
    found = read_quantity(shown, decimal=".")
    if found is None or isinstance(value, str):
        return shown == value
    said, last = float(found.value), 10.0**-PLACES
    if found.unit == "%":  # as a share, or in percent
        return isclose(said / 100, value, abs_tol=last) or isclose(said, value, abs_tol=100 * last)
    return isclose(said, value, rel_tol=1e-4, abs_tol=last)


def over_page(turn: Turn, page: Rows, report: Report) -> None:
    """Evaluate the program of a turn over its page."""
    result = over(page, turn.program)
    assert isinstance(result, Scalar)
    report.pages_equal = (report.pages_equal or 0) + is_same(str(result.value), turn.executed)
    for note in result.rows.notes:
        where = next((name for words, name in _PLACES.items() if words in note), "")
        if where:
            report.operands[where] = report.operands.get(where, 0) + 1


@click.command(help=__doc__)
@click.option("--data", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--pages", is_flag=True, help="Evaluate the programs over their pages, too.")
def main(data: Path, pages: bool) -> None:
    dialogues = list(read_dialogues(data))
    report = reproduce(dialogues, has_pages=pages)
    if (rows := RowTopics(dialogues)).topics:
        report.retrieval = asyncio.run(evaluate_rows(rows))
    click.echo(json.dumps(report.as_json(), indent=1))
    short = below_bars(report.retrieval)
    for line in short:
        click.echo(line, err=True)
    if short or report.executed_equal < report.turns:
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    main()
