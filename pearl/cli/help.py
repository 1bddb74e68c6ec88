"""Grouped help of commands with many options; `--help-all` shows all of them.

The groups are sections of click's own formatter. A command of at most `N_FIRST` options has one list
of them all, as everywhere.
"""

from __future__ import annotations

from typing import Any

import click

N_FIRST = 11
"""Options that `--help` shows at most, besides those for help."""

GROUPS = {
    "Question and document": (
        "question", "together", "data", "tasks", "results", "rescore", "domain", "split", "columns",
        "subset", "limit", "longest", "held_out", "allow_outside", "context", "apart", "sql_engine", "ranker",
        "as_of", "fiscal_year_end",
    ),
    "Plan": ("kind", "library", "examples", "nearest", "max_steps", "max_repairs", "fallback", "shape", "planned_by", "profile", "route", "n_plans"),
    "Model": (
        "model", "base_url", "api_key_env", "server", "window", "max_output_tokens", "constrain",
        "prefix", "temperature", "unsandboxed",
    ),
    "Rows": ("rows_out", "items_per_call", "max_item_tokens", "max_reasks", "strict", "strict_items", "recheck"),
    "Limits": (
        "max_actions", "max_examples", "dry_run", "max_cost", "max_tokens", "max_calls", "max_time",
        "max_errors", "token_budget", "part_tokens", "concurrency", "timeout_s", "requests_per_minute",
        "tokens_per_minute", "price", "prices", "seconds_per_call",
    ),
    "Run": (
        "methods", "seeds", "scorer", "by_document", "rotate", "seed_library", "rounds", "retries", "compare",
        "again", "shard_size", "continued", "fresh", "store", "executor", "shard",
    ),
    "Search": (
        "k", "method", "filters", "history", "also", "unit", "size", "overlap", "at", "update", "preset", "thesaurus",
        "synonym_weight", "year_boost", "k1", "b", "delta", "idf", "stem", "lexical", "fusion",
        "dense_weight", "embeddings", "embeddings_url", "reranker", "reranker_url",
    ),
    "Retrieval": ("retrieval", "corpus", "queries", "qrels", "cutoffs", "oracle"),
    "Output": (
        "explain", "out", "page", "report", "verbose", "context_lines", "as_json", "trace", "telemetry", "force",
    ),
}  # fmt: skip
"""The options of commands that have many, by their names in Python, in the order they are shown."""

FIRST = frozenset({
    "again", "as_json", "compare", "continued", "data", "domain", "dry_run", "explain", "filters", "held_out",
    "k", "max_actions", "max_cost", "max_examples", "method", "methods", "model",
    "base_url", "out", "page", "preset", "question", "report", "retries", "retrieval", "rounds",
    "seed_library", "tasks", "thesaurus", "together", "verbose",
})  # fmt: skip
"""Options shown by `--help`."""

_ALL = "pearl.cli.help.all"
"""In `Context.meta`: whether all options are to be shown."""


class Command(click.Command):
    """A command whose help stays short, however many options it has."""

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
        # Several flags may set one name.
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
