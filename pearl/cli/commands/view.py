"""`pearl view`: logs of evaluations as pictures and one page."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import get_args

import click

from pearl.cli.writing import OutputWriter, force_option, keep_inputs
from pearl.errors import DataError
from pearl.errors.escaping import escaped


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...", type=click.Path())
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Folder to write into, made if need be [default: NAME-pictures beside the first log].",
)
@force_option
def command(logs: tuple[str, ...], out: str | None, force: bool) -> None:
    """Draw logs that `pearl eval` wrote: pictures as SVG and PNG, and index.html with everything.

    Accuracy against cost, by subset, and shapes of plans; of several logs with libraries of
    different size also accuracy against that size. What the logs hold no data for is skipped.
    """
    from pearl.evals.log import read_log
    from pearl.evals.view.evaluation import page
    from pearl.evals.view.pictures import draw
    from pearl.evals.view.summary import series_of

    read = []
    for path in logs:
        try:
            read.append(read_log(path))
        except DataError as error:
            raise _named(path, error) from None
    rows = series_of(read)
    pictures, skipped = draw(rows)
    first = Path(logs[0])
    folder = Path(out) if out else first.with_name(f"{first.stem}-pictures")
    index = folder / "index.html"
    files = [*(str(path) for picture in pictures for path in picture.files(folder)), str(index)]
    keep_inputs(files, logs)
    writer = OutputWriter.of_command(is_forced=force)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot be made: {error.strerror}", path=folder, help="name another folder with --out"
        ) from None
    writer.check(*files)
    with writer.open(str(index)) as file:
        file.write(escaped(page(rows, [log.header for log in read], pictures)))
    for picture in pictures:
        for target, data in picture.files(folder).items():
            with writer.open(str(target)) as file:
                file.buffer.write(data)  # type: ignore[attr-defined]
    for name in files:
        click.echo(name)
    for name, reason in skipped.items():
        click.echo(f"skipped {name}: {reason}", err=True)


def _named(path: str, error: DataError) -> DataError:
    """Why a file is not a log; results files are a common mistake."""
    from pearl.data.rows import Row, read_file
    from pearl.trace import AnswerStatus

    first = None
    with suppress(DataError):
        first = next(read_file(Path(path)))
    told = (*get_args(AnswerStatus), "failed", "unfinished", "planned")
    if isinstance(first, Row) and first.fields.get("status") in told:
        return DataError(
            "these are rows of tasks or results, not the log of an evaluation",
            path=path,
            help=f"pearl eval --results {path} -o scored.jsonl, then pearl view scored.jsonl",
        )
    return error
