"""`pearl search`: the passages of a corpus that match a query best."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.corpora import corpus_options, open_index, searcher_opened
from pearl.cli.files import is_file
from pearl.cli.help import Command
from pearl.cli.options import as_json, option, private_option, refuse, setting_options
from pearl.cli.terminal import data_stdout, new_console, new_table, notice
from pearl.documents.passages import WORD, Stem
from pearl.errors.escaping import to_json
from pearl.errors.patterns import lazy_pattern
from pearl.retrieval import DEFAULT_METHOD, SearchSettings
from pearl.retrieval.queries import analyzer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pearl.retrieval import Hit
    from pearl.retrieval.index import Index
    from pearl.retrieval.methods import TermScore
    from pearl.retrieval.search import Searcher, SearchResult

    Explained = Mapping[str, tuple[TermScore, ...]]

DEFAULT_K = 10


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, metavar="CORPUS...")
@click.argument("query")
@option(
    "-k --k", click.IntRange(min=0), default=DEFAULT_K, metavar="N", show_default=True, help="Maximum passages.",
)  # fmt: skip
@option(
    "--method", str, metavar="NAME",
    help=f"bm25, dense or hybrid [default: {DEFAULT_METHOD}; with --embeddings, hybrid].",
)  # fmt: skip
@option(
    "--filter filters", str, metavar="CONDITION", multiple=True,
    help="Condition on a field of passages: year=2005, year>=2005, year=2005..2009, year!=2005, "
    "title~wing; several conditions with = on one field are alternatives.",
)  # fmt: skip
@option(
    "--history", str, metavar="QUESTION", multiple=True, help="An earlier question of the conversation; may be repeated, in order.",
)  # fmt: skip
@option(
    "--also", str, metavar="QUERY", multiple=True, help="An additional query; rankings of all queries are merged.",
)  # fmt: skip
@option("--explain", bool, "Show the scores of terms and rankings.")
@corpus_options
@click.option(
    "--update/--no-update", default=True, show_default=True,
    help="First update the index if the corpus has changed.",
)  # fmt: skip
@setting_options("embeddings")
@option(
    "--embeddings-url", str, metavar="URL", help="Server of openai embeddings [default: $OPENAI_BASE_URL, then OpenAI].",
)  # fmt: skip
@private_option
@as_json
def command(corpus: tuple[str, ...], query: str, **options: Any) -> int:
    """Find the passages of CORPUS that match QUERY best.

    CORPUS is a folder, files, or rows with `id` and `text` (JSONL, CSV, Parquet). The search
    is by words, with --embeddings also by meaning. Exit code 1 if nothing matches.
    """
    _check(corpus, query)
    method = options["method"] or ("hybrid" if options["embeddings"] else DEFAULT_METHOD)
    settings = SearchSettings(method, options["stem"] or "english")
    k = options["k"]
    queries, history = [query, *options["also"]], options["history"]
    searcher, index, found = asyncio.run(_search(corpus, queries, k, settings, options))
    for note in found.notes:
        notice(note)
    explained = [
        searcher.explain(index, queries, hit.passage.number, history)
        if options["explain"]
        else None
        for hit in found.hits
    ]
    if options["as_json"]:
        entries = list(map(to_entry, found.hits, explained))
        click.echo(to_json(entries, indent=2), file=data_stdout())
    else:
        terms = searcher.terms(index, queries, history).values()
        print_hits(found.hits, matcher({t for each in terms for t in each}, index.stem), explained)
    if found.hits:
        return 0
    if not k:
        notice("-k 0 requests no passages")
        return 0
    notice("no passage matches the query" + (" and the filters" if options["filters"] else ""))
    return 1


def _check(corpus: Sequence[str], query: str) -> None:
    """Refuse a blank query, and arguments that are missing or in the wrong order."""
    missing = [name for name in corpus if not _is_there(name)]
    of = query if _is_there(query) else "CORPUS"
    refuse(
        (not corpus, "missing arguments: expected CORPUS and QUERY", f'pearl search {of} "what to look for"'),
        (not query.strip(), "the query is blank", 'pearl search CORPUS "what to look for"'),
        (missing and _is_there(query),
         f"no corpus '{', '.join(missing)}', and the query '{query}' is a file or a folder",
         "the corpus comes first: pearl search CORPUS QUERY"),
    )  # fmt: skip


def _is_there(name: str) -> bool:
    return is_file(name) or Path(name).is_dir()


async def _search(
    corpus: Sequence[str],
    queries: Sequence[str],
    k: int,
    settings: SearchSettings,
    options: dict[str, Any],
) -> tuple[Searcher, Index, SearchResult]:
    """Return the searcher, the index and the result; wrong settings are reported before reading."""
    async with searcher_opened(settings, options) as searcher:
        index = open_index(corpus, options, stem=settings.stem, with_update=options["update"])
        filters, history = options["filters"], options["history"]
        found = await searcher.search(index, queries, k, filters=filters, history=history)
        return searcher, index, found


SHOWN = 400
"""Maximum characters of a passage that are shown."""

LEAD = 80
"""Maximum characters before the first match."""

FIELD = 60
"""Maximum characters of a field that are shown."""

MAX_MATCHES = 500
"""Maximum matches of a passage that are compared."""

MATCH = "bold red"
"""Style of words that match."""

INDENT = "   "

_BLANKS = lazy_pattern(r"\s+")


def to_entry(hit: Hit, explained: Explained | None = None) -> dict[str, Any]:
    """JSON data of a hit."""
    entry = {
        "rank": hit.rank,
        "id": hit.passage.document,
        "score": hit.score,
        "text": hit.passage.text,
        "span": {"start": hit.passage.span.start, "end": hit.passage.span.end},
        "fields": dict(hit.passage.fields),
        "legs": {name: {"rank": rank, "score": score} for name, (rank, score) in hit.legs.items()},
    }
    if explained is not None:
        entry["terms"] = [
            {"query": query, **term._asdict()}
            for query, terms in explained.items()
            for term in terms
        ]
    return entry


def print_hits(
    hits: Sequence[Hit], is_match: Callable[[str], bool], explained: Sequence[Explained | None]
) -> None:
    """Print each hit with its place and its passage; matching words are coloured."""
    from rich.padding import Padding
    from rich.text import Text

    console = new_console()
    for number, (hit, terms_of) in enumerate(zip(hits, explained, strict=True)):
        if number:
            console.print()
        span = hit.passage.span
        place = f"  {hit.score:.4f}  {span.start}-{span.end}"
        document = (_line(hit.passage.document), "bold")
        console.print(Text.assemble(f"{hit.rank}. ", document, (place, "dim")))
        if hit.passage.fields:
            console.print(Text(INDENT + _fields(hit.passage.fields), style="dim"))
        console.print(Text.assemble(INDENT, excerpt(hit.passage.text, is_match)))
        if terms_of is None:
            continue
        for query, terms in terms_of.items():
            if len(terms_of) > 1 and terms:
                console.print(Text(f"{INDENT}{query}", style="dim"))
            if terms:
                console.print(Padding(_terms_table(terms), (0, 0, 0, len(INDENT)), expand=False))
        for name, (rank, score) in hit.legs.items():
            console.print(Text(f"{INDENT}{name}: rank {rank}, score {score:.4f}", style="dim"))


def _fields(fields: Mapping[str, str]) -> str:
    """Fields on one line; long ones are cut, because the passage usually contains them."""
    pairs = ((_line(name), _line(value)) for name, value in fields.items())
    return "; ".join(
        f"{name}: {value if len(value) <= FIELD else value[: FIELD - 1].rstrip() + '…'}"
        for name, value in pairs
    )


def _terms_table(terms: Sequence[TermScore]) -> Table:
    table = new_table()
    table.add_column("term", overflow="fold")
    for name in ("tf", "length", "passages", "weight", "idf", "gain", "score"):
        table.add_column(name, justify="right", no_wrap=True)
    for term in terms:
        counts = (f"{n:,}" for n in (term.tf, term.length, term.n_with))
        numbers = (f"{x:.4f}" for x in (term.weight, term.idf, term.gain, term.score))
        table.add_row(term.term, *counts, *numbers)
    return table


def matcher(terms: Collection[str], stem: Stem) -> Callable[[str], bool]:
    """Return a function that says whether a word matches a term of a query after stemming."""
    analyse, wanted = analyzer(stem), frozenset(terms)
    return lambda word: not wanted.isdisjoint(analyse(word))


def excerpt(text: str, is_match: Callable[[str], bool]) -> Text:
    """A passage on one line, shortened to the part with most matching words, which are coloured."""
    from rich.text import Text

    line = _line(text)
    matches = [word.span() for word in WORD.finditer(line) if is_match(word.group())]
    start, end = _cut(line, _densest(line, matches))
    shown = Text(line[start:end])
    for a, b in matches:
        if start <= a < end:
            shown.stylize(MATCH, a - start, min(b, end) - start)
    return Text.assemble("… " if start else "", shown, " …" if end < len(line) else "")


def _densest(line: str, matches: Sequence[tuple[int, int]]) -> int:
    """The start of the stretch with most different words of the query."""
    words = [(a, line[a:b].casefold()) for a, b in matches[:MAX_MATCHES]]
    return max(
        (start for start, _ in words),
        key=lambda start: len({word for at, word in words if 0 <= at - start < SHOWN - LEAD}),
        default=0,
    )


def _cut(line: str, match: int) -> tuple[int, int]:
    """Start and end of the excerpt, at blanks where there are some: shortly before a match."""
    start = min(match - LEAD, len(line) - SHOWN)
    start = 0 if start <= 0 else line.find(" ", start, match) + 1 or start
    if len(line) - start <= SHOWN:
        return start, len(line)
    word = line.rfind(" ", start, start + SHOWN + 1)
    return start, word if word > start else start + SHOWN


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()
