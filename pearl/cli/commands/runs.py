"""`pearl runs`: what is kept of runs. One subcommand for each thing to do with it."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.options import as_json, trace_option
from pearl.cli.run_options import store_option
from pearl.cli.storing import opened_folder
from pearl.cli.terminal import new_console, new_table, notice
from pearl.cli.writing import OutputWriter, force_option, keep_inputs
from pearl.errors import StoreError, UsageError
from pearl.errors.escaping import escaped, to_json, visible
from pearl.errors.wording import counted
from pearl.runs.export import FORMATS, write_table

if TYPE_CHECKING:
    from pearl.runs.store import RunInfo, Store

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_WIDTH = 240
"""Characters of a command that are shown."""


@click.group()
def command() -> None:
    """List, resume, export and remove the runs that are kept in the store."""


class _Age(click.ParamType["float"]):
    """A number and a unit, as seconds."""

    name = "N(s|m|h|d|w)"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        said = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", str(value))
        if said is None:
            self.fail(f"'{value}' is no time, as 30d or 12h", param, ctx)
        return float(said[1]) * _SECONDS[said[2]]


def _read(store: str | None) -> Store:
    from pearl.runs.store import Store

    return Store.open(opened_folder(store), read_only=True)


@command.command("list")
@store_option
@as_json
def list_(store: str | None, as_json: bool) -> None:
    """List all runs, the latest first."""
    with _read(store) as opened:
        runs = opened.runs()
    if as_json:
        click.echo(to_json([run.to_json() for run in runs], indent=2))
    elif runs:
        _print_runs(runs)
    else:
        notice("no run is kept here")


@command.command()
@click.argument("run")
@store_option
@as_json
def show(run: str, store: str | None, as_json: bool) -> None:
    """Show one run. RUN is its id, or how that begins with its day or without."""
    with _read(store) as opened:
        info = opened.run(run)
        tally, usage = opened.tally(info.id), opened.usage(info.id)
    if as_json:
        shown = {**info.to_json(), "rows": tally, "usage": asdict(usage)}
        click.echo(to_json(shown, indent=2))
        return
    facts: dict[str, Any] = {
        "run": info.id,
        "state": info.state if info.holder is None else f"{info.state} (process {info.holder.pid})",
        "command": shlex.join(_command(info)),
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
            click.echo(f"{_short(name.replace('_', ' ')):<20} {_short(text)}")
    if info.status != "done" and info.holder is None:
        where = f" --store {shlex.quote(store)}" if store else ""
        how = f"pearl runs resume {info.id}{where}"
        if info.settings.get("command") == "session":  # begun in Python
            how = f"in Python, pearl.Session(...).resume('{info.id}')"
        click.echo(f"go on with it: {how}", err=True)


@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("run")
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTION...]")
@click.option(
    "-o", "--out", type=click.Path(), metavar="FILE",
    help="Write the rows there [default: as before].",
)  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="It is right: begin without asking.")
@store_option
@click.pass_context
def resume(
    ctx: click.Context, run: str, options: tuple[str, ...], out: str | None, yes: bool,
    store: str | None,
) -> int:  # fmt: skip
    """Go on with RUN, in its folder, once you have seen what it will do.

    Each OPTION takes the place of what was said then: pearl runs resume a3f9 --max-cost 5. A key
    for OpenAI goes to the server of the run only if that is OpenAI's, local, or named by you, as
    with --base-url.
    """
    from pearl.cli.resuming import agreed, command_of, params_of
    from pearl.runs.request import refuse_others, request_of

    folder = opened_folder(store)
    refuse_others(folder)
    with _read(store) as opened:
        info = opened.run(run)
    request = request_of(info)
    if request.shard and not info.settings.get("shard"):  # shards were merged into it
        if out is None:
            raise UsageError(
                f"run {info.id} is made of shards, which wrote a file each",
                help=f"name one for all rows: pearl runs resume {info.id} -o rows.jsonl",
            )
        fields = {"shard": None, "trace": None}
        known = {name: None for name in fields if name in type(request).model_fields}
        request = request.model_copy(update=known)
    params, said = params_of(ctx, request, options, out)
    ctx.find_root().obj = info.command  # which is what the run goes on being called
    with _in(info):
        if not agreed(info, type(request).of(params), params, said, is_yes=yes):
            notice("nothing was done")
            return 1
        code: int = ctx.invoke(
            command_of(request), **params, store=str(folder), run=info.id, fresh=False
        )
    return code


def _command(info: RunInfo) -> list[str]:
    """The arguments that stand for all the work of a run."""
    if info.settings.get("shard") or not info.work.get("shard"):
        return list(info.command)
    return _without(info.command, ("--shard", "-o", "--out", "--trace", "--store"))


@contextmanager
def _in(info: RunInfo) -> Iterator[None]:
    try:
        where = chdir(info.folder)
        where.__enter__()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the folder of run {info.id} is not there: {getattr(error, 'strerror', error)}",
            path=_short(info.folder),
            help="put it back: the paths of the run begin there",
        ) from None
    try:
        yield
    finally:
        where.__exit__(None, None, None)


def _without(command: Sequence[str], options: tuple[str, ...]) -> list[str]:
    """The arguments without some options and their values."""
    kept: list[str] = []
    words = iter(command)
    for word in words:
        if word == "--":
            return [*kept, word, *words]
        if word in options:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept


@command.command()
@click.argument("run")
@click.option(
    "--format", "-f", "form", type=click.Choice(FORMATS), help="[default: as FILE is called]"
)
@click.option("-o", "--out", type=click.Path(), metavar="FILE", help="[default: stdout]")
@trace_option
@click.option(
    "--raw-cells", is_flag=True,
    help="Texts of CSV as they are, though a spreadsheet would compute them.",
)  # fmt: skip
@force_option
@store_option
def export(
    run: str, form: str | None, out: str | None, trace: str | None, raw_cells: bool, force: bool,
    store: str | None,
) -> int:  # fmt: skip
    """Write the results of RUN, every row once, in the order of the work."""
    from pearl.runs.store import FILE

    form = form or _form(out)
    if form == "parquet" and out in (None, "-"):
        raise UsageError("Parquet goes to a file", help="-o results.parquet")
    keep_inputs([out, trace], [str(opened_folder(store) / FILE)])
    writer = OutputWriter.of_command(store, is_forced=force)
    writer.check(out, trace)
    with _read(store) as opened:
        info = opened.run(run)
        rows = partial(opened.rows, info.id)
        with writer.open(out) as file:
            n_rows = write_table(rows, file, form, raw_cells=raw_cells)
        if trace is not None:
            with writer.open(trace) as file:
                file.writelines(map(escaped, opened.traces(info.id)))
        # A table is read twice, and a damaged row is met each time.
        n_bad = info.n_results - n_rows if opened.n_bad_rows else 0
    click.echo(f"{counted(n_rows, 'row')} of run {info.id}, which is {info.state}", err=True)
    if n_bad > 0:
        notice(
            f"{n_bad:,} damaged rows are left out; 'pearl runs resume {info.id}' makes them anew"
        )
    return 1 if n_bad > 0 else 0


def _form(out: str | None) -> str:
    """The format that a file is called by."""
    suffix = Path(out or "").suffix.removeprefix(".").lower()
    if suffix in FORMATS:
        return suffix
    if suffix in ("", "json", "ndjson", "txt"):
        return "jsonl"
    raise UsageError(f"'{out}': no format is called .{suffix}", help=f"-f {', '.join(FORMATS)}")


@command.command()
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="The latest N runs stay.")
@click.option("--older-than", type=_Age(), help="Only what is older, as 30d or 12h.")
@click.option("--replies", is_flag=True, help="Replies of models, too; they are paid for again.")
@click.option("--yes", is_flag=True, help="Remove it; else it is only shown.")
@store_option
def prune(
    keep: int | None, older_than: float | None, replies: bool, yes: bool, store: str | None
) -> None:
    """Remove runs with their results; those in use stay."""
    from pearl.runs.store import Store
    from pearl.runs.store.writing import chosen

    if keep is None and older_than is None and not replies:
        raise UsageError(
            "nothing says what to remove", help="--keep 10, --older-than 30d, --replies"
        )
    with _read(store) as opened:
        runs = chosen(opened.runs(), older_than_s=older_than, keep=keep)
    if not yes:
        if runs:
            _print_runs(runs)
        what = counted(len(runs), "run") + (" and replies" if replies else "")
        notice(f"{what} would be removed; --yes removes them")
        return
    with Store.open(opened_folder(store)) as opened:
        gone = opened.prune(ids=[run.id for run in runs], older_than_s=older_than, replies=replies)
    click.echo(
        f"removed {counted(gone.n_runs, 'run')}, {counted(gone.n_results, 'result')}, "
        f"{gone.n_replies:,} replies: {gone.n_bytes / 1e6:,.1f} MB",
        err=True,
    )


@command.command()
@click.argument("stores", nargs=-1, required=True, metavar="STORE...", type=click.Path())
@click.option(
    "--into", envvar="PEARL_STORE", metavar="FOLDER", type=click.Path(file_okay=False),
    help="The store that grows, made if need be [default: as --store of the other commands].",
)  # fmt: skip
def merge(stores: tuple[str, ...], into: str | None) -> int:
    """Take over the results and replies of each STORE, a folder; they stay as they are.

    Shards of one command become one run. Doing it again changes nothing.
    """
    from pearl.runs.store import Store

    for store in stores:  # before one is made to put them into
        _read(store).close()
    with Store.open(opened_folder(into)) as opened:
        merged = opened.merge([Path(store) for store in stores])
    click.echo(
        f"{counted(merged.n_runs, 'run')} read; new: {counted(merged.n_results, 'result')}, "
        f"{merged.n_replies:,} replies",
        err=True,
    )
    if merged.n_conflicts:
        notice(f"{merged.n_conflicts:,} were there with other content, which stays")
    if merged.n_bad:
        notice(f"{merged.n_bad:,} are damaged and left out")
    return 1 if merged.n_conflicts or merged.n_bad else 0


def _print_runs(runs: Sequence[RunInfo]) -> None:
    from rich.text import Text

    table = new_table()
    for name in ("run", "state", "changed", "results", "command"):
        table.add_column(
            name, justify="right" if name == "results" else "left", no_wrap=name != "command"
        )
    for run in runs:
        command = Text(_short(shlex.join(_command(run))))
        failed = f", {run.n_failed:,} failed" if run.n_failed else ""
        results = f"{run.n_results:,}{failed}"
        table.add_row(_short(run.id), run.state, _ago(run.updated), results, command)
    new_console(soft_wrap=False).print(table)


def _short(text: str) -> str:
    """On one line that moves no cursor, without the middle of what names hundreds of files."""
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
