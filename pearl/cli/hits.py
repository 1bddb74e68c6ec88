"""Formats what a search found: as text for people, as JSON data for programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pearl.cli.terminal import new_console, new_table
from pearl.documents.passages import WORD, Stem
from pearl.retrieval.queries import analyzer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from pearl.retrieval import Hit
    from pearl.retrieval.methods import TermScore

    Explained = Mapping[str, tuple[TermScore, ...]]

SHOWN = 400
"""Characters of a passage that are shown."""

LEAD = 80
"""Of these, at most so many before the first word that matches."""

FIELD = 60
"""Characters of a field that are shown."""

MATCH = "bold red"
"""Style of words that match."""

INDENT = "   "

_BLANKS = re.compile(r"\s+")


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
        "is_free": hit.is_free,
    }
    if explained is not None:
        entry["terms"] = [
            {"query": query, **term._asdict()}
            for query, terms in explained.items()
            for term in terms
        ]
    return entry


def print_hits(
    hits: Sequence[Hit], is_match: Callable[[str], bool], explained: Sequence[Explained] = ()
) -> None:
    """Each hit with its place and its passage, in which words that match are coloured."""
    from rich.padding import Padding
    from rich.text import Text

    console = new_console()
    for number, hit in enumerate(hits):
        if number:
            console.print()
        span = hit.passage.span
        place = f"  {hit.score:.4f}  {span.start}-{span.end}"
        free = ("  (short: not counted)", "dim") if hit.is_free else ""
        document = (_line(hit.passage.document), "bold")
        console.print(Text.assemble(f"{hit.rank}. ", document, (place, "dim"), free))
        if hit.passage.fields:
            console.print(Text(INDENT + _fields(hit.passage.fields), style="dim"))
        console.print(Text.assemble(INDENT, excerpt(hit.passage.text, is_match)))
        if not explained:
            continue
        for query, terms in explained[number].items():
            if len(explained[number]) > 1 and terms:
                console.print(Text(f"{INDENT}{query}", style="dim"))
            if terms:
                console.print(Padding(_terms_table(terms), (0, 0, 0, len(INDENT)), expand=False))
        for name, (rank, score) in hit.legs.items():
            console.print(Text(f"{INDENT}{name}: rank {rank}, score {score:.4f}", style="dim"))


def _fields(fields: Mapping[str, str]) -> str:
    """Fields on one line; columns of long text are cut, because most of them are in the passage."""
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
    """Whether a word of a passage is one of the terms of a query, after stemming."""
    analyse, wanted = analyzer(stem), frozenset(terms)
    return lambda word: not wanted.isdisjoint(analyse(word))


def excerpt(text: str, is_match: Callable[[str], bool]) -> Text:
    """A passage on one line, shortened around the words that match, which are coloured."""
    from rich.text import Text

    line = _line(text)
    matches = [word.span() for word in WORD.finditer(line) if is_match(word.group())]
    start = _start(line, _densest(line, matches))
    end = _end(line, start)
    shown = Text(line[start:end])
    for a, b in matches:
        if start <= a < end:
            shown.stylize(MATCH, a - start, min(b, end) - start)
    return Text.assemble("… " if start else "", shown, " …" if end < len(line) else "")


def _densest(line: str, matches: Sequence[tuple[int, int]]) -> int:
    """The first match of the stretch that has most different words of the query."""
    words = [line[a:b].casefold() for a, b in matches]
    within: Counter[str] = Counter()
    best, most, end = 0, 0, 0
    for number, (start, _) in enumerate(matches):
        while end < len(matches) and matches[end][0] < start + SHOWN - LEAD:
            within[words[end]] += 1
            end += 1
        if len(within) > most:
            best, most = start, len(within)
        within[words[number]] -= 1
        if not within[words[number]]:
            del within[words[number]]
    return best


def _start(line: str, match: int) -> int:
    """Where the excerpt begins: at a word somewhat before the first match."""
    start = min(match - LEAD, len(line) - SHOWN)
    if start <= 0:
        return 0
    word = line.find(" ", start, match) + 1
    return word or start


def _end(line: str, start: int) -> int:
    if len(line) - start <= SHOWN:
        return len(line)
    word = line.rfind(" ", start, start + SHOWN + 1)
    return word if word > start else start + SHOWN


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()
