"""Formats answers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pearl.cli.terminal import MARK_STYLE, Printer, new_console, new_table
from pearl.documents.evidence import normalise
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.parts import MARK

if TYPE_CHECKING:
    from pearl.dsl.fields import Field
    from pearl.interpreter.answer import Answer
    from pearl.interpreter.results import StepResult

_ALL = 0.995  # Coverage from which a document counts as read: text between rows belongs to no row

MAX_FIELD = 24  # Maximum characters of a cell of a table of fields

GAP = 2  # Blanks between two columns

UNSURE = ("failed", "undecided")


def print_answer(answer: Answer, file: IO[str], *, with_steps: bool = False) -> None:
    """Print an answer with its evidence; a passage that the answer quotes is marked there, and not repeated below."""
    from pearl.interpreter.results import MAX_SHOWN

    printer = Printer(file)

    def head(text: str) -> None:
        printer.print((text, "bold"))

    if with_steps:
        head("Plan")
        printer.print(answer.plan)
        printer.print()
        print_steps(answer.steps, file)
        head("Answer")
    for name, value in answer.parameters.items():
        printer.print((f"{name} = {value}", "dim"))
    text = normalise(answer.text)
    marks = {int(number) for number in MARK.findall(answer.markdown)}
    quoted = {
        number
        for number, each in enumerate(answer.evidence, start=1)
        if number in marks and normalise(each.text) in text
    }
    _print_markdown(answer.markdown, printer)
    printer.print()
    if answer.method == "direct":
        printer.print(("Answered in one step, without a plan.", "yellow"))
    if answer.is_unsure and not answer.text.startswith("undecided: "):
        told = f"{answer.status.capitalize()}: {answer.why}"
        printer.print((told, "bold yellow"))
    vain = [s.output for s in answer.steps if s.state == "nothing" and not s.is_native]
    in_vain = f"step{'s' if len(vain) > 1 else ''} {', '.join(map(repr, vain))} found nothing"
    if not answer.evidence and not answer.row_evidence:  # rows are evidence
        is_known = answer.status != "answered" or not vain
        head(f"Evidence: none; {'no step quotes the document' if is_known else in_vain}")
    elif answer.evidence:
        head("Evidence")

    def entry(number: int, text: str, where: str, style: str = "") -> None:
        printer.print((f"[{number}] ", MARK_STYLE), (text, style), (f"  ({where})", "dim"))

    for number, each in enumerate(answer.evidence, start=1):
        if number in quoted:
            printer.print((f"[{number}] ", MARK_STYLE), (each.where, "dim"))
        else:
            entry(number, each.marked, each.where)
    if answer.row_evidence:
        n = sum(not row.is_decided for row in answer.row_evidence)
        undecided = f", {n:,} of them undecided" if n else ""
        head(f"Rows behind it: {counted(len(answer.row_evidence), 'row')}{undecided}")
    # Rows with a quote are printed above, as evidence.
    first = len(answer.evidence) + 1
    bare = [(n, row) for n, row in enumerate(answer.row_evidence, first) if not row.quote]
    for number, row in bare[:MAX_SHOWN]:
        entry(number, row.line, row.where, "" if row.is_decided else "yellow")
    if (left := len(bare) - MAX_SHOWN) > 0:
        printer.print((f"... and {left:,} more; --rows FILE.csv writes all of them", "dim"))
    if answer.evidence and vain:
        printer.print((in_vain, "yellow"))
    if answer.coverage is not None and answer.coverage < _ALL:
        how = "the passages that match best"
        if all(step.context in ("rows", "none") for step in answer.steps):
            how = "row by row"
        read = f"Read: {100 * answer.coverage:.3g} % of the document, {how}"
        printer.print((read, "yellow"))
    for note in (note for note in answer.notes if note not in answer.why):  # which is shown above
        printer.print((f"Note: {note}", "yellow"))
    for quote in answer.unverified:
        style = "bold red" if quote.reason in {"missing", "apart"} else "yellow"
        printer.print((f"{quote.why}: ", style), quote.text, (f"  ({quote.step})", "dim"))


# **boat**, but not 2**3 or ** boat **
_BOLD = lazy_pattern(r"(?<![\w*])\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?![\w*])")


def _print_markdown(text: str, printer: Printer) -> None:
    """Print the Markdown of an answer: laid out for a terminal, else as plain text."""
    console = printer.console
    shown = None
    if console is not None and console.is_terminal:
        from pearl.cli.markdown import laid_out  # late: takes as long as everything else of Rich

        shown = laid_out(text)
    if console is None or shown is None:
        printer.print(MARK.sub(r" [\1]", _BOLD.sub(r"\1", text)))
        return
    from rich.text import Text

    for segments in console.render_lines(shown):
        line = Text.assemble(*((part.text, part.style or "") for part in segments))
        line.rstrip()  # blanks up to the window's edge would be copied
        console.print(line)


def print_records(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[Field], file: IO[str]
) -> None:
    """Print a table with a row for each document; name the fields that do not fit below it."""
    from rich.text import Text

    from pearl.documents.rows import shortened
    from pearl.runs.extraction import document_of, shown_value, unused_name

    console = new_console(file=file, soft_wrap=False)
    paths = [document_of(row) for row in rows]
    names = [Path(path).name for path in paths]
    columns = {"document": names if len({*names}) == len(names) else paths}
    for field in fields:
        columns[unused_name(field.name, columns)] = [
            shortened(shown_value(row["record"][field.name]), MAX_FIELD)
            if field.name in row.get("record", {})
            else "failed" * (field is fields[0])
            for row in rows
        ]
    room = console.width + GAP
    table, left_out = new_table(), []
    cells: list[list[Text]] = []
    for name, column in columns.items():
        room -= min(max(map(len, (name, *column))), MAX_FIELD) + GAP
        if room < 0 and len(cells) > 1:
            left_out.append(name)
        else:
            table.add_column(name, overflow="fold", max_width=MAX_FIELD)
            cells.append([Text(cell, "yellow" if cell in UNSURE else "") for cell in column])
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    console.print(table)
    if any("undecided" in column for column in columns.values()):
        console.print(Text("-o FILE.html says why fields are undecided", "dim"))
    if left_out:
        console.print(Text(f"no room for: {', '.join(left_out)}; -o FILE.csv writes them", "dim"))


def print_steps(steps: Sequence[StepResult], file: IO[str]) -> None:
    """Print steps with their values, each followed by a blank line."""
    printer = Printer(file, wraps=False)
    for step in steps:
        read = step.coverage
        how = "from earlier steps"
        if step.state == "not_needed":
            how = "not needed"
        elif step.is_native:
            how = "computed"
        elif read is not None:
            share = "100" if read == 1 else f"{100 * read:.3g}"
            how = f"{step.context}, {share} % of the document"
        printer.print((step.output, "bold"), f" = {step.action} ", (f"({how})", "dim"))
        printer.print(step.preview)
        printer.print()
