"""Rows of results → cells and totals → one HTML file that lists them, with filters, search and details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from pearl.errors.escaping import counted, escaped, json_bytes
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.row import ResultRow, read_row
from pearl.llm.prices import Prices, money, read_prices
from pearl.view.page import render_page
from pearl.view.sources import ResultSource

COLUMNS = (
    "id", "status", "question", "answer", "document", "model", "evidence", "unverified", "coverage",
    "tokens_in", "tokens_out", "cost", "seconds", "error", "choice", "score", "outputs",
)  # fmt: skip
"""The columns of a line."""

SHORT, LONG = 160, 240  # Maximum characters of a name and of a text in a line

MAX_TEXT = 20_000  # Maximum characters of one text in the details of a line
MAX_ITEMS = 50  # Maximum passages, quotes and steps in the details of a line
MAX_OUTPUTS = 20  # Maximum outputs of a row with a column
MOST = 1e15  # Upper bound of plausible counts, costs and times

_MARKS = lazy_pattern(r"(?m)^(?:#{1,6}|>) |\*\*(\S(?:[^*\n]*\S)?)\*\*")  # "## ", "> ", "**bold**"


class Totals(Struct):
    """Sums over rows."""

    n: int = 0
    by_status: Counter[str] = field(default_factory=Counter)
    by_error: Counter[str] = field(default_factory=Counter)
    tokens_in: float = 0
    tokens_out: float = 0
    cost_usd: float = 0.0
    n_unknown_cost: int = 0
    unverified: float = 0
    seconds: float = 0.0

    def add(self, cells: list[Any]) -> None:
        """Add a line of `cells_of` to the totals."""
        line = dict(zip(COLUMNS, cells, strict=True))
        self.n += 1
        self.by_status[line["status"]] += 1
        if line["error"]:
            self.by_error[line["error"]] += 1
        self.tokens_in += line["tokens_in"] or 0
        self.tokens_out += line["tokens_out"] or 0
        self.unverified += line["unverified"] or 0
        self.seconds += line["seconds"] or 0
        if line["cost"] is None:
            self.n_unknown_cost += 1
        else:
            self.cost_usd += line["cost"]

    @property
    def cost(self) -> str:
        """The cost as text; "unknown" if no row has a known cost."""
        if 0 < self.n_unknown_cost == self.n:
            return "unknown"
        unknown = f"; {counted(self.n_unknown_cost, 'row')} unknown" if self.n_unknown_cost else ""
        return f"{money(self.cost_usd)}{unknown}"

    def facts(self, statuses: Iterable[str]) -> list[tuple[str, str]]:
        """The totals as pairs of name and text."""
        return [
            ("rows", f"{self.n:,}"),
            *((each.replace("_", " "), f"{self.by_status[each]:,}") for each in statuses),
            ("tokens in, out", f"{self.tokens_in:,.0f}, {self.tokens_out:,.0f}"),
            ("cost", self.cost),
            ("unverified quotes", f"{self.unverified:,.0f}"),
            ("seconds of all rows", f"{self.seconds:,.1f}"),
        ]


def text_of(value: object, most: int) -> str:
    """A text of a row, cut to a length; "" if the value is not text."""
    if value is None or isinstance(value, dict | list):
        return ""
    text = str(value)
    return escaped(text if len(text) <= most else f"{text[: most - 1]}…")


def number_of(value: object) -> float | int | None:
    """A number of a row that may be a count, a share or a time; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < MOST else None  # False for NaN


def cells_of(row: ResultRow, prices: Prices) -> list[Any]:
    """The cells of a row as in `COLUMNS`: texts, numbers and None, and the outputs by name."""
    usage, more = row.known_usage, row.extra
    given = f" ({text_of(row.given, LONG)})" if row.parameters else ""
    model = text_of(row.model, SHORT)
    price = prices.of(model)
    cost = price.cost_usd(usage) if price and usage else None
    is_known = row.raw
    parts = row.parts[:MAX_OUTPUTS] if len(row.parts) > 1 else ()
    return [
        text_of(row.name, SHORT),
        text_of(row.status, 40) or "unknown",
        text_of(row.question, LONG) + given,
        plain(text_of(row.answer, LONG)),
        text_of(row.document, SHORT),
        model,
        len(row.evidence) if "evidence" in is_known else None,
        len(row.unverified_quotes) if "unverified_quotes" in is_known else None,
        row.coverage,
        usage and usage.n_input_tokens,
        usage and usage.n_output_tokens,
        0.0 if usage and not usage.n_tokens else cost,  # no tokens are free at any price
        number_of(row.duration_s) if "duration_s" in is_known else None,
        text_of(row.error.type if row.error else "", 60),
        text_of(more.get("choice"), 60),
        number_of(more.get("score")),
        {text_of(each.output, SHORT): plain(text_of(each.text, LONG)) for each in parts},
    ]


def plain(text: str) -> str:
    """A text without Markdown marks for bold words, headings and quotes."""
    return _MARKS.sub(r"\1", text)


def details_of(row: ResultRow, n_items: int = MAX_ITEMS) -> dict[str, Any]:
    """The details of a line: texts of up to `MAX_TEXT` characters, and at most `n_items` of each kind."""
    evidence, quotes = row.evidence[:n_items], row.unverified_quotes[:n_items]
    return {
        **{name: text_of(getattr(row, name), MAX_TEXT) for name in ("question", "answer", "plan", "why")},
        "error": text_of(row.error.message if row.error else "", MAX_TEXT),
        "notes": [text_of(note, MAX_TEXT) for note in row.notes[:n_items]],
        "evidence": [[text_of(e.text, MAX_TEXT), text_of(e.short_place(), SHORT)] for e in evidence],
        "unverified": [[text_of(q.text, MAX_TEXT), q.why] for q in quotes],
        "steps": [
            [
                f"{text_of(step.output, SHORT)} = {text_of(step.action, SHORT)}",
                text_of(step.value, MAX_TEXT),
                text_of(step.state, 40),
            ]
            for step in row.steps[:n_items]
        ],
    }  # fmt: skip


MAX_STATIC = 100  # Rows in the HTML itself, for browsers without scripts

MAX_LINES = 100_000  # Maximum rows on a page

MAX_DETAILS = 8_000_000  # Maximum bytes of details on a page; further rows have only their line


def index_page(source: ResultSource) -> str:
    """The list of all results as one file; the totals include rows beyond `MAX_LINES` and `MAX_DETAILS`."""
    prices, totals = read_prices(), Totals()
    lines: list[list[Any]] = []
    details: list[dict[str, Any]] = []
    left = MAX_DETAILS
    for _, row in source.rows():
        read = read_row(row)
        cells = cells_of(read, prices)
        totals.add(cells)
        if len(lines) < MAX_LINES:
            lines.append(cells)
            if left > 0:  # The details belong to the first lines: none is left out between others
                shown = details_of(read)
                left -= len(json_bytes(shown))
                if left > 0:
                    details.append(shown)
    return render_page(
        "index",
        f"Results of {source.title}",
        records={"columns": COLUMNS, "lines": lines, "details": details},
        totals=totals,
        n_listed=len(lines),
        n_detailed=len(details),
        static=[dict(zip(COLUMNS, cells, strict=True)) for cells in lines[:MAX_STATIC]],
        problems=source.problems,
        as_of=prices.as_of.isoformat(),
    )
