"""`Watched` → lines that fit a terminal: its width, its height and the characters that it has.

What models, servers and plans say is escaped and cut here, before it is laid out: a line that a
terminal wrapped would not be taken back when the next picture is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import NamedTuple

from rich.cells import get_character_cell_size
from rich.text import Text

from pearl.cli.live import PlanSection, Row, State, Watched, lasted
from pearl.errors.escaping import escaped
from pearl.errors.wording import counted

MIN_TITLE = 24
"""Cells of a step's call, before figures beside it are left out."""

MAX_WIDTH = 120
"""Cells of a line: in a wider terminal figures would be far from their steps."""

MAX_TAIL_LINES = 2
"""Lines of the reply that is being written."""

_SPINNER, _ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"

FRAMES_A_S = 8


class _Look(NamedTuple):
    mark: str
    ascii_mark: str
    style: str
    word: str = ""


_LOOKS: dict[State, _Look] = {
    "waiting": _Look("·", ".", "dim"),
    "running": _Look("", "", "cyan"),
    "done": _Look("✓", "+", "green"),
    "nothing": _Look("–", "-", "yellow", "nothing found"),
    "undecided": _Look("?", "?", "yellow", "undecided"),
    "degraded": _Look("!", "!", "yellow", "degraded"),
    "refused": _Look("✗", "x", "red", "refused"),
    "failed": _Look("✗", "x", "red", "failed"),
}


def lines(watched: Watched, width: int, height: int, encoding: str) -> list[Text]:
    """What is going on, in so many cells and lines; what does not fit is summed up.

    Left out in this order: replies that are being written, steps that are done, steps that wait, what
    running steps do, all steps but for their number.
    """
    page = _Page(watched, width, encoding)
    room = max(1, height - 2)  # for the line below, and the cursor
    for level in range(len(_LEVELS)):
        body = list(page.body(level))
        if len(body) <= room:
            break
    if height < 3:
        return [page.total()]
    return [*body[:room], page.total()]


def finished_lines(watched: Watched, width: int, encoding: str) -> list[Text]:
    """What stays when all is over: each step, and the total."""
    page = _Page(watched, width, encoding)
    return [*page.body(0), page.total()]


_LEVELS = ("all", "no tails", "done folded", "waiting folded", "no notes", "plans")


class _Page:
    def __init__(self, watched: Watched, width: int, encoding: str) -> None:
        self._watched = watched
        # The last cell stays free: terminals differ in what they do with a full line.
        self._width = max(1, min(width - 1, MAX_WIDTH))
        self._encoding = encoding
        self._is_rich = encoding.lower().startswith("utf")
        self._dots = "…" if self._is_rich else "..."

    def body(self, level: int) -> Iterator[Text]:
        """All lines but the total."""
        for section in self._watched.sections.values():
            if level == len(_LEVELS) - 1:
                yield self._folded(section)
                continue
            if section.number is not None:
                yield self._line(f"plan {section.number}", "bold")
            before = [row for key, row in section.parts.items() if key != "choose"]
            for row in before:
                yield from self._row(row, section, level)
            done = [r for r in section.steps.values() if r.state not in {"waiting", "running"}]
            failed = [row for row in done if row.state == "failed"]
            waiting = [r for r in section.steps.values() if r.state == "waiting"]
            if level >= 2 and len(done) - len(failed) > 1:
                n = counted(len(done) - len(failed), "step")
                yield self._marked("done", Text(f"{n} done"))
            for row in section.steps.values():
                is_folded = row.state in {"done", "nothing", "undecided", "degraded", "refused"}
                if level >= 2 and is_folded and len(done) - len(failed) > 1:
                    continue
                if level >= 3 and row.state == "waiting" and len(waiting) > 1:
                    continue
                yield from self._row(row, section, level)
            if level >= 3 and len(waiting) > 1:
                waits = counted(len(waiting), "step")
                yield self._marked("waiting", Text(f"{waits} waiting", "dim"))
            if "choose" in section.parts:
                yield from self._row(section.parts["choose"], section, level)

    def total(self) -> Text:
        """The last line: what is done, and what it took."""
        steps = [
            row for section in self._watched.sections.values() for row in section.steps.values()
        ]
        done = sum(row.state not in {"waiting", "running"} for row in steps)
        took = lasted(self._watched.lasted_s)
        usage = self._watched.usage
        said = [f"{done:,} of {counted(len(steps), 'step')}"] if steps else []
        said += [took, *_figures(usage.n_input_tokens + usage.n_output_tokens)]
        said += [cost] if (cost := self._watched.cost(usage)) else []
        return self._line(", ".join(said), "dim")

    def _folded(self, section: PlanSection) -> Text:
        """One line for a whole plan."""
        rows = section.steps
        running = [name for name, row in rows.items() if row.state == "running"]
        done = sum(row.state not in {"waiting", "running"} for row in rows.values())
        head = "" if section.number is None else f"plan {section.number}: "
        said = f"{head}{done:,} of {counted(len(rows), 'step')}" if rows else f"{head}planning"
        if running:
            said += f"; running: {', '.join(running)}"
        return self._line(said)

    def _row(self, row: Row, section: PlanSection, level: int) -> Iterator[Text]:
        """A line of a step, and what there is to say of it below."""
        look = _LOOKS[row.state]
        needs = section.waits_for(row) if row.state == "waiting" else []
        said = [look.word] if look.word else []
        if needs:
            said = [f"needs {', '.join(needs)}"]
        if row.state != "waiting":
            said += [lasted(row.lasted_s)] if row.state == "running" or row.n_calls else []
            if not row.n_calls and row.state != "running":
                said += [lasted(row.lasted_s)] if row.lasted_s >= 1 else []
            n = row.usage.n_input_tokens + row.usage.n_output_tokens
            said += _figures(n)
            said += [cost] if (cost := self._watched.cost(row.usage)) else []
            if row.n_kept and row.n_kept == row.n_calls:
                said.append("kept")
        title, width = self._clean(row.title), self._width - 2
        room = max(MIN_TITLE, width // 2)
        # The first figures matter most; the others need room beside the call.
        while len(said) > 1 and cells(", ".join(said)) + 2 + min(cells(title), room) > width:
            said.pop()
        right = self._cut(self._clean(", ".join(said)), max(0, width - 12))
        left = self._cut(title, width - (cells(right) + 2 if right else 0))
        gap = " " * (width - cells(left) - cells(right))
        style = "dim" if row.state == "waiting" else "bold" if row.state == "running" else ""
        told = Text.assemble((left, style))
        if right:
            told.append(gap)
            told.append(right, look.style if look.word else "dim")
        yield self._marked(row.state, told)
        if level < 4 and (doing := row.doing):
            style = "yellow" if row.is_slow or row.state == "failed" else "dim"
            yield self._line(f"  {self._clean(doing)}", style)
        if level < 1 and row.tail:
            for line in self._ending(row.tail):
                yield self._line(f"  {line}", "italic dim")

    def _marked(self, state: State, text: Text) -> Text:
        look = _LOOKS[state]
        if state == "running":
            frames = _SPINNER if self._is_rich else _ASCII_SPINNER
            mark = frames[int(monotonic() * FRAMES_A_S) % len(frames)]
        else:
            mark = look.mark if self._is_rich else look.ascii_mark
        marked = Text.assemble((f"{mark} ", look.style), text, no_wrap=True)
        marked.truncate(self._width)
        return marked

    def _line(self, text: str, style: str = "") -> Text:
        return Text(self._cut(text, self._width), style, no_wrap=True)

    def _ending(self, tail: str) -> list[str]:
        """The last lines of a reply."""
        width = max(1, self._width - 2)
        rest = self._clean(tail)
        # Whole lines from its beginning, so that what was shown stays where it was.
        rows = list(_wrapped(rest, width))
        return rows[-MAX_TAIL_LINES:]

    def _clean(self, text: str) -> str:
        """On one line, without what a terminal would obey or has no character for."""
        shown = escaped(" ".join(text.split()))
        return shown.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def _cut(self, text: str, width: int) -> str:
        return cut(text, width, self._dots)


def _figures(n_tokens: int) -> list[str]:
    return [counted(n_tokens, "token")] if n_tokens else []


def cells(text: str) -> int:
    """Cells of a terminal that a text takes at most.

    Terminals differ in what they join to one emoji or one letter; here nothing is joined.

    Example:
        >>> cells("boat"), cells("船")
        (4, 2)
    """
    return sum(map(_width, text))


def cut(text: str, width: int, dots: str = "…") -> str:
    """The beginning of a text that fits, with dots in place of the rest.

    Example:
        >>> cut("the hull was rotten", 9), cut("the hull", 9)
        ('the hull…', 'the hull')
    """
    if cells(text) <= width:
        return text
    return "".join(_fitting(text, width - len(dots))) + dots[: max(0, width)]


def _fitting(text: str, width: int) -> Iterator[str]:
    for character in text:
        width -= _width(character)
        if width < 0:
            return
        yield character


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of so many cells, cut at blanks where there are some."""
    line = ""
    for word in _words(text, width):
        if line and cells(line) + 1 + cells(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def _words(text: str, width: int) -> Iterable[str]:
    for word in text.split():
        while cells(word) > width:
            head = "".join(_fitting(word, width)) or word[0]
            yield head
            word = word[len(head) :]
        if word:
            yield word


def _width(character: str) -> int:
    # It may make what stands before it wide.
    return 1 if character == "\ufe0f" else get_character_cell_size(character)
