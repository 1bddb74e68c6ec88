"""Replay the published PEARL plans through this project's reader, checker and interpreter.

    python experiments/reproduce_pearl.py --traces FILE... --actions FILE [--json]

A trace file has one JSON object a line: `run, split, qid, plan, step_outputs, open_answer`. Every
plan is parsed and checked against the actions. A valid plan that has recorded step outputs is run
with a model that replies with them, and the answer is compared with the recorded one, blanks
aside. The traces hold no articles, so CTX is a one-line placeholder.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from pearl import Document, Pearl, PearlError, load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanError, PlanSyntaxError
from pearl.llm.scripted import Scripted

PLACEHOLDER = Document("The article is not part of the published traces.", "placeholder")


@dataclass
class Report:
    """Counts over all files, and every plan whose answer differs."""

    plans: int = 0
    parsed: int = 0
    valid: int = 0
    invalid_by_code: Counter[str] = field(default_factory=Counter)
    """How many plans have at least one error of a code."""
    replayed: int = 0
    answers_equal: int = 0
    disagreements: list[dict[str, Any]] = field(default_factory=list)


def records(paths: Iterable[Path]) -> Iterator[tuple[Path, int, dict[str, Any]]]:
    """Every record with its file and line."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                yield path, number, json.loads(line)


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
    async with Pearl(Scripted.replay(outputs), library=library) as pearl:
        return (await pearl.execute(checked, PLACEHOLDER)).text


async def reproduce(paths: Iterable[Path], library: ActionLibrary) -> Report:
    """Go through every record of every file."""
    report = Report()
    for path, number, record in records(paths):
        if "plan" not in record:
            continue  # a baseline, not a plan
        report.plans += 1
        checked = compiled(record["plan"], library, report)
        if checked is None or record.get("step_outputs") is None:
            continue
        report.replayed += 1
        expected, reason = record.get("open_answer") or "", "the answer differs"
        try:
            answer = await replay(checked, record["step_outputs"], library)
        except PearlError as error:
            answer, reason = "", error.message
        if "".join(answer.split()) == "".join(expected.split()) and reason == "the answer differs":
            report.answers_equal += 1
        else:
            where = {"file": path.name, "line": number, "qid": record.get("qid"), "reason": reason}
            report.disagreements.append({**where, "got": answer, "recorded": expected})
    return report


@click.command()
@click.option("--traces", multiple=True, type=click.Path(path_type=Path, exists=True))
@click.option("--actions", required=True, help="Library the plans were written for.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.argument("more_traces", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(
    traces: tuple[Path, ...], actions: str, as_json: bool, more_traces: tuple[Path, ...]
) -> None:
    """Replay published plans and count what agrees."""
    paths = [*traces, *more_traces]
    if not paths:
        raise click.UsageError("name at least one file: --traces FILE...")
    report = asyncio.run(reproduce(paths, load_library(actions)))
    if as_json:
        click.echo(json.dumps(vars(report), ensure_ascii=False, indent=2))
        return
    for name in ("plans", "parsed", "valid", "replayed", "answers_equal"):
        click.echo(f"{name:16}{getattr(report, name):>6,}")
    for code, n in report.invalid_by_code.most_common():
        click.echo(f"invalid: {code:>15} {n:,}")
    if report.replayed:
        click.echo(
            f"answers equal: {100 * report.answers_equal / report.replayed:.2f} % of the replayed"
        )
    for row in report.disagreements:
        click.echo(f"  {row['file']}:{row['line']} (question {row['qid']}): {row['reason']}")


if __name__ == "__main__":
    main()
