"""`EvalLog`s → the numbers of pictures and pages: one row per method, one cell per subset."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from pearl.evals.log import EvalLog, EvalRecord, Header
from pearl.evals.report import Score, score_of

FACTS = {
    "data": "{}",
    "model": "{}",
    "mapper": "mapped by {}",
    "domain": "{}",
    "n_actions": "{} actions",
    "library": "{}",
    "bank": "bank {}",
    "nearest": "nearest {}",
    "temperature": "temperature {}",
    "token_budget": "budget {}",
    "scorer": "scored by {}",
}
"""Header fields that distinguish logs, with their label formats."""

MAX_LABEL = 40


@dataclass(frozen=True)
class Series:
    """One method of one log."""

    label: str
    method: str
    header: Header
    records: tuple[EvalRecord, ...]
    cells: dict[str | None, Score]


def series_of(logs: Sequence[EvalLog]) -> tuple[Series, ...]:
    """One series per method of each log, in order."""
    return tuple(
        Series(
            one_line(", ".join(filter(None, (method, variant)))),
            method,
            log.header,
            log.of(method),
            {
                subset: score_of(method, subset or "all", records)
                for subset in (None, *log.subsets)
                if (records := log.of(method, subset))
            },
        )
        for log, variant in zip(logs, variants([log.header for log in logs]), strict=True)
        for method in log.methods
    )


def subsets_of(rows: Sequence[Series]) -> tuple[str, ...]:
    """Every subset of the rows, sorted."""
    return tuple(sorted({name for row in rows for name in row.cells if name is not None}))


def variants(headers: Sequence[Header], *, without: Collection[str] = ()) -> list[str]:
    """A label that distinguishes each log: "" for a single one, its number if all fields are equal."""
    differ = {
        fact for fact in FACTS if len({getattr(header, fact) for header in headers}) > 1
    } - set(without)
    if "n_actions" in differ:
        differ.discard("library")  # its size is shorter
    said = [
        ", ".join(
            FACTS[fact].format(value)
            for fact in FACTS
            if fact in differ and (value := getattr(header, fact)) not in (None, "")
        )
        for header in headers
    ]
    if without or len(set(said)) == len(said):
        return said
    return [", ".join(filter(None, (text, f"log {i}"))) for i, text in enumerate(said, start=1)]


def heading(rows: Sequence[Series]) -> str:
    """Data, model and number of samples, as a title."""
    data = one_line(", ".join(dict.fromkeys(row.header.data for row in rows)), 60)
    models = one_line(
        ", ".join(dict.fromkeys(row.header.model or "unknown model" for row in rows)), 60
    )
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
