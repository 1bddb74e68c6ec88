"""`pearl execute`: a plan over many documents, or a file of tasks."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import click

from pearl.cli.files import library_for
from pearl.cli.options import as_json, model_options, trace_option
from pearl.cli.output import keep_inputs, read_input
from pearl.errors import PlanError, UsageError


@click.command()
@click.argument("plan_and_documents", nargs=-1, metavar="[PLAN] DOC...")
@click.option(
    "--tasks", type=click.Path(),
    help="JSONL: id, plan | plan_path | question, document | document_path.",
)  # fmt: skip
@click.option("--out", type=click.Path(), help="Write one JSON line a document to FILE.")
@click.option("-v", "--verbose", is_flag=True, help="Show the plan and every step, too.")
@model_options
@trace_option
@as_json
def command(
    plan_and_documents: tuple[str, ...], tasks: str | None, out: str | None, **options: Any
) -> int:
    """Run PLAN, a plan file, over each DOC (- is stdin); or the rows of --tasks.

    With --tasks every argument is a document, for those rows that name none.
    """
    from pearl.cli.work import run_tasks
    from pearl.dsl.checker import compile_plan
    from pearl.executors import Task
    from pearl.sources import load
    from pearl.tasks import read_tasks

    keep_inputs([out, options["trace"]], [*plan_and_documents, *([tasks] if tasks else [])])
    if tasks is not None:
        return asyncio.run(run_tasks(read_tasks(tasks, plan_and_documents), None, options, out=out))
    if len(plan_and_documents) < 2:
        raise UsageError(
            "a plan and a document, or --tasks FILE", help="pearl execute why.plan story.txt"
        )
    plan, *documents = plan_and_documents
    text = read_input(plan)
    try:
        compile_plan(
            text,
            library_for(options["library"], options["domain"]),
            max_steps=options["max_steps"],
        )
    except PlanError as error:  # once, under its own name, before any document is read
        raise type(error)(error.text, error.diagnostics, plan) from None
    ids = documents if len(documents) > 1 or out else [""]
    work = [
        Task(id, partial(load, path), plan=text) for id, path in zip(ids, documents, strict=True)
    ]
    return asyncio.run(run_tasks(work, len(work), options, out=out))
