"""`pearl view`: results, runs and traces as pages that a person can check; logs of evaluations as pictures and one page."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pearl.cli.run_options import store_option
from pearl.cli.storing import opened_folder
from pearl.cli.writing import OutputWriter, force_option, keep_inputs
from pearl.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from pearl.view.sources import ResultSource


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", type=click.Path())
@click.option(
    "-o", "--page", type=click.Path(), metavar="FILE",
    help="The page [default: named like SOURCE, in this folder].",
)  # fmt: skip
@click.option("--row", metavar="ID", help="The page of one result, by its id.")
@click.option(
    "--documents", type=click.Path(), multiple=True, metavar="DIR",
    help="Where else documents may be read from; may be repeated.",
)  # fmt: skip
@click.option(
    "--trace", type=click.Path(), metavar="FILE",
    help="Traces of the same tasks, for a file of results.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(), metavar="DIR",
    help="Of evaluations: the folder to write into [default: NAME-pictures beside the first log].",
)  # fmt: skip
@force_option
@store_option
def command(
    sources: tuple[str, ...], page: str | None, row: str | None, documents: tuple[str, ...],
    trace: str | None, out: str | None, force: bool, store: str | None,
) -> None:  # fmt: skip
    """Show what happened, as one HTML file that loads nothing.

    SOURCE is a run of the store by its id, a file of results or a file of traces: one result is
    shown beside its document, with its plan, its steps and what each call was asked. Documents are
    read from the folder of SOURCE, or where the run was started, and from DIR.

    Logs that `pearl eval` wrote are drawn: accuracy against cost, by subset, and shapes of plans;
    of several logs with libraries of different size also accuracy against that size. What the logs
    hold no data for is skipped.
    """
    with ExitStack() as stack:
        opened = [_opened(source, trace, store, stack) for source in sources]
        if not any(opened):
            _draw(sources, out, force=force)
            return
        if len(opened) > 1:
            raise UsageError("one source is shown at a time", help=f"pearl view {sources[0]}")
        (source,) = opened
        assert source is not None
        target = page or f"{Path(sources[0]).stem}.html"
        keep_inputs([target], [*sources, *filter(None, [trace])])
        _write(_result(source, row, documents), target, force=force)


def _opened(
    source: str, trace: str | None, store: str | None, stack: ExitStack
) -> ResultSource | None:
    """The results of a run or a file; None where it is neither, but may be a log of an evaluation."""
    from pearl.runs.store import Store
    from pearl.runs.store.runs import is_id
    from pearl.view.sources import RunResults, open_results

    path = Path(source)
    if path.exists() or not is_id(source):
        return open_results(path, Path(trace) if trace else None) if path.is_file() else None
    reader = stack.enter_context(Store.open(opened_folder(store), read_only=True))
    return RunResults(reader, source)


def _result(source: ResultSource, row: str | None, documents: tuple[str, ...]) -> str:
    """The page of one result.

    Raises:
        DataError: There is none.
        UsageError: There are several, and none is named.
    """
    from pearl.view.answer_page import result_page
    from pearl.view.documents import with_document

    found = [(key, str(each.get("id", ""))) for key, each in source.rows()]
    if row is not None:
        chosen = [key for key, id in found if id == row]
        if not chosen:
            meant = did_you_mean(row, [id for _, id in found])
            raise DataError(
                f"{source.title} has no result '{row}'",
                help=f"did you mean '{meant}'?" if meant else f"it has {len(found):,} others",
            )
    elif len(found) > 1:
        raise UsageError(
            f"{source.title} has {len(found):,} results", help=f"name one: --row {found[0][1]}"
        )
    else:
        chosen = [key for key, _ in found]
    if not chosen:
        raise DataError(f"{source.title} has no results", help=" ".join(source.problems) or None)
    folders = [*map(Path, documents), source.folder]
    return result_page(with_document(source.record(chosen[0]), folders))


def _write(text: str, target: str, *, force: bool) -> None:
    writer = OutputWriter.of_command(is_forced=force)
    with writer.open(target) as file:
        file.write(text)
    click.echo(target)


def _draw(logs: tuple[str, ...], out: str | None, *, force: bool) -> None:
    """Logs of evaluations as pictures and one page."""
    from pearl.evals.log import read_log
    from pearl.evals.view.evaluation import page
    from pearl.evals.view.pictures import draw
    from pearl.evals.view.summary import series_of

    read = [read_log(path) for path in logs]
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
        file.write(page(rows, [log.header for log in read], pictures))
    for picture in pictures:
        for target, data in picture.files(folder).items():
            with writer.open(str(target)) as file:
                file.buffer.write(data)  # type: ignore[attr-defined]
    for name in files:
        click.echo(name)
    for name, reason in skipped.items():
        click.echo(f"skipped {name}: {reason}", err=True)
