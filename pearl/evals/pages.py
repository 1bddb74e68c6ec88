"""Evaluation logs and refinements → HTML pages. Calls no model and changes no input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from textwrap import shorten
from typing import Any

from pearl.evals.log import EvalLog, EvalRecord, Header
from pearl.evals.report import (
    Score,
    baselines,
    chance,
    compare,
    is_below,
    score_of,
)
from pearl.llm.prices import Price, money
from pearl.mining.refinement import Refinement, lineage
from pearl.view.page import render_page

MAX_RECORDS = 500
"""Maximum records listed; larger evaluations list only failed and wrong ones."""

TEMPLATES = Path(__file__).with_name("templates")

_FACTS = {
    "data": "data",
    "data_sha256": "SHA-256 of the data",
    "n_samples": "samples",
    "n_bad_rows": "rows left out",
    "domain": "domain",
    "model": "model",
    "mapper": "model that mapped answers",
    "temperature": "temperature",
    "seeds": "seeds",
    "methods": "methods",
    "token_budget": "limit of input tokens for a document",
    "scorer": "scorer of answers in words",
    "library": "action library",
    "n_actions": "actions",
    "library_sha256": "SHA-256 of the library",
    "bank": "bank of examples",
    "n_examples": "examples",
    "nearest": "similar examples in a prompt",
    "price": "US dollars per million tokens",
    "created": "created",
    "pearl_version": "version of pearl",
}


_LABELS = {
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
        for log, variant in zip(logs, _variants([log.header for log in logs]), strict=True)
        for method in log.methods
    )


def subsets_of(rows: Sequence[Series]) -> tuple[str, ...]:
    """Every subset of the rows, sorted."""
    return tuple(sorted({name for row in rows for name in row.cells if name is not None}))


def _variants(headers: Sequence[Header]) -> list[str]:
    """A label that distinguishes each log: "" for a single one, its number if all fields are equal."""
    differ = {fact for fact in _LABELS if len({getattr(header, fact) for header in headers}) > 1}
    if "n_actions" in differ:
        differ.discard("library")  # the number of actions is a shorter label
    said = [
        ", ".join(
            _LABELS[fact].format(value)
            for fact in _LABELS
            if fact in differ and (value := getattr(header, fact)) not in (None, "")
        )
        for header in headers
    ]
    if len(set(said)) == len(said):
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


def page(logs: Sequence[EvalLog]) -> str:
    """The page of evaluations."""
    rows, headers = series_of(logs), [log.header for log in logs]
    listed = _listed(rows)
    records = tuple(record for row in rows for record in row.records)
    guesses = baselines(EvalLog(headers[0], records)) if rows else []
    return render_page(
        "evaluation",
        heading(rows) if rows else "no records",
        folder=TEMPLATES,
        style="report",
        groups=[
            (
                subset or "all samples",
                [
                    *(
                        [row.label, *_numbers(row.cells[subset])]
                        for row in rows
                        if subset in row.cells
                    ),
                    *(
                        [score.method, *_numbers(score)]
                        for score in guesses
                        if score.subset == (subset or "all")
                    ),
                ],
            )
            for subset in ((None, *subsets_of(rows)) if rows else ())
        ],
        below_chance=list(_below_chance(rows)),
        has_baselines=bool(guesses),
        pairs=list(_pairs(rows)),
        facts=list(_facts(headers)),
        n_records=len(records),
        n_left_out=max(0, len(records) - MAX_RECORDS),
        n_listed=sum(len(records) for _, records in listed),
        n_bad=sum(not record.is_correct for record in records),
        listed=[
            (label, [_shown(record) for record in sorted(records, key=_place)])
            for label, records in listed
        ],
    )


def _below_chance(rows: Sequence[Series]) -> Iterator[tuple[str, str]]:
    for row in rows:
        for subset, cell in row.cells.items():
            records = [one for one in row.records if subset is None or subset in one.subsets]
            if is_below(cell, chance(records)):
                yield row.label, subset or "all samples"


def _numbers(cell: Score) -> list[str]:
    accuracy = cell.accuracy
    n = f"{cell.n_samples:,}"
    if cell.n != cell.n_samples:
        n += f" ({cell.n:,} records)"
    return [
        f"{100 * accuracy.estimate:.1f} %",
        f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}",
        n,
        f"{cell.n_failed:,}",
        f"{cell.n_fell_back:,}",
        f"{cell.n_unmapped:,}",
        f"{cell.tokens_per_record:,.0f}",
        "–" if cell.cost_per_record_usd is None else money(cell.cost_per_record_usd),
        f"{cell.latency_p50_s:.1f}",
        f"{cell.latency_p95_s:.1f}",
    ]


def _pairs(rows: Sequence[Series]) -> Iterator[list[str]]:
    """Every pair of methods of a log, and equal methods of every pair of logs, on common samples."""
    for one, two in combinations(rows, 2):
        is_same_data = one.header.data_sha256 == two.header.data_sha256
        if not is_same_data or (one.header != two.header and one.method != two.method):
            continue
        pair = compare(one.records, two.records, (one.label, two.label))
        if pair is None:
            continue
        test, ends = pair.mcnemar, pair.difference
        yield [
            f"{pair.first} − {pair.second}",
            f"{pair.n:,}",
            f"{100 * ends.estimate:+.1f}",
            f"{100 * ends.low:.1f} to {100 * ends.high:.1f}",
            f"{test.n_first_only:,}" if test else "–",
            f"{test.n_second_only:,}" if test else "–",
            _p(test.p_value if test else None),
            _p(pair.bootstrap_p),
        ]


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _facts(headers: Sequence[Header]) -> Iterator[list[str]]:
    for field, name in _FACTS.items():
        values = [getattr(header, field) for header in headers]
        if any(value not in (None, "") for value in values):
            yield [name, *map(_fact, values)]


def _fact(value: object) -> str:
    match value:
        case None | "":
            return "–"
        case Price():
            return str(value).replace("=", " ").replace(",", ", ")
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def _listed(rows: Sequence[Series]) -> list[tuple[str, Sequence[EvalRecord]]]:
    """All records of each row; of a large log only wrong ones, `MAX_RECORDS` in all."""
    if sum(len(row.records) for row in rows) <= MAX_RECORDS:
        return [(row.label, row.records) for row in rows]
    left = MAX_RECORDS
    listed: list[tuple[str, Sequence[EvalRecord]]] = []
    for row in rows:
        bad = [record for record in row.records if not record.is_correct][:left]
        listed.append((row.label, bad))
        left -= len(bad)
    return listed


def _place(record: EvalRecord) -> tuple[list[tuple[int, str]], int]:
    """Sort key: by sample id in natural order."""
    parts = re.findall(r"\d+|\D+", record.sample)
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts], record.seed


def _shown(record: EvalRecord) -> dict[str, Any]:
    mark = "failed" if record.status == "failed" else "right" if record.is_correct else "wrong"
    seed = f", seed {record.seed}" if record.seed else ""
    marks = ("gold", record.gold), ("chosen", record.choice)
    usage = record.usage
    cost = "" if record.cost_usd is None else f", {money(record.cost_usd)}"
    calls = "call" if record.n_calls == 1 else "calls"
    return {
        "mark": mark,
        "score": f"{100 * record.credit:.0f} %" if 0 < record.credit < 1 else mark,
        "title": f"{record.sample}{seed}: {shorten(record.question, 110, placeholder='…')}",
        "question": record.question,
        "options": [
            (option, ", ".join(name for name, at in marks if at == i))
            for i, option in enumerate(record.options)
        ],
        "facts": [
            ("Reference", record.reference),
            ("Answer", record.answer),
            ("Reply", record.reply),
            ("No option recognised", "in the reply" if record.is_unmapped else ""),
            ("Error", record.error),
            ("Fell back", "answered without a valid plan" if record.status == "fell_back" else ""),
            ("Document", one_line(record.document, 200)),
            ("Subsets", ", ".join(record.subsets)),
            (
                "Spent",
                f"{record.n_calls:,} {calls}, {usage.n_input_tokens:,} + {usage.n_output_tokens:,} "
                f"tokens, {record.duration_s:.1f} s{cost}",
            ),
        ],
        "plan": record.plan,
    }


_STAGES = {
    "name": "same name",
    "model": "by the model",
    "room": "no room",
    "malformed": "malformed",
}


def refinement_page(refinement: Refinement) -> str:
    """The page of a refinement."""
    return render_page(
        "refinement",
        f"{len(refinement.actions)} actions from {len(refinement.drafts)} drafts",
        folder=TEMPLATES,
        style="report",
        it=refinement,
        lineage=lineage,
        stages=_STAGES,
    )
