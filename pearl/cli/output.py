"""Formats answers as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from pearl.cli.terminal import new_console
from pearl.documents.document import read_bytes
from pearl.errors import DataError
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from pearl.cli.citing import Line, Surroundings
    from pearl.interpreter.answer import Answer, StepResult


_ALL = 0.995
"""Coverage from which a document counts as read: what lies between rows belongs to none."""

MARK_STYLE = "bold cyan"
"""Of the numbers of evidence, which no number of a document has."""

MAX_OTHER = 200
"""Characters that are shown of an answer which another plan gave."""


def read_input(path: str) -> str:
    """A text file given on the command line; `-` is stdin."""
    label = "<stdin>" if path == "-" else path
    try:
        return read_bytes(path, label).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 text: {error.reason} at byte {error.start}",
            path=label,
            help="save the file as UTF-8",
        ) from None


def print_answer(
    answer: Answer,
    file: IO[str],
    *,
    with_steps: bool = False,
    surroundings: Surroundings | None = None,
) -> None:
    """The answer, its evidence and, if wanted, the plan, every step and what is around the evidence.

    A passage that the answer quotes has its number there, and is not repeated below.
    """
    from rich.text import Text

    from pearl.cli.citing import cited, mark_form
    from pearl.documents.rows import shortened
    from pearl.interpreter.answer import MAX_SHOWN

    console = new_console(file=file)

    def head(text: str) -> None:
        console.print(Text(text, style="bold"))

    if with_steps:
        head("Plan")
        console.print(Text(answer.plan))
        console.print()
        print_steps(answer.steps, file)
        head("Answer")
    understood = answer.understood
    if understood is not None and understood.question != understood.asked:
        console.print(Text(f"Understood as: {understood.question}", style="dim"))
    form = mark_form(answer.text)
    pieces, quoted = cited(answer.text, answer.evidence)
    shown = Text()
    for text, numbers in pieces:
        shown.append(text)
        for number in numbers:
            shown.append(f" {form.format(number)}", style=MARK_STYLE)
    console.print(shown)
    console.print()
    if answer.method == "direct":
        console.print(Text("Answered directly: no valid plan could be had.", style="yellow"))
    if answer.is_unsure and not answer.text.startswith("undecided: "):
        told = f"{answer.status.capitalize()}: {answer.why}"
        console.print(Text(told, style="bold yellow"))
    if answer.agreement is not None:
        is_sure = answer.agreement.confidence == 1
        console.print(Text(f"agreement: {answer.agreement}", "" if is_sure else "yellow"))
        for other in answer.agreement.others if with_steps else ():
            which = f"  plan {', '.join(map(str, other.written))} ({other.status}): "
            console.print(Text.assemble((which, "dim"), shortened(other.text, MAX_OTHER)))
    in_vain = [s.output for s in answer.steps if s.state == "nothing" and not s.is_native]
    if not answer.evidence and not answer.rows:  # rows are evidence, too
        is_known = answer.status != "answered" or not in_vain
        head(f"Evidence: none; {'no step quotes the document' if is_known else _vain(in_vain)}")
    elif answer.evidence:
        head("Evidence")
    for number, evidence in enumerate(answer.evidence, start=1):
        mark = (f"{form.format(number)} ", MARK_STYLE)
        if number in quoted:
            console.print(Text.assemble(mark, (evidence.where, "dim")))
        else:
            console.print(Text.assemble(mark, evidence.marked, (f"  ({evidence.where})", "dim")))
        if surroundings is not None:
            _print_lines(surroundings.of(evidence), console)
    first = len(answer.evidence) + 1
    for number, row in enumerate(answer.rows[:MAX_SHOWN], start=first):
        if number == first:
            head(f"Rows behind it: {_row_count(answer)}")
        style = "" if row.is_decided else "yellow"
        mark = (f"{form.format(number)} ", MARK_STYLE)
        console.print(Text.assemble(mark, (row.line, style), (f"  ({row.where})", "dim")))
        if surroundings is not None:
            _print_lines(surroundings.of_row(row), console)
    if (left := len(answer.rows) - MAX_SHOWN) > 0:
        console.print(Text(f"... and {left:,} more; --rows FILE.csv writes all of them", "dim"))
    if answer.evidence and in_vain:
        console.print(Text(_vain(in_vain), style="yellow"))
    if answer.coverage is not None and answer.coverage < _ALL:
        how = "the passages that match best"
        if all(step.context in ("rows", "none") for step in answer.steps):
            how = "row by row"
        read = f"Read: {100 * answer.coverage:.3g} % of the document, {how}"
        console.print(Text(read, style="yellow"))
    for note in (*(() if understood is None else understood.notes), *answer.notes):
        console.print(Text(f"Note: {note}", style="yellow"))
    for quote in answer.unverified:
        style = "bold red" if quote.reason in {"missing", "apart", "negation"} else "yellow"
        console.print(
            Text.assemble((f"{quote.why}: ", style), quote.text, (f"  ({quote.step})", "dim"))
        )


def print_steps(steps: Sequence[StepResult], file: IO[str]) -> None:
    """Steps with their values, each with a blank line after it."""
    from rich.text import Text

    console = new_console(file=file)
    for step in steps:
        how = "computed" if step.is_native else _context(step.context, step.coverage)
        console.print(
            Text.assemble((step.output, "bold"), f" = {step.action} ", (f"({how})", "dim"))
        )
        console.print(Text(step.preview))
        console.print()


def print_evidence(
    answer: Answer, file: IO[str], *, surroundings: Surroundings | None = None
) -> None:
    """Every passage and every row behind an answer, with their places and what quotes them."""
    from rich.text import Text

    from pearl.cli.citing import mark_form

    console = new_console(file=file)
    form = mark_form(answer.text)
    found = [(each.marked, each.where) for each in answer.evidence]
    found += [(row.line, row.where) for row in answer.rows]
    lines: list[list[Line]] = []
    if surroundings is not None:
        lines = [surroundings.of(each) for each in answer.evidence]
        lines += [surroundings.of_row(row) for row in answer.rows]
    for number, (text, where) in enumerate(found, start=1):
        mark = (f"{form.format(number)} ", MARK_STYLE)
        console.print(Text.assemble(mark, text, (f"  ({where})", "dim")))
        if lines:
            _print_lines(lines[number - 1], console)
    if not found:
        console.print(Text("Evidence: none"))


def _print_lines(lines: Sequence[Line], console: Console) -> None:
    """Lines of the document; those that have something of the quote are marked by more than colour."""
    from rich.text import Text

    for line in lines:
        if line.quote:
            quote = (line.quote, "bold underline")
            console.print(Text.assemble("  > ", (line.before, "dim"), quote, (line.after, "dim")))
        else:
            console.print(Text(f"    {line.before}", "dim"))


def _row_count(answer: Answer) -> str:
    n = sum(not row.is_decided for row in answer.rows)
    return counted(len(answer.rows), "row") + (f", {n:,} of them undecided" if n else "")


def _vain(outputs: Sequence[str]) -> str:
    names = ", ".join(f"'{name}'" for name in outputs)
    return f"step{'s' if len(outputs) > 1 else ''} {names} found nothing"


def _context(context: str, coverage: float | None) -> str:
    if coverage is None:
        return "from earlier steps"
    shown = "100" if coverage == 1 else f"{100 * coverage:.3g}"
    return f"{context}, {shown} % of the document"
