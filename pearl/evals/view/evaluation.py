"""`EvalLog`s → one HTML page: pictures, a table, facts, and every record. The page is self-contained.

All text is escaped, there are no scripts, and a content security policy blocks all loading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import combinations
from textwrap import shorten

from pearl.evals.log import EvalRecord, Header, Price
from pearl.evals.report import Score, chance, compare, is_below
from pearl.evals.view.pictures import Picture
from pearl.evals.view.summary import Series, heading, one_line, subsets_of

__all__ = ["MAX_RECORDS", "page"]

MAX_RECORDS = 500
"""Maximum records listed; larger evaluations list only failed and wrong ones."""

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 68rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .5rem; }
.pictures { display: flex; flex-wrap: wrap; gap: 2.5rem 2rem; }
figure { flex: 1 1 30rem; max-width: 40rem; } svg { width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-spacing: 0; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #e4e4e4;
  white-space: nowrap; }
th:first-child, td:first-child, .facts td { text-align: left; }
thead th { border-bottom: 2px solid #999; vertical-align: bottom; }
.scores tbody tr:first-child { font-weight: 600; }
.facts td { white-space: normal; overflow-wrap: anywhere; }
details { border-bottom: 1px solid #e4e4e4; padding: .3rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
details > :not(summary) { margin-left: 1.2rem; overflow-wrap: anywhere; }
details > p { margin: .4rem 0 .4rem 1.2rem; }
pre { background: #f6f6f6; padding: .6rem; white-space: pre-wrap; }
.mark { display: inline-block; min-width: 4.2rem; font-weight: 600; }
.right { color: #00694a; } .wrong { color: #a84300; } .failed { color: #a00030; }
.note { color: #555; }
"""

_FACTS = {
    "data": "data",
    "data_sha256": "SHA-256 of the data",
    "n_samples": "samples",
    "n_bad_rows": "rows that are no sample",
    "domain": "domain",
    "model": "model",
    "mapper": "answers mapped by",
    "temperature": "temperature",
    "seeds": "seeds",
    "methods": "methods",
    "token_budget": "input tokens of a document at most",
    "scorer": "answers in words scored by",
    "library": "action library",
    "n_actions": "actions",
    "library_sha256": "SHA-256 of the library",
    "bank": "bank of examples",
    "n_examples": "examples",
    "nearest": "examples chosen by likeness",
    "price": "US dollars for a million tokens",
    "created": "created",
    "pearl_version": "version of pearl",
}


def page(rows: Sequence[Series], headers: Sequence[Header], pictures: Sequence[Picture]) -> str:
    """The whole page.

    Args:
        rows: The series to show.
        headers: Headers of all logs, including those without records.
        pictures: The pictures to embed.
    """
    title = escape(heading(rows) if rows else "no records")
    body = [
        f"<h1>{title}</h1>",
        '<div class="pictures">',
        *(_figure(picture) for picture in pictures),
        "</div>",
        "<h2>Methods and subsets</h2>",
        *_table(rows),
        *_paired(rows),
        "<h2>What was evaluated</h2>",
        *_facts(headers),
        "<h2>Records</h2>",
        *_records(rows),
    ]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>",
            *body,
            "</body>\n</html>\n",
        ]
    )


def _figure(picture: Picture) -> str:
    svg = picture.svg[picture.svg.index("<svg") :]
    prefix = rf"\g<0>{picture.name}-"  # ids of figures on one page must not meet
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r'\bid="|url\(#|href="#', prefix, tag[0]), svg)
    caption = escape(picture.caption)
    return f"<figure>\n<figcaption>{caption}</figcaption>\n{svg.strip()}\n</figure>"


def _table(rows: Sequence[Series]) -> Iterator[str]:
    if not rows:
        yield "<p>No records.</p>"
        return
    names = (
        "method", "accuracy", "95 % interval", "n", "failed", "fell back", "unmapped",
        "tokens", "US dollars", "seconds", "p95",
    )  # fmt: skip
    yield '<div class="wide">\n<table class="scores">'
    yield f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead>"
    for subset in (None, *subsets_of(rows)):
        yield "<tbody>"
        yield _cells([escape("all samples" if subset is None else subset), *[""] * 10])
        for row in rows:
            if subset in row.cells:
                yield _cells([escape(row.label), *_numbers(row.cells[subset])])
        yield "</tbody>"
    yield "</table>\n</div>"
    for row in rows:
        for subset, cell in row.cells.items():
            records = [one for one in row.records if subset is None or subset in one.subsets]
            if is_below(cell, chance(records)):
                where = "all samples" if subset is None else subset
                yield f"<p><b>{escape(row.label)}: below chance on {escape(where)}.</b></p>"
    yield (
        '<p class="note">Accuracy is the share of records that are right, or the mean score of answers '
        "that can be so in part; failures and "
        "unmapped answers count as wrong. Tokens (input and output) and dollars are means of a "
        "record, seconds the median; p95: 95 % of the records took no longer. n is samples, times seeds where "
        "there are several; the seeds of a sample are resampled together.</p>"
    )


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
        "–" if cell.cost_per_record_usd is None else f"{cell.cost_per_record_usd:.4f}",
        f"{cell.latency_p50_s:.1f}",
        f"{cell.latency_p95_s:.1f}",
    ]


def _paired(rows: Sequence[Series]) -> Iterator[str]:
    """Every pair of methods of a log, and equal methods of every pair of logs, on common samples."""
    found = [
        compare(one.records, two.records, (one.label, two.label))
        for one, two in combinations(rows, 2)
        if one.header.data_sha256 == two.header.data_sha256
        and (one.header == two.header or one.method == two.method)
    ]
    pairs = [pair for pair in found if pair is not None]
    if not pairs:
        return
    names = (
        "paired", "n", "difference, points", "95 % interval", "first only", "second only",
        "McNemar p", "bootstrap p",
    )  # fmt: skip
    yield '<h2>Paired differences</h2>\n<div class="wide">\n<table>'
    yield f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead>\n<tbody>"
    for pair in pairs:
        test, ends = pair.mcnemar, pair.difference
        yield _cells([
            f"{escape(pair.first)} − {escape(pair.second)}",
            f"{pair.n:,}",
            f"{100 * ends.estimate:+.1f}",
            f"{100 * ends.low:.1f} to {100 * ends.high:.1f}",
            f"{test.n_first_only:,}" if test else "–",
            f"{test.n_second_only:,}" if test else "–",
            _p(test.p_value if test else None),
            _p(pair.bootstrap_p),
        ])  # fmt: skip
    yield "</tbody>\n</table>\n</div>"
    yield (
        '<p class="note">On the samples that both were tried on. With several pairs some p is small '
        "by luck: decide beforehand which of them you care about. McNemar's test is left out with "
        "several seeds, whose pairs depend on one another.</p>"
    )


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "&lt; 0.001" if value < 0.001 else f"{value:.3f}"


def _facts(headers: Sequence[Header]) -> Iterator[str]:
    yield '<div class="wide">\n<table class="facts">\n<tbody>'
    for field, name in _FACTS.items():
        values = [getattr(header, field) for header in headers]
        if any(value not in (None, "") for value in values):
            yield _cells([name, *(escape(_fact(value)) for value in values)])
    yield "</tbody>\n</table>\n</div>"


def _fact(value: object) -> str:
    match value:
        case None | "":
            return "–"
        case Price():
            cached = "" if value.cached_usd is None else f", cached {value.cached_usd:g}"
            return f"input {value.input_usd:g}{cached}, output {value.output_usd:g}"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


def _cells(html: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in html)}</tr>"


def _records(rows: Sequence[Series]) -> Iterator[str]:
    total = sum(len(row.records) for row in rows)
    if total <= MAX_RECORDS:
        chosen = [(row.label, row.records) for row in rows]
    else:
        left = MAX_RECORDS
        chosen = []
        n_bad = 0
        for row in rows:
            bad = [record for record in row.records if not record.is_correct]
            n_bad += len(bad)
            chosen.append((row.label, tuple(bad[:left])))
            left -= len(chosen[-1][1])
        yield (
            f'<p class="note">Of {total:,} records only those that are wrong or failed are listed: '
            f"{MAX_RECORDS - left:,} of {n_bad:,}. The log has them all.</p>"
        )
    for label, records in chosen:
        if records:
            yield f"<h3>{escape(label)}</h3>"
            yield from map(_record, sorted(records, key=_place))


def _place(record: EvalRecord) -> tuple[list[tuple[int, str]], int]:
    """Sort key of records on a page: by sample id in natural order."""
    parts = re.findall(r"\d+|\D+", record.sample)
    return [(int(p), "") if p.isdecimal() else (-1, p) for p in parts], record.seed


def _record(record: EvalRecord) -> str:
    mark = "failed" if record.status == "failed" else "right" if record.is_correct else "wrong"
    shown = f"{100 * record.credit:.0f} %" if 0 < record.credit < 1 else mark
    seed = f", seed {record.seed}" if record.seed else ""
    lines = [
        f'<details>\n<summary><span class="mark {mark}">{shown}</span> '
        f"{escape(record.sample + seed)}: {escape(shorten(record.question, 110, placeholder='…'))}</summary>",
        f"<p><b>Question</b> {escape(record.question)}</p>",
    ]
    if record.options:
        lines += ['<ol type="A">', *_options(record), "</ol>"]
    for name, text in _record_details(record).items():
        if text:
            lines.append(f"<p><b>{name}</b> {escape(text)}</p>")
    if record.plan:
        lines.append(f"<pre>{escape(record.plan)}</pre>")
    return "\n".join([*lines, "</details>"])


def _options(record: EvalRecord) -> Iterator[str]:
    for i, option in enumerate(record.options):
        marks = [name for name, at in (("gold", record.gold), ("chosen", record.choice)) if at == i]
        shown = f" <b>← {', '.join(marks)}</b>" if marks else ""
        yield f"<li>{escape(option)}{shown}</li>"


def _record_details(record: EvalRecord) -> Mapping[str, str | None]:
    usage = record.usage
    cost = "" if record.cost_usd is None else f", {record.cost_usd:.4f} US dollars"
    return {
        "Reference": record.reference,
        "Answer": record.answer,
        "Reply": record.reply,
        "No option recognised": "in the reply" if record.is_unmapped else None,
        "Error": record.error,
        "Fell back": "answered without a valid plan" if record.status == "fell_back" else None,
        "Document": one_line(record.document, 200),
        "Subsets": ", ".join(record.subsets),
        "Spent": f"{record.n_calls:,} {'call' if record.n_calls == 1 else 'calls'}, {usage.n_input_tokens:,} + {usage.n_output_tokens:,} "
        f"tokens, {record.duration_s:.1f} s{cost}",
    }
