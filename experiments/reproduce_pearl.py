"""Replay the published PEARL plans, and count the published answers again.

    python experiments/reproduce_pearl.py --traces FILE... --actions FILE
    python experiments/reproduce_pearl.py --traces FILE... --table

A trace file has one JSON object a line: a plan with `run, split, qid, plan, step_outputs,
open_answer, map_answer, gold`, or a baseline's answer with `method, split, qid, answer, gold`.

With --actions every plan is parsed and checked against them. A valid plan that has recorded step
outputs is run through the interpreter with a model that replies with them, and the answer is
compared with the recorded one, blanks aside. The traces hold no articles, so CTX is a one-line
placeholder.

With --table the accuracies of the paper are counted again, with intervals and paired tests.
The authors count what was answered; a question whose plan failed has no row and leaves the
denominator. Both ways of counting stand side by side here: as the authors did, and over every
question of the split that any file mentions, failures as wrong answers. A reply was mapped to an
option by its first letter; one that is not A to D ("T" as in "The ...") is wrong and counted as
unmapped.

The traces name no articles, so intervals and tests resample questions. Questions on one article
resemble each other: the intervals are, if anything, too narrow.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import msgspec
from traces import AnswerRow, PlanRow, Record, records, trace_files, typed

from pearl import Document, Pearl, PearlError, load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.graph import build_graph
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import DataError, PlanError, PlanSyntaxError
from pearl.evals.log import PlanShape
from pearl.evals.report import PlanFigures, figures_of
from pearl.evals.stats import Interval, accuracy, bootstrap_p, difference, mcnemar
from pearl.testing import Fake

PEARL, SECOND_RUN = "pearl", "pearl_rerun"
RUNS = {"pearl_out": PEARL, "pearl_out_1": SECOND_RUN}
"""Runs of the plan files; the authors report the first."""
ORDER = ("mcq", "gqa", PEARL, SECOND_RUN)
OPTIONS = ("A", "B", "C", "D")
ALL = "all"

Question = tuple[str, str]
"""Split and id."""


@dataclass(frozen=True, slots=True)
class Share:
    """One cell of the table."""

    accuracy_pct: float
    interval_pct: tuple[float, float]
    accuracy_with_failures_pct: float
    interval_with_failures_pct: tuple[float, float]
    n: int
    n_questions: int
    n_failed: int
    n_unmapped: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods on the questions both answered; `difference` is first minus second, in points."""

    first: str
    second: str
    split: str
    n: int
    difference_points: float
    interval_points: tuple[float, float]
    p_bootstrap: float
    p_mcnemar: float
    n_first_only: int
    n_second_only: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """What two runs of PEARL make of the questions both answered."""

    split: str
    n: int
    n_decided_differently: int
    n_answers_differ: int


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that is counted."""

    accuracies: dict[str, dict[str, Share]]
    """By method and split."""
    comparisons: tuple[Comparison, ...]
    reruns: tuple[Rerun, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """The rows of all files: the right option of each question, and what each method said."""

    gold: Mapping[Question, str]
    given: Mapping[str, Mapping[Question, str | None]]

    def of(self, method: str, splits: Iterable[str]) -> dict[Question, str | None]:
        """What a method answered, in an order that is not that of the files."""
        return {q: option for q, option in sorted(self.given[method].items()) if q[0] in splits}

    def right(self, method: str, questions: Iterable[Question]) -> list[bool]:
        """Whether each question is answered with its right option; none is wrong."""
        return [self.given[method].get(q) == self.gold[q] for q in questions]


def read_answers(records: Iterable[Record]) -> Answers:
    """The answers of plans and baselines, in any order."""
    gold: dict[Question, str] = {}
    given: defaultdict[str, dict[Question, str | None]] = defaultdict(dict)
    for record in records:
        row = typed(AnswerRow, record)
        question, method = (row.split, row.qid), RUNS.get(row.method, row.method)
        if gold.setdefault(question, row.gold) != row.gold:
            raise record.error(f"question {row.qid} has another right option in an earlier row")
        if question in given[method]:
            raise record.error(f"a second answer of {row.method} to question {row.qid}")
        given[method][question] = row.answer if row.answer in OPTIONS else None
    if not gold:
        raise DataError("the files hold no answers", help="name plan files, baseline files or both")
    return Answers(gold, given)


def recount(records: Iterable[Record]) -> Table:
    """The table of whatever methods and splits there are."""
    answers = read_answers(records)
    methods = sorted(answers.given, key=lambda m: (ORDER.index(m) if m in ORDER else len(ORDER), m))
    compared = [method for method in reversed(methods) if method != SECOND_RUN]
    names = sorted({split for split, _ in answers.gold})
    splits = {**{name: [name] for name in names}, ALL: names}
    return Table(
        {
            method: {
                split: _share(answers, method, members)
                for split, members in splits.items()
                if answers.of(method, members)
            }
            for method in methods
        },
        tuple(
            _comparison(answers, first, second, split, shared)
            for first, second in combinations(compared, 2)
            for split, members in splits.items()
            if (shared := _shared(answers, first, second, members))
        ),
        tuple(
            _rerun(answers, split, shared)
            for split, members in splits.items()
            if (shared := _shared(answers, PEARL, SECOND_RUN, members))
        ),
    )


def _shared(answers: Answers, first: str, second: str, splits: Sequence[str]) -> list[Question]:
    if not {first, second} <= answers.given.keys():
        return []
    return [q for q in answers.of(first, splits) if q in answers.given[second]]


def _percent(interval: Interval) -> tuple[float, tuple[float, float]]:
    estimate, *ends = (
        round(100 * share, 1) for share in (interval.estimate, interval.low, interval.high)
    )
    return estimate, (ends[0], ends[1])


def _share(answers: Answers, method: str, members: Sequence[str]) -> Share:
    answered = answers.of(method, members)
    # A split without any answer of the method was not asked, it did not fail.
    asked = {name for name, _ in answered}
    questions = sorted(question for question in answers.gold if question[0] in asked)
    as_published, interval = _percent(accuracy(answers.right(method, answered)))
    with_failures, its_interval = _percent(accuracy(answers.right(method, questions)))
    return Share(
        accuracy_pct=as_published,
        interval_pct=interval,
        accuracy_with_failures_pct=with_failures,
        interval_with_failures_pct=its_interval,
        n=len(answered),
        n_questions=len(questions),
        n_failed=len(questions) - len(answered),
        n_unmapped=sum(option is None for option in answered.values()),
    )


def _comparison(
    answers: Answers, first: str, second: str, split: str, shared: Sequence[Question]
) -> Comparison:
    one, other = answers.right(first, shared), answers.right(second, shared)
    points, interval = _percent(difference(one, other))
    counts = mcnemar(one, other)
    return Comparison(
        first=first,
        second=second,
        split=split,
        n=len(shared),
        difference_points=points,
        interval_points=interval,
        p_bootstrap=bootstrap_p(one, other),
        p_mcnemar=counts.p_value,
        n_first_only=counts.n_first_only,
        n_second_only=counts.n_second_only,
    )


def _rerun(answers: Answers, split: str, shared: Sequence[Question]) -> Rerun:
    one, other = answers.given[PEARL], answers.given[SECOND_RUN]
    counts = mcnemar(answers.right(PEARL, shared), answers.right(SECOND_RUN, shared))
    return Rerun(
        split=split,
        n=len(shared),
        n_decided_differently=counts.n_first_only + counts.n_second_only,
        n_answers_differ=sum(one[q] != other[q] for q in shared),
    )


PLACEHOLDER = Document("The article is not part of the published traces.", "placeholder")


@dataclass
class Report:
    """Counts over all files, and every plan whose answer differs."""

    plans: int = 0
    parsed: int = 0
    valid: int = 0
    invalid_by_code: Counter[str] = field(default_factory=Counter)
    """How many plans have at least one error of a code."""
    figures: PlanFigures | None = None
    """What the valid plans are like."""
    replayed: int = 0
    answers_equal: int = 0
    disagreements: list[dict[str, Any]] = field(default_factory=list)


def compiled(plan: str, library: ActionLibrary, report: Report) -> CheckedPlan | None:
    """Parse and check one plan, counting what is wrong with it."""
    try:
        checked = compile_plan(plan, library)
    except PlanError as error:
        report.parsed += not isinstance(error, PlanSyntaxError)
        report.invalid_by_code.update({d.code for d in error.diagnostics if d.severity == "error"})
        return None
    report.parsed += 1
    report.valid += 1
    return checked


async def replay(checked: CheckedPlan, outputs: dict[str, str], library: ActionLibrary) -> str:
    """Run a plan with a model that replies with the recorded outputs."""
    async with Pearl(Fake(outputs), library=library) as pearl:
        answer = await pearl.execute(checked, PLACEHOLDER)
        return "\n\n".join(part.text for part in answer.parts)


async def reproduce(rows: Iterable[Record], library: ActionLibrary) -> Report:
    """Go through every plan."""
    report = Report()
    shaped: list[tuple[str, PlanShape]] = []
    for record in rows:
        if "plan" not in record.data:
            continue  # a baseline, not a plan
        row = typed(PlanRow, record)
        report.plans += 1
        checked = compiled(row.plan, library, report)
        if checked is not None:
            shaped.append((row.plan, shape_of(checked)))
        if checked is None or row.step_outputs is None:
            continue
        report.replayed += 1
        expected, reason = row.open_answer or "", "the answer differs"
        try:
            answer = await replay(checked, row.step_outputs, library)
        except PearlError as error:
            answer, reason = "", error.message
        if "".join(answer.split()) == "".join(expected.split()) and reason == "the answer differs":
            report.answers_equal += 1
        else:
            where = {"file": record.path.name, "line": record.line, "qid": row.qid}
            found = {"reason": reason, "got": answer, "recorded": expected}
            report.disagreements.append({**where, **found})
    report.figures = figures_of("published", shaped) if shaped else None
    return report


def shape_of(checked: CheckedPlan) -> PlanShape:
    """A plan's size, with a call for each step that no program computes."""
    levels = build_graph(checked).levels()
    steps = checked.plan.steps
    n_calls = sum(not checked.action(step).is_native for step in steps)
    return PlanShape(
        n_steps=len(steps), n_calls=n_calls, depth=len(levels), width=max(map(len, levels))
    )


@click.command()
@trace_files
@click.option("--actions", help="Replay the plans with the library they were written for.")
@click.option("--table", is_flag=True, help="Count the published answers again.")
def main(traces: tuple[Path, ...], actions: str | None, table: bool) -> None:
    """Replay published plans (--actions), count published answers again (--table): prints JSON."""
    if not traces:
        raise click.UsageError("name at least one file: --traces FILE...")
    if not (actions or table):
        raise click.UsageError("name what to do: --actions FILE replays plans, --table recounts")
    found: dict[str, Any] = {}
    try:
        rows = list(records(traces))
        if actions:
            found |= msgspec.to_builtins(asyncio.run(reproduce(rows, load_library(actions))))
        if table:
            found |= msgspec.to_builtins(recount(rows))
    except PearlError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(json.dumps(found, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
