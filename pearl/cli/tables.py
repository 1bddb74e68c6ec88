"""Tables of figures on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.cli.terminal import new_console, new_table

if TYPE_CHECKING:
    from rich.table import Table

    from pearl.evals.stats import Interval


def figures(head: str, *columns: str) -> Table:
    """A table of figures; its cells are never cut, its heads break where they say."""
    table = new_table()
    table.add_column(head, no_wrap=True, vertical="bottom")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True, vertical="bottom")
    return table


def ends(interval: Interval) -> str:
    """The ends of an interval, in percent."""
    return f"{100 * interval.low:.1f}..{100 * interval.high:.1f}"


def show(table: Table) -> None:
    """Print a table, as wide as it is."""
    from rich.measure import Measurement

    console = new_console(soft_wrap=False)
    # A terminal that is too narrow breaks the lines; figures that are cut would be wrong.
    wide = console.options.update(max_width=1_000)
    console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table)
