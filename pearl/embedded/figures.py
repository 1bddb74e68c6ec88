"""FIND_FIGURE and FIND_PERIODS by rule: find the table cell whose names match the question.

The names of a cell are those of its row, column and section, and the text above the table; the column or
row determines the period. A figure of another year is never returned. If no cell or several cells match,
the reply is "Nothing found." with the candidates.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pearl.documents.document import Document
from pearl.documents.english import MONTH, ORDINALS, YEAR, month_number
from pearl.documents.evidence import quoted_line
from pearl.documents.numbers import CURRENCIES
from pearl.documents.passages import terms
from pearl.documents.table import Cell, Table, find_tables, scale_word
from pearl.documents.table.quantities import is_blank, read_quantity
from pearl.dsl.signatures import NOTHING
from pearl.errors.patterns import lazy_pattern
from pearl.llm import ActionTask

_LEAST = 0.72
"""Minimum score of a cell; the maximum is 1."""
_MARGIN = 0.06
"""Cells whose scores differ by less than this are ambiguous."""
_ELSEWHERE = 0.5
"""Weight of a word that is in no table: it may be a synonym of a word in a table."""
_AROUND = 0.8
"""Weight of a match in the text around a row rather than in the names of row and column."""
_MAX_ABOVE = 150
"""Characters above a table that describe it."""
_MAX_SHOWN = 4
"""Maximum candidates in a reply."""

_FRAME = frozenset(terms(
    "value amount figure number sum many year end ending company report level balance state record total annual net"
))  # fmt: skip
"""Words of questions that a table need not contain."""
_SAME = [
    [frozenset(terms(name)) for name in names]
    for names in (
        ("sales", "revenue"), ("profit", "income", "earnings"), ("stockholders", "shareholders", "shareowners"),
        ("capex", "capital expenditures"), ("eps", "earnings per share"), ("afs", "available for sale"),
    )
]  # fmt: skip
"""Names for the same thing."""
_CONTRAST = lazy_pattern(r"\b(?:not|non|no|without|exclud\w+|except|before|after|high|low)\b", re.I)
"""Words that make a name mean another figure."""
_FIRST = lazy_pattern(r"\b(?:beginning|opening|january 1)\b", re.I)
"""Words for the start of a period; otherwise its end is meant."""

# A year that is not a price, part of a numeric date or a decimal.
_YEAR = lazy_pattern(rf"(?<![\d.,$€£¥/-])(?<![$€£¥] )({YEAR})(?![\d%/]|[.,]\d)")
_IN_DIGITS = lazy_pattern(rf"(?<![\d/])(\d{{1,2}})/(?:\d{{1,2}}/)?({YEAR}|\d\d)(?![\d/])")
_MONTH = lazy_pattern(rf"\b({MONTH})\b(?=[ .]*\d|\W|\Z)", re.I)
_QUARTER = lazy_pattern(rf"\b(?:q([1-4])\b|({'|'.join(ORDINALS[:4])})[ -]quarter)", re.I)
_TIME_WORDS = lazy_pattern(
    r"\b(?:fiscal|calendar|years?|quarters?|months?|ended|as|at|of|in|for|during|on|the"
    rf"|{MONTH}\b[ .]*(?:\d{{1,2}})?)\b|\([^()]*\)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class FigurePeriod:
    """The period that a text names."""

    years: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    quarter: int | None = None

    def is_of(self, wanted: FigurePeriod) -> bool:
        """Whether this period is the requested one; a year without a month ends in December."""
        if not self.years or self.years != wanted.years:
            return False
        if wanted.months and (self.months or {12}).isdisjoint(wanted.months):
            return False
        return self.quarter == wanted.quarter


def read_period_words(text: str) -> FigurePeriod:
    """The period that a text names.

    Example:
        >>> heading, asked = read_period_words("dec . 31 2010"), read_period_words("fiscal 2010")
        >>> heading.is_of(asked), heading.is_of(read_period_words("june 2010"))
        (True, False)
    """
    years = {int(year) for year in _YEAR.findall(text)}
    months = {month_number(name) for name in _MONTH.findall(text)}
    for month, year in _IN_DIGITS.findall(text):
        if 1 <= int(month) <= 12:
            months.add(int(month))
            years.add(int(year) + (0 if len(year) == 4 else 1900 if year >= "69" else 2000))
    quarters = {
        int(digit) if digit else 1 + ORDINALS.index(word.lower())
        for digit, word in _QUARTER.findall(text)
    }
    quarter = quarters.pop() if len(quarters) == 1 else None
    return FigurePeriod(frozenset(years), frozenset(months), quarter)


def _without_period(text: str) -> str:
    for pattern in (_IN_DIGITS, _QUARTER, _TIME_WORDS, _YEAR):
        text = pattern.sub(" ", text)
    return text


def read_figures(task: ActionTask) -> str | None:
    """The reply to FIND_FIGURE or FIND_PERIODS; None for other actions."""
    match task.action.name, [value for _, value in task.arguments]:
        case "FIND_FIGURE", [what, when]:
            return find_figure(task.document or "", what, when)
        case "FIND_PERIODS", [what]:
            return find_periods(task.document or "", what)
    return None


def merge_figures(task: ActionTask, parts: Sequence[str]) -> str | None:
    """Merge the replies for the parts of a document; None for other actions.

    If parts give different figures, none is found.
    """
    if task.action.name not in ("FIND_FIGURE", "FIND_PERIODS"):
        return None
    replies = list(dict.fromkeys(part for part in parts if not part.startswith(NOTHING[:-1])))
    if not replies:
        return max(parts, key=len)  # prefer the reply that lists candidates
    if task.action.name == "FIND_FIGURE":
        figures = dict.fromkeys(reply.partition("\n\n")[0] for reply in replies)
        if len(figures) == 1:
            return replies[0]
        return f"{NOTHING[:-1]}: several figures may be meant: {'; '.join(figures)}"
    lines = [line for reply in replies for line in reply.splitlines() if line]
    quotes = [line for line in lines if quoted_line(line) is not None]
    periods = sorted(dict.fromkeys(line for line in lines if line not in quotes), reverse=True)
    return "\n".join([*periods, "", *dict.fromkeys(quotes)])


def find_periods(text: str, what: str) -> str:
    r"""The reply to FIND_PERIODS: the years of the matching cells, the latest first.

    Example:
        >>> page = "| item | 2008 | 2009 |\n|---|---|---|\n| net sales | 4.9 | 5.2 |\n| costs | 1 | |\n"
        >>> print(find_periods(page, "net sales"))
        - 2009
        - 2008
        <BLANKLINE>
        > | net sales | 4.9 | 5.2 |
    """
    best = [place for place in _best(text, what, FigurePeriod()) if place.period.years]
    if not best:
        return f"{NOTHING[:-1]}: no figures for {' '.join(what.split())}"
    years = sorted({year for place in best for year in place.period.years}, reverse=True)
    quotes = dict.fromkeys(place.row_text for place in best)
    return "\n".join([*(f"- {year}" for year in years), "", *(f"> {quote}" for quote in quotes)])


def find_figure(text: str, what: str, when: str) -> str:
    r"""The reply to FIND_FIGURE: the figure and its row, or that none was found.

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
    period = read_period_words(when if when.strip() else what)
    rows = [
        (_shown(place.cell), str(place.cell), place.row_text) for place in _best(text, what, period)
    ]
    figures = {figure for figure, _, _ in rows}
    if not figures:
        return f"{NOTHING[:-1]}: no figure for {asked}"
    if len(figures) == 1:
        figure, _, quote = rows[0]
        return f"{figure}\n\n> {quote}"
    cells = "; ".join(f"{place}: {figure}" for figure, place, _ in rows[:_MAX_SHOWN])
    return f"{NOTHING[:-1]}: several figures may be meant by {asked}: {cells}"


@dataclass(frozen=True, slots=True)
class _Place:
    """A cell with the terms of its names."""

    table: Table
    cell: Cell
    own: frozenset[str]
    around: frozenset[str]
    contrast: frozenset[str]
    is_start: bool
    period: FigurePeriod

    @property
    def row_text(self) -> str:
        """The text of the row on one line."""
        return " ".join(self.table.rows[self.cell.row - 1].text.split())


def _best(text: str, what: str, period: FigurePeriod) -> list[_Place]:
    """The best matching cells of the period."""
    places = [place for table in find_tables(Document(text)) for place in _places(table, text)]
    names = {place.own for place in places}
    n_with = Counter(term for name in names for term in name)
    wanted = _wanted(what, period)
    others = [
        (wanted - name) | other
        for same in _SAME for name in same if name <= wanted for other in same if other != name
    ]  # fmt: skip

    def weight(term: str) -> float:
        """Weight of a term: rare terms weigh more; words of questions that are in no table have weight 0."""
        rarity = math.log(1 + len(names) / max(1, n_with[term]))
        return rarity if n_with[term] else 0.0 if term in _FRAME else _ELSEWHERE * rarity

    def score(place: _Place, terms_: frozenset[str]) -> float:
        """Score of the match between the names of a cell and the requested terms, 0 to 1: an F-measure."""
        most = sum(map(weight, terms_))
        met = sum(map(weight, place.own & terms_))
        met += _AROUND * sum(map(weight, (place.around - place.own) & terms_))
        own = place.own - _FRAME
        named = sum(map(weight, own))
        precision = sum(map(weight, own & terms_)) / named if named else 1.0
        return 2 / (most / met + 1 / precision) if met and precision else 0.0

    scored = []
    for place in places:
        fits = not period.years or place.period.is_of(period)
        if fits and place.contrast == _contrast(what):
            best = max(score(place, each) for each in [wanted, *others])
            if best > 0:
                penalty = _MARGIN * (place.is_start != bool(_FIRST.search(what)))
                scored.append((best - penalty, place))
    most = max((score for score, _ in scored), default=0.0)
    return [place for score, place in scored if score > most - _MARGIN and most >= _LEAST]


def _wanted(what: str, period: FigurePeriod) -> frozenset[str]:
    """The requested terms; a year other than the period is part of a name."""
    others = read_period_words(what).years - period.years
    said = terms(_without_period(what), drop_stop_words=True)
    return frozenset([*said, *map(str, others)])


def _places(table: Table, text: str) -> Iterator[_Place]:
    """The numeric cells of a table."""
    (first, *names), section = table.columns, ""
    headings = [(name, *_names(name)) for name in names]
    owns = [own for _, own, _ in headings]
    shared = frozenset.intersection(*owns) if headings[1:] else frozenset()
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
            if cell.quantity is None:
                continue
            # The year of the column takes precedence over that of the row.
            years = next((each for each in (period, said) if each.years), of_caption)
            months, quarter = said.months | period.months, period.quarter or said.quarter
            yield _Place(
                table, cell, own | of_column, beside | beside_column, _contrast(f"{label} {name}"),
                is_start, FigurePeriod(years.years, months, quarter),
            )  # fmt: skip


def _above(table: Table, text: str) -> str:
    """The end of the text before a table, without headers and rows of tables.

    If prompts show the table apart from its text (`pearl.documents.table.apart`), also the text before its mark.
    """
    spans = table.rows[0].spans
    if not spans:
        return ""
    said = text[max(0, spans[0].start - _MAX_ABOVE) : spans[0].start]
    if marks := re.findall(r"^\[table [^\]\n]+\]$", said, re.M):
        place = text.find(f"\n{marks[-1]}\n", table.rows[-1].spans[0].end)
        if place >= 0:
            said = f"{text[max(0, place - _MAX_ABOVE) : place]}\n{said[said.rindex(marks[-1]) :]}"
    names = frozenset(term for name in table.columns for term in terms(name))
    lines = (line for line in said.splitlines() if not line.startswith("|"))
    return " ".join(line for line in lines if not names.issuperset(terms(line)))


def _names(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The terms of a name, and the terms in its brackets."""
    own = frozenset(terms(_without_period(name), drop_stop_words=True))
    return own, frozenset(terms(name, drop_stop_words=True)) - own


def _contrast(name: str) -> frozenset[str]:
    return frozenset(word.lower()[:6] for word in _CONTRAST.findall(name))


def _shown(cell: Cell) -> str:
    """The text of a cell with the unit and scale of its table."""
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
