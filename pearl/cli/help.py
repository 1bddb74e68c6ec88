"""Grouped help of commands with more than `N_FIRST` options; `--help-all` shows all of them."""

from __future__ import annotations

from typing import Any

import click

from pearl.settings import schema

N_FIRST = 11  # Maximum options that `--help` shows, besides those for help

_OTHERS = {
    "Question and document": (
        "question", "together", "sources", "schema", "data", "tasks", "results", "rescore", "split", "columns", "subset",
        "limit", "held_out", "allow_outside",
    ),
    "Plan": ("show_plan", "kind", "set", "parameters", "reuse_plans"),
    "Model": ("temperature",),
    "Rows": ("rows_out",),
    "Limits": (
        "max_actions", "max_examples", "dry_run", "max_cost", "max_tokens", "max_calls", "max_time",
        "max_errors", "token_budget", "part_tokens", "price", "prices",
    ),
    "Run": (
        "methods", "seeds", "scorer", "by_document", "seed_library", "rounds", "retries", "compare",
        "again", "shard_size", "continued", "fresh", "yes", "store", "private", "executor",
        "batch_threshold", "shard",
    ),
    "Search": (
        "k", "method", "filters", "unit", "size", "overlap", "at", "update", "stem", "embeddings_url",
    ),
    "Output": (
        "out", "evaluate", "review", "answers", "page", "report", "verbose", "boxes", "as_json", "as_lines", "trace", "telemetry", "force",
    ),
}  # fmt: skip
"""Options that are not settings, by their names in Python."""

GROUPS = {
    group: (*names, *(name for name, (_, setting) in schema().items() if setting.group == group))
    for group, names in _OTHERS.items()
}
"""Group → its options, in the order in which help shows them."""

FIRST = frozenset({
    "again", "answers", "as_json", "as_lines", "compare", "continued", "data", "dry_run", "evaluate", "filters", "held_out",
    "k", "max_actions", "max_cost", "max_examples", "method", "methods", "out", "page", "private", "question", "report", "retries", "retrieval", "review", "rounds",
    "schema", "seed_library", "show_plan", "tasks", "together", "verbose",
    *(name for name, (_, setting) in schema().items() if setting.is_first),
})  # fmt: skip
"""Options shown by `--help`."""

_ALL = "pearl.cli.help.all"  # In `Context.meta`: whether help shows all options


class Command(click.Command):
    """A command whose `--help` shows only the most important of many options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        n_options = len(self.options)
        self.is_long = n_options > N_FIRST
        self._help_all = click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
            help=f"Show all {n_options} options and exit.",
        )  # fmt: skip

    @property
    def options(self) -> list[click.Option]:
        """The visible options, without those for help."""
        return [
            param for param in self.params if isinstance(param, click.Option) and not param.hidden
        ]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All parameters, those for help last."""
        params = super().get_params(ctx)
        return [*params, self._help_all] if self.is_long else params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their groups, or the first of them."""
        if not self.is_long:
            super().format_options(ctx, formatter)
            return
        options = self.options
        named = {option.name for option in options}
        shown = named if ctx.meta.get(_ALL) else FIRST
        # Several flags may have one name.
        sections = {
            group: [
                each for name in names if name in shown for each in options if each.name == name
            ]
            for group, names in GROUPS.items()
        }
        sections["Help"] = [
            param
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and param.name not in named
        ]
        for group, options in sections.items():
            records = [record for option in options if (record := option.get_help_record(ctx))]
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
