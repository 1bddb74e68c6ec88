"""A plan text → its lines, each with its errors and their fixes.

Tolerant mode applies the fixes and records them as notes; strict mode reports the same findings as
errors and offers the fixes. Linear in the length of the text. No fix may change the meaning of a
plan: an unreadable step stays an error, and so does every numbered line once the plan has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from pearl.dsl.cursor import should_read, terminal
from pearl.dsl.line_classifier import HEADING, QUESTION, Role, SourceLine, rows
from pearl.dsl.literals import UNTYPED
from pearl.dsl.scanner import scan_action, scan_step
from pearl.errors import Diagnostic, Fix, Span, apply_fixes


@dataclass(slots=True)
class Line:
    """One line of a plan text."""

    role: Role
    span: Span
    found: list[Diagnostic] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    is_readable: bool = True

    @property
    def body(self) -> Span:
        """The part that a start rule of the grammar reads."""
        return (
            Span(self.span.start + len("- "), self.span.end) if self.role == "action" else self.span
        )


def mend(text: str) -> tuple[str, list[Diagnostic]]:
    r"""Apply every fix; returns the text and the fixes as notes, with positions in the given text.

    Example:
        >>> mended, notes = mend("Sure!\n1) ans = FIND(CTX, 'x') : Find x")
        >>> mended
        '1. ans = FIND(CTX, "x") : Find x'
        >>> len(notes)
        3
    """
    found = [found for line in lines(text) for found in line.found]
    notes = [replace(d, code="leniency", severity="note") for d in found if d.fix]
    return apply_fixes(text, [note.fix for note in notes if note.fix]), notes


def lines(text: str) -> list[Line]:
    """Every line with its role and its errors."""
    found = rows(text)
    result = [Line(row.role, row.span) for row in found]
    _lay_out(text, found, result)
    n_steps = 0
    for line in result:
        if line.role == "step":
            n_steps += 1
            scan = scan_step(text, line.span, n_steps)
        elif line.role == "action":
            scan = scan_action(text, line.span)
        else:
            continue
        line.found += scan.found
        line.is_readable = not scan.found
        line.names += scan.names
    return result


def _lay_out(text: str, found: Sequence[SourceLine], result: Sequence[Line]) -> None:
    """Diagnose the layout: headings, blank lines, surplus lines."""
    above_steps = takewhile(lambda line: line.role != "step", result)
    has_action = any(line.role == "action" for line in above_steps)
    above: Role | None = None
    blank: Line | None = None  # the first one since the last line of the plan
    heading: Line | None = None  # the one that nothing has followed yet
    for row, line in zip(found, result, strict=True):
        if row.form == "blank":
            blank = blank or line
        if line.role == "none" and (has_action or above == "none"):
            line.role = "surplus"
        if line.role == "surplus":
            continue
        if heading is not None:
            above = _follow_heading(text, heading, line.role)
            heading = None
        if _needs_blank(above, line.role):
            if blank is None:
                at = Span(line.span.start, line.span.start)
                line.found.append(Diagnostic("syntax", "no blank line", at, fix=Fix(at, "\n")))
            else:
                blank.role = "blank"
                _should_read(text, blank, "", "blanks in a blank line")
        if row.is_misplaced:
            line.found.append(Diagnostic("syntax", "new actions stand above the steps", line.span))
        elif line.role == "heading":
            heading = line
        elif line.role == "none":
            _should_read(text, line, "- None", "'none' reads '- None'")
        elif line.role == "question":
            _read_question(text, line)
        elif line.role == "action" and above in (None, "question"):
            at = Span(line.span.start, line.span.start)
            fix = Fix(at, "New actions:\n")
            line.found.append(Diagnostic("syntax", "no heading 'New actions:'", at, fix=fix))
        above, blank = line.role, None
    _remove_surplus(text, found, result)


def _needs_blank(above: Role | None, below: Role) -> bool:
    """Whether exactly one blank line stands between two parts of a plan."""
    return (
        above == "question"
        or (above in ("none", "action") and below == "step")
        or (above == "step" and below == "heading")
    )


def _follow_heading(text: str, heading: Line, below: Role) -> Role:
    """Diagnose the heading, given the role of the next line, and return the role that precedes it."""
    match = HEADING.match(text, heading.span.start, heading.span.end)
    assert match
    if below in ("none", "action"):
        _should_read(text, heading, "New actions:", "the heading reads 'New actions:'")
        return "heading"
    if match[1]:
        why = "'- None' stands on a line of its own"
        _should_read(text, heading, "New actions:\n- None", why)
    else:
        _should_read(text, heading, "New actions:", "the heading reads 'New actions:'")
        at = Span(heading.span.end + 1, heading.span.end + 1)
        fix = Fix(at, "- None\n")
        heading.found.append(Diagnostic("syntax", "no '- None' under the heading", at, fix=fix))
    return "none"


def _read_question(text: str, line: Line) -> None:
    match = QUESTION.match(text, line.span.start, line.span.end)
    assert match
    words = text[match.end() : line.span.end]
    if match[0] != "Question: " or not terminal("TEXT").fullmatch(words):
        line.is_readable = False
        wanted = f"Question: {UNTYPED.sub(' ', words)}"
        _should_read(text, line, wanted, "the question reads 'Question: ...', in plain characters")


def _should_read(text: str, line: Line, wanted: str, why: str) -> None:
    if text[line.span.start : line.span.end] != wanted:
        line.found.append(should_read(text, line.span, wanted, why))


def _remove_surplus(text: str, found: Sequence[SourceLine], result: Sequence[Line]) -> None:
    """Report each fence, and each run of surplus lines once."""
    run: list[tuple[SourceLine, Line]] = []
    for row, line in zip(found, result, strict=True):
        is_fence = row.form == "fence"
        if run and (is_fence or line.role != "surplus"):
            _remove(text, run)
            run = []
        if line.role == "surplus":
            run.append((row, line))
        if is_fence:
            _remove(text, run)
            run = []
    if run:
        _remove(text, run)


def _remove(text: str, run: Sequence[tuple[SourceLine, Line]]) -> None:
    row, line = next((pair for pair in run if pair[0].form != "blank"), run[0])
    source = text[line.span.start : line.span.end]
    lead = len(source) - len(source.lstrip()) if source.strip() else 0
    why = {
        "fence": "a code fence around the plan",
        "blank": "a blank line that does not belong here",
        "none": "'- None' beside something else",
    }.get(row.form, "text that is not part of a plan")
    if len(run) > 1:
        why += f" ({len(run)} lines)"
    first, last = run[0][1].span, run[-1][1].span
    fix = Fix(Span(first.start, min(last.end + 1, len(text))), "")  # its line break goes, too
    where = Span(line.span.start + lead, line.span.end)
    line.found.append(Diagnostic("syntax", why, where, fix=fix))
