"""`pearl chat`: questions about documents, one after the other, each understood by those before it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from pearl.cli.corpora import document_tasks, together_option
from pearl.cli.help import Command
from pearl.cli.options import (
    as_json,
    context_lines_option,
    force_option,
    limit_options,
    setting_options,
    store_option,
    trace_option,
)
from pearl.cli.output import Surroundings, print_answer, print_evidence, print_steps
from pearl.cli.progress import Reporter
from pearl.cli.terminal import notice
from pearl.cli.writing import STDOUT, GrowingFile, OutputWriter, new_file, told_too
from pearl.errors import BudgetError, DataError, PausedError, PearlError, UsageError, suggest
from pearl.errors.escaping import counted, escaped, to_json

if TYPE_CHECKING:
    from pearl.documents.document import Document
    from pearl.interpreter.answer import Answer
    from pearl.llm.prices import Price
    from pearl.runs.conversation import Conversation
    from pearl.telemetry import Telemetry
    from pearl.trace import Event, Trace


@click.command(cls=Command)
@click.argument("documents", nargs=-1, metavar="DOC...")
@together_option
@click.option(
    "-o", "--out", type=click.Path(), help="Keep the conversation in FILE, as JSON lines."
)
@click.option(
    "--continue", "continued", type=click.Path(), metavar="FILE",
    help="Continue the conversation of FILE, and keep it there.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show the plan and every step, too.")
@context_lines_option
@setting_options()
@limit_options
@click.option("--fresh", is_flag=True, help="Ignore kept replies.")
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

    from pearl.cli.files import read_input
    from pearl.cli.options import model_opened, new_pearl, report_refused
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
    writer = OutputWriter(is_forced=options["force"])
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


MAX_LINE = 100_000
"""Characters of a line that is read."""

PROMPT = "> "

INTERRUPTED = 130
"""Exit code of a session that Ctrl-C ended."""


class Lines:
    """Lines of a person: with editing and a history at a terminal, as they are from a pipe."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdin.isatty()
        if not self.is_terminal:
            if hasattr(sys.stdin, "reconfigure"):  # the question that is not UTF-8 fails, not all
                sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
        elif sys.stdout.isatty():
            import readline  # noqa: F401 - `input` edits by it

    def read(self) -> str | None:
        """The next line without the blanks around it; None at the end."""
        if self.is_terminal and sys.stdout.isatty():
            try:
                return input(PROMPT).strip()
            except EOFError:
                click.echo()
                return None
        if self.is_terminal:
            click.echo(PROMPT, nl=False, err=True)  # what is on stdout goes elsewhere
        line = sys.stdin.readline(MAX_LINE)
        is_cut = len(line) == MAX_LINE and not line.endswith("\n")
        while is_cut and (more := sys.stdin.readline(MAX_LINE)) and not more.endswith("\n"):
            pass
        if is_cut:
            raise UsageError(f"the line has more than {MAX_LINE:,} characters", help="ask shorter")
        return line.strip() if line else None


class KeptFile:
    """The file of a conversation: turns are appended, and flushed, as they come."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._written: tuple[str, ...] = ()
        self._state: tuple[int, int] | None = None

    def write(self, lines: tuple[str, ...]) -> None:
        """Bring the file up to date."""
        n = len(self._written)
        try:
            if self._state is not None and self._state != self._state_now():
                raise DataError(
                    "something else has written to it, which is left as it is",
                    path=self._path, help="/save FILE keeps this conversation elsewhere",
                )  # fmt: skip
            if not n or lines[:n] != self._written:  # turns were taken back
                with new_file(self._path) as file:
                    file.writelines(f"{line}\n" for line in lines)
            else:
                self._written = ()  # a line that is cut off is written anew
                with Path(self._path).open("a", encoding="utf-8") as file:
                    file.writelines(f"{line}\n" for line in lines[n:])
            self._state = self._state_now()
        except OSError as error:
            raise DataError(
                f"cannot be written: {error.strerror}", path=self._path, help="/save FILE"
            ) from None
        self._written = lines

    def _state_now(self) -> tuple[int, int] | None:
        """Which file it is, and its length; None for a device, which nobody can compare."""
        path = Path(self._path)
        status = path.stat()
        return (status.st_ino, status.st_size) if path.is_file() else None


@dataclass(frozen=True, slots=True)
class _Command:
    """A command of the chat."""

    help: str
    run: Callable[[str], None]
    argument: str = ""


class Chat:
    """A session: one line after the other is asked, or carried out."""

    def __init__(
        self,
        conversation: Conversation,
        runner: asyncio.Runner,
        out: IO[str],
        *,
        as_json: bool = False,
        verbose: bool = False,
        kept: KeptFile | None = None,
        events: GrowingFile | None = None,
        writer: OutputWriter,
        price: Price | None = None,
        n_context_lines: int = 0,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._conversation = conversation
        self._runner = runner
        self._out = out
        self._said: IO[str] = sys.stderr if as_json else out
        self._as_json = as_json
        self._verbose = verbose
        self._kept = kept
        self._events = events
        self._writer = writer
        self._price = price
        self._surroundings = None
        if n_context_lines:
            self._surroundings = Surroundings(conversation.document, n_context_lines)
        self._telemetry = telemetry
        self._lines = Lines()
        self._n_asked = self._n_failed = 0
        self._is_over = False
        self._commands = {
            "plan": _Command("the plan of the last answer", self._plan),
            "steps": _Command("its steps with their values", self._steps),
            "evidence": _Command("the passages and rows behind it", self._evidence),
            "turns": _Command("the conversation so far", self._turns),
            "undo": _Command("forget the last turn", self._undo),
            "new": _Command("forget all turns", self._new),
            "save": _Command("write the conversation to FILE", self._save, "FILE"),
            "help": _Command("this list", self._help),
            "quit": _Command("end", self._quit),
        }

    def run(self) -> int:
        """Read lines to the end."""
        if self._kept is not None:
            self._kept.write(self._conversation.lines)
        try:
            if self._lines.is_terminal:
                name = escaped(self._conversation.document.name)
                click.echo(f"Ask about {name}. /help lists commands; Ctrl-D ends.", err=True)
            while not self._is_over and self._next():
                pass
        except KeyboardInterrupt:
            notice("interrupted")
            return INTERRUPTED
        return 1 if self._n_failed and not self._lines.is_terminal else 0

    def _next(self) -> bool:
        """Ask or carry out one line; whether there was one."""
        try:
            line = self._lines.read()
            if line is None:
                return False
            if line and not self._lines.is_terminal and not self._as_json:
                self._out.write(escaped(f"{PROMPT}{line}\n"))
            if line.startswith("/"):
                self._carry_out(line)
            elif line:
                self._ask(line)
        except UsageError as error:
            self._fail(error)
        self._out.flush()
        return True

    def _fail(self, error: PearlError) -> None:
        self._n_failed += 1
        notice(str(error))

    def _ask(self, question: str) -> None:
        """One turn: a question that fails is told, and the next one can be asked."""
        self._n_asked += 1
        id = str(self._n_asked)
        was_cancelled = False

        async def ask(trace: Trace) -> Answer:
            nonlocal was_cancelled
            try:
                return await self._conversation.ask(question, trace=trace)
            except asyncio.CancelledError:
                was_cancelled = True
                raise

        reporter = Reporter(1, price=self._price)
        tell = partial(told_too(reporter, self._events), id)
        try:
            with reporter, self._tracing(id, tell) as trace:
                answer = self._runner.run(ask(trace))
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
            if self._as_json:
                told = {"type": type(error).__name__, "message": str(error)}
                row = {"status": "failed", "question": question, "error": told}
                self._out.write(to_json(row) + "\n")
            return
        self._n_failed += answer.is_unsure
        if self._as_json:
            self._out.write(to_json(answer.to_json()) + "\n")
        else:
            print_answer(
                answer, self._out, with_steps=self._verbose, surroundings=self._surroundings
            )
            self._out.write("\n")
        self._keep()

    def _tracing(self, id: str, tell: Callable[[Event], None]) -> AbstractContextManager[Trace]:
        """The trace of a question, with its spans where they are asked for."""
        from pearl.trace import Trace

        if self._telemetry is None:
            return nullcontext(Trace(id, tell))
        return self._telemetry.tracing(id, tell)

    def _keep(self) -> None:
        """Keep the conversation; it goes on where that fails, so that it can be saved elsewhere."""
        if self._kept is not None:
            try:
                self._kept.write(self._conversation.lines)
            except DataError as error:
                self._fail(error)

    # --- commands -----------------------------------------------------------------------------

    def _carry_out(self, line: str) -> None:
        """Carry out a command."""
        name, _, argument = line[1:].partition(" ")
        command = self._commands.get(name)
        if command is None:
            named = [f"/{each}" for each in self._commands]
            raise UsageError(f"no command '/{name}'", help=suggest(f"/{name}", named, "commands"))
        if bool(argument.strip()) != bool(command.argument):
            needs = f"needs {command.argument}" if command.argument else "takes nothing more"
            raise UsageError(f"/{name} {needs}", help=f"/{name} {command.argument}".strip())
        command.run(argument.strip())

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._said.write(escaped(f"{line}\n"))

    def _answer(self) -> Answer:
        """The last answer."""
        if self._conversation.last is None:
            raise UsageError("no answer yet", help="ask a question first")
        return self._conversation.last

    def _plan(self, _: str) -> None:
        self._say(self._answer().plan)

    def _steps(self, _: str) -> None:
        print_steps(self._answer().steps, self._said)

    def _evidence(self, _: str) -> None:
        print_evidence(self._answer(), self._said, surroundings=self._surroundings)

    def _turns(self, _: str) -> None:
        for number, turn in enumerate(self._conversation.turns, start=1):
            self._say(f"{number}. {turn.question}", f"   {_first_line(turn.answer)}")
        if not self._conversation.turns:
            self._say("no turn yet")

    def _undo(self, _: str) -> None:
        turn = self._conversation.undo()
        if turn is None:
            raise UsageError("no turn to undo", help="ask a question first")
        self._say(f"forgotten: {turn.question}")
        self._keep()

    def _new(self, _: str) -> None:
        n = len(self._conversation.turns)
        self._conversation.clear()
        self._say(f"{counted(n, 'turn')} forgotten")
        self._keep()

    def _save(self, path: str) -> None:
        try:
            with self._writer.open(path) as file:
                file.write(self._conversation.to_jsonl())
        except DataError as error:
            self._fail(error)
            return
        self._say(f"{counted(len(self._conversation.turns), 'turn')} in {path}")

    def _help(self, _: str) -> None:
        for name, command in self._commands.items():
            self._say(f"{f'/{name} {command.argument}':<14}{command.help}")

    def _quit(self, _: str) -> None:
        self._is_over = True


def _first_line(text: str, n: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= n else f"{line[: n - 4]} ..."
