"""`pearl search`: the passages of a corpus that match a query best."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from pearl.cli.corpora import corpus_options, open_index
from pearl.cli.files import is_file
from pearl.cli.help import Command
from pearl.cli.hits import matcher, print_hits, to_entry
from pearl.cli.options import as_json, setting_options
from pearl.cli.searcher import searcher_opened
from pearl.cli.terminal import data_stdout, notice
from pearl.errors import UsageError
from pearl.errors.escaping import to_json
from pearl.retrieval import DEFAULT_METHOD, Fusion, Idf, SearchSettings

if TYPE_CHECKING:
    from pearl.retrieval.index import Index
    from pearl.retrieval.search import Searcher, SearchResult

DEFAULT_K = 10

Options = TypeVar("Options", bound=Callable[..., Any])

_DEFAULTS = SearchSettings()


def _number(name: str, help: str) -> Callable[[Options], Options]:
    """An option of a number of `SearchSettings`, which says what it may be."""
    default = f"{help} [default: {getattr(_DEFAULTS, name):g}]."
    return click.option(f"--{name.replace('_', '-')}", type=float, metavar="NUMBER", help=default)


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, metavar="CORPUS...")
@click.argument("query")
@click.option(
    "-k", "--k", type=click.IntRange(min=0), metavar="N",
    help=f"Passages at most [default: {DEFAULT_K}, or that of the preset].",
)  # fmt: skip
@click.option(
    "--method", metavar="NAME",
    help=f"bm25, bm25+, tfidf, dense or hybrid [default: {DEFAULT_METHOD}; with --embeddings, hybrid].",
)  # fmt: skip
@click.option(
    "--filter", "filters", multiple=True, metavar="CONDITION",
    help="Fields that passages must have: year=2005, year>=2005, year=2005..2009, year!=2005, "
    "title~wing; those of one field with = are alternatives.",
)  # fmt: skip
@click.option(
    "--history", multiple=True, metavar="QUESTION",
    help="Earlier questions of the conversation, the first one first.",
)  # fmt: skip
@click.option(
    "--also", multiple=True, metavar="QUERY",
    help="Another query, searched as well; all are merged by rank.",
)  # fmt: skip
@click.option("--explain", is_flag=True, help="Show what each term adds, and each ranking.")
@corpus_options
@click.option(
    "--update/--no-update", default=True, show_default=True,
    help="Read what has changed in the corpus first.",
)  # fmt: skip
@click.option("--preset", metavar="NAME", help="Settings by name: corpus-qa.")
@click.option(
    "--thesaurus", type=click.Path(), metavar="FILE",
    help="Synonyms, a group a line: queries are searched by them, too.",
)  # fmt: skip
@_number("synonym_weight", "Weight of a synonym beside that of its term")
@_number("year_boost", "Factor on passages that have a year of the query")
@_number("k1", "Saturation of term frequency")
@_number("b", "Normalisation by length, 0 to 1")
@_number("delta", "What bm25+ adds for each term that a passage has")
@click.option("--idf", type=click.Choice(get_args(Idf)), help="Inverse document frequency.")
@click.option("--lexical", metavar="NAME", help="Method of the lexical leg of hybrid.")
@click.option("--fusion", type=click.Choice(get_args(Fusion)), help="How hybrid merges its legs.")
@_number("dense_weight", "Weight of the dense leg of hybrid, 0 to 1")
@setting_options("embeddings", "reranker", "reranker_url")
@click.option(
    "--embeddings-url", metavar="URL",
    help="Server of openai embeddings [default: $OPENAI_BASE_URL, then OpenAI].",
)  # fmt: skip
@as_json
def command(corpus: tuple[str, ...], query: str, **options: Any) -> int:
    """Find the passages of CORPUS that match QUERY best.

    CORPUS is a folder, files, or rows with `id` and `text` (JSONL, CSV, Parquet). By words; with
    --embeddings by meaning, too; with --reranker the best are ordered anew. Exit code 1 if nothing
    matches.
    """
    from pearl.retrieval import find_preset

    _check(corpus, query)
    preset = find_preset(options["preset"]) if options["preset"] else None
    settings = _settings(preset.settings if preset else _DEFAULTS, options)
    k = options["k"]
    if k is None:
        k = preset.k if preset else DEFAULT_K
    queries, history = [query, *options["also"]], options["history"]
    searcher, index, found = asyncio.run(_search(corpus, queries, k, settings, options))
    for note in found.notes:
        notice(note)
    explained = (
        [searcher.explain(index, queries, hit.passage.number, history) for hit in found.hits]
        if options["explain"]
        else []
    )
    if options["as_json"]:
        entries = (
            [to_entry(hit, each) for hit, each in zip(found.hits, explained, strict=True)]
            if options["explain"]
            else [to_entry(hit) for hit in found.hits]
        )
        click.echo(to_json(entries, indent=2), file=data_stdout())
    else:
        terms = searcher.terms(index, queries, history).values()
        print_hits(found.hits, matcher({t for each in terms for t in each}, index.stem), explained)
    if found.hits:
        return 0
    if not k:
        notice("no passage was asked for: -k 0")
        return 0
    notice("no passage matches the query" + (" and the filters" if options["filters"] else ""))
    return 1


def _check(corpus: Sequence[str], query: str) -> None:
    """Refuse a query that asks nothing, and arguments that are missing or in the wrong order."""
    if not corpus:
        of = query if _is_there(query) else "CORPUS"
        raise UsageError("a corpus and a query", help=f'pearl search {of} "what to look for"')
    if not query.strip():
        raise UsageError("the query is blank", help='pearl search CORPUS "what to look for"')
    missing = [name for name in corpus if not _is_there(name)]
    if missing and _is_there(query):
        raise UsageError(
            f"there is no corpus '{missing[0]}', and the query '{query}' is a file or a folder",
            help="the corpus comes first: pearl search CORPUS QUERY",
        )


def _is_there(name: str) -> bool:
    return is_file(name) or Path(name).is_dir()


def _settings(base: SearchSettings, options: dict[str, Any]) -> SearchSettings:
    """The settings of a preset, or the usual ones, with what the options say."""
    names = (
        "method", "k1", "b", "delta", "idf", "stem", "lexical", "fusion", "dense_weight",
        "thesaurus", "synonym_weight", "year_boost",
    )  # fmt: skip
    said = {name: options[name] for name in names if options[name] is not None}
    if options["embeddings"]:
        said.setdefault("method", "hybrid")
    return replace(base, **said)


async def _search(
    corpus: Sequence[str],
    queries: Sequence[str],
    k: int,
    settings: SearchSettings,
    options: dict[str, Any],
) -> tuple[Searcher, Index, SearchResult]:
    """What searched, what was searched and what was found; wrong settings are said before reading."""
    async with searcher_opened(settings, options) as searcher:
        index = open_index(
            corpus, unit=options["unit"], size=options["size"], overlap=options["overlap"],
            stem=settings.stem, at=options["at"], with_update=options["update"],
        )  # fmt: skip
        filters, history = options["filters"], options["history"]
        found = await searcher.search(index, queries, k, filters=filters, history=history)
        return searcher, index, found
