"""Rows of results → cells and totals → one HTML file that lists them, with filters, search and details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pearl.errors.escaping import escaped, json_bytes
from pearl.errors.patterns import lazy_pattern
from pearl.llm.prices import Prices, money, read_prices
from pearl.view.page import render_page
from pearl.view.result import Untrusted, read_usage, shown_place
from pearl.view.sources import ResultSource, id_of

COLUMNS = (
    "id", "status", "question", "answer", "document", "model", "evidence", "unverified", "coverage",
    "tokens_in", "tokens_out", "cost", "seconds", "error", "choice", "score", "outputs",
)  # fmt: skip
"""The columns of a line."""

SHORT, LONG = 160, 240  # Maximum characters of a name and of a text in a line

MAX_TEXT = 20_000  # Maximum characters of one text under a line
MAX_ITEMS = 50  # Maximum passages, quotes and steps under a line
MAX_OUTPUTS = 20  # Maximum outputs of a row that have a column
MOST = 1e15  # Upper bound of plausible counts, costs and times

_MARKS = lazy_pattern(r"(?m)^(?:#{1,6}|>) |\*\*(\S(?:[^*\n]*\S)?)\*\*")


@dataclass
class Totals:
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
        """Count a line of `cells_of`."""
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
        unknown = f"; {self.n_unknown_cost:,} rows unknown" if self.n_unknown_cost else ""
        return f"{money(self.cost_usd)}{unknown}"

    def facts(self, statuses: Iterable[str]) -> list[tuple[str, str]]:
        """The totals as names and texts."""
        return [
            ("rows", f"{self.n:,}"),
            *((each.replace("_", " "), f"{self.by_status[each]:,}") for each in statuses),
            ("tokens in, out", f"{self.tokens_in:,.0f}, {self.tokens_out:,.0f}"),
            ("cost", self.cost),
            ("unverified quotes", f"{self.unverified:,.0f}"),
            ("seconds of all rows", f"{self.seconds:,.1f}"),
        ]


def text_of(value: Any, most: int) -> str:
    """A text of a row, cut to a length; "" if it is not text."""
    if value is None or isinstance(value, dict | list):
        return ""
    text = value if isinstance(value, str) else str(value)
    return escaped(text if len(text) <= most else f"{text[: most - 1]}…")


def number_of(value: Any) -> float | int | None:
    """A number of a row that can be a count, a share or a time; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < MOST else None  # NaN fails both comparisons


def cells_of(row: Mapping[str, Any], prices: Prices) -> list[Any]:
    """The line of a row: texts, numbers and None, and the outputs by name, as `COLUMNS` names them."""
    usage, error = read_usage(Untrusted(row, []).inner("usage")), _mapping(row.get("error"))
    given = Untrusted(_mapping(row.get("parameters")), []).pairs
    model = text_of(row.get("model"), SHORT)
    price = prices.of(model)
    cost = price.cost_usd(usage) if price and usage else None
    return [
        text_of(id_of(row), SHORT),
        text_of(row.get("status"), 40) or "unknown",
        text_of(row.get("question"), LONG) + (f" ({text_of(given, LONG)})" if given else ""),
        plain(text_of(row.get("answer"), LONG)),
        text_of(row.get("document"), SHORT),
        model,
        _n(row.get("evidence")),
        _n(row.get("unverified_quotes")),
        number_of(row.get("coverage")),
        usage and usage.n_input_tokens,
        usage and usage.n_output_tokens,
        0.0 if usage and not usage.n_tokens else cost,
        number_of(row.get("duration_s")),
        text_of(error.get("type"), 60),
        text_of(row.get("choice"), 60),
        number_of(row.get("score")),
        _outputs(row),
    ]


def plain(text: str) -> str:
    """A text without the marks of Markdown for bold words, headings and quotes."""
    return _MARKS.sub(r"\1", text)


def _outputs(row: Mapping[str, Any]) -> dict[str, str]:
    """The parts of an answer that has several, by the names of their outputs."""
    parts = [_mapping(part) for part in _items(row.get("parts"), MAX_OUTPUTS)]
    if len(parts) < 2:
        return {}
    return {text_of(p.get("output"), SHORT): plain(text_of(p.get("text"), LONG)) for p in parts}


def details_of(row: Mapping[str, Any], n_items: int = MAX_ITEMS) -> dict[str, Any]:
    """The details under a line: texts of up to `MAX_TEXT` characters, and `n_items` of each kind."""

    def field(name: str, most: int = MAX_TEXT) -> Callable[[Mapping[str, Any]], str]:
        return lambda each: text_of(each.get(name), most)

    def table(name: str, *cells: Callable[[Mapping[str, Any]], str]) -> list[list[str]]:
        return [[cell(_mapping(each)) for cell in cells] for each in _items(row.get(name), n_items)]

    output, action = field("output", SHORT), field("action", SHORT)
    return {
        **{name: field(name)(row) for name in ("question", "answer", "plan", "why")},
        "error": field("message")(_mapping(row.get("error"))),
        "notes": [text_of(note, MAX_TEXT) for note in _items(row.get("notes"), n_items)],
        "evidence": table(
            "evidence",
            field("text"),
            lambda each: text_of(shown_place(Untrusted(each, [])), SHORT),
        ),
        "unverified": table("unverified_quotes", field("text"), field("why", SHORT)),
        "steps": table(
            "steps", lambda each: f"{output(each)} = {action(each)}", field("value"), field("state", 40)
        ),
    }  # fmt: skip


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any, most: int) -> list[Any]:
    return value[:most] if isinstance(value, list) else []


def _n(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


MAX_STATIC = 100  # Rows in the HTML itself, for readers without scripts

MAX_LINES = 100_000  # Maximum rows of a page

MAX_DETAILS = 8_000_000  # Maximum bytes of details in a page; later rows have only their line


def index_page(source: ResultSource) -> str:
    """The list of all results as one file; the totals count rows beyond `MAX_LINES` and `MAX_DETAILS`, too."""
    prices, totals = read_prices(), Totals()
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
