"""Prints forecasts, before a run and beside the actual usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from pearl.cli.terminal import new_console
from pearl.errors.escaping import to_json
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from pearl.interpreter.bounds import Range
    from pearl.llm.middleware.budget import Budget
    from pearl.runs.forecast import Forecast

UNKNOWN = "unknown"

WIDTH = 160
"""Characters of a line of the table at most."""


def print_forecast(found: Forecast, limits: Mapping[str, float], *, as_json: bool) -> None:
    """Print a forecast to stdout as JSON, or as a table with its assumptions."""
    if as_json:
        click.echo(to_json(found.to_json(), indent=2))
        return
    from rich.table import Table

    # Figures cut in two are hard to read; a narrow terminal may wrap the lines itself.
    console = new_console(width=WIDTH)
    table = Table("step", box=None, pad_edge=False, show_edge=False)
    for name in ("calls", "input", "cached", "output", *(("US dollars",) if found.price else ())):
        table.add_column(name, justify="right")
    for step in (*found.steps, found.total):
        cells = [
            _shown(step.calls, _count), _shown(step.input_tokens, _count),
            f"{step.cached_tokens:,}" if step.cached_tokens else "",
            _shown(step.output_tokens, _count),
            *([_shown(step.cost_usd(found.price), _usd)] if found.price else []),
        ]  # fmt: skip
        many = f" x {step.n:,}" if step.n > 1 and step is not found.total else ""
        table.add_row(f"{step.name}{many}", *cells)
    console.print(table)
    console.print()
    for line in _notes(found, limits):
        console.print(line, markup=False)


def report_spent(found: Forecast | None, budget: Budget) -> None:
    """Print the prediction for the started tasks and their actual usage to stderr."""
    spent = budget.spent
    usage = spent.usage
    n_failed = spent.n_failed_calls
    actual = [
        counted(spent.n_calls - n_failed, "call")
        + (f" and {n_failed:,} that failed" if n_failed else ""),
        "tokens unknown"
        if spent.n_calls and not usage.n_input_tokens
        else f"{usage.n_input_tokens:,} + {usage.n_output_tokens:,} tokens"
        + (f" ({usage.n_cached_tokens:,} cached)" if usage.n_cached_tokens else ""),
    ]
    if budget.cost_usd is not None:
        actual.append(f"${_usd(budget.cost_usd)}")
    if spent.n_unsure_tokens:
        actual.append(f"{spent.n_unsure_tokens:,} of the tokens may not have been billed")
    elif spent.n_unsure_calls:
        unsure = counted(spent.n_unsure_calls, "call")
        actual.append(f"{unsure} without a usable reply may have been billed, too")
    if found is not None:
        total = found.total
        predicted = [
            _calls(total.calls),
            f"{_shown(total.input_tokens, _count)} + {_shown(total.output_tokens, _count)} tokens",
        ]
        if found.cost_usd is not None:
            cost = _shown(found.cost_usd, _usd)
            predicted.append("cost unknown" if cost == UNKNOWN else f"${cost}")
        click.echo(f"predicted {', '.join(predicted)}", err=True)
    click.echo(f"actual    {', '.join(actual)}", err=True)


def _notes(found: Forecast, limits: Mapping[str, float]) -> list[str]:
    tasks = counted(found.n_tasks, "task")
    lines = [
        f"{tasks} with {found.model}; no call was made. Tokens are counted by {found.counter}."
    ]
    if found.n_known:
        lines.append(
            f"Left out, for they have a row already: {found.n_known:,}; --fresh runs them again."
        )
    lines.append(f"Replies: {found.reply_tokens:,} tokens at most (--max-output-tokens).")
    if found.n_unplanned:
        lines.append(
            f"Tasks without a plan: {found.n_unplanned:,}; what the steps take is unknown until it is "
            "written (pearl plan)."
        )
    if found.price is None:
        lines.append(
            "Cost: unknown, for the price of the model is; --price IN/OUT or --prices FILE."
        )
    else:
        lines.append(
            f"Price: {found.price} US dollars per million tokens; at least: cached as expected."
        )
    if found.time_s is None:
        lines.append("Time: unknown; --seconds-per-call SECONDS gives an estimate.")
    else:
        lines.append(
            f"Time: {_shown(found.time_s, _seconds)}, if all calls take that long and none waits."
        )
    over = _over(found, limits)
    if over:
        lines.append(f"The limits may end the run early: {', '.join(over)}.")
    if found.n_problems:
        lines.append(f"{found.n_problems:,} cannot be run; the first: {found.problems[0]}")
    lines.append("Retries of failed calls are not included.")
    return lines


def _over(found: Forecast, limits: Mapping[str, float]) -> list[str]:
    """The limits that the worst case exceeds."""
    total, cost = found.total, found.cost_usd
    tokens = total.input_tokens + total.output_tokens
    most = {
        "max_cost": None if cost is None else cost.most,
        "max_tokens": tokens.most,
        "max_calls": total.calls.most,
        "max_time": None if found.time_s is None else found.time_s.most,
    }
    return [
        "--" + name.replace("_", "-")
        for name, limit in limits.items()
        if (worst := most[name]) is None or worst > limit
    ]


def _shown(between: Range, show: Callable[[float], str]) -> str:
    least = show(between.least)
    if between.most is None:
        return UNKNOWN if least == show(0) else f"{least} or more"
    most = show(between.most)
    return least if least == most else f"{least} - {most}"


def _calls(n: Range) -> str:
    return counted(1, "call") if n.least == n.most == 1 else f"{_shown(n, _count)} calls"


def _count(n: float) -> str:
    return f"{n:,.0f}"


def _usd(usd: float) -> str:
    return f"{usd:,.4f}" if usd < 10 else f"{usd:,.2f}"


def _seconds(s: float) -> str:
    return (
        f"{s:,.1f} s" if s < 100 else f"{s / 60:,.0f} min" if s < 7_200 else f"{s / 3_600:,.1f} h"
    )
