"""A run and its rows → the facts that the first reader of a workbook needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from pearl.errors import PearlError
from pearl.llm import Usage
from pearl.llm.prices import money, read_prices
from pearl.runs.extraction import Rows, record_of, results_of
from pearl.runs.request import request_of
from pearl.runs.store import RunInfo
from pearl.runs.workbook import MAX_NOTES
from pearl.settings import ROLES

MAX_NAMED = 3  # Maximum questions and plans listed in full; each row has its own

_SAID = ("question", "model", "plan")
_USAGE = ("input_tokens", "output_tokens", "cached_tokens")


def readme(info: RunInfo, rows: Rows) -> Iterator[tuple[str, Any]]:
    """Yield question, plan, model, date, cost and counts of states of a run, one line each; the rows are read once."""
    said: dict[str, dict[str, None]] = {name: {} for name in _SAID}
    statuses, fields = Counter[str](), Counter[str]()
    usage = Usage()
    for row in rows():
        statuses[str(row.get("status"))] += 1
        if "answer" not in row:  # It has fields of the input, of any type
            continue
        for name, texts in said.items():
            if len(texts) <= MAX_NAMED and row.get(name):
                texts[str(row[name])] = None
        states = (r.get("basis") or r["state"] for _, _, r in results_of(record_of(row)))
        # A list has no basis itself; its entries do.
        fields.update(state.replace("_", " ") for state in states if state != "found")
        if isinstance(spent := row.get("usage"), Mapping):
            usage += Usage(*(spent.get(name) or 0 for name in _USAGE))
    for name, texts in said.items():
        yield name, "\n\n".join(texts) if len(texts) <= MAX_NAMED else "several: see the rows"
    yield "date", datetime.fromtimestamp(info.created).strftime("%Y-%m-%d %H:%M")
    yield "run", info.id
    tokens = f"{usage.n_input_tokens:,} + {usage.n_output_tokens:,} tokens"
    yield "cost", f"{_cost(info, usage)}; {tokens}, those of replies from the store included"
    yield "rows", _format_counts(statuses)
    if fields:
        yield "values", _format_counts(fields)
        told = "undecided: the comment has the proposed value and the reason"
        yield "amber cells", f"{told} (of the first {MAX_NOTES:,} of a sheet)"


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{n:,} {name}" for name, n in counts.most_common())


def _cost(info: RunInfo, usage: Usage) -> str:
    """The price of tokens, if a single model with a known price processed all of them."""
    with suppress(PearlError):
        request = request_of(info)
        if not any(getattr(request, role) for role in ROLES):
            price = request.price or read_prices(request.prices).of(str(info.settings.get("model")))
            if price is not None:
                return money(price.cost_usd(usage))
    return "price unknown"
