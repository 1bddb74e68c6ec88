"""`pearl ask`: answer a question from documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pearl.cli.files import document_tasks, is_file, named_sources, source_option, together_option
from pearl.cli.options import (
    PATH,
    Command,
    answer_options,
    budget_options,
    force_option,
    json_options,
    new_pearl,
    option,
    setting_options,
    store_option,
    trace_option,
)
from pearl.cli.terminal import notice
from pearl.errors import UsageError


@click.command(cls=Command)
@click.argument("question")
@click.argument("documents", nargs=-1, metavar="DOC...")
@together_option
@source_option
@option(
    "--schema", str, "Answer with the fields of a schema, as in `pearl extract`.", metavar="SCHEMA"
)
@option(
    "-o --out",
    PATH,
    "Write to FILE instead of stdout: the page (.html), JSON (.json, .jsonl), text (.txt, .md); or the rows behind the answer (.csv, .xlsx).",
)
@option("-v --verbose", bool, "Show the plan and every step, too.")
@answer_options
@setting_options()
@budget_options
@option("--fresh", bool, "Ignore stored replies.")
@store_option
@trace_option
@force_option
@json_options
def command(
    question: str, documents: tuple[str, ...], together: bool, sources: tuple[str, ...], schema: str | None, out: str | None,
    **options: Any,
) -> int:  # fmt: skip
    """Answer QUESTION from each DOC, with passages that support it.

    QUESTION becomes a plan, which runs over each DOC (text, HTML, PDF, Word; - is stdin). A DOC may
    be a folder or a pattern, such as reports/*.txt. With --together they are one corpus:
    a step for which it is too long is shown the matching passages, from a stored index. The store
    keeps every reply: repeating a question about the same document makes no call.
    """
    from pearl.cli.run_commands import run_tasks

    _refuse_swapped(question, documents)
    named = named_sources(sources)
    if not documents and not named:
        raise UsageError(
            "no document", help='name one, or - for stdin: pearl ask "Who ...?" story.txt'
        )
    plan = loaded = None
    if schema is not None:
        from pearl.data.schemas import load_schema

        loaded = load_schema(schema)
        for note in loaded.notes:
            notice(note)
        asker = new_pearl(options, is_asked=False)
        plan = str(asker.plan_extraction(loaded.fields, question=question))
    outs = [out, options["trace"], options["rows_out"], options["page"]]
    tasks = document_tasks(
        documents, together=together, question=question, plan=plan, is_named=options["as_lines"] or str(out).endswith(".jsonl"), outs=outs,
        sources=named,
    )  # fmt: skip
    # to stderr: a pipe receives the answer only
    tells_plans = plan is None and not (options["as_json"] or options["as_lines"])
    return run_tasks(tasks, options, out=out, schema=loaded, tells_plans=tells_plans)


def _refuse_swapped(question: str, documents: tuple[str, ...]) -> None:
    """Reject a file name in place of a question."""
    if not is_file(question):
        return
    rest = " ".join(documents)
    if question.endswith(".plan"):
        help = f"to run a plan: pearl execute {question} {rest or 'DOC'}"
    elif documents and not Path(documents[0]).exists():
        help = f'the question comes first: pearl ask "{documents[0]}" {question}'
    else:
        help = f'pearl ask "Who ...?" {" ".join([question, *documents])}'
    raise UsageError(f"'{question}' is a file, not a question", help=help)
