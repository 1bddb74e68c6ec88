"""Options that several commands share, with their `PEARL_...` variables."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pearl.cli.dates import Day, YearEnd
from pearl.cli.terminal import notice
from pearl.errors import PearlError, UsageError
from pearl.retrieval import DEFAULT_METHOD

if TYPE_CHECKING:
    from pearl.llm.middleware.caching import Replies
    from pearl.llm.middleware.rate import LimiterStatus
    from pearl.llm.prices import Price
    from pearl.pipeline import Pearl

Command = TypeVar("Command", bound=Callable[..., Any])

TRUSTED = (
    "model",
    "base_url",
    "server",
    "domain",
    "library",
    "examples",
    "ranker",
    "embeddings",
    "reranker",
    "reranker_url",
    "shape",
    "as_of",
    "fiscal_year_end",
)
"""Settings that decide where a document is sent, what of it the planner is told, which files and plug-ins are used,
and which periods questions are about."""

OWN = ("api_key_env",)
"""Settings that a file in a folder can never set, even if trusted: the choice of keys."""

CONFIG = "pearl.cli.config"
"""In `Context.meta`: the settings file that the user names, or None."""

FOUND = "pearl.cli.found"
"""In `Context.meta`: the settings that a file found in the working folder says."""

PLACES = "pearl.cli.places"
"""In `Context.meta`: setting → the file that says it."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
trace_option = click.option(
    "--trace", type=click.Path(), help="Write what happened to FILE, as JSON lines."
)


def _complete_library(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from pearl.actions.library import library_names

    return [name for name in library_names() if name.startswith(incomplete)]


def _complete_ranker(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from pearl.retrieval import PRESETS
    from pearl.retrieval.methods import method_names

    return [name for name in (*method_names(), *PRESETS) if name.startswith(incomplete)]


def _complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from pearl.llm.backends import backend_names

    return [name for name in backend_names() if name.startswith(incomplete)]


def _complete(package: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes the names of the plug-ins of a package."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from pearl import plugins

        return [name for name in plugins.names(package) if name.startswith(incomplete)]

    return complete


def _key(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The variable of the key to send; not OpenAI's if a file found in a folder names the server."""
    if value is not None and re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII) is None:
        raise UsageError(
            "--api-key-env takes the name of an environment variable, and that is none",
            help="export MY_KEY=..., then --api-key-env MY_KEY",
        )
    url = ctx.params.get("base_url")
    is_of_file = ctx.get_parameter_source("base_url") is ParameterSource.DEFAULT_MAP
    is_found = is_of_file and "base_url" in ctx.meta.get(FOUND, ())
    if value is not None or not url or not is_found:
        return value
    from pearl.llm.backends import default_key_variable

    return default_key_variable(str(ctx.params.get("model")), url)


_OPTIONS: Mapping[str, Callable[[Command], Command]] = {
    "model": click.option(
        "--model", envvar="PEARL_MODEL", default="extractive", show_default=True,
        metavar="BACKEND[:NAME]", shell_complete=_complete_model,
        help="extractive (no network), openai:NAME, anthropic:NAME, ollama:NAME, llamacpp:FILE, "
        "transformers:FOLDER, ...: all in docs/servers.md.",
    ),
    "base_url": click.option(
        "--base-url", envvar="PEARL_BASE_URL", metavar="URL",
        help="Server of the model [default: $OPENAI_BASE_URL, then OpenAI; of ollama: "
        "$OLLAMA_HOST, then this machine].",
    ),
    "api_key_env": click.option(
        "--api-key-env", envvar="PEARL_API_KEY_ENV", metavar="VARIABLE", callback=_key,
        help="Environment variable of the key that is sent [default: PEARL_API_KEY, then "
        "OPENAI_API_KEY].",
    ),
    "domain": click.option(
        "--domain", envvar="PEARL_DOMAIN", default="generic", show_default=True,
        shell_complete=_complete("pearl.data.domains"), metavar="NAME",
        help="Kind of document, with its library and examples.",
    ),
    "library": click.option(
        "--library", envvar="PEARL_LIBRARY", metavar="NAME|FILE", shell_complete=_complete_library,
        help="Action library, by name or file [default: the domain's].",
    ),
    "examples": click.option(
        "--examples", envvar="PEARL_EXAMPLES", metavar="NAME|FOLDER",
        help="Bank of examples for the planner [default: the domain's].",
    ),
    "nearest": click.option(
        "--nearest", envvar="PEARL_NEAREST", type=click.IntRange(min=1), metavar="N",
        help="Show the N examples most like the question and two unlike ones [default: all].",
    ),
    "context": click.option(
        "--context", envvar="PEARL_CONTEXT", default="auto", show_default=True,
        metavar="STRATEGY",
        help="Documents longer than the window: full, map-reduce, retrieve or auto.",
    ),
    "ranker": click.option(
        "--ranker", envvar="PEARL_RANKER", metavar="NAME", default=DEFAULT_METHOD, show_default=True,
        shell_complete=_complete_ranker,
        help="How passages are ranked: bm25, bm25+, tfidf, dense, hybrid, or a preset: corpus-qa.",
    ),
    "embeddings": click.option(
        "--embeddings", envvar="PEARL_EMBEDDINGS", metavar="NAME",
        help="Vectors for the rankers dense and hybrid, and for extractive: minilm, openai:NAME, model2vec:NAME.",
    ),
    "reranker": click.option(
        "--reranker", envvar="PEARL_RERANKER", metavar="NAME",
        help="Reorders the best passages, and carries out RERANK: cohere:MODEL, tei, voyage:MODEL.",
    ),
    "reranker_url": click.option(
        "--reranker-url", envvar="PEARL_RERANKER_URL", metavar="URL",
        help="Whole address of the reranker [default: the vendor's]; its key: $PEARL_RERANKER_API_KEY.",
    ),
    "window": click.option(
        "--window", envvar="PEARL_WINDOW", type=click.IntRange(min=256), metavar="TOKENS",
        help="The model's window [default: the server's, a known model's, else 128000].",
    ),
    "max_output_tokens": click.option(
        "--max-output-tokens", envvar="PEARL_MAX_OUTPUT_TOKENS", type=click.IntRange(min=1),
        metavar="TOKENS",
        help="Tokens of one reply at most, hidden ones included [default: by kind, 8192 for a step].",
    ),
    "max_repairs": click.option(
        "--max-repairs", envvar="PEARL_MAX_REPAIRS", type=click.IntRange(min=0), default=4, metavar="N",
        show_default=True, help="Times the model is shown what is wrong with its plan.",
    ),
    "max_steps": click.option(
        "--max-steps", envvar="PEARL_MAX_STEPS", type=click.IntRange(min=1), default=40, metavar="N",
        show_default=True, help="Longer plans are refused.",
    ),
    "items_per_call": click.option(
        "--items-per-call", envvar="PEARL_ITEMS_PER_CALL", type=click.IntRange(min=1), default=32,
        metavar="N", show_default=True, help="Rows that one call asks about.",
    ),
    "max_item_tokens": click.option(
        "--max-item-tokens", envvar="PEARL_MAX_ITEM_TOKENS", type=click.IntRange(min=1), default=64,
        metavar="TOKENS", show_default=True, help="Of a line about one row at most.",
    ),
    "max_reasks": click.option(
        "--max-reasks", envvar="PEARL_MAX_REASKS", type=click.IntRange(min=0), default=1, metavar="N",
        show_default=True,
        help="Times in a row that asking again for rows without a reply may bring none.",
    ),
    "strict": click.option(
        "--strict", envvar="PEARL_STRICT", is_flag=True,
        help="Fail a step whose reply is cut off or refused, and an answer that is degraded, as one with a quote that is not in the document. Rows that do not state what FILTER asks are undecided. By default the answer is kept, with its status.",
    ),
    "strict_items": click.option(
        "--strict-items", envvar="PEARL_STRICT_ITEMS", is_flag=True,
        help="A row that stays undecided, or does not state what FILTER asks, fails its step.",
    ),
    "recheck": click.option(
        "--recheck", envvar="PEARL_RECHECK", type=click.IntRange(min=0), default=0, metavar="N",
        show_default=True,
        help="Ask again about N rows of each such step, one a call, and say how many replies agree.",
    ),
    "fallback": click.option(
        "--fallback", envvar="PEARL_FALLBACK", type=click.Choice(["direct"]),
        help="Answer in one step where no valid plan can be had.",
    ),
    "shape": click.option(
        "--shape", envvar="PEARL_SHAPE", type=click.Choice(["none", "counts", "fields"]),
        default="none", show_default=True,
        help="What the planner is told of a document: counts, or fields of trusted ones, too.",
    ),
    "as_of": click.option(
        "--as-of", envvar="PEARL_AS_OF", type=Day(), metavar="DATE",
        help="Date that 'last year', ... refer to, as 2024-05-01 or today [default: today where the "
        "domain is dated; else they stay].",
    ),
    "fiscal_year_end": click.option(
        "--fiscal-year-end", envvar="PEARL_FISCAL_YEAR_END", type=YearEnd(), default="12-31",
        show_default=True, metavar="MM-DD",
        help="Day on which fiscal years end; goes with --as-of.",
    ),
    "planned_by": click.option(
        "--planner", "planned_by", envvar="PEARL_PLANNED_BY", default="auto", show_default=True,
        type=click.Choice(["auto", "model", "rule"]),
        help="Who writes plans: the model, rules, or both where the model is weak (auto).",
    ),
    "profile": click.option(
        "--profile", envvar="PEARL_PROFILE", default="auto", show_default=True,
        type=click.Choice(["auto", "full", "small"]),
        help="What the planner is shown: less for small models (auto: by size and window).",
    ),
    "route": click.option(
        "--route/--no-route", envvar="PEARL_ROUTE", default=None,
        help="Plan a question by its parts where these suffice [default: the domain's].",
    ),
    "apart": click.option(
        "--apart/--no-apart", envvar="PEARL_APART", default=None,
        help="Show models tables apart from the text [default: the domain's].",
    ),
    "sql_engine": click.option(
        "--sql-engine", envvar="PEARL_SQL_ENGINE", type=click.Choice(["sqlite", "duckdb"]),
        default="sqlite", show_default=True, help="What runs SQL that a model writes over a table.",
    ),
    "n_plans": click.option(
        "--plans", "n_plans", envvar="PEARL_N_PLANS", type=click.IntRange(1, 20), default=1,
        metavar="N", show_default=True,
        help="Independent plans that are written and run, to see how far they agree.",
    ),
    "concurrency": click.option(
        "--concurrency", envvar="PEARL_CONCURRENCY", type=click.IntRange(min=1), default=8, metavar="N",
        show_default=True, help="Calls to the model, and tasks, at once.",
    ),
    "timeout_s": click.option(
        "--timeout-s", envvar="PEARL_TIMEOUT_S", type=click.FloatRange(min=0.1), default=600.0,
        metavar="SECONDS",
        show_default=True, help="Seconds that one call may take in all.",
    ),
    "constrain": click.option(
        "--constrain", envvar="PEARL_CONSTRAIN", default="auto", show_default=True,
        type=click.Choice(["auto", "grammar", "json", "off"]),
        help="Hold the model to the grammar of plans, and to the form of a step's reply.",
    ),
    "server": click.option(
        "--server", envvar="PEARL_SERVER", metavar="KIND",
        shell_complete=_complete("pearl.llm.backends.openai.servers"),
        help="Kind of server, if it does not say so itself: vllm, sglang, llamacpp, ollama, ...",
    ),
    "prefix": click.option(
        "--prefix", envvar="PEARL_PREFIX", type=click.Choice(["auto", "off"]), default="auto",
        show_default=True,
        help="First call over a document fills the server's cache, the others follow.",
    ),
    "requests_per_minute": click.option(
        "--rpm", "requests_per_minute", envvar="PEARL_RPM", metavar="N",
        type=click.FloatRange(min=0, min_open=True),
        help="Calls a minute at most [default: what the server bears].",
    ),
    "tokens_per_minute": click.option(
        "--tpm", "tokens_per_minute", envvar="PEARL_TPM", metavar="N",
        type=click.FloatRange(min=0, min_open=True),
        help="Tokens a minute at most, prompts and replies together.",
    ),
}  # fmt: skip

SETTINGS = tuple(_OPTIONS)
"""Settings allowed in a TOML file and in the environment."""

ASKING = (
    "model", "base_url", "api_key_env", "window", "max_output_tokens", "concurrency", "timeout_s",
    "requests_per_minute", "tokens_per_minute",
)  # fmt: skip
"""Settings of every command that calls a model."""

DRAFTING = ("domain", "library", "examples", "constrain", "server")
"""Of those that show a model the library and examples, and hold it to a grammar, too."""

PLANNING = (
    *DRAFTING, "nearest", "max_repairs", "max_steps", "as_of", "fiscal_year_end", "planned_by", "profile", "route",
)  # fmt: skip
"""Of those that have plans written, too."""

READING = (
    "context", "apart", "sql_engine", "ranker", "embeddings", "reranker", "reranker_url", "prefix",
    "items_per_call", "max_item_tokens", "max_reasks", "strict", "strict_items",
    "recheck",
)  # fmt: skip
"""Of those that show a model documents, too."""


def setting_options(*names: str) -> Callable[[Command], Command]:
    """Options for settings, which `open_pearl` takes; for all of them where none is named."""
    return lambda command: with_options(command, [_OPTIONS[name] for name in names or SETTINGS])


page_option = click.option(
    "--page", type=click.Path(), metavar="FILE.html",
    help="Write the answer beside its document, with all it rests on, as a page.",
)  # fmt: skip


context_lines_option = click.option(
    "--context-lines", type=click.IntRange(0, 100), default=0, metavar="N",
    help="Show N lines of the document before and after each piece of evidence.",
)  # fmt: skip


def rows_option(command: Command) -> Command:
    """`--rows`: the rows behind answers as a table."""
    option = click.option(
        "--rows", "rows_out", type=click.Path(), metavar="FILE.csv",
        help="Write the rows that the answers are computed from as CSV.",
    )  # fmt: skip
    return option(command)


class _Price(click.ParamType["Price | None"]):
    """`IN/OUT` or `IN/CACHED/OUT`."""

    name = "IN[/CACHED]/OUT"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Price | None:
        from pearl.llm.prices import Price

        try:
            figures = [float(part) for part in str(value).split("/")]
            if len(figures) == 2:
                return Price(input_usd=figures[0], output_usd=figures[1])
            first, cached, last = figures
            return Price(input_usd=first, cached_usd=cached, output_usd=last)
        except ValueError:
            self.fail(f"'{value}' is not IN/OUT or IN/CACHED/OUT, as 2.50/10", param, ctx)


price_option = click.option(
    "--price", type=_Price(), envvar="PEARL_PRICE",
    help="US dollars per million tokens, for the cost, as 2.50/10.",
)  # fmt: skip


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """The command with these options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def new_pearl(
    settings: Mapping[str, Any], replies: Replies | None = None, *, is_asked: bool = True
) -> Pearl:
    """A `Pearl` with these settings."""
    from pearl.pipeline import Pearl

    chosen = {key: value for key, value in settings.items() if key in SETTINGS}
    return Pearl(**chosen, replies=replies, is_asked=is_asked)


@asynccontextmanager
async def model_opened(pearl: Pearl, settings: Mapping[str, Any]) -> AsyncIterator[Pearl]:
    """Use a `Pearl`; its model's notice, and what tokens were counted by, go to stderr."""
    async with pearl:
        if pearl.client.notice:
            click.echo(pearl.client.notice, err=True)
            warn_ignored_settings(settings)
        if "profile" in settings and pearl.material.profile.notice:
            click.echo(pearl.material.profile.notice, err=True)
        try:
            yield pearl
        finally:
            counter = pearl.client.counter
            if pearl.client.reads_prompts and counter.has_counted:
                click.echo(f"tokens were counted by {counter.method}", err=True)


@asynccontextmanager
async def open_pearl(
    settings: Mapping[str, Any], replies: Replies | None = None
) -> AsyncIterator[Pearl]:
    """A `Pearl` with these settings; its model's notice and what its server refused go to stderr."""
    async with model_opened(new_pearl(settings, replies), settings) as pearl:
        try:
            yield pearl
        finally:
            report_refused(pearl.client.limiter.limits, pearl.client.settings.concurrency)


def server_notice(settings: Mapping[str, Any]) -> str:
    """The server of the settings and the key sent to it, or what is wrong; "" without a server."""
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
        held.append(f"{limits.requests_per_s:.3g} calls a second")
    if limits.n_places < concurrency:
        held.append(f"{limits.n_places:,} at once")
    notice(
        f"the server refused {limits.n_refused:,} of {limits.n_sent:,} calls for their rate (429)"
        + (f"; in the end it was sent at most {', '.join(held)}" if held else "")
    )
