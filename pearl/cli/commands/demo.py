"""`pearl demo`: a question about a shipped document, without a network or a key."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from pearl.cli.help import Command
from pearl.cli.options import as_json, force_option, option, setting_options, trace_option

QUESTIONS = {
    "story": (
        "quality",
        "Why does Tobias cross the river every night at ten with an empty boat, and how does Nora feel about Tobias?",
    ),
    "consultation": (
        "medical",
        "Why is the metformin changed, and what should the patient do about sleep?",
    ),
}


@click.command(cls=Command)
@click.argument("document", type=click.Choice(sorted(QUESTIONS)), default="story")
@option("--question", str, "Another question.")
@setting_options()
@trace_option
@force_option
@as_json
def command(document: str, question: str | None, **options: Any) -> int:
    """Ask a shipped DOCUMENT a question, and show every step."""
    from pearl.cli.work import run_tasks
    from pearl.documents.document import load
    from pearl.plugins.files import find_data
    from pearl.runs.executors import Task

    domain, asked = QUESTIONS[document]
    if (
        click.get_current_context().get_parameter_source("domain")
        == click.core.ParameterSource.DEFAULT
    ):
        options["domain"] = domain
    path = find_data("documents", "demo", f"{document}.txt")
    assert path is not None, "the shipped documents are part of the package"
    asked = question or asked
    if not options["as_json"]:
        click.echo(
            f"Question: {asked}\nDocument: {path.name}, {len(path.read_text('utf-8').split()):,} words\n"
        )
    task = Task("", partial(load, path, name=path.name), asked)
    return run_tasks([task], {**options, "verbose": True})
