"""`pearl demo`: three questions about shipped documents, without a network or a key."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pearl.cli.options import Command, force_option, option
from pearl.cli.terminal import new_console
from pearl.cli.writing import OutputWriter, make_folder

FOLDER = Path(__file__).parents[2] / "documents" / "demo"

QUESTION = "Why did Irene think that her father had turned her away, and what had he really done?"

PARTS = (
    (
        "A language model reads a story of 5,600 words (recorded, so no key is needed)",
        QUESTION,
        "story.txt",
        "recorded:demo",
    ),
    (
        "Python counts the rows of a table by a plan (exact, no language model takes part):\n"
        "   how many crossings in the rain had more than 4 passengers?",
        "crossings.plan",
        "crossings.csv",
        "",
    ),
    (
        "The embedded model reads the story. It is not a language model: it quotes the\n"
        "   passages that fit a question best. Ask it for facts and reasons in the text.",
        "Why did Mrs Fenn stop speaking to Tobias?",
        "story.txt",
        "extractive",
    ),
)
"""For each part: title, question or plan, document and model."""


@click.command(cls=Command)
@option(
    "--copy", click.Path(file_okay=False), "Only copy the documents to FOLDER.", metavar="FOLDER"
)
@force_option
def command(copy: str | None, force: bool) -> int:
    """Answer three questions about shipped documents, offline."""
    if copy is not None:
        folder, writer = Path(copy), OutputWriter(is_forced=force)
        names = dict.fromkeys(
            name
            for _, asked, document, model in PARTS
            for name in ([document] if model else [asked, document])
        )
        make_folder(folder)
        writer.check(*(str(folder / name) for name in names))
        for name in names:
            with writer.open(str(folder / name)) as file:
                file.write((FOLDER / name).read_text(encoding="utf-8"))
            click.echo(folder / name)
        return 0
    import pearl
    from pearl.cli.output import print_answer

    console = new_console(soft_wrap=not sys.stdout.isatty())
    answers = []
    for number, (title, question, name, model) in enumerate(PARTS, 1):
        console.print(f"{number}. {title}", style="bold")
        document = pearl.load(FOLDER / name, name=name)
        if model:
            console.print(f'$ pearl ask "{question}" {name} --model {model}\n', soft_wrap=True)
            answer = pearl.run(pearl.Pearl(model).ask(question, document))
        else:
            console.print(f"$ pearl execute {question} {name}\n")
            plan = (FOLDER / question).read_text(encoding="utf-8")
            answer = pearl.run(pearl.Pearl().execute(plan, document))
        if number == 1:
            console.print(f"{answer.model}\n")
            console.print("Plan, written by the model before it reads the story", style="bold")
            console.print(f"{answer.plan.partition('- None')[2].strip()}\n")
            console.print("Answer", style="bold")
        print_answer(answer, sys.stdout)
        console.print()
        answers.append(answer)
    console.print("To run these commands yourself, copy the documents: pearl demo --copy .")
    return int(any(answer.is_unsure for answer in answers))
