"""`pearl ask`: a question and documents → answers."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pearl.cli.options import as_json, model_options, trace_option
from pearl.cli.spending import Spending, budget_options
from pearl.cli.writing import keep_inputs
from pearl.errors import UsageError


@click.command()
@click.argument("question")
@click.argument("documents", nargs=-1, metavar="DOC...")
@click.option("--together", is_flag=True, help="Read all documents as one.")
@click.option("-v", "--verbose", is_flag=True, help="Show the plan and every step, too.")
@model_options
@budget_options
@trace_option
@as_json
def command(question: str, documents: tuple[str, ...], together: bool, **options: Any) -> int:
    """Write a plan for QUESTION and run it over each DOC (text, HTML, PDF, Word; - is stdin)."""
    from pearl.executors import Task
    from pearl.sources import join, load

    if not documents:
        raise UsageError(
            "no document", help='name one, or - for stdin: pearl ask "Who ...?" story.txt'
        )
    spending = Spending(options)
    keep_inputs([options["trace"]], documents)
    if together and len(documents) > 1:
        tasks = [Task("", lambda: join([load(path) for path in documents]), question)]
    else:
        ids = documents if len(documents) > 1 else ("",)
        tasks = [
            Task(id, partial(load, path), question) for id, path in zip(ids, documents, strict=True)
        ]
    return spending.run(tasks, len(tasks))
