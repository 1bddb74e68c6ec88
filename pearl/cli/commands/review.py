"""`pearl review`: a person decides the fields that a run left open, beside the documents."""

from __future__ import annotations

import getpass
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from pearl.cli.options import (
    AT_LEAST_1,
    documents_option,
    opened_folder,
    option,
    read_store,
    refuse,
    store_option,
)
from pearl.cli.terminal import notice
from pearl.errors import DataError
from pearl.errors.escaping import counted, to_json
from pearl.errors.privacy import is_private
from pearl.runs.decisions import Decisions
from pearl.runs.request import run_that_wrote
from pearl.runs.reviewing import KINDS
from pearl.runs.store import Store
from pearl.view.review_server import Review, ReviewServer
from pearl.view.sources import ResultsFile, ResultSource, RunResults, open_results


@click.command()
@click.argument("source", metavar="RUN|FILE")
@option(
    "--state", click.Choice(KINDS), "Only fields of this state; repeatable [default: all of them].", multiple=True,
)  # fmt: skip
@option("--sample", AT_LEAST_1, "Instead, N random fields that PEARL decided.", metavar="N")
@option("--seed", str, "Which random fields.", metavar="SEED", default="0")
@option("--name", str, "Whose decisions these are [default: the name of your login].")
@documents_option
@option("--port", click.IntRange(0, 65535), "Port of the page [default: a free one].", default=0, show_default=False)  # fmt: skip
@option("--open is_opened", bool, "Open the page in a browser.")
@option(
    "--report is_report", bool, "Print what is decided and the measured precision as JSON, and end."
)
@store_option
def command(
    source: str, state: tuple[str, ...], sample: int | None, seed: str, name: str | None,
    documents: tuple[str, ...], port: int, is_opened: bool, is_report: bool, store: str | None,
) -> int:  # fmt: skip
    """Decide what a run left open, beside its documents.

    RUN is a run of the store, FILE its table or a file of results. The command serves a page on 127.0.0.1 until you
    press Ctrl-C. The page shows each field that is undecided, not checked or degraded, its proposed value and the passage
    in the document. By keys you accept or correct it, say that it is not stated, or skip it. Every decision is
    stored at once: the same command resumes the review, and several persons may review one run.

    `pearl runs export`, `pearl extract` and `pearl view` take the decisions; their basis is `person`. With --sample,
    the page and --report tell how many of the fields that PEARL decided are right.
    """
    refuse(
        (state and sample, "--sample draws from what is decided, --state shows what is open", "leave out one of them"),
        (not seed.strip(), "--seed is empty", "--seed 1"),
        (is_private(), "a private run stores no decisions", "leave out --private, on an encrypted disk"),
    )  # fmt: skip
    if name is None:
        name = "somebody"
        with suppress(OSError, KeyError, ImportError):  # a user without a name
            name = getpass.getuser()
    with ExitStack() as stack:
        results, decisions = _opened(source, store, stack)
        review = Review(
            results, decisions, person=name, kinds=state or KINDS, n_sampled=sample, seed=seed,
            folders=[*map(Path, documents)],
        )  # fmt: skip
        for problem in results.problems:
            notice(problem)
        if review.n_unreadable:
            notice(f"{counted(review.n_unreadable, 'row')} cannot be read and are left out")
        if is_report:
            click.echo(to_json(review.report(), indent=2))
            return 0
        drawn = "" if sample is None else f", drawn by seed {seed}"
        with suppress(KeyboardInterrupt), ReviewServer(review, port) as server:
            notice(
                f"review of {results.title} by {review.person}: {counted(len(review.items), 'field')}{drawn}; Ctrl-C ends it"
            )
            click.echo(server.address)
            if is_opened:
                click.launch(server.address)
            server.serve_forever()
        done = review.report()["decided_by_persons"]
        notice(f"{counted(done, 'decision')} in {decisions.path}")
    return 0


def _opened(source: str, store: str | None, stack: ExitStack) -> tuple[ResultSource, Decisions]:
    """The results and the decisions about them: of the run that is named or that wrote the file, else of the file."""
    path = Path(source)
    opened: Store | None = None
    if not path.is_file() or store is not None or opened_folder(None).joinpath("store.db").exists():
        opened = stack.enter_context(read_store(store))
    run = source
    if path.is_file():
        run = "" if opened is None else run_that_wrote(path, opened)
    if opened is not None and run:
        results = RunResults(opened, run)
        return results, Decisions.of_run(opened, results.info.id)
    found = open_results(path)
    if not isinstance(found, ResultsFile):
        raise DataError(
            "no run of the store wrote this file, and it has no results", path=path,
            help="name the run, which 'pearl runs list' shows, or a file of --json",
        )  # fmt: skip
    return found, Decisions.beside(path)
