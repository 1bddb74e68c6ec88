"""Escapes control characters in everything that is printed.

Everything goes through one of two doors: `sys.stdout` and `sys.stderr`, which escape what is written
to them while a command runs, and the consoles of `new_console`, whose own codes colour what they
escaped. Data for another program (`data_stdout`) is escaped on a terminal only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import click

from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table


class _Escaping:
    """A text stream that escapes its output and delegates everything else."""

    def __init__(self, below: IO[str]) -> None:
        # The name by which Rich finds the stream below another one.
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
        if name == "buffer":  # past which nothing is to be written
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """`sys.stdout` and `sys.stderr` escape what is written to them; then they are as before."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Escaping(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def data_stdout() -> IO[str]:
    """Standard output for data: as it is where a program reads it, escaped where people do."""
    return sys.stdout if sys.stdout.isatty() else _below(sys.stdout)


def _below(stream: IO[str]) -> IO[str]:
    """The stream under all that stand before it."""
    while (below := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = below
    return stream


def new_console(
    *,
    err: bool = False,
    width: int | None = None,
    soft_wrap: bool = True,
    file: IO[str] | None = None,
) -> Console:
    """A console that escapes all text, and reads no markup or emoji codes in it.

    Its reader may leave, which is no error; Rich would end the program with 1.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Safe(Console):
        def on_broken_pipe(self) -> None:
            raise

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:  # the console's own: moves of the cursor
                    yield segment
                else:
                    yield Segment(escaped(segment.text), segment.style)

    return Safe(
        file=_below(file or (sys.stderr if err else sys.stdout)),
        highlight=False, markup=False, emoji=False, soft_wrap=soft_wrap, width=width,
    )  # fmt: skip


def notice(line: str) -> None:
    """Tell people something on stderr, which is no data."""
    click.echo(f"pearl: {line}", err=True)


def new_table() -> Table:
    """A table with a line below its heads and none around it."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
