"""Replay the published PEARL plans, and count the published answers again.

    python experiments/reproduce_pearl.py --traces FILE... --actions FILE [--json]
    python experiments/reproduce_pearl.py --traces FILE... --table [--json]

A trace file has one JSON object a line: a plan with `run, split, qid, plan, step_outputs,
open_answer, map_answer, gold`, or a baseline's answer with `method, split, qid, answer, gold`.

With --actions every plan is parsed and checked against them. A valid plan that has recorded step
outputs is run through the interpreter with a model that replies with them, and the answer is
compared with the recorded one, blanks aside. The traces hold no articles, so CTX is a one-line
placeholder.

With --table the accuracies of the paper are counted again, with intervals and paired tests.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from published_table import recount, render
from traces import PlanRow, Record, records, trace_files, typed

from pearl import Document, Pearl, PearlError, load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.graph import build_graph
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError, PlanSyntaxError
from pearl.evals.log import PlanShape
from pearl.evals.report import PlanFigures, figures_of
from pearl.testing import Fake

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


def print_report(report: Report) -> None:
    for name in ("plans", "parsed", "valid", "replayed", "answers_equal"):
        click.echo(f"{name:16}{getattr(report, name):>6,}")
    for code, n in report.invalid_by_code.most_common():
        click.echo(f"invalid: {code:>15} {n:,}")
    if report.figures:
        shown = ", ".join(f"{name} {value}" for name, value in asdict(report.figures).items())
        click.echo(f"valid plans: {shown}")
    if report.replayed:
        click.echo(
            f"answers equal: {100 * report.answers_equal / report.replayed:.2f} % of the replayed"
        )
    for row in report.disagreements:
        click.echo(f"  {row['file']}:{row['line']} (question {row['qid']}): {row['reason']}")


@click.command()
@trace_files
@click.option("--actions", help="Replay the plans with the library they were written for.")
@click.option("--table", is_flag=True, help="Count the published answers again.")
@click.option("--json", "as_json", is_flag=True, help="Print what is counted as JSON.")
def main(traces: tuple[Path, ...], actions: str | None, table: bool, as_json: bool) -> None:
    """Replay published plans (--actions), count published answers again (--table)."""
    if not traces:
        raise click.UsageError("name at least one file: --traces FILE...")
    if not (actions or table):
        raise click.UsageError("name what to do: --actions FILE replays plans, --table recounts")
    try:
        rows = list(records(traces))
        report = asyncio.run(reproduce(rows, load_library(actions))) if actions else None
        counted = recount(rows) if table else None
    except PearlError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    if as_json:
        figures = {"figures": report and report.figures and asdict(report.figures)}
        parts = {
            **({**vars(report), **figures} if report else {}),
            **(asdict(counted) if counted else {}),
        }
        click.echo(json.dumps(parts, ensure_ascii=False, indent=2))
        return
    if report:
        print_report(report)
    if report and counted:
        click.echo()
    if counted:
        click.echo(render(counted))


if __name__ == "__main__":
    main()
