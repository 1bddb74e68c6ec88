"""`pearl chat`: a conversation about documents; earlier questions give later ones their context."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from pearl.cli import writing
from pearl.cli.files import document_tasks, together_option
from pearl.cli.options import (
    PATH,
    Command,
    as_json,
    force_option,
    limit_options,
    option,
    setting_options,
    store_option,
    trace_option,
)
from pearl.cli.output import print_answer, print_evidence, print_steps
from pearl.cli.progress import Reporter
from pearl.cli.terminal import notice
from pearl.errors import BudgetError, DataError, PausedError, PearlError, UsageError, suggest
from pearl.errors.escaping import counted, escaped, to_json

if TYPE_CHECKING:
    from pearl.documents.document import Document
    from pearl.interpreter.answer import Answer
    from pearl.runs.conversation import Conversation
    from pearl.runs.session import Session
    from pearl.trace import Trace


@click.command(cls=Command)
@click.argument("documents", nargs=-1, metavar="DOC...")
@together_option
@option("-o --out", PATH, "Save the conversation to FILE, as JSON lines.")
@option(
    "--continue continued", PATH, metavar="FILE", help="Continue the conversation in FILE, and save it there.",
)  # fmt: skip
@option("-v --verbose", bool, "Show the plan and every step, too.")
@setting_options()
@limit_options
@option("--fresh", bool, "Ignore stored replies.")
@store_option
@trace_option
@force_option
@as_json
def command(
    documents: tuple[str, ...], together: bool, out: str | None, continued: str | None, **options: Any
) -> int:  # fmt: skip
    """Answer questions about DOC, one per line.

    A question may refer to earlier ones. Several DOCs, or a folder, are a corpus, as with `pearl
    ask --together`. Questions from a pipe are echoed, so that the output reads as a conversation.
    /help lists commands: /plan, /evidence, /undo, ... Ctrl-C cancels a running question; at the
    prompt it ends the session, as Ctrl-D does.
    """
    from pearl.cli.files import read_input
    from pearl.cli.options import model_opened, report_refused
    from pearl.cli.run_commands import opened_session
    from pearl.runs.conversation import Conversation

    if not documents:
        raise UsageError("no document", help="name one: pearl chat story.txt")
    path = out or continued
    if "-" in documents or path in writing.STDOUT[1:]:
        raise UsageError(
            "a conversation reads its questions from stdin and writes its answers to stdout",
            help="name files: pearl chat story.txt -o talk.jsonl",
        )
    writer = writing.OutputWriter(is_forced=options["force"])
    if out is None or continued is None or Path(out).resolve() != Path(continued).resolve():
        writer.check(out)
    trace = options["trace"]
    writer.check(trace)
    document = _document(documents, together=together, outs=[path, trace])
    with ExitStack() as stack:
        session = stack.enter_context(opened_session(options))
        pearl = session.equipped()
        conversation = Conversation(pearl, document)
        if continued is not None:
            text = read_input(continued)
            conversation = Conversation.from_jsonl(text, pearl, document, path=continued)
        file = stack.enter_context(writer.open(None))
        events = stack.enter_context(writing.GrowingFile(writer, trace)) if trace else None
        runner = stack.enter_context(asyncio.Runner())
        opened = AsyncExitStack()
        runner.run(opened.enter_async_context(model_opened(session.pearl, options)))
        stack.callback(lambda: runner.run(opened.aclose()))
        stack.callback(
            lambda: report_refused(pearl.client.limiter.limits, pearl.client.settings.concurrency)
        )
        return Chat(
            conversation, session, runner, file, writer, as_json=options["as_json"],
            verbose=options["verbose"], kept=None if path is None else KeptFile(path), events=events,
        ).run()  # fmt: skip


def _document(documents: tuple[str, ...], *, together: bool, outs: list[str | None]) -> Document:
    """The one document, or all of them as a corpus."""
    tasks = document_tasks(documents, together=together, outs=outs)
    if len(tasks) > 1:
        tasks = document_tasks(documents, together=True, outs=outs)
    load = tasks[0].document
    assert load is not None, "a task over files has one"
    return load()


MAX_LINE = 100_000  # Maximum characters of a line

PROMPT = "> "

INTERRUPTED = 130  # Exit code of a session that Ctrl-C ended


class Lines:
    """Reads the lines of the user: with editing and a history at a terminal, unchanged from a pipe."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdin.isatty()
        if not self.is_terminal:
            if hasattr(sys.stdin, "reconfigure"):  # a question that is not UTF-8 fails alone
                sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
        elif sys.stdout.isatty():
            with suppress(ImportError):  # Windows edits lines itself
                import readline  # noqa: F401 - `input` edits by it

    def read(self) -> str | None:
        """The next line without surrounding blanks; None at the end."""
        if self.is_terminal and sys.stdout.isatty():
            try:
                return input(PROMPT).strip()
            except EOFError:
                click.echo()
                return None
        if self.is_terminal:
            click.echo(PROMPT, nl=False, err=True)  # stdout is redirected
        line = sys.stdin.readline(MAX_LINE)
        is_cut = len(line) == MAX_LINE and not line.endswith("\n")
        while is_cut and (more := sys.stdin.readline(MAX_LINE)) and not more.endswith("\n"):
            pass
        if is_cut:
            raise UsageError(f"the line has more than {MAX_LINE:,} characters", help="ask shorter")
        return line.strip() if line else None


class KeptFile:
    """The file of a conversation: rewritten after each turn, unless another program has changed it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._text: str | None = None

    def write(self, text: str) -> None:
        """Update the file; a pipe or a device receives only the new lines."""
        path, before = Path(self._path), self._text
        try:
            is_changed = (
                before is not None and path.is_file() and path.read_bytes() != before.encode()
            )
        except OSError as error:
            raise writing.unwritable(self._path, error) from None
        if is_changed:
            raise DataError(
                "another program has written to the file, so this conversation is no longer saved there",
                path=path, help="/save FILE saves it elsewhere",
            )  # fmt: skip
        with writing.new_file(self._path) as file:
            file.write(text if writing.is_plain(self._path) else text.removeprefix(before or ""))
        self._text = text


@dataclass
class Chat:
    """A session: asks each line as a question, or runs it as a command."""

    conversation: Conversation
    session: Session
    runner: asyncio.Runner
    out: IO[str]
    writer: writing.OutputWriter
    as_json: bool = False
    verbose: bool = False
    kept: KeptFile | None = None
    events: writing.GrowingFile | None = None

    def __post_init__(self) -> None:
        self._messages = sys.stderr if self.as_json else self.out  # of commands
        self._lines = Lines()
        self._n_asked = self._n_failed = 0
        self._is_over = False
        # Name → what it does, its argument, and the method.
        self._commands: dict[str, tuple[str, str, Callable[[str], None]]] = {
            "plan": ("the plan of the last answer", "", lambda _: self._say(self._answer().plan)),
            "steps": (
                "its steps with their values", "", lambda _: print_steps(self._answer().steps, self._messages),
            ),
            "evidence": (
                "the passages and rows behind it", "", lambda _: print_evidence(self._answer(), self._messages),
            ),
            "turns": ("the conversation so far", "", self._turns),
            "undo": ("forget the last turn", "", self._undo),
            "new": ("forget all turns", "", self._new),
            "save": ("write the conversation to FILE", "FILE", self._save),
            "help": ("this list", "", self._help),
            "quit": ("end", "", self._quit),
        }  # fmt: skip

    def run(self) -> int:
        """Process all lines; returns the exit code."""
        if self.kept is not None:
            self.kept.write(self.conversation.to_jsonl())
        try:
            if self._lines.is_terminal:
                name = escaped(self.conversation.document.name)
                click.echo(f"Ask about {name}. /help lists commands; Ctrl-D ends.", err=True)
            while not self._is_over and self._next():
                pass
        except KeyboardInterrupt:
            notice("interrupted")
            return INTERRUPTED
        return 1 if self._n_failed and not self._lines.is_terminal else 0

    def _next(self) -> bool:
        """Process one line; returns False at the end."""
        try:
            line = self._lines.read()
            if line is None:
                return False
            if line and not self._lines.is_terminal and not self.as_json:
                self.out.write(escaped(f"{PROMPT}{line}\n"))
            if line.startswith("/"):
                self._carry_out(line)
            elif line:
                self._ask(line)
        except UsageError as error:
            self._fail(error)
        self.out.flush()
        return True

    def _fail(self, error: PearlError) -> None:
        self._n_failed += 1
        notice(str(error))

    def _ask(self, question: str) -> None:
        """Ask a question; an error is reported and does not end the session."""
        from pearl.trace import Trace
        from pearl.trace.exporters import exported

        self._n_asked += 1
        id = str(self._n_asked)
        was_cancelled = False

        async def ask(trace: Trace) -> Answer:
            nonlocal was_cancelled
            try:
                return await self.conversation.ask(question, trace=trace)
            except asyncio.CancelledError:
                was_cancelled = True
                raise

        reporter = Reporter(1, price=self.session.only_price)
        tell = partial(writing.traced_listener(reporter, self.events), id)
        telemetry = self.session.telemetry
        tracing = exported(telemetry, id, tell) if telemetry else nullcontext(Trace(id, tell))
        try:
            with reporter, tracing as trace:
                answer = self.runner.run(ask(trace))
        except KeyboardInterrupt:
            if not (was_cancelled and self._lines.is_terminal):
                raise
            notice("the question is cancelled; press Ctrl-C again to end the conversation")
            return
        except PearlError as error:
            is_over = isinstance(error, PausedError) and not self._lines.is_terminal
            if isinstance(error, BudgetError) or is_over:
                raise
            self._fail(error)
            if self.as_json:
                row = {"status": "failed", "question": question, "error": error.to_dict()}
                self.out.write(to_json(row) + "\n")
            return
        self._n_failed += answer.is_unsure
        if self.as_json:
            self.out.write(to_json(answer.to_dict()) + "\n")
        else:
            print_answer(answer, self.out, with_steps=self.verbose)
            self.out.write("\n")
        self._keep()

    def _keep(self) -> None:
        """Update the file of the conversation; an error is reported, so that `/save` can be tried."""
        if self.kept is not None:
            try:
                self.kept.write(self.conversation.to_jsonl())
            except DataError as error:
                self._fail(error)

    # --- commands -----------------------------------------------------------------------------

    def _carry_out(self, line: str) -> None:
        name, _, argument = line[1:].partition(" ")
        if name not in self._commands:
            named = [f"/{each}" for each in self._commands]
            raise UsageError(f"no command '/{name}'", help=suggest(f"/{name}", named, "commands"))
        _, wanted, method = self._commands[name]
        if bool(argument.strip()) != bool(wanted):
            needs = f"needs {wanted}" if wanted else "takes nothing more"
            raise UsageError(f"/{name} {needs}", help=f"/{name} {wanted}".strip())
        method(argument.strip())

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._messages.write(escaped(f"{line}\n"))

    def _answer(self) -> Answer:
        if self.conversation.last is None:
            raise UsageError("no answer yet", help="ask a question first")
        return self.conversation.last

    def _turns(self, _: str) -> None:
        from pearl.documents.rows import shortened

        for number, turn in enumerate(self.conversation.turns, start=1):
            self._say(f"{number}. {turn.question}", f"   {shortened(turn.answer)}")
        if not self.conversation.turns:
            self._say("no turn yet")

    def _undo(self, _: str) -> None:
        turn = self.conversation.undo()
        if turn is None:
            raise UsageError("no turn to undo", help="ask a question first")
        self._say(f"forgotten: {turn.question}")
        self._keep()

    def _new(self, _: str) -> None:
        n = len(self.conversation.turns)
        self.conversation.clear()
        self._say(f"{counted(n, 'turn')} forgotten")
        self._keep()

    def _save(self, path: str) -> None:
        try:
            with self.writer.open(path) as file:
                file.write(self.conversation.to_jsonl())
        except DataError as error:
            self._fail(error)
            return
        self._say(f"{counted(len(self.conversation.turns), 'turn')} in {path}")

    def _help(self, _: str) -> None:
        for name, (about, wanted, _method) in self._commands.items():
            self._say(f"{f'/{name} {wanted}':<14}{about}")

    def _quit(self, _: str) -> None:
        self._is_over = True
