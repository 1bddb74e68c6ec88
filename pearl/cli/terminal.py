"""Escapes control characters in everything that is printed; data for programs is escaped on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

MARK_STYLE = "bold cyan"  # Style of evidence numbers


class _Escaping:
    """A text stream that escapes its output and delegates everything else."""

    def __init__(self, below: IO[str]) -> None:
        # Rich looks for the original stream under this name.
        self.rich_proxied_file = below

    def write(self, text: str) -> int:
        """Write the text, escaped."""
        self.rich_proxied_file.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the lines, escaped."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # it would bypass escaping
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Let `sys.stdout` and `sys.stderr` escape text for a while."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Escaping(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def data_stdout() -> IO[str]:
    """Standard output for data: unchanged for a program, escaped on a terminal."""
    return sys.stdout if sys.stdout.isatty() else _below(sys.stdout)


def _below(stream: IO[str]) -> IO[str]:
    while (below := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = below
    return stream


def new_console(
    *, err: bool = False, soft_wrap: bool = True, file: IO[str] | None = None
) -> Console:
    """A console that escapes all text and reads no markup; a closed pipe raises, where Rich would exit with 1."""
    from rich.console import Console
    from rich.segment import Segment

    class Safe(Console):
        def on_broken_pipe(self) -> None:
            raise

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:  # cursor moves of the console itself
                    yield segment
                else:
                    yield Segment(escaped(segment.text), segment.style)

    return Safe(
        file=_below(file or (sys.stderr if err else sys.stdout)),
        highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap,
    )  # fmt: skip


Part = str | tuple[str, str]  # A text, or a text and its style

# Characters that Rich removes
_REMOVED = dict.fromkeys(map(ord, "\a\b\v\f\r"))


class Printer:
    """Prints lines: styled on a terminal, by Rich; elsewhere as they are, as it would, without importing it."""

    def __init__(self, file: IO[str], *, wraps: bool = True) -> None:
        self._file = _below(file)
        self.console: Console | None = None
        if self._file.isatty() or {"FORCE_COLOR", "TTY_COMPATIBLE"} & os.environ.keys():
            self.console = new_console(file=file)
            self.console.soft_wrap = not (wraps and self.console.is_terminal)

    def print(self, *parts: Part) -> None:
        """Print a line of parts."""
        if self.console is not None:
            from rich.text import Text

            self.console.print(Text.assemble(*parts))
        else:
            text = "".join(part if isinstance(part, str) else part[0] for part in parts)
            self._file.write(escaped(text.translate(_REMOVED).expandtabs()) + "\n")
            self._file.flush()


def notice(line: str) -> None:
    """Print a message to stderr."""
    click.echo(f"pearl: {line}", err=True)


def new_table() -> Table:
    """A table with a line below its heads and no border."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))


def print_table(
    heads: Sequence[str], rows: Iterable[Iterable[str | int | None]], *, left: Sequence[str] = ()
) -> None:
    """Print a table at full width, if it has rows; all columns but the first, and those of `left`, are right-aligned."""
    from rich.measure import Measurement

    rows = list(rows)
    if not rows:
        return
    table = new_table()
    for number, head in enumerate(heads):
        is_right = number and head not in left
        table.add_column(
            head, justify="right" if is_right else "left", no_wrap=True, vertical="bottom"
        )
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else cell or "" for cell in row))
    console = new_console(soft_wrap=False)
    # A narrow terminal may wrap lines, but cut figures would be wrong.
    wide = console.options.update(max_width=1_000)
    console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table)
