"""How many actions are enough? Libraries of several sizes, refined from the same drafts, evaluated.

    python experiments/library_size.py DRAFTS --data FILE --domain NAME --out FOLDER [--sizes 5,10,20]

DRAFTS is what `pearl mine` wrote, or an action file. For each size the drafts are refined to so many
actions at most and the methods run over the data; the options are those of `pearl eval`. FOLDER gets
for each size N

    N.actions      the library, each action under the drafts it stands for
    N.json         what became of every draft
    N.log.jsonl    the log of the evaluation

and `library-size.svg` and `.png`. Run again, it goes on where it stopped: a library that is there is
not refined again, what a log holds is not asked again. A table of accuracies goes to stdout, all else
to stderr.

Native actions, computed without a model, count as any others and are never dropped, so a small library
may hold nothing else, or more actions than wanted; the table says how many each has. Examples that call
what a library lacks are not shown to the planner, so small libraries come with fewer of them: their
number is in the table, too. A size whose library is one of a smaller size is left out.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from pearl.actions.library import library_text, load_library
from pearl.cli.commands.eval import command as evaluate
from pearl.cli.commands.refine import actions as refine
from pearl.cli.output import read_input
from pearl.cli.writing import keep_inputs
from pearl.data.journal import reason
from pearl.errors import DataError, PearlError, UsageError
from pearl.evals import report
from pearl.evals.log import EvalLog, read_log
from pearl.evals.pictures import draw
from pearl.evals.pictures import series_of
from pearl.mining.refining import Drafts, read_drafts
from pearl.mining.refinement import Refinement

PICTURE = "library-size"
STOPPED = 130
"""What `pearl eval` ends with after Ctrl-C."""


def sizes_of(said: str) -> list[int]:
    """`5,10,20` as numbers, each once and in order.

    Raises:
        UsageError: One is no size.
    """
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
        raise UsageError(f"--sizes {said}: not numbers of actions", help="--sizes 5,10,20,40,80")
    return sorted(set(map(int, parts)))


def is_refined(path: Path, drafts: Drafts) -> bool:
    """Whether an earlier run left a refinement of these drafts.

    Raises:
        DataError: It is of other drafts, or no refinement.
    """
    if not path.exists():
        return False
    try:
        found = Refinement.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"not a refinement: {reason(error)}", path=path) from None
    if [draft.text for draft in found.drafts] != [draft.text for draft in drafts.drafts]:
        raise DataError(
            "the library was refined from other drafts",
            path=path,
            help="name another folder with --out",
        )
    return True


def print_table(logs: list[EvalLog], *, by_document: bool) -> None:
    """A line a size and method."""
    guess = report.chance(logs[0].records)
    if guess is not None:
        click.echo(f"guessing gets {100 * guess:.1f} %")
    click.echo(
        f"{'actions':>7} {'examples':>8}  {'method':<12}{'right':>6}{'of':>6}  accuracy %  [95 %]"
    )
    for log in logs:
        for score in report.scores(log, cluster="document" if by_document else "sample"):
            if score.subset == "all":
                share = score.accuracy
                click.echo(
                    f"{log.header.n_actions:>7} {log.header.n_examples:>8}  {score.method:<12}"
                    f"{score.n_correct:>6,}{score.n:>6,}  {100 * share.estimate:>10.1f}  "
                    f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"
                )


@click.command()
@click.argument("drafts", metavar="DRAFTS")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="FOLDER",
    help="Folder to write into; what is there already is gone on with.",
)  # fmt: skip
@click.option(
    "--sizes", default="5,10,20,40,80", show_default=True, metavar="N,...",
    help="Actions of a library at most.",
)  # fmt: skip
@click.option("--methods", default="pearl", show_default=True, metavar="NAME,...")
@click.option("--by-document", is_flag=True, help="Intervals resample documents, not samples.")
@click.pass_context
def main(
    ctx: click.Context, drafts: str, out: Path, sizes: str, methods: str, by_document: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Evaluate libraries of several sizes that are refined from DRAFTS."""
    try:
        code = run(ctx, drafts, out, sizes_of(sizes), methods, by_document, options)
    except PearlError as error:
        click.echo(f"Error: {error}", err=True)
        code = error.exit_code
    sys.exit(code)


OWN = {"help", "results", "rescore", *(option.name for option in main.params)}
main.params += [option for option in evaluate.params if option.name not in OWN]


def run(
    ctx: click.Context, drafts: str, out: Path, sizes: list[int], methods: str, by_document: bool,
    options: dict[str, Any],
) -> int:  # fmt: skip
    """Refine and evaluate size by size; 0, 1 where samples failed, 130 where it was stopped."""
    if options["data"] is None:
        raise UsageError("an evaluation needs samples", help="--data FILE")
    if options.pop("library") is not None:
        raise UsageError("--library: the libraries are those that are refined", help="leave it out")
    found = read_drafts(read_input(drafts), drafts)
    out.mkdir(parents=True, exist_ok=True)
    shared = {
        option.name: options[option.name] for option in refine.params if option.name in options
    }
    logs: list[EvalLog] = []
    libraries: set[str] = set()
    code = 0
    for size in sizes:
        click.echo(f"{size} actions at most", err=True)
        library, fates, path = (out / f"{size}{end}" for end in (".actions", ".json", ".log.jsonl"))
        keep_inputs(map(str, (library, fates, path)), [drafts, options["data"]])
        if not is_refined(fates, found):
            ctx.invoke(
                refine,
                mined=drafts,
                out=str(library),
                report=str(fates),
                max_actions=size,
                **shared,
            )
        text = library_text(load_library(library))
        if text in libraries:
            click.echo("the same library as before; it is not evaluated again", err=True)
            continue
        libraries.add(text)
        with redirect_stdout(sys.stderr):
            done = ctx.invoke(
                evaluate, out=str(path), methods=methods, library=str(library),
                by_document=by_document, **options,
            )  # fmt: skip
        code = max(code, done)
        log = read_log(path)
        if log.records:
            logs.append(log)
        if done == STOPPED:
            break
    if logs:
        print_table(logs, by_document=by_document)
        pictures, skipped = draw(series_of(logs))
        for picture in pictures:
            if picture.name == PICTURE:
                for target, data in picture.files(out).items():
                    target.write_bytes(data)
        if PICTURE in skipped:
            click.echo(f"no picture: {skipped[PICTURE]}", err=True)
    return code


if __name__ == "__main__":
    main()
