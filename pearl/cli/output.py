"""What people see: answers as text, files written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pearl.errors import DataError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from pearl.answerer import Answer
    from pearl.evidence import Evidence

__all__ = [
    "counted", "keep_inputs", "keep_room", "new_console", "new_file", "print_answer", "read_input",
]  # fmt: skip


def read_input(path: str) -> str:
    """A text file given on the command line; `-` is stdin.

    Raises:
        DataError: It cannot be read, or is not UTF-8 text.
    """
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 text: {error.reason} at byte {error.start}",
            path=path,
            help="save the file as UTF-8",
        ) from None
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=path, help="check the path"
        ) from None


@contextmanager
def new_file(path: str | None) -> Iterator[IO[str]]:
    """A file to write, or stdout; the file appears under its name only when all is written.

    Pipes and devices are written to as they are.

    Raises:
        DataError: It cannot be written.
    """
    if path in (None, "-", "/dev/stdout"):
        yield sys.stdout
        return
    target = Path(path).resolve()  # a link stays one: what it points to is written
    if target.exists() and not target.is_file():
        with _told(path), target.open("w", encoding="utf-8") as device:
            yield device
        return
    try:
        handle = tempfile.NamedTemporaryFile(  # noqa: SIM115 - closed below, on both ways
            "w",
            encoding="utf-8",
            errors="backslashreplace",
            dir=target.parent,
            prefix=f".{target.name}.",
            delete=False,
        )
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with _told(path):
            with handle:
                yield handle
            Path(handle.name).chmod(_rights(target))
            Path(handle.name).replace(target)
    finally:
        Path(handle.name).unlink(missing_ok=True)


def _rights(target: Path) -> int:
    """Those of the file that is replaced, or of any new file; a temporary one is private."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> DataError:
    return DataError(
        f"cannot be written: {error.strerror}", path=path, help="name another file or folder"
    )


def keep_room(path: str) -> None:
    """Make sure, before anything is paid for, that a file can be written.

    Raises:
        DataError: It cannot.
    """
    target = Path(path).resolve()
    if path == "-" or (target.exists() and not target.is_file() and not target.is_dir()):
        return
    if target.is_dir():
        raise DataError("is a folder", path=path, help="name a file")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from None


def keep_inputs(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Make sure that no output is written over an input.

    Raises:
        UsageError: One would be.
    """
    read = [Path(name) for name in inputs if Path(name).is_file()]
    for output in outputs:
        if output is not None and Path(output).is_file():
            for path in read:
                if path.samefile(output):
                    raise UsageError(f"'{output}' is an input", help="write to another file")


def new_console(*, err: bool = False, width: int | None = None, soft_wrap: bool = True) -> Console:
    """A console whose reader may leave, which is no error; Rich would end the program with 1."""
    from rich.console import Console

    class Left(Console):
        def on_broken_pipe(self) -> None:
            raise

    return Left(stderr=err, highlight=False, soft_wrap=soft_wrap, width=width)


def print_answer(answer: Answer, *, with_steps: bool = False) -> None:
    """The answer, its evidence and, if wanted, the plan and every step.

    A passage that the answer quotes in a block of its own has its place there, and is not repeated.
    """
    from rich.text import Text

    from pearl.evidence import placed

    console = new_console()

    def head(text: str) -> None:
        console.print(Text(text, style="bold"))

    if with_steps:
        head("Plan")
        console.print(Text(answer.plan))
        for step in answer.steps:
            console.print()
            how = "computed" if step.is_native else _context(step.context, step.coverage)
            console.print(
                Text.assemble((step.output, "bold"), f" = {step.action} ", (f"({how})", "dim"))
            )
            console.print(Text(step.text))
        console.print()
        head("Answer")
    pieces, others = placed(answer.text, answer.evidence)
    for text, evidence in pieces:
        where = "" if evidence is None else f"  ({_where(evidence)})"
        console.print(Text.assemble(text, (where, "dim")))
    console.print()
    if answer.method == "direct":
        console.print(Text("Answered directly: no valid plan could be had.", style="yellow"))
    if not answer.evidence:
        head("Evidence: none; no step quotes the document")
    elif others:
        head("Evidence")
    else:
        head(
            f"Evidence: {counted(len(answer.evidence), 'passage')}, each quoted above with its place"
        )
    for number, evidence in enumerate(others, start=1):
        console.print(
            Text.assemble(f"[{number}] ", evidence.marked, (f"  ({_where(evidence)})", "dim"))
        )
    if answer.coverage is not None and answer.coverage < 1:
        read = f"Read: {100 * answer.coverage:.3g} % of the document, the passages that match best"
        console.print(Text(read, style="yellow"))
    for quote in answer.unverified:
        style = "bold red" if quote.reason in {"missing", "apart", "negation"} else "yellow"
        console.print(
            Text.assemble((f"{quote.why}: ", style), quote.text, (f"  ({quote.step})", "dim"))
        )


def _where(evidence: Evidence) -> str:
    span = evidence.source_span
    elided = "; elided" if evidence.omitted else ""
    return f"{evidence.source}, characters {span.start:,}-{span.end:,}; {', '.join(evidence.steps)}{elided}"


def _context(context: str, coverage: float | None) -> str:
    if coverage is None:
        return "from earlier steps"
    shown = "100" if coverage == 1 else f"{100 * coverage:.3g}"
    return f"{context}, {shown} % of the document"


def counted(n: int, thing: str) -> str:
    """How many there are of a thing.

    Example:
        >>> counted(1, "row"), counted(1_200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
