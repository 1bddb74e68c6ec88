"""`pearl chat`: questions about documents, one after the other, each understood by those before it."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.corpora import document_tasks, together_option
from pearl.cli.growing import GrowingFile
from pearl.cli.help import Command
from pearl.cli.options import as_json, context_lines_option, setting_options, trace_option
from pearl.cli.run_options import limit_options, store_option
from pearl.cli.writing import STDOUT, OutputWriter, force_option
from pearl.errors import UsageError

if TYPE_CHECKING:
    from pearl.documents.document import Document


@click.command(cls=Command)
@click.argument("documents", nargs=-1, metavar="DOC...")
@together_option
@click.option(
    "-o", "--out", type=click.Path(), help="Keep the conversation in FILE, as JSON lines."
)
@click.option(
    "--continue", "continued", type=click.Path(), metavar="FILE",
    help="Go on with the conversation of FILE, and keep it there.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show the plan and every step, too.")
@context_lines_option
@setting_options()
@limit_options
@click.option("--fresh", is_flag=True, help="Ask for every reply anew.")
@store_option
@trace_option
@force_option
@as_json
def command(
    documents: tuple[str, ...],
    together: bool,
    out: str | None,
    continued: str | None,
    **options: Any,
) -> int:
    """Answer questions about DOC, one a line; a question is understood by those before it.

    Several DOCs, or a folder, are a corpus, as with `pearl ask --together`. What is not typed but piped is
    echoed, so that the output reads as a conversation. /help lists commands: /plan, /evidence, /undo, ...
    Ctrl-C ends a running question; at the prompt, as Ctrl-D, the session.
    """
    import asyncio

    from pearl.cli.chat import Chat, KeptFile
    from pearl.cli.options import model_opened, new_pearl, report_refused
    from pearl.cli.output import read_input
    from pearl.cli.work import new_session, reply_store, report_spent_by
    from pearl.runs.conversation import Conversation

    if not documents:
        raise UsageError("no document", help="name one: pearl chat story.txt")
    path = out or continued
    if "-" in documents or path in STDOUT[1:]:
        raise UsageError(
            "questions are read from stdin, and answers go to stdout",
            help="name files: pearl chat story.txt -o talk.jsonl",
        )
    writer = OutputWriter.of_command(options["store"], is_forced=options["force"])
    if not _is_same(out, continued):
        writer.check(out)
    writer.check(options["trace"])
    document = _document(documents, together=together, outs=[path, options["trace"]])
    with ExitStack() as stack:
        store = stack.enter_context(reply_store(options["store"]))
        own = new_pearl(options)
        session = new_session(own, options, store, keeps_rows=False)
        stack.callback(report_spent_by, session)
        pearl = session.equipped()
        conversation = Conversation(pearl, document)
        if continued is not None:
            text = read_input(continued)
            conversation = Conversation.from_jsonl(text, pearl, document, path=continued)
        file = stack.enter_context(writer.open(None))
        trace = options["trace"]
        events = stack.enter_context(GrowingFile(writer, trace)) if trace else None
        runner = stack.enter_context(asyncio.Runner())
        opened = AsyncExitStack()
        runner.run(opened.enter_async_context(model_opened(own, options)))
        stack.callback(lambda: runner.run(opened.aclose()))
        chat = Chat(
            conversation, runner, file, as_json=options["as_json"], verbose=options["verbose"],
            kept=None if path is None else KeptFile(path), events=events, writer=writer,
            price=session.price, n_context_lines=options["context_lines"],
            telemetry=session.telemetry,
        )  # fmt: skip
        try:
            return chat.run()
        finally:
            limiter = pearl.client.limiter
            report_refused(limiter.limits, pearl.client.settings.concurrency)


def _document(documents: tuple[str, ...], *, together: bool, outs: list[str | None]) -> Document:
    """The one document, or all of them as a corpus."""
    tasks = document_tasks(documents, together=together, outs=outs)
    if len(tasks) > 1:
        tasks = document_tasks(documents, together=True, outs=outs)
    load = tasks[0].document
    assert load is not None, "a task over files has one"
    return load()


def _is_same(out: str | None, continued: str | None) -> bool:
    """Whether two names are those of one file."""
    return (
        out is not None
        and continued is not None
        and Path(out).resolve() == Path(continued).resolve()
    )
