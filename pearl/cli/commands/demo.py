"""`pearl demo`: three questions about shipped documents, without a network or a key."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pearl.cli.help import Command
from pearl.cli.options import force_option, option
from pearl.cli.terminal import new_console
from pearl.cli.writing import OutputWriter
from pearl.errors import DataError

FOLDER = Path(__file__).parents[2] / "documents" / "demo"

QUESTION = "Why did Irene think that her father had turned her away, and what had he really done?"

PARTS = (
    (
        "A language model reads a story of 5,600 words (recorded, so no key is needed)",
        [QUESTION, "story.txt", "--model", "recorded:demo"],
    ),
    (
        "Python counts the rows of a table (exact, no language model takes part)",
        [
            "How many crossings in the rain had more than 4 passengers?",
            "crossings.csv",
            "--model",
            "extractive",
        ],
    ),
    (
        "The embedded model reads the story. It is not a language model: it quotes the\n"
        "   passages that fit a question best. Ask it for facts and reasons in the text.",
        ["Why did Mrs Fenn stop speaking to Tobias?", "story.txt", "--model", "extractive"],
    ),
)
"""What the demo shows, and the arguments of `pearl ask` that show it."""


@click.command(cls=Command)
@option(
    "--copy", click.Path(file_okay=False), "Only copy the documents to FOLDER.", metavar="FOLDER"
)
@force_option
def command(copy: str | None, force: bool) -> int:
    """Ask shipped documents three questions, offline, and show the commands that do so."""
    if copy is not None:
        return _copy(Path(copy), OutputWriter(is_forced=force))
    from pearl.cli.commands import ask
    from pearl.cli.work import run_tasks
    from pearl.documents.document import load
    from pearl.runs.executors import Task

    codes = []
    for number, (title, args) in enumerate(PARTS, 1):
        new_console().print(f"{number}. {title}", style="bold")
        question, *others = args
        click.echo(f'$ pearl ask "{question}" {" ".join(others)}\n')
        with ask.command.make_context("ask", [*args]) as context:
            document = partial(load, FOLDER / others[0], name=others[0])
            task = Task("", document, question)
            codes.append(run_tasks([task], {**context.params, "tells_plans": True}))
        click.echo()
    click.echo("To run these commands yourself, copy the documents: pearl demo --copy .")
    return max(codes)


def _copy(folder: Path, writer: OutputWriter) -> int:
    paths = {FOLDER / args[1]: folder / args[1] for _, args in PARTS}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be created: {error.strerror}", path=folder) from None
    writer.check(*map(str, paths.values()))
    for shipped, path in paths.items():
        with writer.open(str(path)) as file:
            file.write(shipped.read_text(encoding="utf-8"))
        click.echo(path)
    return 0
