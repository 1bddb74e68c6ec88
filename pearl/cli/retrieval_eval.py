"""`pearl eval --retrieval`: a corpus, queries and judgments → measures of every method."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli.corpora import corpus_options, open_index
from pearl.cli.options import with_options
from pearl.cli.searcher import searcher_opened, vectors_progress
from pearl.cli.terminal import notice
from pearl.cli.writing import STDOUT, OutputWriter, keep_inputs
from pearl.errors import UsageError
from pearl.errors.escaping import to_json
from pearl.retrieval import DEFAULT_METHOD, SearchSettings
from pearl.retrieval.methods import find_method

if TYPE_CHECKING:
    from rich.table import Table

    from pearl.evals.retrieval import (
        Judgments,
        RetrievalComparison,
        RetrievalEvaluation,
        RetrievalScores,
        Topic,
    )
    from pearl.retrieval.index import Index

_OWN = ("queries", "qrels", "cutoffs", "oracle")
_OF_CORPUS = ("unit", "size", "overlap", "stem", "at")
_SEARCH = ("corpus", "embeddings", "reranker", "reranker_url", *_OF_CORPUS)
_SHARED = ("retrieval", "methods", "out", "force", "as_json")


def retrieval_options(command: Any) -> Any:
    """`--retrieval` and what belongs to it."""
    options = [
        click.option(
            "--retrieval", is_flag=True,
            help="Evaluate search instead of answers: --queries over --corpus, judged by --qrels.",
        ),
        click.option(
            "--corpus", multiple=True, type=click.Path(), metavar="CORPUS",
            help="What is searched, as by `pearl search`, or, with --data, asked in place of each sample's document: "
            "a folder, files, or rows with `id` and `text`.",
        ),
        click.option(
            "--queries", type=click.Path(), metavar="FILE",
            help="JSONL, CSV or TSV with `id` and `text`, and if you like `history` and `filters`.",
        ),
        click.option(
            "--qrels", type=click.Path(), metavar="FILE",
            help="Which documents are right: lines `query 0 document relevance`, or rows with "
            "`query_id`, `doc_id`, `relevance`.",
        ),
        click.option(
            "-k", "--k", "cutoffs", multiple=True, type=click.IntRange(min=1), default=(10,), show_default=True,
            metavar="N", help="Measure the best N documents; may be given several times.",
        ),
        click.option(
            "--oracle", is_flag=True, help="Add what is the most that can be had: the right documents first.",
        ),
    ]  # fmt: skip
    return with_options(corpus_options(command), options)


def refuse_retrieval_options() -> None:
    """Refuse options of `--retrieval` where that is not given, and those of a corpus where none is."""
    if found := [name for name in _OWN if _is_given(name)]:
        raise UsageError(f"{_flag(found[0])} belongs to --retrieval", help="add --retrieval")
    is_searched = _is_given("corpus") or _is_given("together")
    if not is_searched and (found := [name for name in _OF_CORPUS if _is_given(name)]):
        raise UsageError(
            f"{_flag(found[0])} is about a corpus", help="add --together, --corpus or --retrieval"
        )


def score_retrieval(methods: Sequence[str], options: dict[str, Any]) -> int:
    """Evaluate, print and write; returns the exit code."""
    from pearl.evals.retrieval import read_judgments, read_topics

    context = click.get_current_context()
    useless = [
        name
        for name in context.params
        if _is_given(name) and name not in (*_OWN, *_SEARCH, *_SHARED)
    ]
    if useless:
        raise UsageError(f"{_flag(useless[0])} does nothing with --retrieval", help="leave it out")
    if missing := [name for name in ("corpus", "queries", "qrels") if not options[name]]:
        raise UsageError(
            f"--retrieval needs {', '.join(map(_flag, missing))}",
            help="pearl eval --retrieval --corpus docs.jsonl --queries queries.jsonl --qrels qrels.txt",
        )
    corpus, out = options["corpus"], options["out"]
    keep_inputs([out], [*corpus, options["queries"], options["qrels"]])
    writer = OutputWriter.of_command(is_forced=options["force"])
    writer.check(out)
    settings = SearchSettings(stem=options["stem"] or "english")
    names = _with_legs(methods if _is_given("methods") else (DEFAULT_METHOD,), settings)
    for name in names:
        find_method(name)
    topics, judgments = read_topics(options["queries"]), read_judgments(options["qrels"])
    index = open_index(
        corpus, unit=options["unit"], size=options["size"], overlap=options["overlap"],
        stem=settings.stem, at=options["at"],
    )  # fmt: skip
    found = asyncio.run(_evaluated(index, topics, judgments, names, settings, options))
    written = to_json(found.to_json(), indent=2)
    if out is not None:
        with writer.open(out) as file:
            file.write(f"{written}\n")
    for remark in found.coverage.remarks():
        notice(remark)
    for one in found.scores:
        for note, n in one.notes.items():
            notice(f"{one.method}, {n:,} of {found.coverage.n_topics:,} queries: {note}")
    if options["as_json"]:
        click.echo(written)
    elif out not in STDOUT or out is None:
        _print(found)
    return 0


async def _evaluated(
    index: Index,
    topics: Sequence[Topic],
    judgments: Judgments,
    methods: Sequence[str],
    settings: SearchSettings,
    options: dict[str, Any],
) -> RetrievalEvaluation:
    from pearl.evals.retrieval import default_measures, evaluate_retrieval
    from pearl.retrieval.search import Searcher

    async with searcher_opened(settings, options) as opened:
        searchers, told = {}, vectors_progress()
        for name in methods:
            ranked_by = replace(settings, method=name)
            searchers[name] = Searcher(ranked_by, opened.embedder, progress=told)
            if opened.reranker is not None:
                searchers[f"{name}, reranked"] = Searcher(
                    ranked_by, opened.embedder, opened.reranker, progress=told
                )
        cutoffs = options["cutoffs"]
        return await evaluate_retrieval(
            index, topics, judgments, searchers, k=max(cutoffs),
            measures=default_measures(cutoffs), with_oracle=options["oracle"],
        )  # fmt: skip


def _with_legs(methods: Sequence[str], settings: SearchSettings) -> list[str]:
    """The methods, each once; the legs of a hybrid before it."""
    names: dict[str, None] = {}
    for method in methods:
        legs = (settings.lexical, "dense") if method == "hybrid" else ()
        names |= dict.fromkeys([*legs, method])
    return list(names)


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _flag(name: str) -> str:
    """An option as it is written."""
    options = click.get_current_context().command.params
    return next(option.opts[0] for option in options if option.name == name)


def _print(found: RetrievalEvaluation) -> None:
    from pearl.cli.tables import show
    from pearl.evals.stats import MIN_CLUSTERS

    scores = found.scores
    click.echo(
        f"{found.coverage.n_topics:,} queries with a relevant document; all but ms in percent"
    )
    if (n := len(set(scores[0].groups))) < MIN_CLUSTERS:
        click.echo(f"{n} queries or groups of them are too few for intervals that mean much")
    show(_scores(scores, found.measures))
    if comparisons := found.comparisons():
        click.echo("")
        show(_comparisons(comparisons))


def _scores(scores: Sequence[RetrievalScores], measures: Sequence[str]) -> Table:
    from pearl.cli.tables import ends, figures

    main, *others = measures
    empty = any(one.n_found_nothing for one in scores)
    table = figures(
        "method",
        main,
        "95 %",
        *others,
        "ms\np50",
        "ms\np95",
        *(["nothing\nfound"] if empty else []),
    )
    for one in scores:
        interval = one.mean(main)
        times = (one.latency_ms(50), one.latency_ms(95))
        table.add_row(
            one.method,
            f"{100 * interval.estimate:.1f}",
            ends(interval),
            *(f"{100 * one.mean(name).estimate:.1f}" for name in others),
            *("" if time is None else f"{time:,.1f}" for time in times),
            *([f"{one.n_found_nothing:,}"] if empty else []),
        )
    return table


def _comparisons(found: Sequence[RetrievalComparison]) -> Table:
    from pearl.cli.scores import p_value
    from pearl.cli.tables import ends, figures

    table = figures(
        f"paired, {found[0].measure}", "points", "95 %", "better", "worse", "bootstrap\np"
    )
    for one in found:
        table.add_row(
            f"{one.first} - {one.second}",
            f"{100 * one.difference.estimate:+.1f}",
            ends(one.difference),
            f"{one.n_better:,}",
            f"{one.n_worse:,}",
            p_value(one.bootstrap_p),
        )
    return table
