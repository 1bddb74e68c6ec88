"""`pearl view`: logs of evaluations as pictures and one page."""

from __future__ import annotations

from pathlib import Path

import click

from pearl.cli.writing import keep_inputs, new_file
from pearl.errors import DataError
from pearl.escaping import escaped


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...", type=click.Path())
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Folder to write into, made if need be [default: NAME-pictures beside the first log].",
)
def command(logs: tuple[str, ...], out: str | None) -> None:
    """Draw logs that `pearl eval` wrote: pictures as SVG and PNG, and index.html with everything.

    Accuracy against cost, by subset, and shapes of plans; of several logs with libraries of
    different size also accuracy against that size. What the logs hold no data for is skipped.
    """
    from pearl.evals.log import read_log
    from pearl.view.evaluation import page
    from pearl.view.pictures import draw, save
    from pearl.view.summary import series_of

    read = [read_log(path) for path in logs]
    rows = series_of(read)
    pictures, skipped = draw(rows)
    first = Path(logs[0])
    folder = Path(out) if out else first.with_name(f"{first.stem}-pictures")
    index = folder / "index.html"
    keep_inputs(
        map(str, (index, *(path for picture in pictures for path in picture.files(folder)))), logs
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot be made: {error.strerror}", path=folder, help="name another folder with --out"
        ) from None
    written = save(pictures, folder)
    with new_file(str(index)) as file:
        file.write(escaped(page(rows, [log.header for log in read], pictures)))
    for path in (*written, index):
        click.echo(path)
    for name, reason in skipped.items():
        click.echo(f"skipped {name}: {reason}", err=True)
