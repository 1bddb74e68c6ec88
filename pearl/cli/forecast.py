"""Forecasts as text: a table of steps, and the assumptions below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import click

from pearl.cli.terminal import print_table
from pearl.errors.escaping import counted, to_json
from pearl.llm.prices import PRICE_HELP, money, table_help

if TYPE_CHECKING:
    from pearl.interpreter.cost_ranges import Range
    from pearl.runs.forecast import Forecast

UNKNOWN = "unknown"


def print_forecast(forecast: Forecast, limits: Mapping[str, float], *, as_json: bool) -> None:
    """Print a forecast to stdout as JSON, or as a table with its assumptions."""
    if as_json:
        click.echo(to_json(forecast.to_dict(), indent=2))
        return
    models = ["model"] if forecast.prices else []
    has_price = any((forecast.price, *forecast.prices.values()))
    rows = []
    for step in (*forecast.steps, forecast.total):
        many = f" x {step.n:,}" if step.n > 1 and step is not forecast.total else ""
        usd = forecast.cost_usd if step is forecast.total else step.usd
        cells = [
            f"{step.name}{many}", *([step.model] if models else []),
            *(_range_text(each, _count) for each in (step.calls, step.input_tokens, step.output_tokens)),
            *([UNKNOWN if usd is None else _range_text(usd, money)] if has_price else []),
        ]  # fmt: skip
        rows.append(cells)
    dollars = ["US dollars"] if has_price else []
    print_table(("step", *models, "calls", "input", "output", *dollars), rows, left=models)
    click.echo("")
    for line in _notes(forecast, limits):
        click.echo(line)


def _notes(forecast: Forecast, limits: Mapping[str, float]) -> Iterator[str]:
    tasks = counted(forecast.n_tasks, "task")
    yield f"{tasks} with {forecast.model}; no call was made. Tokens are counted by {forecast.counter}."
    if forecast.n_known:
        yield f"Left out, because they have a row already: {forecast.n_known:,}; --fresh runs them again."
    yield f"Replies: at most {forecast.reply_tokens:,} tokens (--max-output-tokens)."
    if n := forecast.n_unplanned:
        yield (
            f"Tasks without a plan: {n:,}; what the steps take is unknown until it is written "
            "(pearl plan)."
        )
    if forecast.price is None:
        yield f"Cost: unknown, because the model has no known price; {PRICE_HELP}"
    else:
        yield f"Price: {forecast.price} (US dollars per million tokens); the lower bounds assume cache hits."
    for model, price in forecast.prices.items():
        yield f"Price of {model}: {price or f'unknown; {table_help(model)}'}"
    # The limits that the worst case exceeds
    total, cost = forecast.total, forecast.cost_usd
    tokens = total.input_tokens + total.output_tokens
    most = {
        "max_cost": None if cost is None else cost.most,
        "max_tokens": tokens.most,
        "max_calls": total.calls.most,
    }
    if over := [
        "--" + name.replace("_", "-")
        for name, limit in limits.items()
        if (worst := most[name]) is None or worst > limit
    ]:
        yield f"The limits may end the run early: {', '.join(over)}."
    if forecast.n_problems:
        yield f"{forecast.n_problems:,} cannot be run; the first: {forecast.problems[0]}"
    yield "Retries of failed calls are not included."


def _range_text(bounds: Range, show: Callable[[float], str]) -> str:
    least = show(bounds.least)
    if bounds.most is None:
        return UNKNOWN if least in (show(0), "1") else f"{least} or more"
    most = show(bounds.most)
    return least if least == most else f"{least} - {most}"


def calls_of(forecast: Forecast) -> str:
    """The calls of a forecast in words."""
    n = forecast.total.calls
    return counted(1, "call") if n.least == n.most == 1 else f"{_range_text(n, _count)} calls"


def cost_of(forecast: Forecast) -> str:
    """The cost of a forecast in US dollars; only for a forecast with a known cost."""
    assert forecast.cost_usd is not None
    return _range_text(forecast.cost_usd, money)


def _count(n: float) -> str:
    return f"{n:,.0f}"
