"""`pearl runs`: lists, shows, resumes, exports and prunes the runs of a store."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import to_builtins
from msgspec.structs import asdict

from pearl.cli.options import (
    FOUND,
    PATH,
    Parsed,
    as_json,
    force_option,
    grouped,
    opened_folder,
    option,
    read_store,
    refuse,
    server_notice,
    store_option,
    trace_option,
    warn_ignored_settings,
)
from pearl.cli.terminal import new_console, new_table, notice
from pearl.cli.writing import OutputWriter, refuse_overwriting_inputs
from pearl.errors import DataError, StoreError, UsageError
from pearl.errors.escaping import LEFT_OUT, counted, escaped, redacted, to_json, visible
from pearl.runs.export import FORMATS, write_table
from pearl.settings import SETTINGS, schema

if TYPE_CHECKING:
    from pearl.runs.request import RunRequest
    from pearl.runs.store import RunInfo

_HEX = frozenset("0123456789abcdef")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_WIDTH = 240  # Maximum characters of a command that are shown


@click.group()
def command() -> None:
    """List, resume, export and remove the runs in the store."""


def _age(value: Any) -> float:
    number, unit = str(value)[:-1], str(value)[-1:]
    if not number.replace(".", "", 1).isdecimal() or unit not in _SECONDS:
        raise ValueError(value)
    return float(number) * _SECONDS[unit]


@command.command("list")
@store_option
@as_json
def list_(store: str | None, as_json: bool) -> None:
    """List all runs, the latest first."""
    with read_store(store) as opened:
        runs = opened.runs()
    if as_json:
        click.echo(to_json([run.to_dict() for run in runs], indent=2))
    elif runs:
        _print_runs(runs)
    else:
        notice("the store has no runs")


@command.command()
@click.argument("run")
@store_option
@as_json
def show(run: str, store: str | None, as_json: bool) -> None:
    """Show one run. RUN is its id or a prefix of it, with or without the day."""
    with read_store(store) as opened:
        info = opened.run(run)
        tally, usage = opened.tally(info.id), opened.usage(info.id)
    if as_json:
        shown = {**info.to_dict(), "rows": tally, "usage": to_builtins(usage)}
        click.echo(to_json(shown, indent=2))
        return
    facts: dict[str, Any] = {
        "run": info.id,
        "state": info.state if info.holder is None else f"{info.state} (process {info.holder.pid})",
        "command": shlex.join(info.command),
        "folder": info.folder,
        "begun": _time(info.created),
        "changed": _time(info.updated),
        "results": ", ".join(f"{n:,} {status}" for status, n in sorted(tally.items())) or "none",
        "tokens": f"{usage.n_input_tokens:,} + {usage.n_output_tokens:,}"
        + (f" ({usage.n_cached_tokens:,} cached)" if usage.n_cached_tokens else ""),
        **info.counts,
        **{name: value for name, value in info.settings.items() if name != "command"},
        **info.inputs,
    }
    for name, value in facts.items():
        if value not in (None, "", [], {}):
            text = value if isinstance(value, str) else json.dumps(value)
            click.echo(f"{_one_line(name.replace('_', ' ')):<20} {_one_line(text)}")
    if info.status != "done" and info.holder is None:
        where = f" --store {shlex.quote(store)}" if store else ""
        how = f"pearl runs resume {info.id}{where}"
        if info.settings.get("command") == "session":  # a run of `pearl.Session`
            how = f"in Python, pearl.Session(...).resume('{info.id}', tasks)"
        click.echo(f"resume it: {how}", err=True)


@command.command()
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@store_option
def reply(keys: tuple[str, ...], store: str | None) -> int:
    """Show stored replies, each with its prompt, as JSON lines.

    KEY is that of a call in a log of `pearl eval`. Texts of documents are left out of prompts.
    """
    n_lost = 0
    with read_store(store) as opened:
        for key in keys:
            refuse((len(key) != 64 or not set(key) <= _HEX, f"'{key:.80}' is no key of a reply",
                    "copy one of `calls` in a log of pearl eval"))  # fmt: skip
            found = asyncio.run(opened.reply(bytes.fromhex(key)))
            if found is None:
                n_lost += 1
                notice(
                    f"no reply {key}\n  help: --store names the store of the evaluation; pruned replies are gone"
                )
            else:
                names = ("model", "fingerprint", "temperature", "prompt", "text")
                shown = {name: getattr(found, name) for name in names}
                click.echo(to_json({"key": key, **shown, "usage": found.usage.to_dict()}))
    return StoreError.exit_code if n_lost else 0


_resuming = grouped(
    "",
    option("-o --out", PATH, "File for the rows [default: the run's].", metavar="FILE"),
    option("-y --yes", bool, "Confirm resuming a run of a store that you name."),
    store_option,
)


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("run")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION...]")
@_resuming
@click.pass_context
def resume(
    ctx: click.Context, run: str, options: tuple[str, ...], out: str | None, yes: bool,
    store: str | None,
) -> int:  # fmt: skip
    """Resume RUN, in its folder.

    Each OPTION replaces one of the command that started RUN: pearl runs resume a3f9 --max-cost 5.
    For a store that you name by --store or PEARL_STORE, the command first shows what the run will
    do, and requires --yes; OPENAI_API_KEY is sent to the server of such a run only if that is
    OpenAI's, local, or named by you, as with --base-url.
    """
    return _resumed(ctx, run, options, out, store, is_yes=yes)


STATES = ("undecided", "failed", "degraded", "refused", "nothing_found")


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("run")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION...]")
@option(
    "--state", click.Choice(STATES), "Rows of this status; repeatable [default: undecided, failed, degraded].",
    multiple=True,
)  # fmt: skip
@option(
    "--row", str, "Only the row with this id; repeatable [default: all].", metavar="ID", multiple=True,
)  # fmt: skip
@_resuming
@click.pass_context
def retry(
    ctx: click.Context, run: str, options: tuple[str, ...], state: tuple[str, ...],
    row: tuple[str, ...], out: str | None, yes: bool, store: str | None,
) -> int:  # fmt: skip
    """Repeat rows of RUN; the new rows replace the old ones.

    Stored replies are not used, so each row is paid for again. Each OPTION replaces one of the command that started RUN, as in
    `pearl runs resume`: pearl runs retry a3f9 --state undecided --max-cost 5.
    """
    from pearl.cli.run_commands import RETRY
    from pearl.runs.session import RETRIED, retried

    with read_store(store) as opened:
        id = opened.run(run).id
        selected = retried(opened, id, state or RETRIED, row)
        n = sum(map(selected, opened.rows(id)))
    states = " or ".join(state or RETRIED)
    if not n:
        notice(f"run {id} has no row that is {states}")
        return 0
    notice(f"{counted(n, 'row')} of run {id} {'is' if n == 1 else 'are'} asked again")
    ctx.meta[RETRY] = selected
    return _resumed(ctx, run, options, out, store, is_yes=yes)


def _resumed(
    ctx: click.Context, run: str, options: tuple[str, ...], out: str | None, store: str | None,
    *, is_yes: bool,
) -> int:  # fmt: skip
    """Run the command of a run in its folder."""
    from pearl.runs.request import ExecuteRequest, request_of
    from pearl.runs.store import require_own_store

    folder = opened_folder(store)
    require_own_store(folder)
    with read_store(store) as opened:
        info = opened.run(run)
    request = request_of(info)
    is_own = store is None
    params, said = _params_of(ctx, request, options, out, is_own=is_own)
    ctx.find_root().obj = info.command  # the store keeps the original command line
    with _in_folder_of(info):
        asked = type(request).of(params)
        was = info.settings.get("embeddings")
        if "embeddings" in params and was != params["embeddings"]:
            did = f"had embeddings '{visible(str(was))}'" if was else "had no embeddings"
            raise UsageError(
                f"run {info.id} {did}, but your command says {visible(str(params['embeddings'] or 'none'))}",
                help=f"--embeddings {visible(str(was))}" if was else "leave out --embeddings",
            )
        if isinstance(asked, ExecuteRequest):
            from pearl.cli.files import identities

            if asked.together and "-" in asked.plan_and_documents:
                raise UsageError(
                    f"standard input is part of the corpus of run {info.id}, and cannot be read again",
                    help="run the command itself again, with the same input",
                )
            for name, identity in identities(asked, folder).items():
                if info.inputs.get(name) != identity:
                    what = "the corpus" if name == "corpus" else "a source"
                    raise StoreError(
                        f"{what} of run {info.id} has changed since",
                        help="run the command itself again: that starts another run",
                    )
        notice(f"run {info.id} is resumed in {visible(str(Path.cwd()))}")
        if not is_own:
            _show_work(asked, params, said, is_yes=is_yes)
        code: int = ctx.invoke(
            _command_of(request), **params, store=str(folder), run=info.id, fresh=False
        )
    return code


@contextmanager
def _in_folder_of(info: RunInfo) -> Iterator[None]:
    try:
        where = chdir(info.folder)
        where.__enter__()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the folder of run {info.id} does not exist: {getattr(error, 'strerror', error)}",
            path=_one_line(info.folder),
            help="restore it: the paths of the run are relative to it",
        ) from None
    try:
        yield
    finally:
        where.__exit__(None, None, None)


@command.command()
@click.argument("run")
@option("--format -f form", click.Choice(FORMATS), "[default: by the suffix of FILE]")
@option("-o --out", PATH, "[default: stdout]", metavar="FILE")
@trace_option
@force_option
@store_option
def export(
    run: str, form: str | None, out: str | None, trace: str | None, force: bool,
    store: str | None,
) -> int:  # fmt: skip
    """Write the results of RUN, one row per task, in their order.

    An extraction has a column for each field, and a table of its own for each list, as in `pearl extract`. Rows
    have what persons decided by `pearl review`.
    """
    from pearl.runs.decisions import reviewed
    from pearl.runs.extraction import fields_of_rows, page_beside, write_tables
    from pearl.runs.readme import readme
    from pearl.runs.request import ExtractRequest, request_of, written_files
    from pearl.runs.store import FILE

    if form is None:
        form = Path(out or "").suffix.removeprefix(".").lower()
        if form in ("", "json", "ndjson", "txt"):
            form = "jsonl"
        if form not in FORMATS:
            raise UsageError(f"'{out}': unknown format .{form}", help=f"-f {', '.join(FORMATS)}")
    if form in ("parquet", "xlsx") and out in (None, "-"):
        raise UsageError(f"the format {form} goes to a file", help=f"-o results.{form}")
    refuse_overwriting_inputs([out, trace], [str(opened_folder(store) / FILE)])
    writer = OutputWriter(is_forced=force)
    writer.check(out, trace)
    with read_store(store) as opened:
        info = opened.run(run)
        rows = reviewed(opened, info.id)
        facts = readme(info, rows)
        with suppress(StoreError):
            request = request_of(info)
            if form == "jsonl" and isinstance(request, ExtractRequest):
                rows.schema = request.loaded
        if form != "jsonl" and (fields := fields_of_rows(rows())):
            n_rows = write_tables(
                fields, rows, out or "-", form, writer.open, facts=facts,
                page=page_beside(str(out), written_files(info)),
            )  # fmt: skip
        else:
            with writer.open(out) as file:
                n_rows = write_table(rows, file, form, facts=facts)
        if trace is not None:
            with writer.open(trace) as file:
                file.writelines(map(escaped, opened.traces(info.id)))
        # Not `n_bad_rows` itself: a table is read twice, and counts each damaged row twice.
        n_bad = info.n_results - n_rows if opened.n_bad_rows else 0
    click.echo(f"{counted(n_rows, 'row')} of run {info.id}, which is {info.state}", err=True)
    for problem in rows.problems.values():
        notice(f"a decision of pearl review is left out: {problem}")
    if n_bad > 0:
        notice(
            f"{n_bad:,} damaged rows are left out; 'pearl runs resume {info.id}' computes them again"
        )
    return 1 if n_bad > 0 else 0


@command.command()
@option("--keep", click.IntRange(min=0), "Keep the latest N runs.", metavar="N")
@option(
    "--older-than", Parsed("N(s|m|h|d|w)", _age, "an age, as 30d or 12h"), help="Only runs older than this, as 30d or 12h.",
)  # fmt: skip
@option("--replies", bool, "Also remove replies of models; repeating their calls then costs money.")
@option("--yes", bool, "Remove; without it, the runs are only listed.")
@store_option
def prune(
    keep: int | None, older_than: float | None, replies: bool, yes: bool, store: str | None
) -> None:
    """Remove runs with their results; those in use stay."""
    from pearl.runs.store import Store, chosen

    if keep is None and older_than is None and not replies:
        raise UsageError(
            "no option selects what to remove", help="--keep 10, --older-than 30d, --replies"
        )
    with read_store(store) as opened:
        runs = chosen(opened.runs(), older_than_s=older_than, keep=keep)
    if not yes:
        if runs:
            _print_runs(runs)
        what = counted(len(runs), "run") + (" and replies" if replies else "")
        notice(f"{what} would be removed; --yes removes them")
        return
    with Store.open(opened_folder(store)) as opened:
        gone = opened.prune([run.id for run in runs], replies=replies, older_than_s=older_than)
    click.echo(
        f"removed {counted(gone.n_runs, 'run')}, {counted(gone.n_results, 'result')}, "
        f"{gone.n_replies:,} replies: {gone.n_bytes / 1e6:,.1f} MB",
        err=True,
    )


def _print_runs(runs: Sequence[RunInfo]) -> None:
    from rich.text import Text

    table = new_table()
    for name in ("run", "state", "changed", "results", "command"):
        table.add_column(
            name, justify="right" if name == "results" else "left", no_wrap=name != "command"
        )
    for run in runs:
        command = Text(_one_line(shlex.join(run.command)))
        failed = f", {run.n_failed:,} failed" if run.n_failed else ""
        results = f"{run.n_results:,}{failed}"
        table.add_row(_one_line(run.id), run.state, _ago(run.updated), results, command)
    new_console(soft_wrap=False).print(table)


def _one_line(text: str) -> str:
    """One line without control characters; the middle of a long text is left out."""
    text = visible(" ".join(text.split("\n")))
    half = _WIDTH // 2
    return text if len(text) <= _WIDTH else f"{text[:half]} ... {text[-half:]}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M:%S} ({_ago(seconds)})"


def _ago(seconds: float) -> str:
    age_s = max(0.0, time.time() - seconds)
    for name, unit in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if age_s >= 2 * unit:
            return f"{age_s / unit:.0f} {name} ago"
    return f"{age_s:.0f} s ago"


# --- resuming ---------------------------------------------------------------------------------

ALLOWED = ("force", "allow_outside")  # Options that are never read from a store

_UNKEPT = tuple(
    name for name in SETTINGS if not schema()[name][1].is_kept and name != "api_key_env"
)
"""Services that receive passages: the user must name them again."""

_FIXED = (
    "plan_and_documents", "fields", "documents", "together", "sources", "tasks", "data", "split", "columns", "subset", "limit", "shard",
    "fresh", "run", "results", "rescore", "temperature", "token_budget", "part_tokens",
    "seed_library", "retries", "held_out",
)  # fmt: skip
"""Options that would begin another run."""

N_SHOWN = 8  # Maximum files in this folder that are listed by name
MAX_LINE = 100_000_000  # Maximum bytes of the first row of a file


def _command_of(request: RunRequest) -> click.Command:
    from pearl.cli.commands.eval import command as evaluate
    from pearl.cli.commands.execute import command as execute
    from pearl.cli.commands.extract import command as extract
    from pearl.cli.commands.mine import command as mine
    from pearl.cli.commands.refine import fewshot
    from pearl.runs.request import REQUESTS

    known = dict(zip(REQUESTS, (execute, extract, evaluate, mine, fewshot), strict=True))
    return known[request.COMMAND]


def _params_of(
    ctx: click.Context,
    request: RunRequest,
    options: tuple[str, ...],
    out: str | None,
    *,
    is_own: bool,
) -> tuple[dict[str, Any], set[str]]:
    """Return the parameters of the command, and the names of the options given now, which replace those of the run."""
    from pearl.llm.backends import ModelSettings, address_of, default_key_variable

    name = request.COMMAND
    own = (ctx.find_root().default_map or {}).get(name) or {}
    defaults = {
        name: own[name]
        for name in ("base_url", "api_key_env")
        if name in own and name not in ctx.meta.get(FOUND, ())
    }
    words = ["--model", request.model, *options]  # the last of several equal options counts
    defaults["out"] = request.out  # a required option of some commands
    said = _command_of(request).make_context(name, words, parent=ctx, default_map=defaults)

    flags = {
        name
        for name in said.params
        if said.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if fixed := [name for name in _FIXED if name in flags and said.params[name]]:
        raise UsageError(
            f"{fixed[0].replace('_', ' ')}: changing it would start another run",
            help="run the command itself; 'pearl runs resume' accepts limits, rates and paths",
        )
    params = {**asdict(request), **{name: said.params[name] for name in flags}}
    del params["written"]  # no option
    if out is not None:
        params["out"] = str(Path(out).absolute())
        flags.add("out")
    address = _server(params["model"], request.base_url, said, is_flag="base_url" in flags)
    is_named = is_own or address == address_of(
        params["model"], ModelSettings(said.params["base_url"])
    )
    params["base_url"] = address or None
    # The variable of the key: the user's; of a server that only the store names, that of this server
    params["api_key_env"] = said.params["api_key_env"]
    if params["api_key_env"] is None and address and not is_named:
        params["api_key_env"] = default_key_variable(params["model"], address)
    own = ("dry_run", "telemetry", *ALLOWED, *_UNKEPT)
    not_kept = {name: said.params[name] for name in own if name in said.params}
    return {**params, **not_kept}, flags


def _server(model: str, kept: str | None, said: click.Context, *, is_flag: bool) -> str | None:
    """The server of the resumed run: the one that the user names, else the run's."""
    from pearl.llm.backends import ModelSettings, address_of

    mine = address_of(model, ModelSettings(said.params["base_url"]))
    if is_flag or mine is None or redacted(mine, LEFT_OUT) == (kept or ""):
        return mine
    if mine:
        raise UsageError(
            f"the run was sent to {_server_name(model, kept)}, but your settings name {_server_name(model, mine)}",
            help="name the one you want: --base-url URL",
        )
    return kept


def _server_name(model: str, url: str | None) -> str:
    """The name of a server for messages."""
    from pearl.llm.backends.openai.endpoint import Endpoint

    return Endpoint(url, model, "").shown if url else f"the usual server of {model}"


def _show_work(
    request: RunRequest, params: Mapping[str, Any], said: set[str], *, is_yes: bool
) -> None:
    """Show on stderr what a run of a named store will do, and require `--yes`."""
    model = server_notice(params).partition("\n")[0] or str(params["model"])
    click.echo(f"  model   {visible(model)}", err=True)
    warn_ignored_settings(params)
    click.echo(f"  reads   {_path_list(list(request.inputs))}", err=True)
    click.echo(f"  writes  {_path_list(list(request.outputs))}", err=True)
    for name in request.outputs:
        # The table of a list belongs to `out`.
        option = next((each for each in request.WRITES if params.get(each) == name), "out")
        if option not in said:
            _refuse_foreign_file(name, f"--{option.replace('_', '-')} {params.get(option)}")
    if not is_yes:
        raise UsageError(
            "another user may have written this store: resuming its run requires --yes",
            help="check above what the run will do; --yes confirms it",
        )


def _refuse_foreign_file(name: str, said: str) -> None:
    """Refuse a file that a store names, unless it is missing, is empty or begins as results, a trace, a log or drafts."""
    path = Path(name)
    if not path.exists():
        return
    row: Any = None
    if path.is_file():
        with path.open("rb") as file, suppress(ValueError, RecursionError):
            row = json.loads(file.readline(MAX_LINE) or b'{"event": ""}')
    is_own = isinstance(row, dict) and (
        str(row.get("kind")).startswith("pearl-")
        or {"id", "status"} <= row.keys()
        or "event" in row
    )
    if not is_own:
        raise DataError(
            "exists and has no results of a run, so it is not replaced",
            path=visible(name),
            help=f"name it yourself, or another file: {visible(said)}",
        )


def _path_list(names: list[str]) -> str:
    """Paths as text; those outside this folder come first, and all of them are shown."""
    here = Path.cwd().resolve()
    whole = {name: Path(name).resolve() for name in dict.fromkeys(names)}
    outside = [str(path) for path in whole.values() if not path.is_relative_to(here)]
    inside = [name for name, path in whole.items() if path.is_relative_to(here)]
    shown = [*outside, *inside[: max(0, N_SHOWN - len(outside))]]
    more = len(whole) - len(shown)
    text = ", ".join(map(visible, shown)) or "nothing"
    return f"{text} and {more:,} more in this folder" if more else text
