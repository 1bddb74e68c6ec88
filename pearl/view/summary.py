"""`EvalLog`s → the numbers that pictures and pages show: a row a method, a cell a subset."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from pearl.evals import stats
from pearl.evals.log import EvalLog, Header, Price, Record

__all__ = [
    "Cell",
    "Row",
    "heading",
    "is_right",
    "is_unmapped",
    "one_line",
    "p95",
    "rows_of",
    "subsets_of",
    "variants",
]

FACTS = {
    "data": "{}",
    "model": "{}",
    "domain": "{}",
    "n_actions": "{} actions",
    "library": "{}",
    "bank": "bank {}",
    "nearest": "nearest {}",
    "temperature": "temperature {}",
    "token_budget": "budget {}",
}
"""What tells one log from another, and how it is said."""

MAX_LABEL = 40


@dataclass(frozen=True)
class Cell:
    """One method on one subset. Means are over records, failures included.

    Attributes:
        accuracy: Share of records that are right, 95 % interval; failures count as wrong. Seeds of
            one sample are resampled together, so that more seeds do not fake precision.
        n_records: Samples times seeds.
        n_samples: Different samples.
        n_failed: Records without an answer.
        n_fell_back: Records answered without a valid plan.
        n_unmapped: Answers in which no option was recognised.
        tokens: Mean input and output tokens of a record.
        cost_usd: Mean cost of a record in US dollars, None where a record's is not known.
        latency_s: Mean seconds of a record.
        p95_s: Seconds within which 95 % of the records were done.
    """

    accuracy: stats.Interval
    n_records: int
    n_samples: int
    n_failed: int
    n_fell_back: int
    n_unmapped: int
    tokens: float
    cost_usd: float | None
    latency_s: float
    p95_s: float


@dataclass(frozen=True)
class Row:
    """One method of one log.

    Attributes:
        label: The method and, of several logs, what tells its log from the others.
        method: The method.
        header: Of its log.
        records: All of the method.
        cells: By subset; None is all samples.
    """

    label: str
    method: str
    header: Header
    records: tuple[Record, ...]
    cells: dict[str | None, Cell]


def rows_of(logs: Sequence[EvalLog]) -> tuple[Row, ...]:
    """A row for each method of each log, in their order."""
    return tuple(
        Row(
            one_line(", ".join(filter(None, (method, variant)))),
            method,
            log.header,
            log.of(method),
            {
                subset: _cell(log.of(method, subset), log.header.price)
                for subset in (None, *log.subsets)
                if log.of(method, subset)
            },
        )
        for log, variant in zip(logs, variants([log.header for log in logs]), strict=True)
        for method in log.methods
    )


def subsets_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Every subset of the rows, sorted."""
    return tuple(sorted({name for row in rows for name in row.cells if name is not None}))


def variants(headers: Sequence[Header], *, without: Collection[str] = ()) -> list[str]:
    """For each log what tells it from the others: "" for a single one, its number if nothing does.

    Args:
        headers: Of the logs.
        without: Facts not to say.
    """
    differ = {
        fact for fact in FACTS if len({getattr(header, fact) for header in headers}) > 1
    } - set(without)
    if "n_actions" in differ:
        differ.discard("library")  # its size says enough, and is shorter
    said = [
        ", ".join(FACTS[fact].format(getattr(header, fact)) for fact in FACTS if fact in differ)
        for header in headers
    ]
    if without or len(set(said)) == len(said):
        return said
    return [", ".join(filter(None, (text, f"log {i}"))) for i, text in enumerate(said, start=1)]


def heading(rows: Sequence[Row]) -> str:
    """Data, model and number of samples, as a title."""
    data = one_line(", ".join(dict.fromkeys(row.header.data for row in rows)), 60)
    models = one_line(", ".join(dict.fromkeys(row.header.model for row in rows)), 60)
    sizes = sorted({row.cells[None].n_samples for row in rows})
    n = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    n_seeds = len(set(chain.from_iterable((r.seed for r in row.records) for row in rows)))
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    return f"{data} · {models} · n = {n}{seeds}"


def one_line(text: str, width: int = MAX_LABEL) -> str:
    r"""Text as a label: one line, printable, at most `width` characters, both ends kept.

    Example:
        >>> one_line("a\n\x00b"), one_line("/data/quality/dev.jsonl", 12)
        ('a �b', '/da…ev.jsonl')
    """
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "�" for c in line)
    if len(line) <= width:
        return line
    n_first = (width - 1) // 3
    return f"{line[:n_first]}…{line[n_first + 1 - width :]}"


def is_right(record: Record) -> bool:
    """Whether it counts as right; a failure never does."""
    return record.is_correct and record.status != "failed"


def is_unmapped(record: Record) -> bool:
    """Whether it has an answer in which no option was recognised."""
    return bool(record.options) and record.choice is None and record.status != "failed"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile by nearest rank: a value that occurred.

    Example:
        >>> p95([3.0, 1.0, 2.0])
        3.0
    """
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def _cell(records: Sequence[Record], price: Price | None) -> Cell:
    costs = [_cost_usd(record, price) for record in records]
    known = [cost for cost in costs if cost is not None]
    durations = [record.duration_s for record in records]
    return Cell(
        accuracy=stats.accuracy(
            [is_right(record) for record in records],
            clusters=[record.sample for record in records],
        ),
        n_records=len(records),
        n_samples=len({record.sample for record in records}),
        n_failed=sum(record.status == "failed" for record in records),
        n_fell_back=sum(record.status == "fell_back" for record in records),
        n_unmapped=sum(is_unmapped(record) for record in records),
        tokens=fmean(r.usage.n_input_tokens + r.usage.n_output_tokens for r in records),
        cost_usd=fmean(known) if len(known) == len(costs) else None,
        latency_s=fmean(durations),
        p95_s=p95(durations),
    )


def _cost_usd(record: Record, price: Price | None) -> float | None:
    if record.cost_usd is None and price is not None:
        return price.cost_usd(record.usage)
    return record.cost_usd
