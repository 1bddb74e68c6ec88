"""FIND_FIGURE and FIND_PERIODS by rule: the cell of a table, else a sentence that gives the figure.

A cell is given only if its names say it: those of its row and its column, its section and what stands above
the table, with the period in column or row. Another year's figure is never given. Where no cell fits, or
several do, nothing is found, and the reply names the cells that may be meant.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pearl.documents.document import Document
from pearl.documents.evidence import quoted_line
from pearl.documents.numbers import CURRENCIES
from pearl.documents.passages import sentences, terms
from pearl.documents.table import Cell, Table, find_tables, scale_word
from pearl.documents.table.quantities import is_blank, read_quantity
from pearl.dsl.signatures import NOTHING
from pearl.llm import ActionTask
from pearl.llm.backends.extractive.dated_figures import dated_figures
from pearl.llm.backends.extractive.figure_periods import (
    FigurePeriod,
    read_period_words,
    without_period,
)

_LEAST = 0.72
"""Least score of a cell, of 1."""
_MARGIN = 0.06
"""A cell that scores by less lower may be meant as well."""
_EXACT = 0.999
"""A cell that is named just as asked is meant before all that are named about so."""
_IN_OTHERS = 0.08
"""What a match by another name for the same thing is worth less."""
_ELSEWHERE = 0.5
"""Weight of a word that no name of the tables has: it may be another word for one of them."""
_AROUND = 0.8
"""Weight of a match in what stands around a row, not in the names of row and column."""
_LEAST_OWN = 0.5
"""Share of what is asked for that row and column have to say themselves, if they say anything."""
_FAINT = 0.3
"""Weight of a word of `_FRAME` that the tables have."""
_MAX_ABOVE = 150
"""Characters above a table that say what it is of."""

_FRAME = frozenset(terms(
    "value amount figure number sum many year end ending company report level balance state record total annual net"
))  # fmt: skip
"""Words of questions that need not stand in the table."""
_SAME = tuple(
    tuple(frozenset(terms(name)) for name in names)
    for names in (
        ("sales", "revenue"),
        ("profit", "income", "earnings"),
        ("stockholders", "shareholders", "shareowners"),
        ("capex", "capital expenditures"),
        ("eps", "earnings per share"),
        ("afs", "available for sale"),
    )
)
"""Names for the same thing."""
_CONTRAST = re.compile(r"\b(?:not|non|no|without|exclud\w+|except|before|after|high|low)\b", re.I)
"""Words that make a name that of something else."""
_FIRST = re.compile(r"\b(?:beginning|opening|january 1)\b", re.I)
"""A name of what there was when the period began; else what is meant is its end."""
_IN_SCALE = re.compile(
    r"\bin (?:thousand|million|billion)s?(?: of (?:us )?dollars)?\b|\b(?:what|which)\b", re.I
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A cell, with what names it."""

    table: Table
    cell: Cell
    own: frozenset[str]
    around: frozenset[str]
    contrast: frozenset[str]
    is_start: bool
    period: FigurePeriod

    @property
    def row_text(self) -> str:
        """The row as it is written, on a line."""
        return " ".join(self.table.rows[self.cell.row - 1].text.split())


@dataclass(frozen=True, slots=True)
class FoundFigure:
    """A figure and where it is from."""

    figure: str
    place: str
    quote: str


class _Page:
    """The cells with numbers of all tables of a text, with their names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places = [p for table in find_tables(Document(text)) for p in _places(table, text)]
        names = {place.own for place in self.places}
        self._n_with = Counter(term for name in names for term in name)
        self._n_names = len(names)

    def weight(self, term: str) -> float:
        """What a term tells: rare ones more, words of questions hardly anything."""
        n_with = self._n_with[term]
        if term in _FRAME:
            return _FAINT if n_with else 0.0
        share = self._n_names / n_with if n_with else self._n_names
        return math.log(1 + share) * (1 if n_with else _ELSEWHERE)

    def score(
        self, place: _Place, wanted: frozenset[str], others: Sequence[frozenset[str]] = ()
    ) -> float:
        """How well the names of a cell are what is wanted, 0 to 1; in other words it is worth a little less."""
        said = [self._score(place, wanted), *(self._score(place, o) - _IN_OTHERS for o in others)]
        return max(0.0, *said)

    def _score(self, place: _Place, wanted: frozenset[str]) -> float:
        most = sum(map(self.weight, wanted))
        met = sum(map(self.weight, place.own & wanted))
        met_around = sum(map(self.weight, (place.around - place.own) & wanted))
        said = place.own - _FRAME
        if not most or met + met_around == 0 or (said and met < _LEAST_OWN * most):
            return 0.0
        recall = (met + _AROUND * met_around) / most
        named = sum(map(self.weight, said))
        precision = sum(map(self.weight, said & wanted)) / named if named else 1.0
        return 2 * recall * precision / (recall + precision) if precision else 0.0


def carry_out_figures(task: ActionTask) -> str | None:
    """The reply to FIND_FIGURE or FIND_PERIODS; None for other actions."""
    given = [value for _, value in task.arguments]
    match task.action.name, given:
        case "FIND_FIGURE", [what, when]:
            return find_figure(task.document or "", what, when)
        case "FIND_PERIODS", [what]:
            return find_periods(task.document or "", what)
    return None


def merge(task: ActionTask, parts: Sequence[str]) -> str | None:
    """One reply for those over the parts of a document; None for other actions.

    A figure that parts give differently is not found.
    """
    if task.action.name not in ("FIND_FIGURE", "FIND_PERIODS"):
        return None
    found = list(dict.fromkeys(part for part in parts if not part.startswith(NOTHING[:-1])))
    if not found:
        return max(parts, key=len)  # the one that names cells
    said = {part.partition("\n\n")[0]: part for part in reversed(found)}
    if task.action.name == "FIND_FIGURE":
        if len(said) == 1:
            return found[0]
        return f"{NOTHING[:-1]}: several figures may be meant: {'; '.join(reversed(said))}"
    lines = [line for part in found for line in part.splitlines() if line]
    quotes = [line for line in lines if quoted_line(line) is not None]
    periods = sorted(dict.fromkeys(line for line in lines if line not in quotes), reverse=True)
    return "\n".join([*periods, "", *dict.fromkeys(quotes)])


def find_periods(text: str, what: str) -> str:
    r"""The reply to FIND_PERIODS: the years of the cells that are of something, the latest first.

    Example:
        >>> page = "| item | 2008 | 2009 |\n|---|---|---|\n| net sales | 4.9 | 5.2 |\n| costs | 1 | |\n"
        >>> print(find_periods(page, "net sales"))
        - 2009
        - 2008
        <BLANKLINE>
        > | net sales | 4.9 | 5.2 |
    """
    best = [place for place in _best(_Page(text), what, FigurePeriod()) if place.period.years]
    if not best:
        return f"{NOTHING[:-1]}: no figures for {' '.join(what.split())}"
    years = sorted({year for place in best for year in place.period.years}, reverse=True)
    quotes = dict.fromkeys(place.row_text for place in best)
    return "\n".join([*(f"- {year}" for year in years), "", *(f"> {quote}" for quote in quotes)])


def find_figure(text: str, what: str, when: str) -> str:
    r"""The reply to FIND_FIGURE: the figure and the row it is from, or that there is none.

    Example:
        >>> page = "In millions:\n\n| item | 2009 | 2008 |\n|---|---|---|\n| net sales | $ 5.2 | $ 4.9 |\n"
        >>> print(find_figure(page, "net sales", "fiscal 2008"))
        $ 4.9 million
        <BLANKLINE>
        > | net sales | $ 5.2 | $ 4.9 |
        >>> print(find_figure(page, "net sales", "2007"))
        Nothing found: no figure for net sales, 2007
    """
    asked = ", ".join(filter(None, (" ".join(what.split()), " ".join(when.split()))))
    found = find_cells(text, what, when)
    figures = dict.fromkeys(one.figure for one in found)
    if len(figures) == 1:
        return f"{found[0].figure}\n\n> {found[0].quote}"
    if figures:
        cells = "; ".join(f"{one.place}: {one.figure}" for one in found[:_MAX_SHOWN])
        return f"{NOTHING[:-1]}: several figures may be meant by {asked}: {cells}"
    return f"{NOTHING[:-1]}: no figure for {asked}"


_MAX_SHOWN = 4
"""Figures that are named where several may be meant."""


def find_cells(text: str, what: str, when: str) -> list[FoundFigure]:
    """The figures that may be meant: one, if it is sure which."""
    period = read_period_words(when if when.strip() else what)
    page = _Page(text)
    if best := _best(page, what, period):
        return [
            FoundFigure(shown_figure(each.cell), str(each.cell), each.row_text) for each in best
        ]
    wanted = _wanted(what, period)
    return list(_in_sentences(text, wanted, _contrast(what), period))


def _best(page: _Page, what: str, period: FigurePeriod) -> list[_Place]:
    """The cells that may be meant: none that is of another period."""
    wanted = _wanted(what, period)
    is_first = bool(_FIRST.search(what))
    contrast = _contrast(what)
    scored = []
    others = list(_variants(wanted))
    for place in page.places:
        fits = not period.years or place.period.is_of(period)
        if fits and place.contrast == contrast and (score := page.score(place, wanted, others)):
            scored.append((score - _MARGIN * (place.is_start != is_first), place))
    most = max((score for score, _ in scored), default=0.0)
    if most < _LEAST:
        return []
    least = most - (_MARGIN if most < _EXACT else 1 - _EXACT)
    return [place for score, place in scored if score > least]


def _in_sentences(
    text: str, wanted: frozenset[str], contrast: frozenset[str], period: FigurePeriod
) -> Iterator[FoundFigure]:
    """The figures of sentences that say all that is asked for, and the year beside the figure."""
    needed = wanted - _FRAME
    if not needed or len(period.years) != 1 or period.quarter or period.is_span:
        return
    (year,) = period.years
    for span in sentences(text):
        said = " ".join(text[span.start : span.end].split())
        if str(year) not in said or said.startswith("|") or len(said) > _MAX_SENTENCE:
            continue
        for figure, its_year, before in dated_figures(said):
            is_all = needed <= set(terms(before, drop_stop_words=True))
            if its_year == year and is_all and not _contrast(before) - contrast:
                yield FoundFigure(figure, "a sentence", said)


_MAX_SENTENCE = 800
"""Characters of a sentence that is read for figures."""


def _wanted(what: str, period: FigurePeriod) -> frozenset[str]:
    """The terms that are asked for; a year that is not the period is part of a name."""
    others = read_period_words(what).years - period.years
    said = terms(without_period(_IN_SCALE.sub(" ", what)), drop_stop_words=True)
    return frozenset([*said, *map(str, others)])


def _variants(wanted: frozenset[str]) -> Iterator[frozenset[str]]:
    """The same with another name for a thing that it names."""
    for names in _SAME:
        for name in names:
            if name <= wanted:
                yield from ((wanted - name) | other for other in names if other != name)


def _places(table: Table, text: str) -> Iterator[_Place]:
    """The cells of a table that have a number."""
    first, section = table.columns[0].name, ""
    headings = [(column.name, *_names(column.name)) for column in table.columns[1:]]
    shared = (
        frozenset.intersection(*(own for _, own, _ in headings)) if headings[1:] else frozenset()
    )
    columns = [
        (name, own - shared, beside | shared, read_period_words(name))
        for name, own, beside in headings
    ]
    above = frozenset(terms(f"{table.caption} {_above(table, text)}", drop_stop_words=True))
    of_caption = read_period_words(table.caption)
    for number, row in enumerate(table.rows, start=1):
        label = " ".join((row.fields.get(first) or "").split())
        if all(is_blank(row.fields.get(name) or "") for name, *_ in columns):
            section = label
            continue
        own, beside = _names(label)
        beside |= above | frozenset(terms(section, drop_stop_words=True))
        said, is_start = read_period_words(label), bool(_FIRST.search(label))
        for name, of_column, beside_column, period in columns:
            cell = table.cell(number, name)
            if cell.quantity is not None:
                names, around = own | of_column, beside | beside_column
                contrast = _contrast(f"{label} {name}")
                when = _of_cell(said, period, of_caption)
                yield _Place(table, cell, names, around, contrast, is_start, when)


def _above(table: Table, text: str) -> str:
    """The end of the text before a table, which says what it is of; without headers and rows of tables.

    Of a table that is shown apart from its text, the text before the mark in its place, too.
    """
    spans = table.rows[0].spans
    if not spans:
        return ""
    said = text[max(0, spans[0].start - _MAX_ABOVE) : spans[0].start]
    if marks := _MARK.findall(said):
        place = text.find(f"\n{marks[-1]}\n", table.rows[-1].spans[0].end)
        if place >= 0:
            said = f"{text[max(0, place - _MAX_ABOVE) : place]}\n{said[said.rindex(marks[-1]) :]}"
    names = frozenset(term for column in table.columns for term in terms(column.name))
    lines = (line for line in said.splitlines() if not line.startswith("|"))
    return " ".join(line for line in lines if not names.issuperset(terms(line)))


_MARK = re.compile(r"^\[table [^\]\n]+\]$", re.M)
"""As `pearl.documents.table.apart` writes it above a table, and where the table was."""


def _names(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The terms of a name, and those that it has in brackets."""
    own = frozenset(terms(without_period(name), drop_stop_words=True))
    return own, frozenset(terms(name, drop_stop_words=True)) - own


def _contrast(name: str) -> frozenset[str]:
    return frozenset(word.lower()[:6] for word in _CONTRAST.findall(name))


def _of_cell(row: FigurePeriod, column: FigurePeriod, caption: FigurePeriod) -> FigurePeriod:
    """The period of a cell: a year of the column comes before one of the row."""
    years = next((each for each in (column, row) if each.years), caption)
    months = row.months | column.months
    return FigurePeriod(years.years, months, column.quarter or row.quarter, years.is_span)


def shown_figure(cell: Cell) -> str:
    """A cell as it is written, with the unit and the scale that its table gives it."""
    quantity = cell.quantity
    assert quantity is not None
    text = " ".join(cell.text.split())
    alone = read_quantity(text)
    if alone is None or alone.value != quantity.value:
        alone, text = None, f"{quantity.value:f}"
    unit = "" if alone and alone.unit else quantity.unit
    scale = "" if alone and alone.scale else scale_word(quantity.scale)[:-1]
    if unit in CURRENCIES:
        return f"{unit}{text} {scale}".strip()
    return f"{text} {scale}".strip() + (unit if unit == "%" else f" {unit}" if unit else "")
