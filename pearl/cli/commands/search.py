"""`pearl search`: the passages of a corpus that match a query best."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.files import corpus_options, is_file, open_index, searcher_opened
from pearl.cli.options import (
    AT_LEAST_1,
    Command,
    as_json,
    option,
    private_option,
    refuse,
    setting_options,
)
from pearl.cli.terminal import data_stdout, new_console, notice
from pearl.documents.passages import WORD, Stem, analyzer
from pearl.errors.escaping import to_json
from pearl.retrieval import DEFAULT_METHOD, SearchSettings

if TYPE_CHECKING:
    from rich.text import Text

    from pearl.retrieval import Hit
    from pearl.retrieval.search import SearchResult

DEFAULT_K = 10  # passages to print


@click.command(cls=Command)
@click.argument("corpus", nargs=-1, metavar="CORPUS...")
@click.argument("query")
@option(
    "-k --k", AT_LEAST_1, default=DEFAULT_K, metavar="N", show_default=True, help="Maximum passages.",
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
    # Refuse a blank query, and arguments that are missing or in the wrong order
    missing = [name for name in corpus if not _is_there(name)]
    of = query if _is_there(query) else "CORPUS"
    refuse(
        (not corpus, "missing arguments: expected CORPUS and QUERY", f'pearl search {of} "what to look for"'),
        (not query.strip(), "the query is blank", 'pearl search CORPUS "what to look for"'),
        (missing and _is_there(query),
         f"no corpus '{', '.join(missing)}', and the query '{query}' is a file or a folder",
         "the corpus comes first: pearl search CORPUS QUERY"),
    )  # fmt: skip
    method = options["method"] or ("hybrid" if options["embeddings"] else DEFAULT_METHOD)
    settings = SearchSettings(method, options["stem"] or "english")
    found = asyncio.run(_search(corpus, query, options["k"], settings, options))
    for note in found.notes:
        notice(note)
    if options["as_json"]:
        click.echo(to_json(list(map(to_entry, found.hits)), indent=2), file=data_stdout())
    else:
        print_hits(found.hits, matcher(query, settings.stem))
    if found.hits:
        return 0
    notice("no passage matches the query" + (" and the filters" if options["filters"] else ""))
    return 1


def _is_there(name: str) -> bool:
    return is_file(name) or Path(name).is_dir()


async def _search(
    corpus: Sequence[str], query: str, k: int, settings: SearchSettings, options: dict[str, Any]
) -> SearchResult:
    """Search; wrong settings are reported before anything is read."""
    async with searcher_opened(settings, options) as searcher:
        index = open_index(corpus, options, stem=settings.stem, with_update=options["update"])
        return await searcher.search(index, query, k, filters=options["filters"])


SHOWN = 400  # Maximum characters of a passage that are shown
LEAD = 80  # Maximum characters before the first match
FIELD = 60  # Maximum characters of a field that are shown
MATCH = "bold red"  # Style of words that match

INDENT = "   "


def to_entry(hit: Hit) -> dict[str, Any]:
    """JSON data of a hit."""
    return {
        "rank": hit.rank,
        "id": hit.passage.document,
        "score": hit.score,
        "text": hit.passage.text,
        "span": {"start": hit.passage.span.start, "end": hit.passage.span.end},
        "fields": dict(hit.passage.fields),
    }


def print_hits(hits: Sequence[Hit], is_match: Callable[[str], bool]) -> None:
    """Print each hit with its place and its passage; matching words are coloured."""
    from rich.text import Text

    from pearl.documents.rows import shortened

    console = new_console()
    for number, hit in enumerate(hits):
        if number:
            console.print()
        span = hit.passage.span
        place = f"  {hit.score:.4f}  {span.start}-{span.end}"
        document = (_line(hit.passage.document), "bold")
        console.print(Text.assemble(f"{hit.rank}. ", document, (place, "dim")))
        if hit.passage.fields:
            # Long ones are cut, because the passage usually contains them.
            pairs = hit.passage.fields.items()
            fields = "; ".join(f"{_line(name)}: {shortened(value, FIELD)}" for name, value in pairs)
            console.print(Text(INDENT + fields, style="dim"))
        console.print(Text.assemble(INDENT, excerpt(hit.passage.text, is_match)))


def matcher(query: str, stem: Stem) -> Callable[[str], bool]:
    """Return a function that checks whether a word matches one of the query after stemming."""
    analyse = analyzer(stem)
    wanted = frozenset(analyse(query))
    return lambda word: not wanted.isdisjoint(analyse(word))


def excerpt(text: str, is_match: Callable[[str], bool]) -> Text:
    """A passage on one line, shortened to what is around the first matching word; matching words are coloured."""
    from rich.text import Text

    line = _line(text)
    matches = [word.span() for word in WORD.finditer(line) if is_match(word.group())]
    first = matches[0][0] if matches else 0
    start = min(first - LEAD, len(line) - SHOWN)
    start = 0 if start <= 0 else line.find(" ", start, first) + 1 or start
    end = len(line)
    if end - start > SHOWN:
        word = line.rfind(" ", start, start + SHOWN + 1)
        end = word if word > start else start + SHOWN
    shown = Text(line[start:end])
    for a, b in matches:
        if start <= a < end:
            shown.stylize(MATCH, a - start, min(b, end) - start)
    return Text.assemble("… " if start else "", shown, " …" if end < len(line) else "")


def _line(text: str) -> str:
    return " ".join(text.split())
