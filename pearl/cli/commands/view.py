"""`pearl view`: results, runs and traces as pages."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pearl.cli.options import PATH, documents_option, force_option, option, read_store, store_option
from pearl.cli.writing import OutputWriter, refuse_overwriting_inputs
from pearl.documents.readers import reading
from pearl.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    from pearl.view.sources import ResultSource


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...", type=click.Path())
@option("-o --page", PATH, "The page [default: named like SOURCE, in this folder].", metavar="FILE")
@option("--row", str, "Id of a single result to show.", metavar="ID")
@documents_option
@option("--trace", PATH, "File of traces for a file of results.", metavar="FILE")
@force_option
@store_option
def command(
    sources: tuple[str, ...], page: str | None, row: str | None, documents: tuple[str, ...],
    trace: str | None, force: bool, store: str | None,
) -> None:  # fmt: skip
    """Write results, runs or traces as an HTML page.

    The page is one file that loads nothing else. SOURCE is the id of a run of the store, a file of
    results or a file of traces. The page of one result shows it beside its document, with its plan,
    its steps and the prompts of its calls. Documents are read from the folder of SOURCE, the folder
    of the run, and from DIR. The page of several results is a list with filters and search; the
    page of two SOURCEs shows the changes from the first to the second.
    """
    if len(sources) > 2:
        raise UsageError(
            "give one source to show, or two to compare", help=f"pearl view {sources[0]}"
        )
    target = page or f"{'-'.join(Path(source).stem for source in sources)}.html"
    refuse_overwriting_inputs([target], [*sources, *filter(None, [trace])])
    with ExitStack() as stack:
        results = [_opened(source, trace, store, stack) for source in sources]
        if len(results) == 2:
            if row is not None:
                raise UsageError(
                    "--row needs exactly one source", help="leave out one of them, or --row"
                )
            from pearl.view.comparison_page import comparison_page

            text = comparison_page(results[0], results[1])
        else:
            text = _page_of(results[0], row, documents)
        with OutputWriter(is_forced=force).open(target) as file:
            file.write(text)
    click.echo(target)


def _opened(source: str, trace: str | None, store: str | None, stack: ExitStack) -> ResultSource:
    from pearl.runs.decisions import Decisions
    from pearl.runs.store.runs import is_id
    from pearl.view.sources import Reviewed, RunResults, open_results

    path = Path(source)
    if path.exists() or not is_id(source):
        if results := open_results(path, Path(trace) if trace else None):
            return Reviewed(results, Decisions.beside(path))
        raise DataError(
            "the file has neither results nor traces",
            path=path,
            help="pearl eval --rescore LOG shows the log of an evaluation",
        )
    reader = stack.enter_context(read_store(store))
    run = RunResults(reader, source)
    return Reviewed(run, Decisions.of_run(reader, run.info.id))


def _page_of(source: ResultSource, row: str | None, documents: tuple[str, ...]) -> str:
    """The page of one result, or the list of several if none is named."""
    from pearl.interpreter.row import id_of
    from pearl.view.answer_page import result_page
    from pearl.view.listing import index_page
    from pearl.view.sources import with_document

    found = [(key, id_of(each)) for key, each in source.rows()]
    if not found:
        raise DataError(f"{source.title} has no results", help=" ".join(source.problems) or None)
    if row is None and len(found) > 1:
        return index_page(source)
    chosen = [key for key, id in found if row in (None, id)]
    if not chosen:
        meant = did_you_mean(row or "", [id for _, id in found])
        raise DataError(
            f"{source.title} has no result '{row}'",
            help=f"did you mean '{meant}'?" if meant else f"it has {len(found):,} others",
        )
    record = source.record(chosen[0])
    with reading(record.settings):  # as the run read its documents
        return result_page(with_document(record, [*map(Path, documents), source.folder]))
