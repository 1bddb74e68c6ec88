"""Results → one HTML file that lists them: a summary, filters, search, and each row's details in place."""

from __future__ import annotations

from typing import Any

from pearl.errors.escaping import json_bytes
from pearl.llm.prices import Prices, read_prices
from pearl.view.listing import COLUMNS, Totals, cells_of, details_of
from pearl.view.page import render_page
from pearl.view.sources import ResultSource

MAX_STATIC = 100
"""Rows that stand in the page itself, for readers without scripts."""

MAX_LINES = 100_000
"""Rows of a page that is one file."""

MAX_DETAILS = 8_000_000
"""Bytes of details in a page that is one file; rows after that have their line only."""


def index_page(source: ResultSource, prices: Prices | None = None) -> str:
    """The list of all results of a source, as one file.

    The table holds at most `MAX_LINES` rows, and details up to `MAX_DETAILS` bytes; the page says where
    it leaves out any. The totals are of all rows.
    """
    prices = prices or read_prices()
    totals = Totals()
    lines: list[list[Any]] = []
    details: list[dict[str, Any]] = []
    left = MAX_DETAILS
    for _, row in source.rows():
        cells = cells_of(row, prices)
        totals.add(cells)
        if len(lines) < MAX_LINES:
            lines.append(cells)
            if left > 0:
                shown = details_of(row)
                left -= len(json_bytes(shown))
                if left > 0:
                    details.append(shown)
    return _page(source, prices, totals, lines, details=details, address=None)


def served_index(source: ResultSource, prices: Prices | None = None) -> str:
    """The same page for `pearl.view.server`, from which it takes its rows."""
    return _page(source, prices or read_prices(), None, [], details=[], address="lines")


def _page(
    source: ResultSource,
    prices: Prices,
    totals: Totals | None,
    lines: list[list[Any]],
    *,
    details: list[dict[str, Any]],
    address: str | None,
) -> str:
    return render_page(
        "index",
        f"Results of {source.title}",
        script="index",
        records={"columns": COLUMNS, "lines": lines, "details": details, "address": address},
        totals=totals,
        n_listed=len(lines),
        n_detailed=len(details),
        static=[dict(zip(COLUMNS, cells, strict=True)) for cells in lines[:MAX_STATIC]],
        is_served=address is not None,
        problems=source.problems,
        as_of=prices.as_of.isoformat(),
    )
