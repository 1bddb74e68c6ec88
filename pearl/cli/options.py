"""Options that several commands share, and the grouped help of commands with many of them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import date, datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource

from pearl import plugins
from pearl.cli.terminal import notice
from pearl.documents.readers import ReaderOptions, reading
from pearl.errors import PearlError, UsageError
from pearl.errors.privacy import VARIABLE, is_private, keep_private
from pearl.settings import DEFAULTS, SETTINGS, Setting, Stage, schema

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pearl.llm.middleware.caching import Replies
    from pearl.llm.middleware.rate import LimiterStatus
    from pearl.llm.prices import Price
    from pearl.pipeline import Pearl
    from pearl.runs.store import Store

F = TypeVar("F", bound=Callable[..., Any])

CONFIG = "pearl.cli.config"  # In `Context.meta`: the settings file of `--config`, or None
FOUND = "pearl.cli.found"  # In `Context.meta`: the settings that a file of the working folder sets
PLACES = "pearl.cli.places"  # In `Context.meta`: setting → the file that sets it

PATH = click.Path()
AT_LEAST_1 = click.IntRange(min=1)

ABOUT, LIMITS, RUN, SEARCH, OUTPUT = "Question and document", "Limits", "Run", "Search", "Output"
GROUPS = ("", ABOUT, "Plan", "Model", "Rows", LIMITS, RUN, SEARCH, OUTPUT)
"""The groups of the help in their order; the options that a command has for itself come first."""


class Option(click.Option):
    """An option with the group of the help that it stands in; "" for one that a command has for itself."""

    def __init__(self, *args: Any, group: str = "", is_first: bool = False, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group
        self.is_first = is_first  # Whether the short `--help` shows it


def option(names: str, kind: Any, help: str, **more: Any) -> Callable[[F], F]:
    """An option; `names` are separated by blanks, and help shows the default."""
    if kind is bool:
        return click.option(*names.split(), cls=Option, is_flag=True, help=help, **more)
    shown = {"show_default": "default" in more, **more}
    return click.option(*names.split(), cls=Option, type=kind, help=help, **shown)


def grouped(group: str, *options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator for several options that commands share; those without a group of the help get this one."""

    def decorate(command: F) -> F:
        before = len(getattr(command, "__click_params__", ()))
        for each in reversed(options):
            command = each(command)
        for param in vars(command)["__click_params__"][before:]:
            param.group = param.group or group
        return command

    return decorate


def refuse(*cases: tuple[object, str, str]) -> None:
    """Raise a `UsageError` for the first case (condition, message, help) whose condition is true."""
    for holds, message, help in cases:
        if holds:
            raise UsageError(message, help=help)


as_json = option("--json as_json", bool, "Print JSON.", group=OUTPUT, is_first=True)
json_options = grouped(
    OUTPUT,
    option(
        "--json as_json", bool, "Print JSON: one object, or for several documents one on each line.", is_first=True,
    ),
    option("--jsonl as_lines", bool, "Print JSON Lines: one object on each line."),
)  # fmt: skip
"""The forms of answers for programs."""
trace_option = option("--trace", PATH, "Write the trace to FILE, as JSON lines.", group=OUTPUT)


def _key(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The variable of the key; for a server that a file of the working folder names, never OpenAI's."""
    if value is not None and not (value.isascii() and value.isidentifier()):
        raise UsageError(
            "--api-key-env takes the name of an environment variable",
            help="export MY_KEY=..., then --api-key-env MY_KEY",
        )
    url = ctx.params.get("base_url")
    is_of_file = ctx.get_parameter_source("base_url") is ParameterSource.DEFAULT_MAP
    is_found = is_of_file and "base_url" in ctx.meta.get(FOUND, ())
    if value is not None or not url or not is_found:
        return value
    from pearl.llm.backends import default_key_variable

    return default_key_variable(str(ctx.params.get("model")), url)


def _read_with(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Apply an option of readers to all files that the command reads."""
    ctx.with_resource(reading({str(param.name): value}))
    return value


_CALLBACKS: Mapping[str, Callable[..., Any]] = {
    "api_key_env": _key,
    **dict.fromkeys(ReaderOptions.__struct_fields__, _read_with),
}


class Parsed(click.ParamType[Any]):
    """A type whose values a function parses; `hint` describes valid values in errors."""

    def __init__(self, name: str, read: Callable[[Any], Any], hint: str) -> None:
        self.name = name
        self._read = read
        self._hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the value, or fail."""
        try:
            return self._read(value)
        except (TypeError, ValueError):
            self.fail(f"'{value}' is not {self._hint}", param, ctx)


def _day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):  # TOML has a type for dates
        return value
    return date.today() if value == "today" else date.fromisoformat(value)


def _year_end(value: Any) -> tuple[int, int]:
    if isinstance(value, tuple):
        return value
    month, day = map(int, str(value).split("-"))
    date(2000, month, day)  # raises a `ValueError`
    return month, day


def _price(value: Any) -> Price:
    from pearl.llm.prices import Price

    return Price.read(value) if isinstance(value, str) else Price.of(value)


DAY = Parsed("DATE", _day, "a date, as 2024-05-01 or today")
YEAR_END = Parsed("MM-DD", _year_end, "MM-DD, as 09-30")
PRICE = Parsed("PRICE", _price, "a price, as input=2.50,cached=0.25,output=10")


def _option(name: str) -> Callable[[F], F]:
    kind, setting = schema()[name]
    default = DEFAULTS[name]
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    flag = setting.flag or f"--{name.replace('_', '-')}"
    told: dict[str, Any] = {
        "cls": Option, "group": setting.group, "is_first": setting.is_first, "envvar": variable_of(name),
        "help": setting.help,
    }  # fmt: skip
    if kind is bool:
        if default is None:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(flag, name, default=default, is_flag=True, **told)
    shown = default is not None
    if name == "fiscal_year_end":
        default = f"{default[0]}-{default[1]}"
    return click.option(
        flag, name, type=_click_type(kind, setting), default=default, show_default=shown,
        metavar=setting.metavar, callback=_CALLBACKS.get(name), shell_complete=_completion(name, setting),
        **told,
    )  # fmt: skip


def _click_type(kind: Any, setting: Setting) -> click.ParamType[Any] | None:
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is int:
        least, most = (None if n is None else int(n) for n in (setting.least, setting.most))
        return click.IntRange(least, most)
    if kind is float:
        is_open = setting.above is not None
        lowest = setting.above if is_open else setting.least
        return click.FloatRange(lowest, setting.most, min_open=is_open)
    if get_origin(kind) is tuple:
        return YEAR_END
    return DAY if date in (kind, *get_args(kind)) else None


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return schema()[name][1].variable or f"PEARL_{name.upper()}"


def _completion(name: str, setting: Setting) -> Callable[..., list[str]] | None:
    def names() -> Iterable[str]:
        from pearl.actions.library import library_names
        from pearl.retrieval.methods import method_names

        known = {"library": library_names, "ranker": method_names}
        return known[name]() if name in known else plugins.names(setting.completes)

    if name not in ("library", "ranker") and not setting.completes:
        return None
    return lambda ctx, param, incomplete: [n for n in names() if n.startswith(incomplete)]


def setting_options(*names: str, stages: Sequence[Stage] = ()) -> Callable[[F], F]:
    """Options for named settings and for the settings of stages; without arguments, for all settings of answering."""
    if not names and not stages:
        stages = tuple(stage for stage in get_args(Stage) if stage != "mapping")
    chosen = [name for name in SETTINGS if name in names or schema()[name][1].stage in stages]
    return grouped("", *map(_option, chosen))


by_document_option = option(
    "--by-document", bool,
    help="For intervals, resample documents instead of samples: wider, and right also where samples share a document.",
    group=RUN,
)  # fmt: skip

force_option = option("--force", bool, "Replace existing files.", group=OUTPUT)


def new_pearl(
    settings: Mapping[str, Any], replies: Replies | None = None, *, is_asked: bool = True
) -> Pearl:
    """A `Pearl` with these settings."""
    from pearl.pipeline import Pearl

    chosen = {key: value for key, value in settings.items() if key in SETTINGS}
    return Pearl(**chosen, replies=replies, is_asked=is_asked)


@asynccontextmanager
async def model_opened(pearl: Pearl, settings: Mapping[str, Any]) -> AsyncIterator[Pearl]:
    """Use a `Pearl`, and report on stderr the notice of its model and the tokenizer."""
    async with pearl:
        if pearl.client.notice:
            click.echo(pearl.client.notice, err=True)
            warn_ignored_settings(settings)
        for role, client in pearl.clients.items():
            if client is not pearl.client and client.notice:
                click.echo(f"{client.notice} ({role})", err=True)
        try:
            yield pearl
        finally:
            for line in pearl.planner.notes:
                notice(line)
            counter = pearl.client.counter
            if settings.get("verbose") and pearl.client.reads_prompts and counter.has_counted:
                click.echo(f"tokens were counted by {counter.method}", err=True)


@asynccontextmanager
async def open_pearl(
    settings: Mapping[str, Any], replies: Replies | None = None
) -> AsyncIterator[Pearl]:
    """Use a `Pearl` with these settings, and report on stderr its notice and rejected calls."""
    async with model_opened(new_pearl(settings, replies), settings) as pearl:
        try:
            yield pearl
        finally:
            report_refused(pearl.client.limiter.limits, pearl.client.settings.concurrency)


def server_notice(settings: Mapping[str, Any]) -> str:
    """Describe the server and the key of the settings, or the error in them; "" without a server."""
    from pearl.llm.backends import ModelSettings, address_of, create_model

    names = ("base_url", "timeout_s", "window", "server", "api_key_env")
    chosen = ModelSettings(**{name: settings[name] for name in names})
    if settings["model"] is None or address_of(settings["model"], chosen) is None:
        return ""
    try:
        return create_model(settings["model"], chosen).notice
    except PearlError as error:
        return str(error)


def warn_ignored_settings(settings: Mapping[str, Any]) -> None:
    """Report on stderr that an OpenAI key is not sent because the user did not name the server."""
    if settings.get("api_key_env") == "" and os.environ.get("OPENAI_API_KEY"):
        click.echo(
            "  OPENAI_API_KEY is not sent there: only a file names that server; name it with "
            "--base-url, or the key with --api-key-env",
            err=True,
        )


def report_refused(limits: LimiterStatus | None, concurrency: int) -> None:
    """Report rate-limit rejections and the final limits on stderr."""
    if limits is None or not limits.n_refused:
        return
    held = []
    if limits.requests_per_s is not None:
        held.append(f"{limits.requests_per_s:.3g} calls per second")
    if limits.n_places < concurrency:
        held.append(f"{limits.n_places:,} at once")
    notice(
        f"the server refused {limits.n_refused:,} of {limits.n_sent:,} calls because of its rate limit (429)"
        + (f"; the final limit was {', '.join(held)}" if held else "")
    )


store_option = option(
    "--store", click.Path(file_okay=False), metavar="FOLDER", envvar="PEARL_STORE", group=RUN,
    help="Folder of runs and replies [default: pearl in $XDG_DATA_HOME or ~/.local/share].",
)  # fmt: skip


def _private(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Turn a private run on before other options are read, because their errors may quote content."""
    if value:
        keep_private()
        with suppress(ValueError):  # not in the main thread
            # By default the system ends the process, and temporary files with texts stay.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


private_option = option(
    "--private", bool, group=RUN, is_first=True, envvar=VARIABLE, is_eager=True, expose_value=False, callback=_private,
    help="Keep text of documents, questions and replies out of messages, caches and the store.",
)  # fmt: skip

prices_option = option(
    "--prices", PATH, metavar="FILE", envvar="PEARL_PRICES",
    help="TOML file of prices that replaces the shipped one.",
)  # fmt: skip

documents_option = option(
    "--documents", PATH, metavar="DIR", multiple=True, help="Additional folder of documents; may be repeated.",
)  # fmt: skip

limit_options = grouped(
    LIMITS,
    private_option,
    option(
        "--max-cost", click.FloatRange(min=0), metavar="USD",
        is_first=True,
        help="Maximum cost of the run; no call starts that could exceed it.",
    ),
    option(
        "--max-tokens", click.IntRange(min=0), metavar="TOKENS", help="Maximum input and output tokens of the run.",
    ),
    option(
        "--max-time", click.FloatRange(min=0, min_open=True), metavar="SECONDS",
        help="Maximum duration; running calls are then cancelled.",
    ),
    option(
        "--max-calls", click.IntRange(min=0), metavar="N", help="Maximum calls of the run, failed ones included.",
    ),
    option(
        "--price", PRICE, envvar="PEARL_PRICE",
        help="US dollars per million tokens, as input=2.50,output=10; names: docs/costs.md.",
    ),
    prices_option,
    option(
        "--telemetry", bool, envvar="PEARL_TELEMETRY", group=OUTPUT,
        help="Send spans to the collector at OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra telemetry.",
    ),
)  # fmt: skip
"""Limits of a run, prices, and `--telemetry`."""

budget_options = grouped(
    LIMITS,
    option(
        "--dry-run", bool, is_first=True, help="Print the expected calls, tokens and cost without calling a model.",
    ),
    limit_options,
)  # fmt: skip
"""`--dry-run` and the options of `limit_options`."""

answer_options = grouped(
    OUTPUT,
    option(
        "--page", PATH, metavar="FILE.html", is_first=True,
        help="Write the answer with its document, plan and evidence as an HTML page.",
    ),
    option(
        "--rows rows_out", PATH, "Write the rows behind the answers as CSV.", metavar="FILE.csv"
    ),
)  # fmt: skip


def unit_options(command: F) -> F:
    """The options of `run_units` besides settings; `--run` is for `pearl runs resume` alone."""
    where = "Where tasks run: here, on a Ray cluster, or (`execute` only) by a Batch API."
    # Executors are plug-ins, which most commands need not look for.
    executors = click.Choice(plugins.names("pearl.runs.executors"))
    options = grouped(
        RUN, budget_options, store_option,
        option("--fresh", bool, "Start a new run and ignore stored replies."),
        option("--yes", bool, "Confirm paying again for work of an earlier version of PEARL."),
        click.option("--run", cls=Option, hidden=True),
        option("--executor", executors, where, default="local"),
        option(
            "--max-errors", click.IntRange(min=0), metavar="N",
            help="Start no more tasks after more than N failures [default: no limit].",
        ),
        option(
            "--shard", str, metavar="I/N",
            help="Run only part I of N of the tasks, as a run of its own.",
        ),
        force_option,
    )  # fmt: skip
    return options(command)


def task_options(command: F) -> F:
    """The options of commands that run tasks and keep their rows, besides settings."""
    batches = option(
        "--batch-threshold", click.IntRange(min=0), metavar="N",
        help="With --executor batch: send rounds of fewer than N requests directly, at the full price [default: 20].",
    )  # fmt: skip
    return grouped(RUN, unit_options, batches, trace_option, json_options)(command)


def opened_folder(store: str | None) -> Path:
    """The folder of `--store`, as an absolute path."""
    from pathlib import Path

    from pearl.runs.store import default_folder

    return (default_folder() if store is None else Path(store)).absolute()


def read_store(store: str | None) -> Store:
    """Open the store of `--store` for reading; problems with it go to stderr."""
    from pearl.runs.store import Store

    opened = Store.open(opened_folder(store), read_only=True)
    for line in opened.warnings:
        notice(line)
    return opened


def written_store(store: str | None) -> AbstractContextManager[Store]:
    """Open the store of `--store` for writing; problems with it go to stderr."""
    from pearl.runs.session import opened_store

    if is_private():
        raise UsageError(
            "a private run stores no rows",
            help="leave out --out, so that results are only printed; or, if the disk is encrypted, leave out --private",
        )
    return opened_store(opened_folder(store), notice)


# --- help ----------------------------------------------------------------------------------

N_FIRST = 11  # Maximum options that `--help` shows, besides those for help

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
        shows_all = ctx.meta.get(_ALL)
        sections: dict[str, list[click.Parameter]] = {group or "Options": [] for group in GROUPS}
        for each in self.options:
            group = getattr(each, "group", "")
            if shows_all or not group or getattr(each, "is_first", False):
                sections[group or "Options"].append(each)
        sections["Help"] = [each for each in self.get_params(ctx) if each not in self.params]
        for title, options in sections.items():
            records = [record for each in options if (record := each.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
