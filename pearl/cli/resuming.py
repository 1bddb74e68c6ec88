"""Resumes a stored run after showing its effects and asking for confirmation.

A store is untrusted: its server and its files do not count as chosen by the user until the user has
confirmed them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli.options import FOUND, server_notice, warn_ignored_settings
from pearl.cli.terminal import notice
from pearl.errors import DataError, StoreError, UsageError
from pearl.errors.addresses import LEFT_OUT, redacted
from pearl.errors.escaping import visible
from pearl.llm.backends import ModelSettings, address_of, default_key_variable
from pearl.runs.request import REQUESTS, ExecuteRequest, RunRequest

if TYPE_CHECKING:
    from pearl.runs.store import RunInfo

ALLOWED = ("force", "allow_outside", "unsandboxed")
"""Options that no store says for the user."""

SENT_TO = ("embeddings", "reranker", "reranker_url")
"""Likewise: what passages are sent to."""

FIXED = (
    "plan_and_documents", "together", "tasks", "data", "split", "columns", "subset", "limit", "longest", "shard",
    "fresh", "run", "results", "rescore", "temperature", "token_budget", "part_tokens",
    "seed_library", "retries", "held_out",
)  # fmt: skip
"""Options that would make it another run."""

N_SHOWN = 8
"""Files that are named one by one, where they are in the folder of the run."""

MAX_LINE = 100_000_000
"""Bytes of a row that are read to see what it is."""


def command_of(request: RunRequest) -> click.Command:
    """The command that carries a request out."""
    from pearl.cli.commands.eval import command as evaluate
    from pearl.cli.commands.execute import command as execute
    from pearl.cli.commands.mine import command as mine
    from pearl.cli.commands.refine import fewshot

    known = dict(zip(REQUESTS, (execute, evaluate, mine, fewshot), strict=True))
    return known[request.COMMAND]


def params_of(
    ctx: click.Context, request: RunRequest, options: tuple[str, ...], out: str | None
) -> tuple[dict[str, Any], set[str]]:
    """What the command is called with: the request, and what the user says now in its place."""
    name = request.COMMAND
    own = (ctx.find_root().default_map or {}).get(name) or {}
    defaults = {
        name: own[name]
        for name in ("base_url", "api_key_env")
        if name in own and name not in ctx.meta.get(FOUND, ())
    }
    words = ["--model", request.model, *options]  # of an option that is there twice the last counts
    defaults["out"] = request.out  # without which some make no context
    said = command_of(request).make_context(name, words, parent=ctx, default_map=defaults)

    flags = {
        name
        for name in said.params
        if said.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if fixed := [name for name in FIXED if name in flags and said.params[name]]:
        raise UsageError(
            f"{fixed[0].replace('_', ' ')}: that would be another run",
            help="give the command itself; 'pearl runs resume' takes limits, rates and places",
        )
    params = {**dict(request), **{name: said.params[name] for name in flags}}
    if out is not None:
        params["out"] = str(Path(out).absolute())
        flags.add("out")
    address = _server(params["model"], request.base_url, said, is_flag="base_url" in flags)
    is_named = address == address_of(params["model"], ModelSettings(said.params["base_url"]))
    params["base_url"] = address or None
    params["api_key_env"] = _key(params, said.params["api_key_env"], is_named=is_named)
    own = ("dry_run", "telemetry", *ALLOWED, *SENT_TO)
    not_kept = {name: said.params[name] for name in own if name in said.params}
    return {**params, **not_kept}, flags


def _server(model: str, kept: str | None, said: click.Context, *, is_flag: bool) -> str | None:
    """Where the run goes on: where the user says, or else where it was."""
    mine = address_of(model, ModelSettings(said.params["base_url"]))
    if is_flag or mine is None or redacted(mine, LEFT_OUT) == (kept or ""):
        return mine
    if mine:
        raise UsageError(
            f"the run was sent to {_place(model, kept)}, and your settings say {_place(model, mine)}",
            help="name the one you want: --base-url URL",
        )
    return kept


def _place(model: str, url: str | None) -> str:
    """A server as shown in messages."""
    from pearl.llm.backends.openai.endpoint import Endpoint

    return Endpoint(url, model, "").shown if url else f"the usual server of {model}"


def _key(params: Mapping[str, Any], said: str | None, *, is_named: bool) -> str | None:
    """Which variable's key is sent to a server that is named by the user, or only by the store."""
    if said is not None or is_named or not params["base_url"]:
        return said
    return default_key_variable(params["model"], params["base_url"])


def agreed(
    info: RunInfo, request: RunRequest, params: Mapping[str, Any], said: Container[str],
    *, is_yes: bool,
) -> bool:  # fmt: skip
    """Show on stderr what a run will do, in the folder it is resumed in, and have it confirmed."""
    _refuse_other_search(info, params)
    if isinstance(request, ExecuteRequest) and request.together:
        _refuse_other_corpus(info, request)
    notice(f"run {info.id} goes on in {visible(str(Path.cwd()))}")
    click.echo(
        f"  model   {visible(server_notice(params).partition(chr(10))[0] or str(params['model']))}",
        err=True,
    )
    warn_ignored_settings(params)
    click.echo(f"  reads   {_listed(list(request.inputs))}", err=True)
    click.echo(f"  writes  {_listed(list(request.outputs))}", err=True)
    for name in request.outputs:
        if ("trace" if name == params.get("trace") else "out") not in said:
            _keep_others(name)
    if is_yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(
            "what a store says is done once you confirm it, and there is no terminal to ask",
            help="read what it will do, above; --yes confirms it",
        )
    return click.confirm("go on?", err=True)


def _refuse_other_search(info: RunInfo, params: Mapping[str, Any]) -> None:
    """Make sure that the user names what the run sent passages to: a store does not."""
    for name in ("embeddings", "reranker"):
        was = info.settings.get(name)
        if name in params and was != params[name]:
            did = f"had {name} '{visible(str(was))}'" if was else f"had no {name}"
            raise UsageError(
                f"run {info.id} {did}, and you say {visible(str(params[name] or 'none'))}",
                help=f"--{name} {visible(str(was))}" if was else f"leave out --{name}",
            )


def _refuse_other_corpus(info: RunInfo, request: ExecuteRequest) -> None:
    """Make sure that a corpus is what it was."""
    if "-" in request.plan_and_documents:
        raise UsageError(
            f"standard input is part of the corpus of run {info.id}, and cannot be read again",
            help="give the command itself, with the same input",
        )
    if info.inputs.get("corpus") != request.worked_on["corpus"]:
        raise StoreError(
            f"the corpus of run {info.id} has changed since",
            help="give the command itself again: that begins another run",
        )


def _keep_others(name: str) -> None:
    """Make sure that a file which a store names is none, or one that a run has written."""
    path = Path(name)
    if path.exists() and not (path.is_file() and _is_of_a_run(path)):
        raise DataError(
            "is there, and no results of a run: it is not written over because a store says so",
            path=visible(name),
            help="name a file yourself: -o rows.jsonl, --trace FILE",
        )


def _is_of_a_run(path: Path) -> bool:
    """Whether a file is empty, or begins as rows, traces, logs or drafts do."""
    with path.open("rb") as file:
        first = file.readline(MAX_LINE)
    try:
        row = json.loads(first or b'{"event": ""}')
    except (ValueError, RecursionError):
        return False
    is_header = isinstance(row, dict) and str(row.get("kind")).startswith("pearl-")
    return is_header or (
        isinstance(row, dict) and ({"id", "status"} <= row.keys() or "event" in row)
    )


def _listed(names: list[str]) -> str:
    """Paths as people can judge them: those outside of this folder first and in full."""
    here = Path.cwd().resolve()
    whole = {name: Path(name).resolve() for name in dict.fromkeys(names)}
    outside = [str(path) for path in whole.values() if not path.is_relative_to(here)]
    inside = [name for name, path in whole.items() if path.is_relative_to(here)]
    shown = [*outside, *inside[: max(0, N_SHOWN - len(outside))]]
    more = len(whole) - len(shown)
    text = ", ".join(map(visible, shown)) or "nothing"
    return f"{text} and {more:,} more in this folder" if more else text
